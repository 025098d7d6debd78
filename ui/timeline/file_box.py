"""The file in a bubble: a picture at its own shape, or a card with the file's name and size.

Only its sender says how large a picture is, so the shape is bounded here, and what cannot be
decoded becomes a card.  Decoded pictures are kept up to a bound; painting orders them and never
waits.
"""

from collections import OrderedDict

from msgspec import Struct
from PySide6.QtCore import QObject, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QImage, QPainterPath, QPen, QPixmap

from engine.core.ids import MessageId
from engine.events import MessageView
from engine.file_views import FileView
from ui.file_words import is_moving, is_picture, size_words
from ui.foreign_text import one_line
from ui.icons import draw_icon
from ui.theme import Theme
from ui.timeline.buttons import advance, strong
from ui.timeline.primitives import Primitives
from ui.translate import tr

_MOST = QSizeF(340, 260)
_LEAST_SIDE = 48.0
_CARD_HEIGHT = 44
_ICON = 26
_RADIUS = 9
_MAX_NAME = 80
_KEPT = 96
_KEPT_SCALED = 32
_SHOWN_PIXELS = QSize(1020, 780)
"""Three device pixels for each of a picture's: no screen shows more of it in the timeline."""


class FileBox(Struct, frozen=True, kw_only=True):
    rect: QRectF
    name: str
    """As it fits."""
    size: str
    is_picture: bool
    is_moving: bool
    """A picture that moves where it is shown large."""


def file_size(file: FileView, room: float, theme: Theme, *, broken: bool) -> QSizeF:
    """What a file takes of a bubble ``room`` wide; ``broken``: it could not be decoded."""
    if is_picture(file) and not broken:
        most = QSizeF(min(_MOST.width(), room), _MOST.height())
        natural = QSizeF(file.width, file.height)
        fitted = natural if _fits(natural, most) else natural.scaled(most, _KEEP)
        return fitted.expandedTo(QSizeF(_LEAST_SIDE, _LEAST_SIDE))
    face = theme.type.label
    words = max(
        advance(strong(face), one_line(file.name, _MAX_NAME)),
        advance(theme.type.caption.font, size_words(file.size)),
    )
    side = theme.metrics.scaled(_ICON) + theme.metrics.gap(10)
    height = max(
        theme.metrics.scaled(_CARD_HEIGHT), face.line_height + theme.type.caption.line_height
    )
    return QSizeF(min(room, side + words + 2), height)


_KEEP = Qt.AspectRatioMode.KeepAspectRatio


def _fits(size: QSizeF, most: QSizeF) -> bool:
    return size.width() <= most.width() and size.height() <= most.height()


def file_box(file: FileView, rect: QRectF, theme: Theme, *, broken: bool) -> FileBox:
    room = rect.width() - theme.metrics.scaled(_ICON) - theme.metrics.gap(10)
    metrics = QFontMetricsF(strong(theme.type.label))
    name = one_line(file.name, _MAX_NAME)
    return FileBox(
        rect=rect,
        name=metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room),
        size=size_words(file.size),
        is_picture=is_picture(file) and not broken,
        is_moving=is_moving(file) and not broken,
    )


class FilePictures(QObject):
    """Decoded pictures of messages.  Asking for one that is not here orders it."""

    wanted = Signal(MessageView, QSize)
    """Decode it, at most this large, and ``give`` it."""
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._ready: OrderedDict[MessageId, QImage | None] = OrderedDict()
        self._scaled: OrderedDict[tuple[MessageId, float, float, float], QPixmap] = OrderedDict()
        self._ordered: set[MessageId] = set()

    def picture(self, message: MessageView) -> QImage | None:
        message_id = message.message_id
        if message_id in self._ready:
            self._ready.move_to_end(message_id)
            return self._ready[message_id]
        if message_id not in self._ordered and len(self._ordered) < _KEPT:
            self._ordered.add(message_id)
            self.wanted.emit(message, _SHOWN_PIXELS)
        return None

    def pixmap(self, message: MessageView, room: QSizeF, scale: float) -> QPixmap | None:
        """The whole picture within ``room`` logical pixels, smooth on a screen of this scale."""
        image = self.picture(message)
        if image is None:
            return None
        key = (message.message_id, room.width(), room.height(), scale)
        pixmap = self._scaled.get(key)
        if pixmap is None:
            smooth = Qt.TransformationMode.SmoothTransformation
            pixmap = QPixmap.fromImage(image.scaled((room * scale).toSize(), _KEEP, smooth))
            pixmap.setDevicePixelRatio(scale)
            self._scaled[key] = pixmap
            while len(self._scaled) > _KEPT_SCALED:
                self._scaled.popitem(last=False)
        return pixmap

    def is_broken(self, message_id: MessageId) -> bool:
        return message_id in self._ready and self._ready[message_id] is None

    def give(self, message_id: MessageId, picture: QImage | None) -> None:
        """None: the bytes are no picture that may be shown."""
        self._ordered.discard(message_id)
        self._ready[message_id] = picture
        while len(self._ready) > _KEPT:
            self._ready.popitem(last=False)
        self.changed.emit()

    def clear(self) -> None:
        self._ready.clear()
        self._scaled.clear()
        self._ordered.clear()


class FilePainter:
    def __init__(self, draw: Primitives, pictures: FilePictures) -> None:
        self._draw = draw
        self._pictures = pictures

    def paint(self, message: MessageView, box: FileBox) -> None:
        if box.is_picture:
            self._picture(message, box.rect)
            if box.is_moving:
                self._pill(box.rect, tr("GIF"))
        else:
            self._card(message, box)

    def _picture(self, message: MessageView, rect: QRectF) -> None:
        p, theme = self._draw.painter, self._draw.theme
        path = QPainterPath()
        path.addRoundedRect(rect, _RADIUS, _RADIUS)
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.surface2)
        p.drawPath(path)
        scale = p.device().devicePixelRatioF()
        pixmap = self._pictures.pixmap(message, rect.size(), scale)
        if pixmap is None:
            self._draw.text(rect, tr("Picture…"), theme.type.caption.font, theme.ink3)
            return
        p.save()
        p.setClipPath(path, Qt.ClipOperation.IntersectClip)
        p.drawPixmap(_centred(pixmap.deviceIndependentSize(), rect).topLeft(), pixmap)
        p.restore()

    def _pill(self, picture: QRectF, words: str) -> None:
        """In the lower left corner of a picture."""
        p, theme = self._draw.painter, self._draw.theme
        face, gap = theme.type.micro, theme.metrics.gap(6)
        width, height = advance(strong(face), words) + 2 * gap, face.line_height + 2
        pill = QRectF(picture.left() + gap, picture.bottom() - gap - height, width, height)
        p.setPen(QPen(theme.line, 1))
        p.setBrush(theme.surface)
        p.drawRoundedRect(pill, height / 2, height / 2)
        self._draw.text(pill, words, strong(face), theme.ink2)

    def _card(self, message: MessageView, box: FileBox) -> None:
        theme, rect = self._draw.theme, box.rect
        ink = theme.ownInk if message.is_own else theme.ink
        quiet = theme.ownMeta if message.is_own else theme.ink3
        side = theme.metrics.scaled(_ICON)
        icon = QRectF(rect.left(), rect.center().y() - side / 2, side, side)
        draw_icon(self._draw.painter, "file", icon, quiet)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        line = QRectF(rect)
        line.setLeft(icon.right() + theme.metrics.gap(10))
        line.setHeight(rect.height() / 2)
        self._draw.text(line, box.name, strong(theme.type.label), ink, left)
        line.translate(0, rect.height() / 2)
        self._draw.text(line, box.size, theme.type.caption.font, quiet, left)


def _centred(size: QSizeF, rect: QRectF) -> QRectF:
    place = QRectF(0, 0, size.width(), size.height())
    place.moveCenter(rect.center())
    return place
