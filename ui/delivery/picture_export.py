"""What a card shows, as a file: PNG, SVG or CSV.

Names come from strangers: what XML cannot hold is left out, Qt escapes the rest, and a cell that a
spreadsheet would take for a formula begins with an apostrophe.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSizeF
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator

from ui.theme import current_theme

Paint = Callable[[QPainter, QRectF], None]

MARGIN: Final = 16
_SCALE: Final = 2
_MOST_SIDE: Final = 16_000
"""Of a picture, in pixels: larger ones are opened by nothing."""
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def safe_text(text: str) -> str:
    """Without what no XML document may contain."""
    return _NOT_XML.sub("", text)


def png_of(size: QSizeF, paint: Paint) -> bytes:
    width, height = size.width() + 2 * MARGIN, size.height() + 2 * MARGIN
    scale = min(_SCALE, _MOST_SIDE / max(width, height))
    image = QImage(
        max(int(width * scale), 1), max(int(height * scale), 1), QImage.Format.Format_RGB32
    )
    image.fill(current_theme().surface)
    painter = QPainter(image)
    painter.scale(scale, scale)
    paint(painter, QRectF(MARGIN, MARGIN, size.width(), size.height()))
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def svg_of(size: QSizeF, title: str, paint: Paint) -> bytes:
    box = QRectF(0, 0, size.width() + 2 * MARGIN, size.height() + 2 * MARGIN)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(box.size().toSize())
    generator.setViewBox(box)
    generator.setTitle(safe_text(title))
    painter = QPainter(generator)
    painter.fillRect(box, current_theme().surface)
    paint(painter, QRectF(MARGIN, MARGIN, size.width(), size.height()))
    painter.end()
    return bytes(buffer.data().data())


def csv_of(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """With a byte order mark, by which spreadsheets know UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    for row in (headings, *rows):
        writer.writerow([_harmless(cell) for cell in row])
    return b"\xef\xbb\xbf" + out.getvalue().encode("utf-8", "replace")


def _harmless(cell: str) -> str:
    text = safe_text(cell)
    if not text.startswith(_FORMULA) or _is_number(text):
        return text
    return f"'{text}"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None
