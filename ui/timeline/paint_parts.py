"""How quotes, "Forwarded" and reactions look in a bubble; ``bubble_parts`` measured them.

Chips repeat, and a coloured emoji is the most expensive thing that a row can show.  So each chip is
drawn once for a theme and screen, and copied from then on.
"""

from functools import lru_cache
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QPixmap

from ui.conversation_words import forwarded_words
from ui.mirrored import upright
from ui.theme import Theme
from ui.timeline.bubble_parts import (
    MORE_CHIP,
    QUOTE_BAR,
    Chip,
    PartsAbove,
    QuoteBox,
)
from ui.timeline.buttons import advance, strong
from ui.timeline.file_pictures import FilePictures, draw_small
from ui.timeline.primitives import Primitives

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_OWN_QUOTE_ALPHA = 0.45


class PartsPainter:
    def __init__(self, draw: Primitives, quoted: FilePictures) -> None:
        self._draw = draw
        self._quoted = quoted
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
        if quote.picture is not None:
            draw_small(p, quote.picture_rect, quote.picture, self._quoted)

    def chips(self, chips: tuple[Chip, ...], hovered: str) -> None:
        painter = self._draw.painter
        scale = painter.device().devicePixelRatioF()
        for chip in chips:
            size = (chip.rect.width(), chip.rect.height())
            words = (chip.emoji, chip.count, chip.mine, chip.pending)
            picture = _chip_picture(self._theme, words, size, chip.emoji == hovered, scale)
            with upright(painter, chip.rect):
                painter.drawPixmap(_on_whole_pixels(painter, chip.rect.topLeft()), picture)


def _on_whole_pixels(painter: QPainter, at: QPointF) -> QPointF:
    """The nearest place where a pixel of a picture is one of the screen."""
    to_screen = painter.deviceTransform()
    place = to_screen.map(at)
    back, _ = to_screen.inverted()
    return back.map(QPointF(round(place.x()), round(place.y())))


_Words = tuple[str, str, bool, bool]
"""Emoji, count, whether it is mine and whether that is not sent yet."""


@lru_cache(maxsize=256)
def _chip_picture(
    theme: Theme, words: _Words, size: tuple[float, float], hovered: bool, scale: float
) -> QPixmap:
    picture = QPixmap(ceil(size[0] * scale), ceil(size[1] * scale))
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _draw_chip(painter, theme, words, QRectF(0, 0, *size), hovered)
    painter.end()
    return picture


def _draw_chip(p: QPainter, theme: Theme, words: _Words, box: QRectF, hovered: bool) -> None:
    emoji, count, mine, pending = words
    fill, line = (theme.accentSoft, theme.accent) if mine else (theme.surface2, theme.line)
    pen = QPen(line, 1.5 if mine else 1)
    if pending:
        pen.setDashPattern([3, 2])
    p.setPen(pen)
    p.setBrush(theme.hover if hovered and not mine else fill)
    rect = box.adjusted(0.75, 0.75, -0.75, -0.75)
    p.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2)
    face = theme.type.small
    at = QRectF(box)
    at.setLeft(at.left() + theme.metrics.gap(8))
    flags = int(_LEFT | Qt.TextFlag.TextDontClip)
    if emoji != MORE_CHIP:
        p.setFont(face.font)
        p.setPen(theme.ink)
        p.drawText(at, flags, emoji)
        at.setLeft(at.left() + advance(face.font, emoji) + 5)
    p.setFont(strong(face))
    p.setPen(theme.accentInk if mine else theme.ink2)
    p.drawText(at, flags, count)
