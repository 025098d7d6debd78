"""How quotes, "Forwarded" and reactions look in a bubble; ``bubble_parts`` measured them."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPen

from ui.timeline.bubble_parts import (
    MORE_CHIP,
    QUOTE_BAR,
    Chip,
    PartsAbove,
    QuoteBox,
    forwarded_words,
)
from ui.timeline.buttons import advance, strong
from ui.timeline.primitives import Primitives

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_OWN_QUOTE_ALPHA = 0.45


class PartsPainter:
    def __init__(self, draw: Primitives) -> None:
        self._draw = draw
        self._theme = draw.theme

    def above(self, parts: PartsAbove, *, own: bool, ink: QColor, hovered: bool) -> None:
        if parts.forwarded is not None:
            font = QFont(self._theme.type.caption.font)
            font.setItalic(True)
            self._draw.text(parts.forwarded, forwarded_words(), font, ink, _LEFT)
        if parts.quote is not None:
            self._quote(parts.quote, own=own, ink=ink, hovered=hovered)

    def _quote(self, quote: QuoteBox, *, own: bool, ink: QColor, hovered: bool) -> None:
        p, theme, rect = self._draw.painter, self._theme, quote.rect
        missing = quote.sender_id is None
        bar = theme.warnDot if missing else theme.sender_colour(quote.sender_id or "")
        fill = QColor(theme.surface if own else theme.surface2)
        if own:
            fill.setAlphaF(_OWN_QUOTE_ALPHA)
        if hovered:
            fill = QColor(theme.hover)
        p.setPen(QPen(theme.line, 1) if theme.is_high_contrast else Qt.PenStyle.NoPen)
        p.setBrush(fill)
        p.drawRoundedRect(rect, theme.metrics.gap(4), theme.metrics.gap(4))
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(bar)
        p.drawRoundedRect(QRectF(rect.left(), rect.top(), QUOTE_BAR, rect.height()), 1.5, 1.5)
        face = theme.type.small
        line = QRectF(rect)
        line.setLeft(rect.left() + QUOTE_BAR + theme.metrics.gap(8))
        line.setTop(rect.top() + theme.metrics.gap(4))
        line.setHeight(face.line_height)
        self._draw.text(line, quote.name, strong(face), theme.warn if missing else bar, _LEFT)
        font = QFont(face.font)
        font.setItalic(quote.italic)
        for words in quote.lines:
            line.translate(0, face.line_height)
            self._draw.text(line, words, font, ink, _LEFT)

    def chips(self, chips: tuple[Chip, ...], hovered: str) -> None:
        for chip in chips:
            self._chip(chip, hovered=chip.emoji == hovered)

    def _chip(self, chip: Chip, *, hovered: bool) -> None:
        p, theme = self._draw.painter, self._theme
        fill, line = (theme.accentSoft, theme.accent) if chip.mine else (theme.surface2, theme.line)
        pen = QPen(line, 1.5 if chip.mine else 1)
        if chip.pending:
            pen.setDashPattern([3, 2])
        p.setPen(pen)
        p.setBrush(theme.hover if hovered and not chip.mine else fill)
        rect = chip.rect.adjusted(0.75, 0.75, -0.75, -0.75)
        p.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2)
        face = theme.type.small
        at = QRectF(chip.rect)
        at.setLeft(at.left() + theme.metrics.gap(8))
        if chip.emoji != MORE_CHIP:
            self._draw.text(at, chip.emoji, face.font, theme.ink, _LEFT)
            at.setLeft(at.left() + advance(face.font, chip.emoji) + 5)
        ink = theme.accentInk if chip.mine else theme.ink2
        self._draw.text(at, chip.count, strong(face), ink, _LEFT)
