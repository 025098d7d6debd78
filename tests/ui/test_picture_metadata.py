"""Pictures in their original size: what a camera wrote beside the pixels never travels."""

import struct
import zlib
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QLabel

from engine.api import MAX_FILE_BYTES, MAX_LARGE_FILE_BYTES
from ui.attachments import forget_copy, prepare_file, prepare_original
from ui.picture_metadata import MalformedPictureError, is_turned, without_metadata
from ui.pictures import MAX_FILE_BYTES as LONGEST_PICTURE
from ui.pictures import PictureError, encoded_picture, read_picture
from ui.window.attachment_bar import AttachmentBar

pytestmark = pytest.mark.usefixtures("qapp")
CAMERA = b"Pocket 4000"
PLACE = struct.pack("<6I", 53, 1, 33, 1, 25, 1)
"""Degrees, minutes and seconds, as cameras write them."""


def picture(side: int = 64) -> QImage:
    noise = Random(side).randbytes(4 * side * side)
    return QImage(noise, side, side, QImage.Format.Format_RGB32).copy()


def written(image: QImage, format_: bytes, *, progressive: bool = False) -> bytes:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(format_))
    writer.setProgressiveScanWrite(progressive)
    writer.setQuality(95)
    assert writer.write(image)
    buffer.close()
    return bytes(data.data())


def exif(orientation: int) -> bytes:
    """A camera's: a directory with its name and the picture's orientation, and one of the place."""
    camera_at = 8 + 2 + 3 * 12 + 4
    gps_at = camera_at + len(CAMERA) + 1
    place_at = gps_at + 2 + 12 + 4
    first = struct.pack("<H", 3)
    first += struct.pack("<HHII", 0x0110, 2, len(CAMERA) + 1, camera_at)
    first += struct.pack("<HHII", 0x0112, 3, 1, orientation)
    first += struct.pack("<HHII", 0x8825, 4, 1, gps_at) + bytes(4)
    gps = struct.pack("<H", 1) + struct.pack("<HHII", 2, 5, 3, place_at) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8) + first + CAMERA + b"\0" + gps + PLACE


def jpeg(orientation: int = 1, *, progressive: bool = False, side: int = 64) -> bytes:
    plain = written(picture(side), b"jpeg", progressive=progressive)
    body = b"Exif\0\0" + exif(orientation)
    app1 = b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
    comment = b"\xff\xfe" + struct.pack(">H", 2 + len(CAMERA)) + CAMERA
    return plain[:2] + app1 + comment + plain[2:] + b"a second picture: " + PLACE


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png() -> bytes:
    plain = written(picture(), b"png")
    extra = chunk(b"eXIf", exif(1)) + chunk(b"tEXt", b"Model\0" + CAMERA)
    return plain[:33] + extra + plain[33:] + PLACE


def webp() -> bytes:
    """Its pixels are none: nobody here decodes them."""

    def part(name: bytes, body: bytes) -> bytes:
        return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)

    parts = part(b"VP8X", bytes([0x0C]) + bytes(9)) + part(b"VP8L", b"/pixels")
    parts += part(b"EXIF", exif(1)) + part(b"XMP ", CAMERA)
    return b"RIFF" + struct.pack("<I", len(parts) + 4) + b"WEBP" + parts


LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
XMP = b"\x21\xff\x0bXMP DataXMP" + bytes([len(CAMERA)]) + CAMERA + b"\x00"
COMMENT = b"\x21\xfe" + bytes([len(PLACE)]) + PLACE + b"\x00"
TEXT = b"\x21\x01\x0c" + bytes(12) + bytes([len(CAMERA)]) + CAMERA + b"\x00"
CONTROL = b"\x21\xf9\x04\x00\x0a\x00\x00\x00"
TWO_PIXELS = b"\x2c\x00\x00\x00\x00\x02\x00\x01\x00\x00\x02\x02\x44\x0a\x00"
SCREEN = b"GIF89a\x02\x00\x01\x00\x80\x00\x00" + bytes([200, 30, 10, 10, 90, 200])


def gif(*, told: bool = True, after: bytes = CAMERA + PLACE) -> bytes:
    """Two pictures that play for ever, and all that programs write around them."""
    first, second = ([XMP, COMMENT], [TEXT, COMMENT]) if told else ([], [])
    parts = [SCREEN, *first, LOOP, CONTROL, TWO_PIXELS, *second, CONTROL, TWO_PIXELS]
    return b"".join(parts) + b"\x3b" + after


def says_nothing(data: bytes) -> bool:
    return CAMERA not in data and PLACE not in data and b"Exif" not in data


@pytest.mark.parametrize(
    "data",
    [jpeg(), jpeg(progressive=True), png()],
    ids=["jpeg", "progressive jpeg", "png"],
)
def test_the_pixels_stay_and_all_else_goes(data: bytes) -> None:
    assert not says_nothing(data)
    plain = without_metadata(data)
    assert says_nothing(plain)
    assert QImage.fromData(plain) == QImage.fromData(data)
    assert not QImage.fromData(plain).isNull()


def test_a_webp_loses_its_exif_and_its_xmp_and_says_so_in_its_header() -> None:
    plain = without_metadata(webp())
    assert says_nothing(plain)
    assert b"/pixels" in plain
    assert plain[20] == 0
    assert struct.unpack_from("<I", plain, 4) == (len(plain) - 8,)


def test_the_preview_within_jfif_goes() -> None:
    plain = written(picture(), b"jpeg")
    length = struct.unpack_from(">H", plain, 4)[0]
    body = plain[6 : 4 + length - 2] + bytes([8, 1]) + CAMERA + PLACE
    segment = b"\xff\xe0" + struct.pack(">H", 2 + len(body)) + body
    assert without_metadata(plain[:2] + segment + plain[4 + length :]) == plain


@pytest.mark.parametrize("format_", ["PNG", "JPEG"])
def test_nothing_that_was_said_beside_the_pixels_is_written_anew(format_: str) -> None:
    plain = written(picture(), b"png")
    said = chunk(b"tEXt", CAMERA + b"\0" + PLACE.hex().encode())
    image = read_picture(plain[:33] + said + plain[33:])
    assert image.textKeys() == [CAMERA.decode()]
    again = encoded_picture(image, format_, 85)
    assert CAMERA not in again
    assert QImage.fromData(again).size() == image.size()


def test_what_says_which_colours_are_meant_stays() -> None:
    plain = written(picture(), b"png")
    colours = chunk(b"cICP", bytes([9, 16, 0, 1]))
    data = plain[:33] + colours + plain[33:]
    assert colours in without_metadata(data)


@pytest.mark.parametrize(
    "data",
    [
        written(picture(), b"png")[:-12] + chunk(b"IEND", CAMERA),
        b"\xff\xd8\xff\xf5" + struct.pack(">H", 2 + len(CAMERA)) + CAMERA + jpeg()[2:],
        b"RIFF" + struct.pack("<I", 20) + b"WEBPVP8X" + bytes(4) + b"VP8L" + bytes(4),
    ],
    ids=["png", "jpeg", "webp"],
)
def test_what_no_format_knows_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedPictureError):
        without_metadata(data)


def test_a_gif_plays_as_it_did_and_says_nothing_else() -> None:
    assert without_metadata(gif()) == gif(told=False, after=b"")
    assert not QImage.fromData(gif(told=False, after=b"")).isNull()


def test_what_hides_behind_the_number_of_a_gifs_rounds_goes() -> None:
    hidden = LOOP[:-1] + bytes([len(CAMERA)]) + CAMERA + b"\x00"
    other = LOOP.replace(b"\x03\x01\x00\x00", b"\x03\x02\x41\x42")
    data = SCREEN + hidden + other + CONTROL + TWO_PIXELS + b"\x3b"
    assert without_metadata(data) == SCREEN + LOOP + CONTROL + TWO_PIXELS + b"\x3b"


def test_a_gif_with_an_unknown_extension_is_refused() -> None:
    with pytest.raises(MalformedPictureError):
        without_metadata(SCREEN + b"\x21\x77" + COMMENT[2:] + TWO_PIXELS + b"\x3b")
    with pytest.raises(MalformedPictureError):
        without_metadata(SCREEN + CONTROL[:-1] + bytes([9]) + PLACE[:9] + b"\x00\x3b")


@given(st.lists(st.sampled_from([XMP, COMMENT, TEXT, LOOP, CONTROL, TWO_PIXELS]), max_size=9))
def test_of_any_gif_the_pictures_stay_and_what_is_said_goes(parts: list[bytes]) -> None:
    kept = [part for part in parts if part in {LOOP, CONTROL, TWO_PIXELS}]
    assert without_metadata(SCREEN + b"".join(parts) + b"\x3b") == SCREEN + b"".join(kept) + b"\x3b"


@pytest.mark.parametrize("data", [jpeg(), png(), webp(), gif()], ids=["jpeg", "png", "webp", "gif"])
def test_what_is_cut_off_anywhere_is_refused_or_still_says_nothing(data: bytes) -> None:
    for length in range(0, len(data), 7):
        try:
            plain = without_metadata(data[:length])
        except MalformedPictureError:
            continue
        assert says_nothing(plain)


@given(
    st.binary(max_size=200),
    st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"GIF89a", SCREEN]),
)
def test_no_bytes_do_worse_than_being_refused(data: bytes, sign: bytes) -> None:
    is_turned(sign + data)
    try:
        without_metadata(sign + data)
    except MalformedPictureError:
        return


def test_a_picture_goes_out_in_its_own_size(tmp_path: Path) -> None:
    path = tmp_path / "pier.jpeg"
    path.write_bytes(jpeg(side=600))
    small = prepare_file(path, most=MAX_LARGE_FILE_BYTES)
    assert small.original == path
    whole = prepare_original(small)
    assert (whole.name, whole.media_type) == ("pier.jpg", "image/jpeg")
    assert (whole.width, whole.height) == (600, 600)
    assert whole.size > MAX_FILE_BYTES
    assert whole.path is not None
    sent = whole.path.read_bytes()
    assert says_nothing(sent)
    assert QImage.fromData(sent) == QImage.fromData(path.read_bytes())
    assert whole.thumbnail
    assert whole.small is small
    forget_copy(whole)
    assert not whole.path.exists()
    assert path.exists()


def test_a_picture_that_lies_on_its_side_is_set_upright(tmp_path: Path) -> None:
    path = tmp_path / "pier.jpg"
    data = jpeg(6)
    assert is_turned(data)
    path.write_bytes(data)
    whole = prepare_original(prepare_file(path))
    assert says_nothing(whole.data)
    shown, turned = QImage.fromData(whole.data), picture()
    assert not is_turned(whole.data)
    assert shown.size() == turned.size()


def test_a_webp_goes_out_as_a_file_without_its_place(tmp_path: Path) -> None:
    path = tmp_path / "pier.webp"
    path.write_bytes(webp())
    assert says_nothing(prepare_file(path).data)
    path.write_bytes(webp()[:-9])
    with pytest.raises(PictureError, match="damaged"):
        prepare_file(path)


def long_png(side: int, more: int) -> bytes:
    """Of so many pixels at most as it says, with a place, and so many bytes to decode."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    told = chunk(b"eXIf", exif(1)) + chunk(b"tEXt", b"Model\0" + CAMERA)
    return b"\x89PNG\r\n\x1a\n" + header + told + chunk(b"IDAT", bytes(more)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("scan.png", long_png(64, LONGEST_PICTURE)),
        ("stars.png", long_png(8_000, 100)),
        ("hall.jpg", jpeg() + bytes(LONGEST_PICTURE)),
        ("pier.webp", webp() + bytes(LONGEST_PICTURE)),
    ],
)
def test_a_picture_that_nobody_here_decodes_goes_out_as_a_file_without_its_place(
    tmp_path: Path, name: str, data: bytes
) -> None:
    """Of more than 10 MB, or of more than 40 million pixels."""
    path = tmp_path / name
    path.write_bytes(data)
    sent = prepare_file(path, most=MAX_LARGE_FILE_BYTES)
    assert (sent.name, sent.media_type) == (name, "application/octet-stream")
    assert (sent.width, sent.thumbnail, sent.preview) == (0, b"", None)
    goes_out = sent.data if sent.path is None else sent.path.read_bytes()
    assert len(goes_out) == sent.size
    assert goes_out == without_metadata(data)
    assert says_nothing(goes_out)
    assert not sent.keeps_details
    forget_copy(sent)
    with pytest.raises(PictureError, match="too large: a file can have"):
        prepare_file(path, most=99)


@pytest.mark.parametrize("orientation", [6, 1])
def test_of_a_large_picture_what_turns_it_stays_and_that_is_said(
    tmp_path: Path, orientation: int
) -> None:
    """And of one that is damaged everything does."""
    data = jpeg(orientation)
    data = (
        data + bytes(LONGEST_PICTURE) if orientation > 1 else data[:-400] + bytes(LONGEST_PICTURE)
    )
    path = tmp_path / "pier.jpg"
    path.write_bytes(data)
    sent = prepare_file(path, most=MAX_LARGE_FILE_BYTES)
    assert sent.path == path
    assert sent.keeps_details
    assert not sent.is_copy


def test_a_gif_goes_out_without_what_was_written_into_it(tmp_path: Path) -> None:
    path = tmp_path / "wave.gif"
    path.write_bytes(gif())
    sent = prepare_file(path)
    assert (sent.media_type, sent.data) == ("image/gif", gif(told=False, after=b""))
    assert not sent.keeps_details


TIFF = b"II*\0" + struct.pack("<I", 8) + PLACE
HEIC = struct.pack(">I", 24) + b"ftypheic" + bytes(12) + PLACE


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("scan", TIFF),
        ("photo", HEIC),
        ("photo.heif", b"anything"),
        ("walk.mp4", b"anything"),
        ("broken.gif", gif()[:60]),
    ],
)
def test_it_is_said_which_files_keep_what_a_camera_wrote(
    tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    sent = prepare_file(path)
    assert sent.data == data
    assert sent.keeps_details
    bar = AttachmentBar()
    bar.show_files([sent, prepare_file(plain_file(tmp_path))])
    told, quiet = ([words.text() for words in one.findChildren(QLabel)] for one in bar.items)
    assert "Place and time stay in it" in told
    assert "Place and time stay in it" not in quiet
    bar.deleteLater()


def plain_file(place: Path) -> Path:
    path = place / "notes.txt"
    path.write_bytes(b"low water at ten")
    return path


def test_no_more_is_read_of_a_picture_than_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "pier.jpg"
    path.write_bytes(jpeg())
    small = prepare_file(path)
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # It takes no room on the disk, and nobody has the memory for it.
    with pytest.raises(PictureError, match="larger than 10 MB"):
        prepare_original(small)
