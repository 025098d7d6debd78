"""The spans of a text as a column holds them: JSON, [[kind, start, length, target], …].

An empty column stands for none, as nearly always.
"""

import json

from engine.core.errors import StorageError, StorageFault
from engine.core.records import SpanRecord


def spans_text(spans: tuple[SpanRecord, ...]) -> str:
    """The value of a column."""
    if not spans:
        return ""
    return json.dumps([(span.kind, span.start, span.length, span.target) for span in spans])


def spans_of(column: str) -> tuple[SpanRecord, ...]:
    """The spans that a column holds.  Raises StorageError."""
    if not column:
        return ()
    try:
        items: list[tuple[str, int, int, str]] = json.loads(column)
        return tuple(
            SpanRecord(kind=kind, start=start, length=length, target=target)
            for kind, start, length, target in items
        )
    except (ValueError, TypeError) as error:
        text = "The spans of a message in the database are unreadable."
        raise StorageError(text, StorageFault.DAMAGED) from error
