"""The cards of the timeline: what is missing, lost, held, or said before the beginning.

Amber and hollow is missing and asked for; grey, hollow and struck through is lost for good.
"""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPen

from ui.timeline.buttons import RowButton, advance, strong
from ui.timeline.cards import CardBox
from ui.timeline.primitives import Primitives
from ui.timeline.rows import EarlierRow, GapRow, LostRow, Row

MAX_GAP_BEADS = 3
_BEAD_PITCH = 16


class CardPainter:
    """Paints cards at the painter's origin."""

    def __init__(self, draw: Primitives) -> None:
        self._draw = draw
        self._p = draw.painter
        self._theme = draw.theme
        self._g = draw.geometry

    def paint(self, row: Row, box: CardBox, hovered: RowButton | None) -> None:
        match row:
            case GapRow():
                self._gap(row, box, hovered)
            case LostRow():
                self._lost(box, hovered)
            case EarlierRow():
                self._earlier(box, hovered)
            case _:
                self._draw.dash_thread(box.height)
                self._draw.bead(
                    box.card.center().y(), radius=self._g.bead, ring=self._theme.warnDot
                )
                self._card(box, hovered)

    def _gap(self, row: GapRow, box: CardBox, hovered: RowButton | None) -> None:
        theme, g = self._theme, self._g
        self._draw.dash_thread(box.height)
        count = max(1, min(MAX_GAP_BEADS, row.gap.missing))
        pitch = _BEAD_PITCH * self._draw.scale
        top = box.card.top() + min(box.card.height(), 3 * pitch) / 2 - (count - 1) * pitch / 2
        for bead in range(count):
            self._draw.bead(top + bead * pitch, radius=g.bead, ring=theme.warnDot, halo=False)
        hidden = row.gap.missing - MAX_GAP_BEADS
        if hidden > 0:
            self._more_beads(top + (count - 1) * pitch, hidden)
        self._card(box, hovered)

    def _lost(self, box: CardBox, hovered: RowButton | None) -> None:
        """Nobody waits for them any more, so nothing here is amber."""
        p, theme, g = self._p, self._theme, self._g
        self._draw.dash_thread(box.height, theme.line2)
        y = box.card.top() + min(box.card.height() / 2, 24 * self._draw.scale)
        self._draw.bead(y, radius=g.bead, ring=theme.ink3)
        reach = g.bead + 1.5
        p.setPen(QPen(theme.ink3, 2))
        p.drawLine(QPointF(g.thread_x - reach, y + reach), QPointF(g.thread_x + reach, y - reach))
        self._panel(box, theme.surface2, theme.line2, dashed=True)
        self._card_words(box, theme.ink2)
        for button, rect in box.buttons:
            self._draw.button(button, rect, hovered=hovered is button, colour=theme.ink2)

    def _earlier(self, box: CardBox, hovered: RowButton | None) -> None:
        theme = self._theme
        if box.details:
            flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
            wrapped = flags | Qt.TextFlag.TextWordWrap
            self._draw.text(box.details_at, box.details, theme.type.small.font, theme.ink2, wrapped)
        for button, rect in box.buttons:
            self._draw.button(button, rect, hovered=hovered is button)

    def _card(self, box: CardBox, hovered: RowButton | None) -> None:
        self._panel(box, self._theme.warnBg, self._theme.warnLine)
        self._card_words(box, self._theme.warn)
        for button, rect in box.buttons:
            self._draw.button(button, rect, hovered=hovered is button)

    def _panel(self, box: CardBox, fill: QColor, line: QColor, *, dashed: bool = False) -> None:
        p, pen = self._p, QPen(line, 1)
        if dashed:
            pen.setDashPattern([4, 3])
        p.setPen(pen)
        p.setBrush(fill)
        radius = self._theme.metrics.gap(12)
        p.drawRoundedRect(box.card.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)

    def _more_beads(self, y: float, hidden: int) -> None:
        theme, font = self._theme, strong(self._theme.type.micro)
        words = f"+{hidden}" if hidden < 100 else "+99"  # noqa: PLR2004 - two digits fit
        width = max(advance(font, words) + 6, 2 * self._g.bead)
        height = theme.type.micro.line_height - 2
        rect = QRectF(self._g.thread_x - width / 2, y - height / 2, width, height)
        self._p.setPen(QPen(theme.warnDot, 1.5))
        self._p.setBrush(theme.canvas)
        self._p.drawRoundedRect(rect, height / 2, height / 2)
        self._draw.text(rect, words, font, theme.warn)

    def _card_words(self, box: CardBox, ink: QColor) -> None:
        theme = self._theme
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        bold = strong(theme.type.label)
        rect = QRectF(box.title_at)
        wrapped = flags | Qt.TextFlag.TextWordWrap
        if box.since:
            rect.setRight(box.card.right() - 8)
            self._draw.text(rect, box.title, bold, ink, flags)
            rect.setLeft(rect.left() + advance(bold, f"{box.title} "))
            self._draw.text(rect, box.since, theme.type.label.font, ink, flags)
        else:
            self._draw.text(rect, box.title, bold, ink, wrapped)
        if box.cause:
            self._draw.text(box.cause_at, box.cause, theme.type.small.font, theme.ink2, wrapped)
        self._draw.text(box.details_at, box.details, theme.type.small.font, theme.ink2, wrapped)
