"""The selection: a stretch of text from one message to another, and how it is copied.

Ends are (message, UTF-16 index), so that a selection survives what is put in or paged above it.
Of several messages the copy keeps who said it and when; of one it is the bare text.
"""

from collections.abc import Sequence

from msgspec import Struct

from engine.core.ids import MessageId
from engine.events import MessageView
from ui.conversation_words import kind_words, sender_words
from ui.marked_text import copied_text, utf16_length
from ui.timeline.row_words import body_words, copied_time
from ui.timeline.rows import is_system


class Caret(Struct, frozen=True):
    message_id: MessageId
    index: int


def text_length(message: MessageView) -> int:
    return utf16_length(body_words(message))


class Selection:
    """From where the mouse was pressed to where it is now; either may come first."""

    def __init__(self) -> None:
        self._from: Caret | None = None
        self._to: Caret | None = None

    def begin(self, caret: Caret) -> None:
        self._from = self._to = caret

    def extend(self, caret: Caret) -> None:
        if self._from is None:
            self._from = caret
        self._to = caret

    def clear(self) -> None:
        self._from = self._to = None

    def select_all(self, messages: Sequence[MessageView]) -> None:
        if messages:
            self._from = Caret(messages[0].message_id, 0)
            self._to = Caret(messages[-1].message_id, text_length(messages[-1]))

    @property
    def is_empty(self) -> bool:
        return self._from is None or self._from == self._to

    def ends(self, messages: Sequence[MessageView]) -> tuple[int, int, int, int] | None:
        """(first index, from, last index, to) in ``messages``; None if empty or paged away."""
        if self._from is None or self._to is None or self._from == self._to:
            return None
        indexes = {m.message_id: i for i, m in enumerate(messages)}
        start, end = indexes.get(self._from.message_id), indexes.get(self._to.message_id)
        if start is None or end is None:
            return None
        one, other = (start, self._from.index), (end, self._to.index)
        (first, begin), (last, stop) = (one, other) if one <= other else (other, one)
        return first, begin, last, stop

    def ranges(self, messages: Sequence[MessageView]) -> dict[MessageId, tuple[int, int]]:
        """The selected UTF-16 range of each touched message."""
        ends = self.ends(messages)
        if ends is None:
            return {}
        first, begin, last, stop = ends
        found = {}
        for index in range(first, last + 1):
            message = messages[index]
            start = begin if index == first else 0
            end = stop if index == last else text_length(message)
            if end > start:
                found[message.message_id] = (start, end)
        return found

    def copied(self, messages: Sequence[MessageView]) -> str:
        ranges = self.ranges(messages)
        touched = [m for m in messages if m.message_id in ranges]
        if len(touched) == 1:
            return _part_of(touched[0], *ranges[touched[0].message_id])
        return "\n\n".join(quoted(m, ranges[m.message_id]) for m in touched)


def bare(message: MessageView) -> str:
    """One message as it is copied by itself: what it says; "" if it says nothing, as a picture."""
    return quoted(message) if is_system(message) else body_words(message)


def quoted(message: MessageView, part: tuple[int, int] | None = None) -> str:
    """A message with its sender and time on a line of its own."""
    when = copied_time(message.sent_ms)
    if is_system(message):
        return f"[{when}] {kind_words(message)}"
    text = body_words(message) if part is None else _part_of(message, *part)
    return f"{sender_words(message)}, {when}\n{text}"


def _part_of(message: MessageView, start: int, end: int) -> str:
    return copied_text(body_words(message), message.spans, start, end)
