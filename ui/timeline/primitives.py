"""What rows and cards are drawn with: text, beads on the thread, buttons."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from ui.icons import draw_icon
from ui.mirrored import draw_text
from ui.theme import Theme
from ui.timeline.buttons import (
    OF_FILES,
    ON_CARDS,
    WITH_SIGN,
    RowButton,
    advance,
    button_words,
    strong,
)
from ui.timeline.geometry import Geometry

HALO = 3
"""Canvas around what stands on the thread."""
FADED = 0.45
"""Opacity of what is about to be deleted."""
_UNCLIPPED = int(Qt.TextFlag.TextDontClip)


class Primitives:
    """Draws with one painter, theme and geometry, at the painter's origin."""

    def __init__(self, painter: QPainter, theme: Theme, geometry: Geometry) -> None:
        self.painter = painter
        self.theme = theme
        self.geometry = geometry
        self.scale = theme.metrics.factor

    def bead(
        self,
        y: float,
        *,
        radius: float,
        fill: QColor | None = None,
        ring: QColor | None = None,
        halo: bool = True,
    ) -> None:
        p, centre = self.painter, QPointF(self.geometry.thread_x, y)
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(self.theme.canvas)
        if halo:
            p.drawEllipse(centre, radius + HALO, radius + HALO)
        if ring is not None:
            p.setPen(QPen(ring, 2))
            p.drawEllipse(centre, radius - 1, radius - 1)
        elif fill is not None:
            p.setBrush(fill)
            p.drawEllipse(centre, radius, radius)

    def button(
        self, button: RowButton, rect: QRectF, *, hovered: bool, colour: QColor | None = None
    ) -> None:
        p, theme, words = self.painter, self.theme, button_words(button)
        if button is RowButton.UNFOLD:
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            font = QFont(strong(theme.type.caption))
            font.setUnderline(hovered)
            self.text(rect, words, font, theme.accentInk, flags)
            return
        ink, line = self._inks(button)
        ink = colour or ink
        about_message = button in (RowButton.RESEND, RowButton.DISCARD, RowButton.KEEP)
        font = strong(theme.type.caption if about_message else theme.type.small)
        p.setBrush(theme.hover if hovered else theme.surface)
        p.setPen(QPen(line, 1))
        if button not in WITH_SIGN | OF_FILES | ON_CARDS | {RowButton.KEEP}:
            p.setPen(Qt.PenStyle.NoPen)
            p.setBrush(theme.hover if hovered else Qt.BrushStyle.NoBrush)
        radius = theme.metrics.gap(8 if about_message else 9)
        p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        at, flags = QRectF(rect), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignHCenter
        if button in WITH_SIGN:
            side = theme.metrics.scaled(14)
            taken = side + 6 + advance(font, words)
            left = rect.center().x() - taken / 2
            draw_icon(p, "again", QRectF(left, rect.center().y() - side / 2, side, side), ink)
            at.setLeft(left + side + 6)
            at.setWidth(taken)
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        self.text(at, words, font, ink, flags)

    def _inks(self, button: RowButton) -> tuple[QColor, QColor]:
        """Of words and outline."""
        theme = self.theme
        match button:
            case RowButton.RESEND:
                return theme.danger, theme.dangerLine
            case RowButton.DISCARD | RowButton.STORES | RowButton.TRY_AGAIN:
                return theme.ink2, theme.line2
            case RowButton.EARLIER:
                return theme.ink, theme.line2
            case _ if button in OF_FILES | ON_CARDS | {RowButton.KEEP}:
                return theme.accentInk, theme.line2
            case _:
                return theme.warn, theme.warnLine

    def text(
        self,
        rect: QRectF,
        words: str,
        font: QFont,
        colour: QColor,
        flags: int | Qt.AlignmentFlag = Qt.AlignmentFlag.AlignCenter,
    ) -> None:
        p = self.painter
        p.setFont(font)
        p.setPen(colour)
        draw_text(p, rect, int(flags) | _UNCLIPPED, words)

    def dash_thread(self, height: float, colour: QColor | None = None) -> None:
        p, x = self.painter, self.geometry.thread_x
        p.fillRect(QRectF(x - 3, 0, 6, height), self.theme.canvas)
        dashes = QPen(colour or self.theme.warnLine, 2)
        dashes.setDashPattern([2, 2])
        dashes.setCapStyle(Qt.PenCapStyle.FlatCap)
        p.setPen(dashes)
        p.drawLine(QPointF(x, 0), QPointF(x, height))
