"""What is shown can be read back however it was sent; what is hostile is refused in words."""

import os
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import segno
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QImage

from engine.core.contacts import CONTACT_PREFIX
from tests.ui.code_pictures import (
    SMOOTH,
    blank,
    encoded,
    framed,
    photographed,
    shown_code,
    side_by_side,
    turned,
)
from ui.pictures import MAX_FILE_PIXELS, PictureError
from ui.qr_reading import MAX_BYTES, MAX_CODES, codes_in

pytestmark = pytest.mark.usefixtures("qapp")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def link(characters: int) -> str:
    return CONTACT_PREFIX + "".join(Random(characters).choices(LETTERS, k=characters))


@pytest.mark.parametrize("characters", [40, 300, 800, 2000])
def test_the_code_that_the_window_shows_is_read_back(characters: int) -> None:
    text = link(characters)
    assert codes_in([shown_code(text)]) == (text,)


@pytest.mark.parametrize("degrees", [0, 3, 30, 45, 90, 137, 180, 270])
def test_it_may_be_turned(degrees: float) -> None:
    assert codes_in([turned(shown_code(link(320)), degrees)]) == (link(320),)


@pytest.mark.parametrize("part", [0.5, 0.6, 0.8, 1.4, 3.0])
def test_it_may_be_smaller_and_larger(part: float) -> None:
    image = shown_code(link(320))
    size = QSize(round(image.width() * part), round(image.height() * part))
    scaled = image.scaled(size, Qt.AspectRatioMode.IgnoreAspectRatio, SMOOTH)
    assert codes_in([framed(scaled, 12)]) == (link(320),)


@pytest.mark.parametrize("colour", ["#ffffff", "#101514", "#0b6b66"])
def test_it_may_stand_in_the_corner_of_a_large_picture(colour: str) -> None:
    screen = framed(shown_code(link(320)), 500, QColor(colour))
    assert codes_in([screen]) == (link(320),)
    mirrored = screen.flipped(Qt.Orientation.Horizontal)  # as front cameras do
    assert codes_in([mirrored]) == (link(320),)


@pytest.mark.parametrize("seed", range(4))
def test_it_may_be_photographed(seed: int) -> None:
    assert codes_in([photographed(shown_code(link(320)), seed)]) == (link(320),)


@pytest.mark.parametrize("ink", ["black", "white"])
def test_what_is_around_it_may_be_transparent(ink: str) -> None:
    """Both are drawn by page makers; the light one is meant for a dark page."""
    matrix = segno.make_qr(link(120), error="l").matrix
    edge = len(matrix) + 8
    image = QImage(edge, edge, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    for y, row in enumerate(matrix):
        for x, dark in enumerate(row):
            if dark:
                image.setPixelColor(x + 4, y + 4, QColor(ink))
    assert codes_in([encoded(image.scaled(edge * 4, edge * 4))]) == (link(120),)


@pytest.mark.parametrize(
    "form",
    [
        QImage.Format.Format_Mono,
        QImage.Format.Format_Indexed8,
        QImage.Format.Format_Grayscale8,
        QImage.Format.Format_Grayscale16,
        QImage.Format.Format_RGB16,
        QImage.Format.Format_RGB888,
        QImage.Format.Format_ARGB32_Premultiplied,
        QImage.Format.Format_RGBA64,
    ],
)
def test_every_form_of_pixels_is_read(form: QImage.Format) -> None:
    assert codes_in([shown_code(link(120)).convertToFormat(form)]) == (link(120),)


def test_a_screen_with_small_pixels_is_read_as_its_pixels_are() -> None:
    image = shown_code(link(120))
    image.setDevicePixelRatio(2.0)
    rough = image.convertToFormat(QImage.Format.Format_RGB888)
    assert codes_in([rough]) == (link(120),)
    assert image.devicePixelRatio() == 2.0


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_file_is_read_and_turned_into_nothing_else(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "code"
    file.write_bytes(encoded(shown_code(link(300)), kind, 80))
    assert codes_in([file]) == (link(300),)


def test_several_are_all_told_once_each() -> None:
    one, two = shown_code(link(50)), shown_code(link(60))
    assert set(codes_in([side_by_side(one, two, one)])) == {link(50), link(60)}
    assert codes_in([one, two, one]) == (link(50), link(60))
    many = [shown_code(f"{number}") for number in range(MAX_CODES + 5)]
    assert len(codes_in(many)) == MAX_CODES


def test_what_a_large_picture_is_scaled_down_to_still_shows_its_code() -> None:
    large = framed(shown_code(link(320)).scaled(3000, 3000), 1500)
    assert large.width() * large.height() > 16_000_000
    assert codes_in([encoded(large)]) == (link(320),)


@pytest.mark.parametrize(
    "image",
    [
        blank(QSize(1, 1)),
        blank(QSize(1, 3000)),
        blank(QSize(800, 600)),
        blank(QSize(800, 600), QColor("black")),
    ],
)
def test_a_picture_without_a_code_has_none(image: QImage) -> None:
    assert codes_in([image]) == ()
    assert codes_in([encoded(image)]) == ()


def test_noise_has_none() -> None:
    width, height = 900, 700
    grain = Random(5).randbytes(width * height)
    image = QImage(grain, width, height, width, QImage.Format.Format_Grayscale8).copy()
    assert codes_in([image]) == ()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00", bytes(range(256))])
def test_a_code_of_bytes_is_some_text(content: bytes) -> None:
    code = segno.make_qr(content, error="l")
    edge = int(code.symbol_size(scale=4, border=4)[0])
    image = blank(QSize(edge, edge))
    for y, row in enumerate(code.matrix_iter(scale=4, border=4)):
        for x, dark in enumerate(row):
            if dark:
                image.setPixelColor(x, y, QColor("black"))
    (text,) = codes_in([image])
    assert text.encode("utf-8")


# --- hostile ------------------------------------------------------------------------------------


def png_claiming(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(b"\0"))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "neither a PNG nor a JPEG"),
        (b"hello", "neither a PNG nor a JPEG"),
        (b"GIF89a" + bytes(100), "neither a PNG nor a JPEG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "neither a PNG nor a JPEG"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"\xff\xd8\xff" + bytes(200), "damaged"),
        (png_claiming(0, 5), "damaged"),
        (png_claiming(8000, 8000), "more than 40 million pixels"),
        (png_claiming(2**31 - 1, 2**31 - 1), "damaged|40 million"),
        (b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES), "larger than 20 MB"),
    ],
)
def test_what_is_no_picture_or_too_much_of_one_is_refused(
    data: bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(PictureError, match=words):
        codes_in([data])
    file = tmp_path / "picture.png"
    file.write_bytes(data)
    with pytest.raises(PictureError, match=words):
        codes_in([file])


def test_what_qt_decoded_is_bounded_too() -> None:
    wide = QImage(MAX_FILE_PIXELS // 4 + 1, 4, QImage.Format.Format_Grayscale8)
    assert not wide.isNull()
    with pytest.raises(PictureError, match="40 million"):
        codes_in([wide])
    with pytest.raises(PictureError, match="damaged"):
        codes_in([QImage()])


def test_a_path_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    places = [tmp_path, tmp_path / "gone.png", Path(os.devnull)]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.png")
        places.append(tmp_path / "pipe.png")
    for place in places:
        with pytest.raises(PictureError, match="no such file"):
            codes_in([place])


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_pictures_are_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG"]))
    whole = bytearray(encoded(blank(QSize(90, 70), QColor("#446688")), kind))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(3, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    with suppress(PictureError):
        assert codes_in([bytes(whole[:end])]) == ()


def test_the_window_starts_without_the_library() -> None:
    program = "import sys, ui.app; sys.exit('zxingcpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
