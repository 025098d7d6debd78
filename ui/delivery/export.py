"""Writes what a delivery view shows to a file: a picture (PNG), a drawing (SVG) or a table (CSV).

Names and ids are strangers' text: an SVG's are escaped by Qt, which writes it, and a cell of a CSV
that a spreadsheet would take for a formula gets an apostrophe in front.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QIODevice, QRect, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from engine.core.ids import ParticipantId
from engine.delivery_views import DeliveryMessage
from ui.delivery.words import names_of_holders, utc
from ui.foreign_text import one_line
from ui.theme import current_theme

PICTURE_SCALE: Final = 2
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS: Final = (
    "message_id",
    "state",
    "sender_id",
    "sender_name",
    "is_own",
    "lamport_timestamp",
    "received_utc",
    "sent_utc",
    "late_by_ms",
    "held_by",
    "of",
    "certain_holders",
    "possible_holders",
    "causal_history",
)
Paint = Callable[[QPainter], None]


def as_png(size: QSize, paint: Paint) -> bytes:
    image = QImage(size * PICTURE_SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(PICTURE_SCALE)
    image.fill(current_theme().surface)
    painter = QPainter(image)
    paint(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def as_svg(size: QSize, paint: Paint, *, title: str) -> bytes:
    buffer = QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(one_line(title))
    painter = QPainter(generator)
    painter.fillRect(QRect(0, 0, size.width(), size.height()), current_theme().surface)
    paint(painter)
    painter.end()
    return bytes(buffer.data().data())


def as_csv(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """UTF-8 with a mark by which spreadsheets know it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(titles)
    writer.writerows([_cell(each) for each in row] for row in rows)
    return out.getvalue().encode("utf-8-sig")


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return "" if value is None else value
    text = one_line(value, limit=10_000)
    return f"'{text}" if text.startswith(_FORMULA) else text


def messages_csv(messages: Iterable[DeliveryMessage], names: Mapping[ParticipantId, str]) -> bytes:
    return as_csv(_COLUMNS, (_row(each, names) for each in messages))


def _row(each: DeliveryMessage, names: Mapping[ParticipantId, str]) -> tuple[object, ...]:
    return (
        each.message_id,
        each.mark.value,
        each.sender_id,
        each.sender_name,
        int(each.is_own),
        each.lamport_timestamp,
        utc(each.received_ms),
        utc(each.sent_ms),
        each.late_by_ms,
        each.held_by,
        each.of,
        names_of_holders(each, names, certain=True),
        names_of_holders(each, names, certain=False),
        " ".join(each.names),
    )


def write_file(path: Path, data: bytes) -> None:
    """Raises OSError."""
    path.write_bytes(data)
