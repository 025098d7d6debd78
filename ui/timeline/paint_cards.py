"""The cards of the timeline: what is missing, lost, held, or said before the beginning.

The half of ``paint`` that draws boxes with buttons, and the strokes that both halves share.  Amber
and hollow is missing and asked for; grey, hollow and struck through is lost for good.
"""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from ui.icons import draw_icon
from ui.theme import Theme
from ui.timeline.boxes import BubbleBox
from ui.timeline.buttons import BUTTON_WORDS, WITH_SIGN, RowButton, advance, strong
from ui.timeline.cards import CardBox
from ui.timeline.geometry import Geometry
from ui.timeline.rows import EarlierRow, GapRow, LostRow, Row

MAX_GAP_BEADS = 3
_BEAD_PITCH = 16
HALO = 3


class CardPainter:
    """Paints cards of one theme and geometry, at the painter's origin."""

    def __init__(self, painter: QPainter, theme: Theme, geometry: Geometry) -> None:
        self._p = painter
        self._theme = theme
        self._g = geometry

    def card_row(self, row: Row, box: CardBox, hovered: RowButton | None) -> None:
        match row:
            case GapRow():
                self._gap(row, box, hovered)
            case LostRow():
                self._lost(box, hovered)
            case EarlierRow():
                self._earlier(box, hovered)
            case _:
                self._dash_thread(box)
                self._bead(box.card.center().y(), radius=self._g.bead, ring=self._theme.warnDot)
                self._card(box, hovered)

    def _gap(self, row: GapRow, box: CardBox, hovered: RowButton | None) -> None:
        theme, g = self._theme, self._g
        self._dash_thread(box)
        count = max(1, min(MAX_GAP_BEADS, row.gap.missing))
        pitch = _BEAD_PITCH * self._scale
        top = box.card.top() + min(box.card.height(), 3 * pitch) / 2 - (count - 1) * pitch / 2
        for bead in range(count):
            self._bead(top + bead * pitch, radius=g.bead, ring=theme.warnDot, halo=False)
        hidden = row.gap.missing - MAX_GAP_BEADS
        if hidden > 0:
            self._more_beads(top + (count - 1) * pitch, hidden)
        self._card(box, hovered)

    def _lost(self, box: CardBox, hovered: RowButton | None) -> None:
        """Nobody waits for them any more, so nothing here is amber."""
        p, theme, g = self._p, self._theme, self._g
        self._dash_thread(box, theme.line2)
        y = box.card.top() + min(box.card.height() / 2, 24 * self._scale)
        self._bead(y, radius=g.bead, ring=theme.ink3)
        reach = g.bead + 1.5
        p.setPen(QPen(theme.ink3, 2))
        p.drawLine(QPointF(g.thread_x - reach, y + reach), QPointF(g.thread_x + reach, y - reach))
        self._panel(box, theme.surface2, theme.line2, dashed=True)
        self._card_words(box, theme.ink2)
        for button, rect in box.buttons:
            self._button(button, rect, hovered=hovered is button, colour=theme.ink2)

    def _earlier(self, box: CardBox, hovered: RowButton | None) -> None:
        theme = self._theme
        if box.details:
            flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
            wrapped = flags | Qt.TextFlag.TextWordWrap
            self._text(box.details_at, box.details, theme.type.small.font, theme.ink2, wrapped)
        for button, rect in box.buttons:
            self._button(button, rect, hovered=hovered is button)

    def _dash_thread(self, box: CardBox | BubbleBox, colour: QColor | None = None) -> None:
        p, x = self._p, self._g.thread_x
        p.fillRect(QRectF(x - 3, 0, 6, box.height), self._theme.canvas)
        dashes = QPen(colour or self._theme.warnLine, 2)
        dashes.setDashPattern([2, 2])
        dashes.setCapStyle(Qt.PenCapStyle.FlatCap)
        p.setPen(dashes)
        p.drawLine(QPointF(x, 0), QPointF(x, box.height))

    def _card(self, box: CardBox, hovered: RowButton | None) -> None:
        self._panel(box, self._theme.warnBg, self._theme.warnLine)
        self._card_words(box, self._theme.warn)
        for button, rect in box.buttons:
            self._button(button, rect, hovered=hovered is button)

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
        self._text(rect, words, font, theme.warn)

    def _card_words(self, box: CardBox, ink: QColor) -> None:
        theme = self._theme
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        bold = strong(theme.type.label)
        rect = QRectF(box.title_at)
        wrapped = flags | Qt.TextFlag.TextWordWrap
        if box.since:
            rect.setRight(box.card.right() - 8)
            self._text(rect, box.title, bold, ink, flags)
            rect.setLeft(rect.left() + advance(bold, f"{box.title} "))
            self._text(rect, box.since, theme.type.label.font, ink, flags)
        else:
            self._text(rect, box.title, bold, ink, wrapped)
        if box.cause:
            self._text(box.cause_at, box.cause, theme.type.small.font, theme.ink2, wrapped)
        self._text(box.details_at, box.details, theme.type.small.font, theme.ink2, wrapped)

    # strokes ------------------------------------------------------------------------------------

    @property
    def _scale(self) -> float:
        return self._theme.metrics.factor

    def _bead(
        self,
        y: float,
        *,
        radius: float,
        fill: QColor | None = None,
        ring: QColor | None = None,
        halo: bool = True,
    ) -> None:
        p, centre = self._p, QPointF(self._g.thread_x, y)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(self._theme.canvas)
        if halo:
            p.drawEllipse(centre, radius + HALO, radius + HALO)
        if ring is not None:
            p.setPen(QPen(ring, 2))
            p.drawEllipse(centre, radius - 1, radius - 1)
        elif fill is not None:
            p.setBrush(fill)
            p.drawEllipse(centre, radius, radius)

    def _button(
        self, button: RowButton, rect: QRectF, *, hovered: bool, colour: QColor | None = None
    ) -> None:
        p, theme, words, metrics = self._p, self._theme, BUTTON_WORDS[button], self._theme.metrics
        if button is RowButton.UNFOLD:
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            font = QFont(strong(theme.type.caption))
            font.setUnderline(hovered)
            self._text(rect, words, font, theme.accentInk, flags)
            return
        ink, line = self._inks(button)
        ink = colour or ink
        about_message = button in (RowButton.RESEND, RowButton.DISCARD)
        font = strong(theme.type.caption if about_message else theme.type.small)
        p.setBrush(theme.hover if hovered else theme.surface)
        p.setPen(QPen(line, 1))
        if button not in WITH_SIGN:
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(theme.hover if hovered else Qt.BrushStyle.NoBrush)
        radius = metrics.gap(8 if about_message else 9)
        p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        at, flags = QRectF(rect), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignHCenter
        if button in WITH_SIGN:
            side = metrics.scaled(14)
            taken = side + 6 + advance(font, words)
            left = rect.center().x() - taken / 2
            draw_icon(p, "again", QRectF(left, rect.center().y() - side / 2, side, side), ink)
            at.setLeft(left + side + 6)
            at.setWidth(taken)
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        self._text(at, words, font, ink, flags)

    def _inks(self, button: RowButton) -> tuple[QColor, QColor]:
        """Of words and outline."""
        theme = self._theme
        match button:
            case RowButton.RESEND:
                return theme.danger, theme.dangerLine
            case RowButton.DISCARD | RowButton.STORES | RowButton.TRY_AGAIN:
                return theme.ink2, theme.line2
            case RowButton.EARLIER:
                return theme.ink, theme.line2
            case _:
                return theme.warn, theme.warnLine

    def _text(
        self,
        rect: QRectF,
        words: str,
        font: QFont,
        colour: QColor,
        flags: int | Qt.AlignmentFlag = Qt.AlignmentFlag.AlignCenter,
    ) -> None:
        p = self._p
        p.setFont(font)
        p.setPen(colour)
        p.drawText(rect, int(flags) | _UNCLIPPED, words)


_UNCLIPPED = int(Qt.TextFlag.TextDontClip)
