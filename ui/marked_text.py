"""A message's text and its markup: what is shown of it, what is read aloud, and what a copy holds.

The text is what was typed; spans of the kind HIDDEN cover the marks in it.  All indexes are UTF-16
units, as Qt counts them.
"""

import re
from collections.abc import Iterator, Sequence

from engine.core.shown_text import units_without_marks, without_marks
from engine.events import MessageView
from engine.text_spans import SpanKind, TextSpan
from ui.translate import tr

BULLET = "\u2022"
_STYLES = frozenset(
    {SpanKind.BOLD, SpanKind.ITALIC, SpanKind.STRIKE, SpanKind.CODE, SpanKind.CODE_BLOCK}
)
Range = tuple[int, int]
_WIDE = re.compile("[\U00010000-\U0010ffff]")
LOW_UNIT = "\udc00"
"""Stands for the second unit of a character beyond the first plane (``in_units``)."""


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def utf16_length(text: str) -> int:
    return len(utf16(text)) // 2


def utf16_slice(text: str, start: int, end: int) -> str:
    """``text`` between two UTF-16 indexes, as Qt counts."""
    return _cut(utf16(text), start, end)


def _cut(units: bytes, start: int, end: int) -> str:
    return units[start * 2 : end * 2].decode("utf-16-le", "replace")


def in_units(text: str) -> str:
    """``text`` with two characters for each of two units: its indexes are Qt's."""
    return text if text.isascii() else _WIDE.sub(f"\ud800{LOW_UNIT}", text)


def shown_text(message: MessageView) -> str:
    """Without its marks, and with dots before the entries of a list."""
    return without_marks(message.text, message.spans) if message.spans else message.text


def code_blocks(message: MessageView) -> Iterator[tuple[TextSpan, int, int]]:
    """Each with where its code, without the fences, begins and ends."""
    for span in message.spans:
        if span.kind is not SpanKind.CODE_BLOCK:
            continue
        start, end = span.start, span.start + span.length
        for mark in message.spans:
            if mark.kind is SpanKind.HIDDEN and span.start <= mark.start < span.start + span.length:
                if mark.start == span.start:
                    start = mark.start + mark.length
                else:
                    end = mark.start
        yield span, start, end


def spoken_text(message: MessageView) -> str:
    """As it is shown, and where a block of code or a quote begins and ends."""
    blocks = [s for s in message.spans if s.kind in {SpanKind.CODE_BLOCK, SpanKind.QUOTE}]
    if not blocks:
        return shown_text(message)
    units = utf16(message.text)
    said: list[str] = []
    at = 0
    for block in blocks:
        end = block.start + block.length
        said.append(units_without_marks(units, message.spans, at, block.start))
        words = tr("code: {text}, end of code")
        if block.kind is SpanKind.QUOTE:
            words = tr("quote: {text}, end of quote")
        inside = units_without_marks(units, message.spans, block.start, end)
        said.append(words.format(text=inside.strip("\n")))
        at = end
    said.append(units_without_marks(units, message.spans, at, len(units) // 2))
    return "\n".join(part.strip("\n") for part in said if part.strip())


def copied_text(text: str, spans: Sequence[TextSpan], start: int, end: int) -> str:
    """What was typed between two indexes.

    Marks come along if all of what they mark is in it and something else, too: a word taken out of
    a bold sentence has none, a bold word within a sentence keeps its own.  All that is
    shown, taken together, is all that was typed.
    """
    units = utf16(text)
    hidden = [(s.start, s.start + s.length) for s in spans if s.kind is SpanKind.HIDDEN]
    if not hidden:
        return _cut(units, start, end)
    if not _holds_shown(hidden, 0, start) and not _holds_shown(hidden, end, len(units) // 2):
        return text
    kept = list(_kept_marks(hidden, spans, start, end))
    begin = min([start, *(mark[0] for mark in kept)])
    stop = max([end, *(mark[1] for mark in kept)])
    parts: list[str] = []
    at = begin
    for mark in hidden:
        if mark not in kept and mark[0] < stop and mark[1] > at:
            parts.append(_cut(units, at, max(at, mark[0])))
            at = min(mark[1], stop)
    parts.append(_cut(units, at, stop))
    return "".join(parts)


def _holds_shown(hidden: Sequence[Range], start: int, end: int) -> bool:
    """Whether anything between two indexes is shown."""
    at = start
    for mark in hidden:
        if mark[0] <= at < mark[1]:
            at = mark[1]
    return at < end


def _kept_marks(
    hidden: Sequence[Range], spans: Sequence[TextSpan], start: int, end: int
) -> Iterator[Range]:
    styles = [(s.start, s.start + s.length) for s in spans if s.kind in _STYLES]
    by_start, by_end = dict(reversed(styles)), {s[1]: s[0] for s in styles}
    for mark in hidden:
        if mark[0] in by_start:
            owner = (mark[0], by_start[mark[0]])
        elif mark[1] in by_end:
            owner = (by_end[mark[1]], mark[1])
        else:
            if start <= mark[0] and mark[1] <= end:  # the beginning of a line: a quote, an entry
                yield mark
            continue
        whole = not _holds_shown(hidden, owner[0], max(start, owner[0])) and not _holds_shown(
            hidden, min(end, owner[1]), owner[1]
        )
        beyond = _holds_shown(hidden, start, owner[0]) or _holds_shown(hidden, owner[1], end)
        if whole and beyond:
            yield mark
