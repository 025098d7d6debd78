"""Decoded pictures of messages, for painting.

They are kept up to a bound; painting orders what is not here and never waits.  A larger picture has
its thumbnail until all of it is here.
"""

from collections import OrderedDict
from typing import TypeAlias

from PySide6.QtCore import QObject, QPoint, QRect, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QImage, QPixmap

from engine.core.ids import MessageId
from engine.events import MessageView
from ui.file_words import is_here

_KEPT = 96
_KEPT_SCALED = 48
_SHOWN_PIXELS = QSize(1020, 780)
"""Three device pixels for each of a picture's: no screen shows more of it in the timeline."""
_Key: TypeAlias = tuple[MessageId, bool]
"""Whose, and whether it is the picture itself or its thumbnail."""


class FilePictures(QObject):
    """Asking for one that is not here orders it."""

    wanted = Signal(MessageView, QSize)
    """Decode it, at most this large, and ``give`` it."""
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._ready: OrderedDict[_Key, QImage | None] = OrderedDict()
        self._scaled: OrderedDict[tuple[_Key, float, float, float, bool], QPixmap] = OrderedDict()
        self._ordered: set[_Key] = set()

    def picture(self, message: MessageView) -> QImage | None:
        key = _key(message)
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        if key not in self._ordered and len(self._ordered) < _KEPT:
            self._ordered.add(key)
            self.wanted.emit(message, _SHOWN_PIXELS)
        return None

    def pixmap(
        self, message: MessageView, room: QSizeF, scale: float, *, cover: bool = False
    ) -> QPixmap | None:
        """The whole picture within ``room`` logical pixels, smooth on a screen of this scale.

        ``cover``: the middle of it, which fills ``room``.
        """
        key, image = _key(message), self.picture(message)
        if image is None:  # Its thumbnail stays until it is decoded.
            key = (message.message_id, False)
            image = self._ready.get(key)
        if image is None:
            return None
        place = (key, room.width(), room.height(), scale, cover)
        pixmap = self._scaled.get(place)
        if pixmap is None:
            smooth = Qt.TransformationMode.SmoothTransformation
            keep = Qt.AspectRatioMode.KeepAspectRatio
            size = (room * scale).toSize()
            if cover:
                keep = Qt.AspectRatioMode.IgnoreAspectRatio
                image = _middle(image, size)
            pixmap = QPixmap.fromImage(image.scaled(size, keep, smooth))
            pixmap.setDevicePixelRatio(scale)
            self._scaled[place] = pixmap
            while len(self._scaled) > _KEPT_SCALED:
                self._scaled.popitem(last=False)
        return pixmap

    def is_broken(self, message: MessageView) -> bool:
        """It has a card: what came is no picture, or there is not even a thumbnail of it yet."""
        key = _key(message)
        if key in self._ready:
            return self._ready[key] is None
        return not key[1] and message.file is not None and not message.file.thumbnail

    def give(self, message: MessageView, picture: QImage | None) -> None:
        """None: the bytes are no picture that may be shown."""
        key = _key(message)
        self._ordered.discard(key)
        self._ready[key] = picture
        while len(self._ready) > _KEPT:
            self._ready.popitem(last=False)
        self.changed.emit()

    def clear(self) -> None:
        self._ready.clear()
        self._scaled.clear()
        self._ordered.clear()


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
