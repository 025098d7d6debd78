"""Decoded pictures of messages, for painting.

Painting orders what is not here and never waits.  A picture is decoded as large as it is shown and
kept only like that; the last ones stay, up to a number of pixels that is more than the largest
screen shows at once.  A larger file has its thumbnail until all of it is here.
"""

from collections import OrderedDict
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace
from PySide6.QtCore import QObject, QPoint, QRect, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPainterPath, QPixmap

from engine.core.ids import MessageId
from engine.events import MessageView
from engine.file_views import FileState
from ui.file_words import is_here
from ui.mirrored import upright
from ui.theme import current_theme

_KEPT = 96
_KEPT_PIXELS = 1_500_000
"""Logical ones: a picture's width from the top of a very large screen to its bottom."""
_MOST_PIXELS = 9_000_000
"""Device pixels: the finer a screen is, the fewer logical ones it has."""
_KEPT_ROOMS = 2
"""Of one picture: while a window is made wider, it is shown in many."""
_SHOWN_PIXELS = QSize(1020, 780)
"""Three device pixels for each of a picture's: no screen shows more of it in the timeline."""
_COVERING = 2
"""A tile shows the middle of its picture, which is so much larger, as a rule."""
_PIXEL_BYTES = 4
_KEEP = Qt.AspectRatioMode.KeepAspectRatio
_COVER = Qt.AspectRatioMode.KeepAspectRatioByExpanding
_Key: TypeAlias = tuple[MessageId, bool]
"""Whose, and whether it is the picture itself or its thumbnail."""


class _Room(Struct, frozen=True):
    """Where it is shown, in device pixels; ``is_filled``: by the picture's middle."""

    width: int
    height: int
    scale: float
    is_filled: bool

    def size(self) -> QSize:
        return QSize(self.width, self.height)

    def enough(self) -> QSize:
        """How large to decode a picture for it."""
        wanted = self.size() * _COVERING if self.is_filled else self.size()
        return wanted.boundedTo(_SHOWN_PIXELS)


class _Picture(Struct):
    """``own_size`` is known once decoding did not make it smaller.

    ``decoded`` goes when it was first shown; ``shown`` has the last rooms at its end.
    """

    is_broken: bool = False
    own_size: QSize | None = None
    decoded: QImage | None = None
    shown: dict[_Room, QPixmap] = field(default_factory=dict)

    def does_for(self, room: _Room) -> bool:
        """Whether decoding it again would win nothing."""
        if self.is_broken:
            return True
        whole = self._whole()
        if whole is None:
            return False
        needed = whole.size().scaled(room.size(), _COVER if room.is_filled else _KEEP)
        needed = needed.boundedTo(_SHOWN_PIXELS)
        return whole.size() == self.own_size or needed.width() <= whole.width()

    def source(self, room: _Room) -> QImage | None:
        """What is here to fill this room with, if only for now."""
        whole = self._whole()
        if whole is None and room.is_filled and self.shown:
            return next(reversed(self.shown.values())).toImage()
        return whole

    def _whole(self) -> QImage | None:
        if self.decoded is not None:
            return self.decoded
        uncut = [pixmap for room, pixmap in self.shown.items() if not room.is_filled]
        return max(uncut, key=_pixmap_bytes).toImage() if uncut else None

    def show(self, source: QImage, room: _Room) -> QPixmap:
        smooth = Qt.TransformationMode.SmoothTransformation
        if room.is_filled:
            cut, ratio = _middle(source, room.size()), Qt.AspectRatioMode.IgnoreAspectRatio
        else:
            cut, ratio = source, _KEEP
        pixmap = QPixmap.fromImage(cut.scaled(room.size(), ratio, smooth))
        pixmap.setDevicePixelRatio(room.scale)
        self.decoded = None
        self.shown[room] = pixmap
        while len(self.shown) > _KEPT_ROOMS:
            del self.shown[next(iter(self.shown))]
        return pixmap

    def taken_bytes(self) -> int:
        decoded = 0 if self.decoded is None else self.decoded.sizeInBytes()
        return decoded + sum(map(_pixmap_bytes, self.shown.values()))


class ShownPictures(NamedTuple):
    """All of a timeline: one that is quoted is as small as a letter or two, and kept apart.

    The large one and the small one would drive each other out.
    """

    rows: "FilePictures"
    quoted: "FilePictures"


class FilePictures(QObject):
    """Asking for one that is not here orders it."""

    wanted = Signal(MessageView, QSize)
    """Decode it, at most this large, and ``give`` it."""
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._pictures: OrderedDict[_Key, _Picture] = OrderedDict()
        """The last used at the end."""
        self._ordered: dict[_Key, QSize] = {}
        self._scale = 1.0

    def pixmap(
        self, message: MessageView, room: QSizeF, scale: float, *, cover: bool = False
    ) -> QPixmap | None:
        """The whole picture within ``room`` logical pixels, smooth on a screen of this scale.

        ``cover``: the middle of it, which fills ``room``.
        """
        key = _key(message)
        self._scale = scale
        device = (room * scale).toSize()
        place = _Room(device.width(), device.height(), scale, cover)
        picture = self._pictures.get(key)
        if picture is not None:
            self._pictures.move_to_end(key)
            if place in picture.shown:
                return picture.shown[place]
        if picture is None or not picture.does_for(place):
            self._order(message, key, place.enough())
        if picture is None or picture.source(place) is None:  # Its thumbnail stays meanwhile.
            picture = self._pictures.get((message.message_id, False))
        source = None if picture is None else picture.source(place)
        if picture is None or source is None:
            return None
        pixmap = picture.shown.get(place) or picture.show(source, place)
        self._forget_beyond_bounds()
        return pixmap

    def _order(self, message: MessageView, key: _Key, most: QSize) -> None:
        if key not in self._ordered and len(self._ordered) < _KEPT:
            self._ordered[key] = most
            self.wanted.emit(message, most)

    @property
    def kept_bytes(self) -> int:
        """What all of them take."""
        return sum(picture.taken_bytes() for picture in self._pictures.values())

    def is_broken(self, message: MessageView) -> bool:
        """It has a card: what came is no picture, or there is not even a thumbnail of it yet."""
        key = _key(message)
        if key in self._pictures:
            return self._pictures[key].is_broken
        return not key[1] and message.file is not None and not message.file.thumbnail

    def give(self, message: MessageView, picture: QImage | None) -> None:
        """None: the bytes are no picture that may be shown."""
        key = _key(message)
        most = self._ordered.pop(key, _SHOWN_PIXELS)
        if picture is None:
            self._pictures[key] = _Picture(is_broken=True)
        else:
            size = picture.size()
            is_whole = size.width() < most.width() and size.height() < most.height()
            self._pictures[key] = _Picture(own_size=size if is_whole else None, decoded=picture)
        self._pictures.move_to_end(key)
        self._forget_beyond_bounds()
        self.changed.emit()

    def _forget_beyond_bounds(self) -> None:
        pixels = min(_KEPT_PIXELS * self._scale**2, _MOST_PIXELS)
        taken = self.kept_bytes
        while len(self._pictures) > 1 and (
            len(self._pictures) > _KEPT or taken > pixels * _PIXEL_BYTES
        ):
            taken -= self._pictures.popitem(last=False)[1].taken_bytes()

    def clear(self) -> None:
        self._pictures.clear()
        self._ordered.clear()


def small(message: MessageView) -> MessageView:
    """As one asks for its picture in a quote: of a larger one, not all is read for that."""
    file = message.file
    if file is None or file.state is FileState.INLINE:
        return message
    return replace(message, file=replace(file, state=FileState.OFFERED))


def draw_small(
    painter: QPainter, rect: QRectF, message: MessageView, pictures: FilePictures
) -> None:
    """With round corners; ``message``: ``small``.  A plain place until it is decoded."""
    theme, shape = current_theme(), QPainterPath()
    shape.addRoundedRect(rect, theme.metrics.gap(4), theme.metrics.gap(4))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.surface2)
    painter.drawPath(shape)
    scale = painter.device().devicePixelRatioF()
    pixmap = pictures.pixmap(message, rect.size(), scale, cover=True)
    if pixmap is not None:
        painter.save()
        painter.setClipPath(shape, Qt.ClipOperation.IntersectClip)
        with upright(painter, rect):
            painter.drawPixmap(rect.topLeft(), pixmap)
        painter.restore()


def _pixmap_bytes(pixmap: QPixmap) -> int:
    return pixmap.width() * pixmap.height() * _PIXEL_BYTES


def _middle(image: QImage, shape: QSize) -> QImage:
    """As much of it as has this shape.

    It is cut before it is made larger: of a line a thousand pixels long, that would be a gigabyte.
    """
    part = QRect(QPoint(), shape.scaled(image.size(), Qt.AspectRatioMode.KeepAspectRatio))
    part.setSize(part.size().expandedTo(QSize(1, 1)))
    part.moveCenter(image.rect().center())
    return image.copy(part.intersected(image.rect()))


def _key(message: MessageView) -> _Key:
    return message.message_id, message.file is None or is_here(message.file)
