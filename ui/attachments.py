"""Files to send and files that came: prepared, decoded and written within bounds, off the loop.

A picture is scaled down and written anew until it fits into a message, so that nothing but its
pixels travels: no place, no time, no camera.  Any other file travels as it is, if it is small
enough.  A picture that came is hostile: only Qt's own decoders for PNG and JPEG read it, and only
as large as it is shown.
"""

import mimetypes
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QMimeData, QSize, Qt
from PySide6.QtGui import QImage

from engine.api import MAX_FILE_BYTES
from ui.pictures import (
    MAX_FILE_BYTES as MAX_PICTURE_FILE_BYTES,
)
from ui.pictures import (
    MAX_FILE_PIXELS,
    PictureError,
    encoded_picture,
    format_of,
    open_reader,
    read_picture,
)
from ui.translate import tr

_SIDES = (1600, 1280, 1024, 800, 640, 480, 320)
"""Longer edges to try, the largest first."""
_QUALITIES = (85, 72, 58)
_ANY_TYPE = "application/octet-stream"
_KIB = 1024


class Prepared(Struct, frozen=True, kw_only=True):
    """What travels.  ``width`` and ``height`` are 0 for what is no picture."""

    name: str
    media_type: str
    data: bytes
    width: int = 0
    height: int = 0


def prepare_file(path: Path) -> Prepared:
    """Raises PictureError with a sentence for the user.  Slow: call it off the loop."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PICTURE_FILE_BYTES + 1)
    except OSError as error:
        words = tr("The file cannot be read: {reason}.")
        raise PictureError(words.format(reason=error.strerror or error)) from error
    if not data:
        raise PictureError(tr("The file is empty."))
    if format_of(data) is not None and len(data) <= MAX_PICTURE_FILE_BYTES:
        return prepare_picture(read_picture(data), path.stem)
    if len(data) > MAX_FILE_BYTES:
        words = tr("A file can have {most} KiB in this version; pictures are made smaller.")
        raise PictureError(words.format(most=MAX_FILE_BYTES // _KIB))
    media_type = mimetypes.guess_type(path.name)[0] or _ANY_TYPE
    return Prepared(name=path.name, media_type=media_type, data=data)


def prepare_picture(image: QImage, stem: str) -> Prepared:
    """Raises PictureError if it cannot be made small enough."""
    longer = max(image.width(), image.height())
    for side in [side for side in _SIDES if side <= longer] or [longer]:
        scaled = _within(image, side)
        attempts = [("PNG", -1)] if image.hasAlphaChannel() else []
        attempts += [("JPEG", quality) for quality in _QUALITIES]
        for format_, quality in attempts:
            data = encoded_picture(scaled, format_, quality)
            if 0 < len(data) <= MAX_FILE_BYTES:
                return Prepared(
                    name=f"{stem}.{'png' if format_ == 'PNG' else 'jpg'}",
                    media_type=f"image/{format_.lower()}",
                    data=data,
                    width=scaled.width(),
                    height=scaled.height(),
                )
    raise PictureError(tr("The picture cannot be made small enough."))


def _within(image: QImage, side: int) -> QImage:
    if max(image.width(), image.height()) <= side:
        return image
    return image.scaled(
        QSize(side, side),
        Qt.AspectRatioMode.KeepAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )


def decode_received(data: bytes, most: QSize) -> QImage | None:
    """A picture that came, no larger than ``most``; None if it is none that may be shown."""
    format_ = format_of(data)
    if format_ is None or len(data) > MAX_FILE_BYTES:
        return None
    reader, buffer = open_reader(data, format_)
    size = reader.size()
    if size.isEmpty() or size.width() * size.height() > MAX_FILE_PIXELS:
        return None
    if size.width() > most.width() or size.height() > most.height():
        reader.setScaledSize(size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio))
    image = reader.read()
    buffer.close()
    return None if image.isNull() else image


def dropped_files(source: QMimeData) -> list[Path]:
    """The files of this machine that are pasted or dropped."""
    urls = source.urls() if source.hasUrls() else []
    return [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]


def write_new(path: Path, data: bytes) -> None:
    """Write what the user wants to keep; the file dialog asked about one that is there."""
    path.write_bytes(data)
