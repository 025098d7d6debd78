"""A text as it is shown now: present names for those that were typed, and without its marks.

Both take spans in UTF-16 code units, as Qt counts.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

from msgspec.structs import replace

from engine.core.content import utf16_length
from engine.core.markup import HIDDEN
from engine.core.records import SpanRecord

MENTION = "mention"


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


def without_marks(text: str, spans: tuple[SpanRecord, ...]) -> str:
    """``text`` without what spans of the kind HIDDEN cover."""
    hidden = sorted((span.start, span.length) for span in spans if span.kind == HIDDEN)
    if not hidden:
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    pieces: list[bytes] = []
    passed = 0
    for start, length in hidden:
        pieces.append(units[2 * passed : 2 * start])
        passed = max(passed, start + length)
    pieces.append(units[2 * passed :])
    return b"".join(pieces).decode("utf-16-le", "replace")
