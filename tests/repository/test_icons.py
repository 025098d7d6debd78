"""The app's icon: every size is there, drawn from the SVGs as they are now."""

import struct
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from scripts.icons import ASSETS, ICNS_TYPES, ICO_SIZES, SIZES, draw, icns, ico

SLACK = 3
"""How far a channel may be off: processors round the edges of curves differently."""


def committed(size: int) -> bytes:
    return (ASSETS / f"icon-{size}.png").read_bytes()


def pixels(image: QImage) -> bytes:
    converted = image.convertToFormat(QImage.Format.Format_RGBA8888)
    return bytes(converted.constBits())  # a view into the image, which must live as long


@pytest.mark.parametrize("size", SIZES)
def test_a_committed_size_is_what_its_svg_draws(size: int, qtbot: QtBot) -> None:
    """Else run `make icons`."""
    del qtbot  # a QGuiApplication is needed to draw
    old, new = QImage.fromData(committed(size)), QImage.fromData(draw(size))
    assert (old.width(), old.height()) == (size, size)
    assert old.hasAlphaChannel()
    assert max(abs(a - b) for a, b in zip(pixels(old), pixels(new), strict=True)) <= SLACK


@pytest.mark.parametrize("size", SIZES)
def test_corners_are_clear_and_the_face_is_petrol(size: int) -> None:
    image = QImage.fromData(committed(size))
    assert image.pixelColor(0, 0).alpha() < 128
    assert image.pixelColor(size // 2, size - 1).name().lower() == "#0b6b66"


def test_the_containers_hold_the_committed_pictures() -> None:
    assert (ASSETS / "icon.ico").read_bytes() == ico({size: committed(size) for size in ICO_SIZES})
    assert (ASSETS / "icon.icns").read_bytes() == icns({s: committed(s) for s in ICNS_TYPES})


def test_each_picture_in_the_windows_icon_lies_where_its_directory_says() -> None:
    data = (ASSETS / "icon.ico").read_bytes()
    _, kind, count = struct.unpack_from("<HHH", data)
    assert (kind, count) == (1, len(ICO_SIZES))
    for number, size in enumerate(ICO_SIZES):
        entry = struct.unpack_from("<BBBBHHII", data, 6 + 16 * number)
        length, offset = entry[6], entry[7]
        assert entry[0] == size % 256
        assert data[offset : offset + length] == committed(size)


def test_the_macos_icon_is_as_long_as_it_says() -> None:
    data = (ASSETS / "icon.icns").read_bytes()
    assert data[:4] == b"icns"
    assert struct.unpack(">I", data[4:8]) == (len(data),)


def test_pictures_are_small_enough_to_travel() -> None:
    assert sum(path.stat().st_size for path in Path(ASSETS).glob("icon*")) < 200_000
