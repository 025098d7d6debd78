"""How a message's text looks: lines with their styles, bars beside quotes, boxes of code.

Only what is in view is drawn, so a message that is much higher than the window costs no more than
one that fills it.
"""

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QTextLayout

from ui.icons import draw_icon
from ui.marked_text import Range
from ui.theme import Radius, Theme
from ui.timeline.bodies import Body
from ui.timeline.code_block import CodeBlock
from ui.timeline.text_block import TextBlock


class BodyState(Struct, frozen=True, kw_only=True):
    selected: Range | None
    """UTF-16 range of the message's text."""
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
            chosen = self._selection(state.selected, block)
            block.shape.layout.draw(p, top, chosen, view)
            for bar in block.bars:
                p.fillRect(bar.translated(top), quote_bar)

    def _pills(self, block: TextBlock, top: QPointF) -> None:
        radius = self._theme.metrics.gap(Radius.GROUPED)
        self._p.setPen(Qt.PenStyle.NoPen)
        self._p.setBrush(self._theme.accent)
        for pill in block.pills:
            self._p.drawRoundedRect(pill.translated(top), radius, radius)

    def _selection(self, selected: Range | None, block: TextBlock) -> list[QTextLayout.FormatRange]:
        return self._chosen(selected, block.shape.start, block.shape.end)

    def _chosen(
        self, selected: Range | None, start: int, end: int
    ) -> list[QTextLayout.FormatRange]:
        if selected is None or selected[0] >= end or selected[1] <= start:
            return []
        chosen = QTextLayout.FormatRange()
        chosen.start = max(selected[0], start) - start
        chosen.length = min(selected[1], end) - start - chosen.start
        form = chosen.format
        form.setBackground(QBrush(self._theme.accent))
        form.setForeground(QBrush(self._theme.onAccent))
        chosen.format = form
        return [chosen]

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
            line.draw(
                p, QPointF(x, at.y() + block.row_top(row)), self._chosen(state.selected, start, end)
            )
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
