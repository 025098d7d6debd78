"""Decoded pictures of messages, for painting.

Painting orders what is not here and never waits.  A picture is decoded as large as it is shown, and
the last ones are kept, up to a number of bytes.  A larger file has its thumbnail until all of it is
here.
"""

from collections import OrderedDict
from math import ceil
from typing import TypeAlias

from msgspec import Struct
from PySide6.QtCore import QObject, QPoint, QRect, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QImage, QPixmap

from engine.core.ids import MessageId
from engine.events import MessageView
from ui.file_words import is_here

_KEPT = 96
_KEPT_BYTES = 12 * 1024 * 1024
_KEPT_SCALED_BYTES = 24 * 1024 * 1024
_SHOWN_PIXELS = QSize(1020, 780)
"""Three device pixels for each of a picture's: no screen shows more of it in the timeline."""
_STEP = 64
"""A window that is made a little wider needs no other picture."""
_COVERING = 2
"""A tile shows the middle of its picture, which is so much larger, as a rule."""
_PIXEL_BYTES = 4
_Key: TypeAlias = tuple[MessageId, bool]
"""Whose, and whether it is the picture itself or its thumbnail."""
_Place: TypeAlias = tuple[_Key, float, float, float, bool]


class _Decoded(Struct, frozen=True):
    """``most``: how large it was allowed to become; what did not need it is whole."""

    image: QImage | None
    most: QSize

    def does_for(self, most: QSize) -> bool:
        return self.image is None or most.boundedTo(self.most) == most or not self._is_reduced()

    def _is_reduced(self) -> bool:
        size = QSize() if self.image is None else self.image.size()
        return size.width() >= self.most.width() or size.height() >= self.most.height()


class FilePictures(QObject):
    """Asking for one that is not here orders it."""

    wanted = Signal(MessageView, QSize)
    """Decode it, at most this large, and ``give`` it."""
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._ready: OrderedDict[_Key, _Decoded] = OrderedDict()
        self._scaled: OrderedDict[_Place, QPixmap] = OrderedDict()
        self._ordered: dict[_Key, QSize] = {}

    def picture(self, message: MessageView, most: QSize = _SHOWN_PIXELS) -> QImage | None:
        """Of this size, or while that is not here, of another."""
        key = _key(message)
        kept = self._ready.get(key)
        if kept is not None:
            self._ready.move_to_end(key)
            if kept.does_for(most):
                return kept.image
            most = most.expandedTo(kept.most)
        if key not in self._ordered and len(self._ordered) < _KEPT:
            self._ordered[key] = most
            self.wanted.emit(message, most)
        return None if kept is None else kept.image

    def pixmap(
        self, message: MessageView, room: QSizeF, scale: float, *, cover: bool = False
    ) -> QPixmap | None:
        """The whole picture within ``room`` logical pixels, smooth on a screen of this scale.

        ``cover``: the middle of it, which fills ``room``.
        """
        key = _key(message)
        place = (key, room.width(), room.height(), scale, cover)
        if place in self._scaled:
            self._scaled.move_to_end(place)
            return self._scaled[place]
        image = self.picture(message, _enough(room * scale, cover=cover))
        if image is None:  # Its thumbnail stays until it is decoded.
            key = (message.message_id, False)
            image = self._ready[key].image if key in self._ready else None
        if image is None:
            return None
        place = (key, *place[1:])
        pixmap = self._scaled.get(place)
        return self._scale(image, place) if pixmap is None else pixmap

    def _scale(self, image: QImage, place: _Place) -> QPixmap:
        _, width, height, scale, cover = place
        smooth = Qt.TransformationMode.SmoothTransformation
        keep = Qt.AspectRatioMode.KeepAspectRatio
        size = (QSizeF(width, height) * scale).toSize()
        if cover:
            keep = Qt.AspectRatioMode.IgnoreAspectRatio
            image = _middle(image, size)
        pixmap = QPixmap.fromImage(image.scaled(size, keep, smooth))
        pixmap.setDevicePixelRatio(scale)
        self._scaled[place] = pixmap
        taken = sum(map(_pixmap_bytes, self._scaled.values()))
        while taken > _KEPT_SCALED_BYTES and len(self._scaled) > 1:
            taken -= _pixmap_bytes(self._scaled.popitem(last=False)[1])
        return pixmap

    @property
    def kept_bytes(self) -> int:
        """What all of them take."""
        decoded = sum(map(_decoded_bytes, self._ready.values()))
        return decoded + sum(map(_pixmap_bytes, self._scaled.values()))

    def is_broken(self, message: MessageView) -> bool:
        """It has a card: what came is no picture, or there is not even a thumbnail of it yet."""
        key = _key(message)
        if key in self._ready:
            return self._ready[key].image is None
        return not key[1] and message.file is not None and not message.file.thumbnail

    def give(self, message: MessageView, picture: QImage | None) -> None:
        """None: the bytes are no picture that may be shown."""
        key = _key(message)
        most = self._ordered.pop(key, _SHOWN_PIXELS)
        self._ready[key] = _Decoded(picture, most)
        self._ready.move_to_end(key)
        for place in [place for place in self._scaled if place[0] == key]:
            del self._scaled[place]  # Made of a smaller one.
        taken = sum(map(_decoded_bytes, self._ready.values()))
        while len(self._ready) > 1 and (len(self._ready) > _KEPT or taken > _KEPT_BYTES):
            taken -= _decoded_bytes(self._ready.popitem(last=False)[1])
        self.changed.emit()

    def clear(self) -> None:
        self._ready.clear()
        self._scaled.clear()
        self._ordered.clear()


def _enough(shown: QSizeF, *, cover: bool) -> QSize:
    """How large to decode a picture that takes so many device pixels."""
    wanted = shown * _COVERING if cover else shown
    width, height = (ceil(side / _STEP) * _STEP for side in (wanted.width(), wanted.height()))
    return QSize(width, height).boundedTo(_SHOWN_PIXELS)


def _decoded_bytes(decoded: _Decoded) -> int:
    return 0 if decoded.image is None else decoded.image.sizeInBytes()


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
