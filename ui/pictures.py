"""People's pictures: read with limits, never while painting, and kept small.

A picture from outside is hostile: it is PNG or JPEG by its first bytes, at most
``MAX_PICTURE_BYTES`` long and 512 pixels wide and high, or it is no picture.  ``Faces`` decodes it
after the paint that first asked for it, and says when it is ready; until then initials stand there.
The user's own file may be a camera's: it is read within bounds of its own, cut square, scaled down
and written anew, so that nothing but the pixels travels (a place, a time, a camera's name do not).
"""

from collections import OrderedDict
from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QLoggingCategory,
    QObject,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QImage, QImageReader, QPainter, QPainterPath, QPixmap

from engine.core.contacts import MAX_PICTURE_BYTES
from ui.picture_metadata import without_metadata
from ui.translate import tr

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_FILE_PIXELS = 40_000_000
MAX_OUTSIDE_SIDE = 512
_ALLOCATION_MIB = 192
"""Forty million pixels of four bytes, and a little to work with."""
_TRAVELS_AS = (256, 192, 128, 96, 64)
"""Sides to try, the largest first."""
_QUALITIES = (88, 75, 60, 45)
_LARGEST_FILE = 1600
_KEPT_SIDE = 128
_KEPT_FACES = 256
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"))


class PictureError(ValueError):
    """A file that cannot become a picture; the text is a sentence for the user."""


class PictureTooLargeError(PictureError):
    """More bytes or pixels than are decoded here."""


def format_of(data: bytes) -> str | None:
    return next((name for magic, name in _MAGIC if data.startswith(magic)), None)


def open_reader(data: bytes, format_: str) -> tuple[QImageReader, QBuffer]:
    """The buffer must live as long as the reader; it has bytes of its own."""
    QImageReader.setAllocationLimit(_ALLOCATION_MIB)
    QLoggingCategory.setFilterRules("qt.gui.imageio*=false")  # A stranger could fill the log.
    buffer = QBuffer()
    buffer.setData(data)
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer, QByteArray(format_.encode("ascii")))
    reader.setAutoDetectImageFormat(False)
    return reader, buffer


def decode_picture(picture: bytes) -> QImage | None:
    """A small square of somebody's picture, or None if it is not one that may be shown."""
    format_ = format_of(picture)
    if format_ is None or len(picture) > MAX_PICTURE_BYTES:
        return None
    reader, buffer = open_reader(picture, format_)
    size = reader.size()
    if size.isEmpty() or max(size.width(), size.height()) > MAX_OUTSIDE_SIDE:
        return None
    image = reader.read()
    buffer.close()
    return None if image.isNull() else _square(image, _KEPT_SIDE)


def _square(image: QImage, side: int) -> QImage:
    least = min(image.width(), image.height())
    middle = QRect((image.width() - least) // 2, (image.height() - least) // 2, least, least)
    return image.copy(middle).scaled(
        side,
        side,
        Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )


# --- the user's own file ------------------------------------------------------------------------


def picture_from_file(path: Path) -> bytes:
    """What travels: a square PNG or JPEG of at most ``MAX_PICTURE_BYTES``.

    Raises PictureError.  Slow for a large file: call it off the loop.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PictureError(
            tr("The file cannot be read: {reason}.").format(reason=error.strerror or error)
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise PictureTooLargeError(tr("The file is larger than 10 MB. Choose a smaller picture."))
    format_ = format_of(data)
    if format_ is None:
        raise PictureError(tr("This is neither a PNG nor a JPEG picture."))
    return _encoded(_read_bounded(data, format_))


def read_picture(data: bytes) -> QImage:
    """The user's own picture, upright, at most twice the largest size that travels.

    Raises PictureError.
    """
    format_ = format_of(data)
    if format_ is None:
        raise PictureError(tr("This is neither a PNG nor a JPEG picture."))
    return _read_bounded(data, format_, side=_LARGEST_FILE)


def read_whole_picture(data: bytes) -> QImage:
    """The same in its own size.  Raises PictureError."""
    format_ = format_of(data)
    if format_ is None:
        raise PictureError(tr("This is neither a PNG nor a JPEG picture."))
    return _read_bounded(data, format_, side=MAX_FILE_PIXELS)


def _read_bounded(data: bytes, format_: str, *, side: int = 0) -> QImage:
    reader, buffer = open_reader(data, format_)
    size = reader.size()
    if size.isEmpty():
        raise PictureError(tr("The picture is damaged."))
    if size.width() * size.height() > MAX_FILE_PIXELS:
        raise PictureTooLargeError(
            tr("The picture has more than 40 million pixels. Choose a smaller one.")
        )
    reader.setAutoTransform(True)
    reader.setScaledSize(_covering(size, side or _TRAVELS_AS[0]))
    image = reader.read()
    buffer.close()
    if image.isNull():
        raise PictureError(tr("The picture is damaged."))
    return image


def _covering(size: QSize, side: int) -> QSize:
    """The shorter edge twice as long as needed, so that the last scaling stays smooth."""
    if min(size.width(), size.height()) <= 2 * side:
        return size
    box = QSize(2 * side, 2 * side)
    return size.scaled(box, Qt.AspectRatioMode.KeepAspectRatioByExpanding)


def _encoded(image: QImage) -> bytes:
    sides = [side for side in _TRAVELS_AS if side <= min(image.width(), image.height())]
    for side in sides or [_TRAVELS_AS[-1]]:
        square = _square(image, side)
        attempts = [("PNG", -1)] if square.hasAlphaChannel() else []
        attempts += [("JPEG", quality) for quality in _QUALITIES]
        for format_, quality in attempts:
            written = encoded_picture(square, format_, quality)
            if 0 < len(written) <= MAX_PICTURE_BYTES:
                return written
    raise PictureError(tr("The picture cannot be made small enough."))


def encoded_picture(image: QImage, format_: str, quality: int) -> bytes:
    """Its pixels and nothing else; b"" if it cannot be written."""
    plain = image
    if format_ == "JPEG" and image.hasAlphaChannel():
        plain = QImage(image.size(), QImage.Format.Format_RGB32)
        plain.fill(QColor(Qt.GlobalColor.white))
        painter = QPainter(plain)
        painter.drawImage(0, 0, image)
        painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    saved = plain.save(buffer, format_, quality)  # type: ignore[call-overload]
    buffer.close()
    # Qt also writes the words that came with the file that it was read from.
    return without_metadata(bytes(data.data())) if saved else b""


# --- faces for painting -------------------------------------------------------------------------


class Faces(QObject):
    """Decoded pictures by their bytes.  Asking never decodes: it only orders."""

    changed = Signal()
    """Something that was asked for is ready: paint again."""

    def __init__(self) -> None:
        super().__init__()
        self._ready: OrderedDict[bytes, QImage | None] = OrderedDict()
        self._ordered: list[bytes] = []

    def face(self, picture: bytes) -> QImage | None:
        if not picture:
            return None
        if picture in self._ready:
            self._ready.move_to_end(picture)
            return self._ready[picture]
        if picture not in self._ordered and len(self._ordered) < _KEPT_FACES:
            if not self._ordered:
                QTimer.singleShot(0, self, self._decode_next)
            self._ordered.append(picture)
        return None

    def _decode_next(self) -> None:
        """One each turn, so that a long list of them does not hold up the window."""
        if not self._ordered:
            return
        picture = self._ordered.pop(0)
        self._ready[picture] = decode_picture(picture)
        while len(self._ready) > _KEPT_FACES:
            self._ready.popitem(last=False)
        if self._ordered:
            QTimer.singleShot(0, self, self._decode_next)
        self.changed.emit()


FACES = Faces()
"""One for the process, as fonts and icons are: the same bytes are the same picture everywhere."""


def cropped_face(picture: bytes, side: float, scale: float, *, radius: float) -> QPixmap | None:
    """Of ``side`` logical pixels with round corners, if the picture has been decoded.

    ``radius``: a share of the side; 0.5 makes a circle.
    """
    image = FACES.face(picture)
    if image is None:
        return None
    return _cropped(picture, max(1, round(side * scale)), scale, radius)


@lru_cache(maxsize=128)
def _cropped(picture: bytes, pixels: int, scale: float, radius: float) -> QPixmap:
    result = QPixmap(pixels, pixels)
    result.fill(Qt.GlobalColor.transparent)
    image = FACES.face(picture)
    if image is None:
        return result
    painter = QPainter(result)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    shape = QPainterPath()
    shape.addRoundedRect(0, 0, pixels, pixels, radius * pixels, radius * pixels)
    painter.setClipPath(shape)
    painter.drawImage(QRect(0, 0, pixels, pixels), _square(image, pixels))
    painter.end()
    result.setDevicePixelRatio(scale)
    return result
