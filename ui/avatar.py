"""Drawing a person (circle) or a group (rounded square): fill by stable id, white initials.

A person's picture takes the initials' place once it has been decoded, which is not done here.
"""

from typing import Literal

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from ui.mirrored import draw_text, upright
from ui.pictures import FACES, cropped_face
from ui.theme import Theme, current_theme, initials, theme_changed
from ui.theme.colours import AVATAR_INITIAL
from ui.theme.metrics import GROUP_AVATAR_RADIUS

_LETTER = 0.40
_GROUP_LETTER = 0.36
_PRESENCE = 12
_CIRCLE = 0.5
"""Of the side: the radius of its corners."""
_MOST_IMAGES = 256
ColourName = Literal["panel", "header"]
"""What an avatar stands on, for the rim of its dot."""


def draw_avatar(  # noqa: PLR0913 - what it is, and where
    painter: QPainter,
    rect: QRectF,
    *,
    stable_id: str,
    name: str,
    is_group: bool,
    picture: bytes = b"",
) -> None:
    theme = current_theme()
    side = min(rect.width(), rect.height())
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    share = GROUP_AVATAR_RADIUS if is_group else _CIRCLE
    scale = painter.device().devicePixelRatioF()
    face = cropped_face(picture, side, scale, radius=share)
    if face is not None:
        _draw_face(painter, rect, face, radius=share)
        painter.restore()
        return
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
    draw_text(painter, rect, Qt.AlignmentFlag.AlignCenter, initials(name, is_group=is_group))
    painter.restore()


class AvatarImages:
    """Initials that are painted many times a second: each drawn once, while the theme stays."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bool, float, float], QPixmap] = {}
        self._kind: tuple[Theme, float] | None = None

    def paint(
        self, painter: QPainter, rect: QRectF, *, stable_id: str, name: str, is_group: bool
    ) -> None:
        kind = (current_theme(), painter.device().devicePixelRatioF())
        if kind != self._kind or len(self._known) >= _MOST_IMAGES:
            self._known.clear()
            self._kind = kind
        key = stable_id, name, is_group, rect.width(), rect.height()
        image = self._known.get(key)
        if image is None:
            image = self._known[key] = QPixmap((rect.size() * kind[1]).toSize())
            image.setDevicePixelRatio(kind[1])
            image.fill(Qt.GlobalColor.transparent)
            on_image = QPainter(image)
            place = QRectF(QPointF(), rect.size())
            draw_avatar(on_image, place, stable_id=stable_id, name=name, is_group=is_group)
            on_image.end()
        with upright(painter, rect):
            painter.drawPixmap(rect.topLeft(), image)


_IMAGES = AvatarImages()
"""Of all widgets that show somebody: rows of a panel move, and are painted again, while one looks.
"""


def _draw_face(painter: QPainter, rect: QRectF, face: QPixmap, *, radius: float) -> None:
    with upright(painter, rect):
        painter.drawPixmap(rect, face, QRectF(face.rect()))
    if current_theme().is_high_contrast:
        painter.setPen(QPen(AVATAR_INITIAL, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        ring = rect.adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(ring, radius * ring.width(), radius * ring.width())


def draw_presence(painter: QPainter, rect: QRectF, *, present: bool, behind: QColor) -> None:
    """A dot at an avatar's lower right: filled if somebody is there, hollow if not."""
    theme = current_theme()
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    radius = theme.metrics.scaled(_PRESENCE) / 2
    centre = QPointF(rect.right() - radius + 1, rect.bottom() - radius + 1)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(behind)
    painter.drawEllipse(centre, radius, radius)
    painter.setPen(QPen(theme.ok if present else theme.ink3, 1.5))
    painter.setBrush(theme.ok if present else behind)
    painter.drawEllipse(centre, radius - 2.5, radius - 2.5)
    painter.restore()


class _Likeness(QObject):
    """Whom an avatar shows, and how large: of the still one, and of the one that is a button."""

    def __init__(self, widget: QWidget, side: int, *, is_group: bool, behind: ColourName) -> None:
        super().__init__(widget)
        self._widget = widget
        self._side = side
        self.stable_id = ""
        self.name = ""
        self.is_group = is_group
        self.picture = b""
        self.present: bool | None = None
        self.behind = behind
        widget.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._resize)
        FACES.changed.connect(widget.update)
        self._resize()

    def show(
        self,
        stable_id: str,
        name: str,
        *,
        present: bool | None = None,
        picture: bytes = b"",
        is_group: bool | None = None,
    ) -> None:
        """``present``: a filled dot if True, a hollow one if False, none if None.

        ``is_group`` None: as before.
        """
        self.stable_id, self.name, self.present, self.picture = stable_id, name, present, picture
        if is_group is not None:
            self.is_group = is_group
        self._widget.update()

    def _resize(self) -> None:
        side = current_theme().metrics.scaled(self._side)
        self._widget.setFixedSize(side, side)
        self._widget.update()

    def draw(self, painter: QPainter, rect: QRectF) -> None:
        who, name, is_group = self.stable_id, self.name, self.is_group
        if self.picture:
            draw_avatar(
                painter, rect, stable_id=who, name=name, is_group=is_group, picture=self.picture
            )
        else:
            _IMAGES.paint(painter, rect, stable_id=who, name=name, is_group=is_group)
        if self.present is not None:
            theme = current_theme()
            behind = theme.header if self.behind == "header" else theme.panel
            draw_presence(painter, rect, present=self.present, behind=behind)


class Avatar(QWidget):
    """A still avatar; ``side`` is in pixels at 100 % text size."""

    def __init__(
        self,
        side: int,
        *,
        is_group: bool,
        behind: ColourName = "panel",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._shown = _Likeness(self, side, is_group=is_group, behind=behind)
        self.show_identity = self._shown.show

    def paintEvent(self, event: QPaintEvent) -> None:
        self._shown.draw(QPainter(self), QRectF(self.rect()))


class AvatarButton(QAbstractButton):
    """An avatar that leads to what is known of whom it shows."""

    def __init__(self, side: int, *, is_group: bool = False, behind: ColourName = "panel") -> None:
        super().__init__()
        self._shown = _Likeness(self, side, is_group=is_group, behind=behind)
        self.show_identity = self._shown.show
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.isAutoRepeat():
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = current_theme()
        rect = QRectF(self.rect())
        if self.hasFocus():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.focus, theme.focus_width))
            edge = theme.focus_width / 2
            ring = rect.adjusted(edge, edge, -edge, -edge)
            if self._shown.is_group:
                radius = ring.width() * GROUP_AVATAR_RADIUS
                painter.drawRoundedRect(ring, radius, radius)
            else:
                painter.drawEllipse(ring)
            rect = rect.adjusted(4, 4, -4, -4)
        self._shown.draw(painter, rect)
