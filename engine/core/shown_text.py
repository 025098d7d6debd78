"""A text as it is shown now: present names for those that were typed, and without its marks.

Both take spans in UTF-16 code units, as Qt counts.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final, Protocol

from msgspec.structs import replace

from engine.core.content import utf16_length
from engine.core.markup import HIDDEN, ITEM
from engine.core.records import SpanRecord

MENTION = "mention"
_BULLETS: Final = frozenset({b"-\0", b"*\0"})
_DOT: Final = "\u2022".encode("utf-16-le")


def with_names(
    text: str, spans: tuple[SpanRecord, ...], names: Mapping[str, str]
) -> tuple[str, tuple[SpanRecord, ...]]:
    """``text`` with ``names[target]`` in the place of every mention; disjoint mentions only.

    What ends beyond ``text``, which may be cut off, is left out.
    """
    units = text.encode("utf-16-le", "surrogatepass")
    whole = tuple(span for span in spans if 2 * (span.start + span.length) <= len(units))
    mentions = sorted((span for span in whole if span.kind == MENTION), key=lambda span: span.start)
    pieces: list[bytes] = []
    passed = 0
    for span in mentions:
        pieces.append(units[2 * passed : 2 * span.start])
        pieces.append(names[span.target].encode("utf-16-le", "surrogatepass"))
        passed = span.start + span.length
    pieces.append(units[2 * passed :])
    starts = [span.start for span in mentions]
    grown = [0, *accumulate(utf16_length(names[each.target]) - each.length for each in mentions)]

    def moved(place: int) -> int:
        """The place in the new text; one within a mention becomes the mention's end."""
        before = bisect_left(starts, place)
        if before:
            last = mentions[before - 1]
            place = max(place, last.start + last.length)
        return place + grown[before]

    shifted = []
    for span in whole:
        start = moved(span.start)
        length = moved(span.start + span.length) - start
        shifted.append(replace(span, start=start, length=length))
    return b"".join(pieces).decode("utf-16-le", "replace"), tuple(shifted)


class Span(Protocol):
    """What ``without_marks`` needs of a span, be it a record or a read model."""

    @property
    def kind(self) -> str: ...

    @property
    def start(self) -> int: ...

    @property
    def length(self) -> int: ...


def without_marks(text: str, spans: Iterable[Span]) -> str:
    """What is shown of ``text``: without its marks, and with dots before the entries of a list."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units_without_marks(units, spans, 0, len(units) // 2)


def units_without_marks(units: bytes, spans: Iterable[Span], start: int, end: int) -> str:
    """``without_marks`` between two indexes of a text in UTF-16."""
    parts: list[bytes] = []
    at = start
    for span in spans:
        if span.kind in {HIDDEN, ITEM} and at <= span.start < end:
            parts.append(units[2 * at : 2 * span.start])
            at = span.start
            if span.kind == HIDDEN:
                at += span.length
            elif units[2 * at : 2 * at + 2] in _BULLETS:
                parts.append(_DOT)
                at += 1
    parts.append(units[2 * at : 2 * end])
    return b"".join(parts).decode("utf-16-le", "replace")
