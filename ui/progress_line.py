"""How far something is, as a thin line."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QProgressBar, QSizePolicy

from ui.mirrored import mirror_widget
from ui.theme import current_theme, theme_changed

_STEPS = 1000
_THICK = 6
_UNKNOWN_PARTS = 3


class ProgressLine(QProgressBar):
    """A thin line; where nobody knows how long it gets, three dashes that stand still."""

    def __init__(self, name: str) -> None:
        """``name``: what is done, for screen readers."""
        super().__init__()
        self.setTextVisible(False)
        self.setAccessibleName(name)
        self.setRange(0, _STEPS)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._known = False
        theme_changed.connect(self.updateGeometry)

    def show_fraction(self, fraction: float | None) -> None:
        self._known = fraction is not None
        self.setValue(0 if fraction is None else int(min(max(fraction, 0.0), 1.0) * _STEPS))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(80, current_theme().metrics.scaled(_THICK))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        track = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        radius = track.height() / 2
        painter.setPen(QPen(theme.line2, 1))
        painter.setBrush(theme.surface)
        painter.drawRoundedRect(track, radius, radius)
        painter.setBrush(theme.accent)
        painter.setPen(Qt.PenStyle.NoPen)
        if self._known:
            share = self.value() / _STEPS
            if share > 0:
                filled = QRectF(track)
                filled.setWidth(max(track.height(), track.width() * share))
                painter.drawRoundedRect(filled, radius, radius)
            return
        part = track.width() / (2 * _UNKNOWN_PARTS)
        for number in range(_UNKNOWN_PARTS):
            left = track.left() + (2 * number + 0.5) * part
            piece = QRectF(left, track.top(), part, track.height())
            painter.drawRoundedRect(piece, radius, radius)
