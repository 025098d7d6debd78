"""A picture file without what a camera or a program wrote beside its pixels.

The pixels stay byte for byte as they are; place, time, camera, comments, previews and whatever
follows the end of the picture go. What is needed to show the pixels right stays: colour profile,
gamma, transparency, and how often a GIF plays. JPEG by ITU-T T.81 annex B, PNG by its third
edition, chapter 5, WebP by RFC 9649, GIF by its version 89a. TIFF and HEIC are only told apart:
places and times lie among what shows the picture, and nothing here writes them anew. A file that
does not follow its format is refused, since nobody knows what is in it.
"""

import struct
from collections.abc import Iterator

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS"}
    | {b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"cICP", b"mDCV", b"cLLI"}
)
_MARK = 0xFF
_EOI, _SOS = 0xD9, 0xDA
_LENGTH = 2
"""Bytes of a segment's length, which counts them too."""
_FIRST_APP, _LAST_APP, _COMMENT = 0xE0, 0xEF, 0xFE
_EXIF_MARKER = 0xE1
_STUFFED = frozenset({0x00, *range(0xD0, 0xD8)})
"""After 0xFF in coded pixels: a byte of them, or a restart."""
_JFIF_MARKER, _JFIF = 0xE0, b"JFIF\x00"
_BEFORE_PREVIEW = 12
"""Of JFIF's content: its name, version and density, and then the size of its preview."""
_JPEG_KEPT = ((0xE2, b"ICC_PROFILE\x00"), (0xEE, b"Adobe"))
_JPEG_PICTURE = frozenset({*range(0xC0, 0xD0), *range(0xD9, 0xE0)}) - {0xC8}
"""Frames, tables, scans and the end: what makes the pixels."""
_EXIF = b"Exif\x00\x00"
_ORIENTATION = 0x0112
_UPRIGHT = 1
_ENTRY = 12
_WEBP_KEPT = frozenset({b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"})
_VP8X_BYTES = 10
_WEBP_FLAGS = 0x08 | 0x04
"""Of VP8X: there is EXIF, there is XMP."""
_GIF = (b"GIF87a", b"GIF89a")
_GIF_SCREEN = 13
"""Signature and the description of the screen."""
_GIF_IMAGE_BYTES = 10
_GIF_HAS_COLOURS, _GIF_COLOURS = 0x80, 0x07
_GIF_EXTENSION, _GIF_IMAGE, _GIF_END = 0x21, 0x2C, 0x3B
_GIF_CONTROL, _GIF_PLAIN_TEXT, _GIF_APPLICATION, _GIF_COMMENT = 0xF9, 0x01, 0xFF, 0xFE
_GIF_CONTROL_BYTES = 4
_GIF_LOOPS = (b"\x0bNETSCAPE2.0", b"\x0bANIMEXTS1.0")
_GIF_LOOP_BYTES = 3
_TIFF = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
_HEIF_BRANDS = frozenset(
    {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis"}
)


class MalformedPictureError(ValueError):
    """It does not follow its format."""


def is_webp(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def is_gif(data: bytes) -> bool:
    return data.startswith(_GIF)


def keeps_metadata(data: bytes) -> bool:
    """Whether it is a picture, TIFF, HEIC or AVIF, of which nothing can be taken here."""
    is_heif = data[4:8] == b"ftyp" and data[8:12] in _HEIF_BRANDS
    return is_heif or data.startswith(_TIFF)


def without_metadata(data: bytes) -> bytes:
    """Raises MalformedPictureError for what is no JPEG, PNG, WebP or GIF, or a damaged one."""
    try:
        if data.startswith(_PNG):
            return _PNG + b"".join(_png_chunks(data))
        if is_webp(data):
            chunks = b"".join(_webp_chunks(data))
            return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks
        if is_gif(data):
            return b"".join(_gif_blocks(data))
        if data.startswith(b"\xff\xd8"):
            return b"\xff\xd8" + b"".join(_jpeg_parts(data))
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedPictureError from error
    raise MalformedPictureError


def is_turned(data: bytes) -> bool:
    """Whether a JPEG says in its EXIF that it has to be turned or mirrored to be shown."""
    try:
        return any(
            code == _EXIF_MARKER and _orientation(body) not in {0, _UPRIGHT}
            for code, body, _ in _segments(data)
        )
    except (struct.error, IndexError, ValueError):
        return False


# --- PNG and WebP ---------------------------------------------------------------------------------


def _png_chunks(data: bytes) -> Iterator[bytes]:
    at, name = len(_PNG), b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data) or (name == b"IEND" and length):
            raise MalformedPictureError
        if name in _PNG_KEPT:
            yield data[at:end]
        at = end


def _webp_chunks(data: bytes) -> Iterator[bytes]:
    at, whole = 12, 8 + int(struct.unpack_from("<I", data, 4)[0])
    if whole > len(data):
        raise MalformedPictureError
    while at < whole:
        name, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length + length % 2
        if end > whole:
            raise MalformedPictureError
        if name == b"VP8X":
            if length != _VP8X_BYTES:
                raise MalformedPictureError
            yield data[at : at + 8] + bytes([data[at + 8] & ~_WEBP_FLAGS]) + data[at + 9 : end]
        elif name in _WEBP_KEPT:
            yield data[at:end]
        at = end


# --- GIF ------------------------------------------------------------------------------------------


def _gif_blocks(data: bytes) -> Iterator[bytes]:
    """Screen, pictures and how each is shown; comments, texts and what programs added go."""
    at = _GIF_SCREEN + _gif_colours(data[_GIF_SCREEN - 3])
    if at > len(data):
        raise MalformedPictureError
    yield data[:at]
    while data[at] != _GIF_END:
        begin, kind = at, data[at]
        if kind == _GIF_IMAGE:
            packed = data[at + _GIF_IMAGE_BYTES - 1]
            at = _gif_blocks_end(data, at + _GIF_IMAGE_BYTES + _gif_colours(packed) + 1)
            yield data[begin:at]
        elif kind == _GIF_EXTENSION:
            at = _gif_blocks_end(data, at + 2)
            yield _gif_extension(data[begin:at])
        else:
            raise MalformedPictureError
    yield bytes([_GIF_END])


def _gif_colours(packed: int) -> int:
    """Bytes of the table of colours that follows."""
    return 3 << ((packed & _GIF_COLOURS) + 1) if packed & _GIF_HAS_COLOURS else 0


def _gif_blocks_end(data: bytes, at: int) -> int:
    """Behind a row of blocks, each after its length, and the empty one that ends them."""
    while data[at]:
        at += 1 + data[at]
    return at + 1


def _gif_extension(whole: bytes) -> bytes:
    """What of it is kept; each begins with its mark and its kind."""
    kind, body = whole[1], whole[2:]
    if kind == _GIF_CONTROL:
        if len(body) != 1 + _GIF_CONTROL_BYTES + 1 or body[0] != _GIF_CONTROL_BYTES:
            raise MalformedPictureError
        return whole
    if kind == _GIF_APPLICATION:
        loop = next((loop for loop in _GIF_LOOPS if body.startswith(loop)), b"")
        end = len(loop) + 1 + _GIF_LOOP_BYTES
        if loop and body[len(loop) : len(loop) + 2] == bytes([_GIF_LOOP_BYTES, 1]):
            return whole[:2] + body[:end] + b"\x00"
        return b""
    if kind in {_GIF_COMMENT, _GIF_PLAIN_TEXT}:
        return b""
    raise MalformedPictureError


# --- JPEG -----------------------------------------------------------------------------------------


def _segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Marker, content and all bytes of each segment, up to the end of the picture.

    The coded pixels belong to the segment that begins their scan.
    """
    at = 2
    while True:
        if data[at] != _MARK:
            raise MalformedPictureError
        while data[at + 1] == _MARK:  # Markers may be filled up.
            at += 1
        code = data[at + 1]
        if code == _EOI:
            yield code, b"", data[at : at + 2]
            return
        (length,) = struct.unpack_from(">H", data, at + 2)
        end = at + 2 + length
        if length < _LENGTH or end > len(data):
            raise MalformedPictureError
        body = data[at + 4 : end]
        if code == _SOS:
            end = _end_of_scan(data, end)
        yield code, body, data[at:end]
        at = end


def _end_of_scan(data: bytes, at: int) -> int:
    while True:
        at = data.index(b"\xff", at)
        if data[at + 1] not in _STUFFED:
            return at
        at += 2


def _jpeg_parts(data: bytes) -> Iterator[bytes]:
    for code, body, whole in _segments(data):
        if code == _JFIF_MARKER and body.startswith(_JFIF):
            yield _jfif(body)
        elif code in _JPEG_PICTURE or any(
            code == kept and body.startswith(sign) for kept, sign in _JPEG_KEPT
        ):
            yield whole
        elif not _FIRST_APP <= code <= _LAST_APP and code != _COMMENT:
            raise MalformedPictureError


def _jfif(body: bytes) -> bytes:
    """The segment without its preview."""
    if len(body) < _BEFORE_PREVIEW:
        raise MalformedPictureError
    plain = body[:_BEFORE_PREVIEW] + bytes(2)
    return struct.pack(">BBH", _MARK, _JFIF_MARKER, _LENGTH + len(plain)) + plain


def _orientation(body: bytes) -> int:
    """From the first directory of EXIF; 0 if it says nothing."""
    if not body.startswith(_EXIF):
        return 0
    tiff = body[len(_EXIF) :]
    order = "<" if tiff[:2] == b"II" else ">"
    (at,) = struct.unpack_from(f"{order}I", tiff, 4)
    (count,) = struct.unpack_from(f"{order}H", tiff, at)
    for place in range(at + 2, at + 2 + count * _ENTRY, _ENTRY):
        tag, _kind, _number, value = struct.unpack_from(f"{order}HHIH", tiff, place)
        if tag == _ORIENTATION:
            return int(value)
    return 0
