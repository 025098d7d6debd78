"""Draw the app's icon in every size that a platform asks for, from its two SVGs.

``icon-small.svg`` is drawn on the grid of the smallest sizes, where the large one would blur.  The
results are committed: ``assets/icon-SIZE.png``, ``icon.ico`` (Windows) and ``icon.icns`` (macOS).
Both containers just line PNGs up behind a small header, so they are written here.
"""

import os
import struct
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgRenderer

ASSETS = Path(__file__).resolve().parent.parent / "assets"
SIZES = (16, 24, 32, 48, 64, 128, 256, 512)
ICO_SIZES = (16, 24, 32, 48, 64, 256)
ICNS_TYPES = {16: b"icp4", 32: b"icp5", 64: b"icp6", 128: b"ic07", 256: b"ic08", 512: b"ic09"}
LARGEST_SMALL = 32


def draw(size: int) -> bytes:
    """The icon as PNG, ``size`` pixels square."""
    source = "icon-small.svg" if size <= LARGEST_SMALL else "icon.svg"
    renderer = QSvgRenderer(str(ASSETS / source))
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(data.data())


def ico(pictures: dict[int, bytes]) -> bytes:
    """A Windows icon: a directory of 16-byte entries, then the PNGs; 0 stands for 256."""
    header = struct.pack("<HHH", 0, 1, len(pictures))
    offset = len(header) + 16 * len(pictures)
    entries = b""
    for size, png in pictures.items():
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(png), offset)
        offset += len(png)
    return header + entries + b"".join(pictures.values())


def icns(pictures: dict[int, bytes]) -> bytes:
    """A macOS icon: blocks of type, length (its own eight bytes counted) and PNG, in another."""
    blocks = b"".join(
        ICNS_TYPES[size] + struct.pack(">I", len(png) + 8) + png for size, png in pictures.items()
    )
    return b"icns" + struct.pack(">I", len(blocks) + 8) + blocks


def files() -> dict[str, bytes]:
    """Everything that is committed, by file name."""
    drawn = {size: draw(size) for size in SIZES}
    return {
        **{f"icon-{size}.png": png for size, png in drawn.items()},
        "icon.ico": ico({size: drawn[size] for size in ICO_SIZES}),
        "icon.icns": icns({size: drawn[size] for size in ICNS_TYPES}),
    }


if __name__ == "__main__":
    application = QGuiApplication([])
    for name, content in files().items():
        (ASSETS / name).write_bytes(content)
