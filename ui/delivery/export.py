"""What a card of the delivery view shows, as a file: picture (PNG), drawing (SVG), table (CSV).

Names and ids are strangers' text: what XML cannot hold is left out and Qt escapes the rest, and a
cell of a CSV that a spreadsheet would take for a formula begins with an apostrophe.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSizeF
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator

from ui.foreign_text import one_line
from ui.theme import current_theme

Paint = Callable[[QPainter, QRectF], None]
"""Draws into a box; everything that is to be seen is drawn at once."""

MARGIN: Final = 16
_SCALE: Final = 2
_MOST_SIDE: Final = 16_000
"""Of a picture, in pixels: larger ones are opened by nothing."""
_MOST_CELL: Final = 10_000
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")


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
    generator.setTitle(_safe(one_line(title)))
    painter = QPainter(generator)
    painter.fillRect(box, current_theme().surface)
    paint(painter, QRectF(MARGIN, MARGIN, size.width(), size.height()))
    painter.end()
    return bytes(buffer.data().data())


def csv_of(headings: Sequence[str], rows: Iterable[Sequence[str | int | None]]) -> bytes:
    """UTF-8 with a byte order mark, by which spreadsheets know it; None is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(map(_cell, headings))
    writer.writerows(map(_cell, row) for row in rows)
    return out.getvalue().encode("utf-8-sig", "replace")


def _cell(value: str | int | None) -> str | int:
    if not isinstance(value, str):
        return "" if value is None else value
    text = _safe(one_line(value, _MOST_CELL))
    is_formula = text.startswith(_FORMULA) and _NUMBER.fullmatch(text) is None
    return f"'{text}" if is_formula else text


def _safe(text: str) -> str:
    """Without what no XML document may contain."""
    return _NOT_XML.sub("", text)
