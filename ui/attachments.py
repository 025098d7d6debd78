"""Files to send and files that came: prepared, decoded and written within bounds, off the loop.

A picture is scaled down and written anew until it fits into a message, so that nothing but its
pixels travels: no place, no time, no camera.  If one wants, it travels in its original size, and
still without those.  Any other file travels as it is; of a kind that cameras write, the sender is
told that its details stay.  A picture that came is hostile: only Qt's
own decoders for PNG, JPEG and GIF read it, and only as large as it is shown.
"""

import atexit
import mimetypes
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QBuffer, QMimeData, QSize, Qt
from PySide6.QtGui import QImage, QImageReader

from engine.api import MAX_FILE_BYTES, MAX_READ_BYTES, MAX_THUMBNAIL_BYTES
from ui.file_words import size_words
from ui.picture_metadata import (
    MalformedPictureError,
    is_gif,
    is_turned,
    is_webp,
    keeps_metadata,
    without_metadata,
)
from ui.pictures import (
    MAX_FILE_BYTES as MAX_PICTURE_FILE_BYTES,
)
from ui.pictures import (
    MAX_FILE_PIXELS,
    PictureError,
    PictureTooLargeError,
    encoded_picture,
    format_of,
    open_reader,
    read_picture,
    read_whole_picture,
)
from ui.translate import tr

PREVIEW = QSize(128, 96)
"""Two device pixels for each of a picture's beside the composer."""
MAX_MOVING_PIXELS = 1_000_000
"""Of one picture of a GIF: each is decoded while it is shown."""
_SIDES = (1600, 1280, 1024, 800, 640, 480, 320)
"""Longer edges to try, the largest first; a picture that is smaller is tried as it is."""
_QUALITIES = (85, 72, 58)
_AS_GOOD_AS_IT_WAS = 95
_THUMBNAIL_SIDES = (240, 160, 96)
_ANY_TYPE = "application/octet-stream"
_GIF = "image/gif"
_TAKEN = ("image/", "video/")
"""What cameras write, with the place and the time in it."""


class Prepared(Struct, frozen=True, kw_only=True):
    """What travels.  ``width`` and ``height`` are 0 for what is no picture.

    ``path``: a file too large for a message stays where it is, and ``data`` is empty.
    """

    name: str
    media_type: str
    size: int
    data: bytes = b""
    path: Path | None = None
    width: int = 0
    height: int = 0
    thumbnail: bytes = b""
    """Of a larger picture, for those who have not fetched it."""
    preview: QImage | None = None
    """For the sender."""
    original: Path | None = None
    """The user's file, if it is a picture that can go out in its original size."""
    original_size: int = 0
    """Of that file, in bytes."""
    small: Self | None = None
    """What this one in original size stands for."""
    keeps_details: bool = False
    """It may say where, when and with what it was taken, and that goes out with it."""
    is_copy: bool = False
    """``path`` was made for it: ``forget_copy`` once it was sent, or will not be."""


def prepare_file(path: Path, *, most: int = MAX_FILE_BYTES) -> Prepared:
    """``most``: bytes that a file may have.  Slow: call it off the loop.

    Raises PictureError with a sentence for the user.
    """
    data, size = _read(path, MAX_PICTURE_FILE_BYTES)
    if not data:
        raise PictureError(tr("“{name}” is empty.").format(name=path.name))
    if format_of(data) is not None or is_webp(data):
        try:
            return _picture(path, data, size, most)
        except PictureTooLargeError:
            return _beyond_bounds(path, size, most)
        except PictureError as problem:
            words = tr("“{name}”: {problem}")
            raise PictureError(words.format(name=path.name, problem=problem)) from problem
    _check_size(path, size, most)
    if is_gif(data):
        return _moving(path, data, size)
    media_type = mimetypes.guess_type(path.name)[0] or _ANY_TYPE
    keeps_details = keeps_metadata(data) or media_type.startswith(_TAKEN)
    if media_type.startswith("image/"):
        media_type = _ANY_TYPE  # No decoder of ours has looked at it.
    return replace(_as_it_is(path, data, size, media_type), keeps_details=keeps_details)


def _check_size(path: Path, size: int, most: int) -> None:
    if size > most:
        words = tr("“{name}” is too large: a file can have {most}.")
        raise PictureError(words.format(name=path.name, most=size_words(most)))


def _read(path: Path, most: int) -> tuple[bytes, int]:
    """The beginning, one byte more than ``most`` if there are so many, and the whole size."""
    try:
        with path.open("rb") as file:
            return file.read(most + 1), path.stat().st_size
    except OSError as error:
        words = tr("“{name}” cannot be read: {reason}.")
        reason = error.strerror or error
        raise PictureError(words.format(name=path.name, reason=reason)) from error


def _picture(path: Path, data: bytes, size: int, most: int) -> Prepared:
    if is_webp(data):
        return _webp(path, data)
    _check_picture_size(data)
    prepared = prepare_picture(read_picture(data), path.stem)
    fits = size <= most
    return replace(prepared, original=path, original_size=size) if fits else prepared


def _check_picture_size(data: bytes) -> None:
    if len(data) > MAX_PICTURE_FILE_BYTES:
        raise PictureTooLargeError(tr("The picture is larger than 10 MB. Choose a smaller one."))


def _beyond_bounds(path: Path, size: int, most: int) -> Prepared:
    """A picture that nobody decodes here: a file like any other, where possible without metadata.

    That is not possible of one that only its metadata turn upright, or that is damaged.
    """
    _check_size(path, size, most)
    data, _ = _read(path, most)
    plain = b"" if is_turned(data) else _plain(data)
    if not plain:
        return replace(_as_it_is(path, data, size, _ANY_TYPE), keeps_details=True)
    return _undecoded(path, plain)


def _undecoded(path: Path, plain: bytes) -> Prepared:
    """A picture without its metadata, as a file like any other."""
    whole = Prepared(name=path.name, media_type=_ANY_TYPE, size=len(plain), data=plain)
    return _apart_if_large(whole)


def _webp(path: Path, data: bytes) -> Prepared:
    """A file like any other, since no decoder of ours has looked at it, but without metadata."""
    _check_picture_size(data)
    try:
        plain = without_metadata(data)
    except MalformedPictureError as error:
        raise PictureError(tr("The picture is damaged.")) from error
    return _undecoded(path, plain)


def _apart_if_large(file: Prepared) -> Prepared:
    """What is too large for a message lies in a file of its own until it was sent."""
    if file.size <= MAX_FILE_BYTES:
        return file
    path = Path(_folder_of_copies()) / secrets.token_hex(8)
    path.write_bytes(file.data)
    return replace(file, data=b"", path=path, is_copy=True)


@cache
def _folder_of_copies() -> str:
    """For nobody else on this computer, and gone when the program ends."""
    folder = tempfile.mkdtemp(prefix="causerie-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def forget_copy(file: Prepared) -> None:
    """It was sent, or will not be."""
    if file.is_copy and file.path is not None:
        file.path.unlink(missing_ok=True)


def prepare_original(file: Prepared) -> Prepared:
    """The picture of ``file.original`` in its own size, without metadata.

    Its pixels stay as they are, unless it has to be turned to stand upright: then they are written
    anew.  Slow: call it off the loop.  Raises PictureError.
    """
    path = file.original
    if path is None:
        return file
    data, _ = _read(path, MAX_PICTURE_FILE_BYTES)
    _check_picture_size(data)
    format_ = format_of(data) or ""
    plain = b"" if is_turned(data) else _plain(data)
    if not plain:
        upright = read_whole_picture(data)
        plain = encoded_picture(upright, format_.upper(), _AS_GOOD_AS_IT_WAS)
    if not plain:
        raise PictureError(tr("The picture is damaged."))
    reader, buffer = open_reader(plain, format_)
    size = reader.size()
    buffer.close()
    whole = replace(
        file,
        name=f"{path.stem}.{'png' if format_ == 'png' else 'jpg'}",
        media_type=f"image/{format_}",
        size=len(plain),
        data=plain,
        width=size.width(),
        height=size.height(),
        thumbnail=thumbnail_of(read_picture(plain)) if len(plain) > MAX_FILE_BYTES else b"",
        small=file,
    )
    return _apart_if_large(whole)


def _plain(data: bytes) -> bytes:
    """b"" if the file does not follow its format."""
    try:
        return without_metadata(data)
    except MalformedPictureError:
        return b""


def _as_it_is(path: Path, data: bytes, size: int, media_type: str) -> Prepared:
    if size > MAX_FILE_BYTES:
        return Prepared(name=path.name, media_type=media_type, size=size, path=path)
    return Prepared(name=path.name, media_type=media_type, size=size, data=data)


def _moving(path: Path, data: bytes, size: int) -> Prepared:
    """A GIF, without what programs wrote into it; scaled down, it would not move."""
    plain = b"" if size > MAX_PICTURE_FILE_BYTES else _plain(data)
    first = decode_received(plain, QSize(_SIDES[0], _SIDES[0])) if plain else None
    if first is None:
        return replace(_as_it_is(path, data, size, _ANY_TYPE), keeps_details=True)
    return _apart_if_large(
        Prepared(
            name=path.name,
            media_type=_GIF,
            size=len(plain),
            data=plain,
            width=first.width(),
            height=first.height(),
            thumbnail=thumbnail_of(first) if len(plain) > MAX_FILE_BYTES else b"",
            preview=_within(first, PREVIEW),
        )
    )


def prepare_picture(image: QImage, stem: str) -> Prepared:
    """Raises PictureError if it cannot be made small enough."""
    longer = max(image.width(), image.height())
    largest = min(longer, _SIDES[0])
    for side in (largest, *(side for side in _SIDES if side < largest)):
        scaled = _within(image, QSize(side, side))
        format_, data = _small_enough(scaled)
        if data:
            return Prepared(
                name=f"{stem}.{'png' if format_ == 'PNG' else 'jpg'}",
                media_type=f"image/{format_.lower()}",
                size=len(data),
                data=data,
                width=scaled.width(),
                height=scaled.height(),
                preview=_within(scaled, PREVIEW),
            )
    raise PictureError(tr("The picture cannot be made small enough."))


def _small_enough(image: QImage) -> tuple[str, bytes]:
    """PNG or JPEG, and its bytes; none if they do not fit into a message.

    PNG loses nothing.  Of a screen or a drawing it is smaller, too.
    """
    if image.hasAlphaChannel():
        data = encoded_picture(image, "PNG", -1)
        if 0 < len(data) <= MAX_FILE_BYTES:
            return "PNG", data
    for quality in _QUALITIES:
        data = encoded_picture(image, "JPEG", quality)
        if 0 < len(data) <= MAX_FILE_BYTES:
            sharp = encoded_picture(image, "PNG", -1)
            return ("PNG", sharp) if 0 < len(sharp) <= len(data) else ("JPEG", data)
    return "", b""


def thumbnail_of(image: QImage) -> bytes:
    """A JPEG that travels with the message of a larger picture; b"" if there is none so small."""
    for side in _THUMBNAIL_SIDES:
        small = _within(image, QSize(side, side))
        for quality in _QUALITIES:
            data = encoded_picture(small, "JPEG", quality)
            if 0 < len(data) <= MAX_THUMBNAIL_BYTES:
                return data
    return b""


def _within(image: QImage, most: QSize) -> QImage:
    if image.width() <= most.width() and image.height() <= most.height():
        return image
    return image.scaled(
        most, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
    )


def decode_received(data: bytes, most: QSize) -> QImage | None:
    """A picture that came, no larger than ``most``; None if it is none that may be shown.

    Of a GIF the first picture.
    """
    opened = _open(data)
    if opened is None:
        return None
    reader, buffer = opened
    size = reader.size()
    if size.width() > most.width() or size.height() > most.height():
        reader.setScaledSize(size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio))
    image = reader.read()
    buffer.close()
    return None if image.isNull() else image


def moves(data: bytes) -> bool:
    """Whether it is a GIF of several pictures, each of a size that may be shown one after another.

    Slow: call it off the loop.
    """
    opened = _open(data) if is_gif(data) else None
    if opened is None:
        return False
    reader, buffer = opened
    size = reader.size()
    several = size.width() * size.height() <= MAX_MOVING_PIXELS and reader.imageCount() > 1
    buffer.close()
    return several


def _open(data: bytes) -> tuple[QImageReader, QBuffer] | None:
    format_ = "gif" if is_gif(data) else format_of(data)
    if format_ is None or len(data) > MAX_READ_BYTES:
        return None
    reader, buffer = open_reader(data, format_)
    size = reader.size()
    if size.isEmpty() or size.width() * size.height() > MAX_FILE_PIXELS:
        return None
    return reader, buffer


def dropped_files(source: QMimeData) -> list[Path]:
    """The files of this machine that are pasted or dropped."""
    urls = source.urls() if source.hasUrls() else []
    return [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
