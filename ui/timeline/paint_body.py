"""How a message's text looks: lines with their styles, bars beside quotes, boxes of code.

Only what is in view is drawn, so a message that is much higher than the window costs no more than
one that fills it.
"""

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QTextCharFormat, QTextLayout

from ui.icons import draw_icon
from ui.marked_text import Range
from ui.theme import Radius, Theme
from ui.timeline.bodies import Body
from ui.timeline.code_block import CodeBlock
from ui.timeline.text_block import TextBlock


class BodyState(Struct, frozen=True, kw_only=True):
    selected: Range | None
    """UTF-16 range of the message's text."""
    found: tuple[Range, ...] = ()
    """Likewise, what is searched for; in order."""
    hovered_code: int | None
    """Where the block of code begins whose button is under the mouse."""


class BodyPainter:
    def __init__(self, painter: QPainter, theme: Theme) -> None:
        self._p = painter
        self._theme = theme

    def paint(
        self, body: Body, at: QPointF, state: BodyState, *, ink: QColor, quote_bar: QColor
    ) -> None:
        """Paint ``body`` with its upper left corner at ``at``."""
        p = self._p
        view = QRectF(p.window()).translated(-p.worldTransform().dx(), -p.worldTransform().dy())
        for block in body.blocks:
            top = at + QPointF(0, block.y)
            if top.y() > view.bottom() or top.y() + block.height < view.top():
                continue
            if isinstance(block, CodeBlock):
                self._code(body, block, at, view, state)
                continue
            self._pills(block, top)
            p.setPen(ink)
            styles = self._styles(state, block.shape.start, block.shape.end)
            block.shape.layout.draw(p, top, styles, view)
            for bar in block.bars:
                p.fillRect(bar.translated(top), quote_bar)

    def _pills(self, block: TextBlock, top: QPointF) -> None:
        radius = self._theme.metrics.gap(Radius.GROUPED)
        self._p.setPen(Qt.PenStyle.NoPen)
        self._p.setBrush(self._theme.accent)
        for pill in block.pills:
            self._p.drawRoundedRect(pill.translated(top), radius, radius)

    def _styles(self, state: BodyState, start: int, end: int) -> list[QTextLayout.FormatRange]:
        """What is found, and over it what is selected, between two indexes of the message."""
        theme = self._theme
        found, selected = QTextCharFormat(), QTextCharFormat()
        found.setBackground(QBrush(theme.accentSoft))
        found.setForeground(QBrush(theme.accentInk))
        found.setFontUnderline(True)
        selected.setBackground(QBrush(theme.accent))
        selected.setForeground(QBrush(theme.onAccent))
        styles = [_style(each, found, start, end) for each in state.found]
        if state.selected is not None:
            styles.append(_style(state.selected, selected, start, end))
        return [style for style in styles if style.length > 0]

    def _code(
        self, body: Body, block: CodeBlock, at: QPointF, view: QRectF, state: BodyState
    ) -> None:
        p, theme = self._p, self._theme
        radius = theme.metrics.gap(Radius.BUTTON)
        rect = block.rect.translated(at)
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.code)
        p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        p.save()
        sides = block.inner.left() - 4
        p.setClipRect(rect.adjusted(sides, 1, -sides, -1), Qt.ClipOperation.IntersectClip)
        p.setPen(theme.ink)
        x = at.x() + block.inner.left() - block.scrolled
        for row in block.rows_between(view.top() - at.y(), view.bottom() - at.y()):
            line = body.lines.line(block.shape, row)
            start = block.shape.line_start(row)
            end = block.shape.line_start(row + 1)
            line.draw(p, QPointF(x, at.y() + block.row_top(row)), self._styles(state, start, end))
        p.restore()
        bar = block.bar
        if bar is not None:
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(theme.line2)
            p.drawRoundedRect(bar.translated(at), 1.5, 1.5)
        self._copy_button(block, at, hovered=state.hovered_code == block.shape.start)

    def _copy_button(self, block: CodeBlock, at: QPointF, *, hovered: bool) -> None:
        p, theme = self._p, self._theme
        rect = block.copy_rect.translated(at)
        p.setPen(QPen(theme.line2 if theme.is_high_contrast else theme.line, 1))
        p.setBrush(theme.hover if hovered else theme.surface)
        radius = theme.metrics.gap(Radius.GROUPED)
        p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        side = theme.metrics.scaled(14)
        centre = rect.center()
        sign = QRectF(centre.x() - side / 2, centre.y() - side / 2, side, side)
        draw_icon(p, "copy", sign, theme.ink2)


def _style(part: Range, form: QTextCharFormat, start: int, end: int) -> QTextLayout.FormatRange:
    style = QTextLayout.FormatRange()
    style.start = max(part[0], start) - start
    style.length = min(part[1], end) - start - style.start
    style.format = form
    return style
