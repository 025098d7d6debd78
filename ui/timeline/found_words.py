"""Where the words that are searched for stand in the messages in view.

They are found as the search finds them (``engine.core.search_text``), in what is shown of a text.
"""

from engine.core.search_text import Wanted, marked, wanted
from engine.events import MessageView
from ui.marked_text import Range, in_units
from ui.timeline.row_words import body_words

_MAX_KEPT = 200
_MAX_UNITS = 20_000
"""Of one message."""


class FoundWords:
    def __init__(self) -> None:
        self._asked: Wanted | None = None
        self._kept: dict[str, tuple[Range, ...]] = {}
        """By text."""

    def ask(self, query: str) -> None:
        """Mark these from now on; an empty query ends it."""
        self._asked = wanted(query) if query.strip() else None
        self._kept.clear()

    def within(self, message: MessageView) -> tuple[Range, ...]:
        """UTF-16 ranges of what is said, in order."""
        if self._asked is None:
            return ()
        text = body_words(message)
        if text not in self._kept:
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[text] = _ranges(text[:_MAX_UNITS], self._asked)
        return self._kept[text]


def _ranges(text: str, asked: Wanted) -> tuple[Range, ...]:
    marks = marked(text, asked)
    if text.isascii():
        return marks
    return tuple((len(in_units(text[:begin])), len(in_units(text[:end]))) for begin, end in marks)
