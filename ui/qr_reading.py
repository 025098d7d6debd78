"""Reading QR codes out of pictures: what ``ui/qr.py`` shows, taken back from a file or a screen.

A picture is hostile: PNG or JPEG by its first bytes, bounded in bytes and in pixels before anything
of it is decoded, scaled down while it is read.  Everything here is slow and belongs on a thread of
its own.  Qt decodes and the library looks without holding Python's lock; what does hold it (taking
away transparency, enlarging) is done in pieces or for small pictures only, or the window would
stand still meanwhile.  What a code says is a stranger's text and is judged elsewhere.
"""

from collections.abc import Iterable, Iterator
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from ui.pictures import MAX_FILE_PIXELS, PictureError, format_of, open_reader
from ui.translate import tr

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray
    from zxingcpp import ImageFormat

MAX_BYTES = 20 * 1024 * 1024
MAX_CODES = 32
"""Of one look; nobody shows more than a few, and each is text to go through."""
_READ_PIXELS = 16_000_000
_ENLARGED_BELOW = 1_000_000
"""Pictures so small are looked at a second time, twice as large, if nothing was found."""
_STRIP_PIXELS = 500_000
_WHITE, _BLACK = QColor(Qt.GlobalColor.white), QColor(Qt.GlobalColor.black)

Picture = Path | bytes | QImage
"""A file, the bytes of one, or what Qt has decoded already."""


def codes_in(pictures: Iterable[Picture]) -> tuple[str, ...]:
    """What the QR codes in them say, each text once.

    Raises PictureError, whose text is a sentence for the user.
    """
    found: dict[str, None] = {}
    for picture in pictures:
        for text in _codes(_decoded(picture)):
            found.setdefault(text)
    return tuple(found)[:MAX_CODES]


# --- from bytes to pixels -----------------------------------------------------------------------


def _decoded(picture: Picture) -> QImage:
    if isinstance(picture, QImage):
        if picture.isNull():
            raise PictureError(tr("The picture is damaged."))
        _check_pixels(picture.size())
        image = QImage(picture)
        image.setDevicePixelRatio(1)
        return image
    data = _bytes_of(picture) if isinstance(picture, Path) else picture
    if len(data) > MAX_BYTES:
        raise PictureError(tr("The picture is larger than 20 MB. Cut out the code and try again."))
    return _read(data)


def _bytes_of(path: Path) -> bytes:
    try:
        if not path.is_file():  # a pipe or a device would be read for ever
            raise PictureError(tr("There is no such file any more, or it is not a file."))
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PictureError(
            tr("The file cannot be read: {reason}.").format(reason=error.strerror or error)
        ) from error


def _read(data: bytes) -> QImage:
    format_ = format_of(data)
    if format_ is None:
        raise PictureError(tr("This is neither a PNG nor a JPEG picture."))
    reader, buffer = open_reader(data, format_)
    size = reader.size()
    if size.isEmpty():
        raise PictureError(tr("The picture is damaged."))
    _check_pixels(size)
    pixels = size.width() * size.height()
    if pixels > _READ_PIXELS:
        reader.setScaledSize(size * sqrt(_READ_PIXELS / pixels))
    image = reader.read()
    buffer.close()
    if image.isNull():
        raise PictureError(tr("The picture is damaged."))
    return image


def _check_pixels(size: QSize) -> None:
    if size.width() * size.height() > MAX_FILE_PIXELS:
        raise PictureError(
            tr("The picture has more than 40 million pixels. Cut out the code and try again.")
        )


# --- from pixels to texts -----------------------------------------------------------------------


def _codes(image: QImage) -> list[str]:
    for plain in _views(image):
        found = _look(plain)
        if found:
            return found
    return []


def _views(image: QImage) -> Iterator[QImage]:
    """What to look at, one after the other until a code is found."""
    plain = _on(image, _WHITE)
    yield plain
    if image.hasAlphaChannel():
        yield _on(image, _BLACK)  # light modules on nothing, made for a dark page
    if plain.width() * plain.height() <= _ENLARGED_BELOW:
        keep, smooth = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode
        yield plain.scaled(plain.size() * 2, keep, smooth.SmoothTransformation)


def _on(image: QImage, background: QColor) -> QImage:
    """Without transparency, in a form that the library reads; strip by strip."""
    if image.format() in {QImage.Format.Format_RGB32, QImage.Format.Format_Grayscale8}:
        return image
    width, height = image.width(), image.height()
    plain = QImage(width, height, QImage.Format.Format_RGB32)
    if plain.isNull():
        raise PictureError(tr("There is not enough memory for this picture."))
    plain.fill(background)
    step = max(1, _STRIP_PIXELS // width)
    painter = QPainter(plain)
    for top in range(0, height, step):
        painter.drawImage(0, top, image, 0, top, width, step)
    painter.end()
    return plain


def _look(image: QImage) -> list[str]:
    import zxingcpp  # noqa: PLC0415 - only when a picture is read, as with the library that draws

    grey = image.format() == QImage.Format.Format_Grayscale8
    formats = zxingcpp.ImageFormat
    layout: ImageFormat = formats.Lum if grey else formats.BGRA
    view = zxingcpp.ImageView(
        # It takes whatever has the buffer protocol; its stubs know the arrays of numpy only.
        cast("NDArray[uint8]", memoryview(image.constBits())),
        image.width(),
        image.height(),
        layout,
        image.bytesPerLine(),
        1 if grey else 4,
    )
    wanted = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])
    barcodes = zxingcpp.read_barcodes(view, formats=wanted)
    return [code.text for code in barcodes if code.valid]
