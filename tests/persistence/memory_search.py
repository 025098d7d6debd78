"""The search of the memory store: reads everything each time, and compares each character.

Written as its rules are said: no accents (NFKD), no case (casefold), words by their beginnings, and
in scripts without spaces any run of characters.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from engine.core.ids import ConversationId, MessageId
from engine.core.search import FoundMessage, FoundPlace, Indexed, SearchQuery, SearchReader, Stop
from engine.core.search_text import excerpt
from engine.core.stored import StoredMessage
from engine.persistence.rules import SAID_KINDS
from engine.persistence.stored_ids import stored_order

WITHOUT_SPACES = (
    "CJK UNIFIED",
    "CJK COMPATIBILITY",
    "HIRAGANA",
    "KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
)
WORD_LENGTH = 40


def is_accent(one: str) -> bool:
    kind = unicodedata.combining(one)
    return 10 <= kind <= 36 or 200 <= kind <= 240


def plain(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text)
    bare = "".join(one for one in apart if not is_accent(one))
    return unicodedata.normalize("NFKC", bare.casefold())


def kind_of(one: str) -> str:
    if unicodedata.category(one)[0] not in "LNM":
        return ""
    return "run" if unicodedata.name(one, "").startswith(WITHOUT_SPACES) else "word"


def parts(text: str) -> Iterator[tuple[str, str]]:
    for kind, letters in groupby(plain(text), kind_of):
        if kind:
            yield kind, "".join(letters)


def is_found(query: str, text: str) -> bool:
    """What the search promises."""
    there = list(parts(text))
    return all(
        any(
            kind == other and (part in one if kind == "run" else one.startswith(part[:WORD_LENGTH]))
            for other, one in there
        )
        for kind, part in parts(query)
    )


class MemorySearch:
    def __init__(self, rows: Callable[[], Iterable[tuple[ConversationId, StoredMessage]]]) -> None:
        self._rows = rows

    def index_some(self, *, old: bool) -> Indexed:  # noqa: ARG002 - there is no index
        """There is no index."""
        return Indexed(is_more=False, old_left=0, old_total=0)

    def rebuild(self) -> None:
        """There is no index."""

    def reader(self) -> SearchReader | None:
        return None

    def find(self, query: SearchQuery, /, *, limit: int, stop: Stop) -> tuple[FoundMessage, ...]:
        if stop.is_set() or not query.asks_for_something():
            return ()
        found = [
            _found(where, row, query) for where, row in self._rows() if _fits(where, row, query)
        ]
        found.sort(key=lambda one: order_of(one.place), reverse=True)
        return tuple(found[:limit])


def order_of(place: FoundPlace) -> tuple[tuple[int, bool, MessageId], ConversationId]:
    return stored_order(place.position), place.conversation_id


def _fits(where: ConversationId, row: StoredMessage, query: SearchQuery) -> bool:
    record, before = row.record, query.before
    name = record.file.name if record.file else ""
    asked = " ".join((*query.wanted.words, *query.wanted.runs))
    return (
        record.kind in SAID_KINDS
        and not row.retracted
        and is_found(asked, f"{record.text}\n{name}")
        and query.conversation_id in (None, where)
        and query.sender_id in (None, record.sender_id)
        and (query.since_ms is None or record.sent_ms >= query.since_ms)
        and (query.until_ms is None or record.sent_ms < query.until_ms)
        and (not query.has_file or record.kind == "file")
        and (not query.has_link or any(span.kind == "link" for span in record.spans))
        and (before is None or order_of(FoundPlace(record.position, where)) < order_of(before))
    )


def _found(where: ConversationId, row: StoredMessage, query: SearchQuery) -> FoundMessage:
    record = row.record
    return FoundMessage(
        conversation_id=where,
        position=record.position,
        sender_id=record.sender_id,
        is_own=record.is_own,
        sent_ms=record.sent_ms,
        excerpt=excerpt(record.text, query.wanted),
        file_name=record.file.name if record.file else "",
    )
