"""Drawing a person (circle) or a group (rounded square): fill by stable id, white initials."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import current_theme, initials, theme_changed
from ui.theme.colours import AVATAR_INITIAL
from ui.theme.metrics import GROUP_AVATAR_RADIUS

_LETTER = 0.40
_GROUP_LETTER = 0.36
_PRESENCE = 12


def draw_avatar(
    painter: QPainter, rect: QRectF, *, stable_id: str, name: str, is_group: bool
) -> None:
    theme = current_theme()
    side = min(rect.width(), rect.height())
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    ring = QPen(AVATAR_INITIAL, 1) if theme.is_high_contrast else QPen(Qt.PenStyle.NoPen)
    painter.setPen(ring)
    painter.setBrush(theme.avatar_fill(stable_id))
    inner = rect.adjusted(0.5, 0.5, -0.5, -0.5) if theme.is_high_contrast else rect
    if is_group:
        radius = side * GROUP_AVATAR_RADIUS
        painter.drawRoundedRect(inner, radius, radius)
    else:
        painter.drawEllipse(inner)
    font = QFont(theme.type.body.strong())
    font.setPixelSize(max(1, int(side * (_GROUP_LETTER if is_group else _LETTER) + 0.5)))
    painter.setFont(font)
    painter.setPen(AVATAR_INITIAL)
    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, initials(name, is_group=is_group))
    painter.restore()


class Avatar(QWidget):
    """A still avatar; ``side`` is in pixels at 100 % text size."""

    def __init__(self, side: int, *, is_group: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._side = side
        self._is_group = is_group
        self._stable_id = ""
        self._name = ""
        self._present: bool | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._resize)
        self._resize()

    def show_identity(self, stable_id: str, name: str, *, present: bool | None = None) -> None:
        """``present``: a filled dot if True, a hollow one if False, none if None."""
        self._stable_id, self._name, self._present = stable_id, name, present
        self.update()

    def _resize(self) -> None:
        side = current_theme().metrics.scaled(self._side)
        self.setFixedSize(side, side)
        self.update()

    def paintEvent(self, event: object) -> None:
        theme = current_theme()
        painter = QPainter(self)
        rect = QRectF(self.rect())
        draw_avatar(
            painter,
            rect,
            stable_id=self._stable_id,
            name=self._name,
            is_group=self._is_group,
        )
        if self._present is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            radius = theme.metrics.scaled(_PRESENCE) / 2
            centre = QPointF(rect.right() - radius + 1, rect.bottom() - radius + 1)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.panel)
            painter.drawEllipse(centre, radius, radius)
            painter.setPen(QPen(theme.ok if self._present else theme.ink3, 1.5))
            painter.setBrush(theme.ok if self._present else theme.panel)
            painter.drawEllipse(centre, radius - 2.5, radius - 2.5)
