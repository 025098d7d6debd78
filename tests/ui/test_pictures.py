"""Pictures from outside are bounded and decoded after the paint; what travels is small."""

import struct
import zlib
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QBuffer, QByteArray, QCoreApplication, QIODevice, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from engine.core.contacts import MAX_PICTURE_BYTES
from tests.ui.scripted_people import picture_bytes
from ui.avatar import draw_avatar
from ui.pictures import (
    MAX_FILE_BYTES,
    MAX_OUTSIDE_SIDE,
    Faces,
    PictureError,
    cropped_face,
    decode_picture,
    picture_from_file,
)

pytestmark = pytest.mark.usefixtures("qapp")
PNG_START = b"\x89PNG\r\n\x1a\n"


def png_claiming(width: int, height: int) -> bytes:
    """A header, and next to nothing behind it."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_START + chunk(header) + chunk(b"IDAT" + zlib.compress(b"\0" * 64))


def chunk(body: bytes) -> bytes:
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def noise(side: int, *, alpha: bool = False) -> QImage:
    """The hardest picture to make small."""
    pixels = Random(5).randbytes(side * side * 4)
    image = QImage(pixels, side, side, QImage.Format.Format_ARGB32).copy()
    return image if alpha else image.convertToFormat(QImage.Format.Format_RGB32)


def written(image: QImage, format_: str) -> bytes:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert image.save(buffer, format_)  # type: ignore[call-overload]
    return bytes(data.data())


# --- from outside -------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["PNG", "JPEG"])
def test_a_png_and_a_jpeg_are_shown_in_their_colour(format_: str) -> None:
    image = decode_picture(picture_bytes("#1f6ca6", 64, format_))
    assert image is not None
    assert image.width() == image.height() == 128
    centre = image.pixelColor(64, 64)
    assert (abs(centre.red() - 0x1F), abs(centre.blue() - 0xA6)) <= (4, 4)


@pytest.mark.parametrize("format_", ["BMP", "PPM", "XBM", "WEBP"])
def test_any_other_format_is_no_picture(format_: str) -> None:
    assert decode_picture(written(noise(32), format_)) is None


def test_an_svg_is_no_picture() -> None:
    assert decode_picture(b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>') is None


def test_large_claims_are_refused_before_anything_is_decoded() -> None:
    assert decode_picture(png_claiming(50_000, 50_000)) is None
    assert decode_picture(picture_bytes(side=MAX_OUTSIDE_SIDE + 1)) is None
    assert decode_picture(picture_bytes(side=MAX_OUTSIDE_SIDE)) is not None


def test_more_bytes_than_may_travel_are_refused() -> None:
    picture = picture_bytes()
    filled = picture + bytes(MAX_PICTURE_BYTES - len(picture))
    assert decode_picture(filled) is not None
    assert decode_picture(filled + b"\0") is None


@given(st.binary(max_size=200), st.sampled_from([b"", PNG_START, b"\xff\xd8\xff\xe0"]))
def test_junk_is_no_picture(junk: bytes, start: bytes) -> None:
    assert decode_picture(start + junk) is None


@given(st.data())
def test_a_damaged_picture_is_shown_as_far_as_it_goes_or_not_at_all(data: st.DataObject) -> None:
    picture = bytearray(picture_bytes(format_=data.draw(st.sampled_from(["PNG", "JPEG"]))))
    for _ in range(data.draw(st.integers(1, 8))):
        picture[data.draw(st.integers(0, len(picture) - 1))] = data.draw(st.integers(0, 255))
    image = decode_picture(bytes(picture))
    assert image is None or image.width() == image.height() == 128


# --- painting -----------------------------------------------------------------------------------


def decode_all(faces: Faces) -> int:
    """Let everything that was asked for be decoded; how many that were."""
    decoded: list[None] = []
    faces.changed.connect(lambda: decoded.append(None))
    before = -1
    while len(decoded) > before:
        before = len(decoded)
        QCoreApplication.processEvents()
    return len(decoded)


def test_asking_for_a_face_decodes_nothing_and_later_it_is_there() -> None:
    faces = Faces()
    told: list[bool] = []
    faces.changed.connect(lambda: told.append(True))
    picture = picture_bytes("#123456")
    assert faces.face(picture) is None
    assert faces.face(picture) is None
    assert told == []
    decode_all(faces)
    assert faces.face(picture) is not None
    assert told == [True]


def test_what_cannot_be_decoded_is_tried_once() -> None:
    faces = Faces()
    assert faces.face(b"junk") is None
    assert decode_all(faces) == 1
    assert faces.face(b"junk") is None
    assert decode_all(faces) == 0


def test_no_number_of_faces_fills_the_memory() -> None:
    faces = Faces()
    for number in range(600):
        faces.face(b"picture %d" % number)
    assert decode_all(faces) == 256
    faces.face(b"one more")
    assert decode_all(faces) == 1
    for number in range(1, 256):
        faces.face(b"picture %d" % number)
    assert decode_all(faces) == 0, "these are still kept"
    faces.face(b"picture 0")
    assert decode_all(faces) == 1, "the oldest had to go"


def drawn(picture: bytes) -> QImage:
    canvas = QImage(40, 40, QImage.Format.Format_ARGB32_Premultiplied)
    canvas.fill(0)
    painter = QPainter(canvas)
    draw_avatar(
        painter, QRectF(0, 0, 40, 40), stable_id="x", name="Luc", is_group=False, picture=picture
    )
    painter.end()
    return canvas


def test_an_avatar_shows_initials_until_the_picture_is_ready() -> None:
    picture = picture_bytes("#b5385b")
    initials = drawn(b"")
    assert drawn(picture) == initials
    while cropped_face(picture, 40, 1, radius=0.5) is None:
        QCoreApplication.processEvents()
    shown = drawn(picture)
    assert shown.pixelColor(20, 20) == QColor("#b5385b")
    assert shown.pixelColor(0, 0).alpha() == 0, "a person is a circle"


# --- the user's own file ------------------------------------------------------------------------


def test_a_camera_picture_becomes_a_small_square_without_words(tmp_path: Path) -> None:
    image = noise(300).scaled(1600, 900)
    image.setText("Comment", "taken at home")
    path = tmp_path / "camera.png"
    assert image.save(str(path))
    picture = picture_from_file(path)
    assert len(picture) <= MAX_PICTURE_BYTES
    assert b"taken at home" not in picture
    assert b"Exif" not in picture
    shown = QImage.fromData(picture)
    assert shown.width() == shown.height() <= 256
    assert decode_picture(picture) is not None


def test_noise_gets_smaller_until_it_fits(tmp_path: Path) -> None:
    path = tmp_path / "noise.png"
    assert noise(256).save(str(path))
    picture = picture_from_file(path)
    assert len(picture) <= MAX_PICTURE_BYTES
    assert decode_picture(picture) is not None


def test_transparent_corners_stay_or_become_white(tmp_path: Path) -> None:
    plain, hard = tmp_path / "plain.png", tmp_path / "hard.png"
    image = QImage(128, 128, QImage.Format.Format_ARGB32)
    image.fill(QColor(0, 0, 0, 0))
    assert image.save(str(plain))
    assert QImage.fromData(picture_from_file(plain)).pixelColor(0, 0).alpha() == 0
    assert noise(256, alpha=True).save(str(hard))
    assert len(picture_from_file(hard)) <= MAX_PICTURE_BYTES


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "neither a PNG nor a JPEG"),
        (b"GIF89a" + bytes(20), "neither a PNG nor a JPEG"),
        (PNG_START + b"junk", "damaged"),
        (b"\xff\xd8\xff\xe0" + bytes(50), "damaged"),
        (png_claiming(8000, 5001), "more than 40 million pixels"),
        (PNG_START + bytes(MAX_FILE_BYTES), "larger than 10 MB"),
    ],
)
def test_what_cannot_become_a_picture_is_said_in_words(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(PictureError, match=sentence):
        picture_from_file(path)


def test_a_file_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match="cannot be read: No such file"):
        picture_from_file(tmp_path / "gone.png")
