"""Pictures that people of ``use`` send: as large as a camera's, and GIFs.

They are made here and not by the windows, whose memory is measured.
"""

import random
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage, QLinearGradient, QPainter

SMALL, LARGE, GIFS = 6, 3, 3
"""How many are sent made small, as they are, and moving."""
SIDE = 4_000, 3_000


def make_pictures(place: Path, name: str) -> None:
    place.mkdir(parents=True)
    chance = random.Random(name)  # noqa: S311 - what is to be seen, nothing else
    for number in range(SMALL):
        _save(photo(chance), place / f"small-{number}.jpg", 85)
    for number in range(LARGE):
        _save(photo(chance), place / f"large-{number}.jpg", 50)
    for number in range(GIFS):
        (place / f"{number}.gif").write_bytes(moving_picture(number))


def _save(image: QImage, path: Path, quality: int) -> None:
    image.save(str(path), "JPEG", quality)  # type: ignore[call-overload]


def photo(chance: random.Random) -> QImage:
    """With something everywhere."""
    image = QImage(*SIDE, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    sky = QLinearGradient(0, 0, 0, SIDE[1])
    for stop in (0.0, 0.5, 1.0):
        sky.setColorAt(stop, QColor.fromHsv(chance.randrange(360), 120, 200))
    painter.fillRect(image.rect(), sky)
    for _ in range(400):
        painter.setBrush(QColor.fromHsv(chance.randrange(360), 160, 220))
        at = QPoint(chance.randrange(SIDE[0]), chance.randrange(SIDE[1]))
        painter.drawEllipse(at, chance.randrange(10, 200), chance.randrange(10, 200))
    painter.end()
    return image


def moving_picture(number: int) -> bytes:
    """A GIF of two frames of 480 x 360; Qt writes none, so its few bytes are put together here."""
    width, height = 480, 360
    head = b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little") + b"\xf0\x00\x00"
    palette = bytes((number * 40 % 256, 80, 160, 240, 240, 200))
    loop = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
    frames = b""
    for colour in (0, 1):
        frames += b"\x21\xf9\x04\x00\x14\x00\x00\x00"
        frames += b"\x2c" + bytes(4) + head[6:10] + b"\x00"
        frames += b"\x02" + _plain_codes([colour] * (width * height)) + b"\x00"
    return head + palette + loop + frames + b";"


def _plain_codes(pixels: list[int]) -> bytes:
    """LZW without any compression: a clear code before the codes would grow."""
    bits, filled, out = 0, 0, bytearray()
    for at, pixel in enumerate(pixels):
        for code in (4, pixel) if at % 2 == 0 else (pixel,):
            bits |= code << filled
            filled += 3
        while filled >= 8:
            out.append(bits & 255)
            bits, filled = bits >> 8, filled - 8
    bits |= 5 << filled
    out += bits.to_bytes(2, "little")
    return b"".join(
        bytes([len(part := out[at : at + 255])]) + bytes(part) for at in range(0, len(out), 255)
    )
