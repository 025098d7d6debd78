"""A switch, on or off, and a spinner."""

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QWidget

from ui.mirrored import mirror_widget, upright
from ui.theme import current_theme, theme_changed

_TRACK = (36, 20)
_RIM = 3
_STEP_MS = 80
_STEPS = 12
_SIXTEENTHS = 16
_ROUND = 360


class Switch(QCheckBox):
    """A track with a knob: right and ticked is on, left and hollow is off.  Space turns it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        metrics = current_theme().metrics
        width, height = (metrics.scaled(side) for side in _TRACK)
        return QSize(width + 2 * _RIM + 2, height + 2 * _RIM + 2)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, pos: object) -> bool:
        del pos
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        whole = QRectF(self.rect())
        track = whole.adjusted(_RIM, _RIM, -_RIM, -_RIM)
        radius = track.height() / 2
        on = self.isChecked()
        painter.setPen(QPen(theme.accent if on else theme.line2, 1.5))
        painter.setBrush(theme.accent if on else theme.surface2)
        painter.drawRoundedRect(track.adjusted(1, 1, -1, -1), radius - 1, radius - 1)
        knob = radius - 4
        centre = QPointF(
            track.right() - radius if on else track.left() + radius, track.center().y()
        )
        painter.setPen(Qt.PenStyle.NoPen if on else QPen(theme.line2, 2))
        painter.setBrush(theme.onAccent if on else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(centre, knob, knob)
        if on:
            at = QPointF(track.left() + radius + 1, centre.y())
            with upright(painter, QRectF(at, QSizeF(0, 0))):
                self._tick(painter, at, radius * 0.38)
        if self.hasFocus():
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(whole.adjusted(1, 1, -1, -1), radius + 2, radius + 2)

    def _tick(self, painter: QPainter, at: QPointF, size: float) -> None:
        painter.setPen(QPen(current_theme().onAccent, 1.6))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        start, turn = at + QPointF(-size, 0), at + QPointF(-size * 0.2, size * 0.8)
        painter.drawPolyline([start, turn, at + QPointF(size, -size * 0.8)])


class Spinner(QWidget):
    """An arc that turns while it is shown; the words beside it say what one waits for."""

    def __init__(self) -> None:
        super().__init__()
        self._at = 0
        self._timer = QTimer(self)
        self._timer.setInterval(_STEP_MS)
        self._timer.timeout.connect(self._turn)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(16)
        return QSize(side, side)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _turn(self) -> None:
        self._at = (self._at + 1) % _STEPS
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ring = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        painter.setPen(QPen(theme.line, 2))
        painter.drawEllipse(ring)
        painter.setPen(QPen(theme.accent, 2))
        begin = -self._at * _ROUND // _STEPS
        painter.drawArc(ring, begin * _SIXTEENTHS, -_ROUND // 4 * _SIXTEENTHS)
