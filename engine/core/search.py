"""Questions to the search over all conversations of a profile, and what it answers.

A store answers from an index that it keeps beside the messages (``SearchStore``).  Messages that
came are added to it a little later and in batches, those of an old profile bit by bit, the newest
first; what is left to do is on disk, so nothing is forgotten.
"""

from typing import Protocol

from msgspec import Struct

from engine.core.ids import ConversationId, ParticipantId, Position, UnixMs
from engine.core.search_text import Excerpt, Wanted


class FoundPlace(Struct, frozen=True):
    """Where a hit stands among those of all conversations: from there the next page goes on.

    Two conversations may have messages with the same position.  Which of them comes first is up to
    the store, and stays so.
    """

    position: Position
    conversation_id: ConversationId


class SearchQuery(Struct, frozen=True, kw_only=True):
    """What a message must have; with nothing at all, none is found."""

    wanted: Wanted
    conversation_id: ConversationId | None = None
    sender_id: ParticipantId | None = None
    since_ms: UnixMs | None = None
    """Sent at this time or later, by its author's clock."""
    until_ms: UnixMs | None = None
    """Sent before this time."""
    has_file: bool = False
    has_link: bool = False
    before: FoundPlace | None = None
    """Only what is before this one, in the order over all conversations."""

    def asks_for_something(self) -> bool:
        return bool(
            self.wanted
            or self.sender_id is not None
            or self.since_ms is not None
            or self.until_ms is not None
            or self.has_file
            or self.has_link
        )


class FoundMessage(Struct, frozen=True, kw_only=True):
    """A visible text or file."""

    conversation_id: ConversationId
    position: Position
    sender_id: ParticipantId
    is_own: bool
    sent_ms: UnixMs
    excerpt: Excerpt
    """Of the text, or of the file's name if only that has what was asked for."""
    file_name: str
    """"" if it has no file."""

    @property
    def place(self) -> FoundPlace:
        return FoundPlace(self.position, self.conversation_id)


class Indexed(Struct, frozen=True, kw_only=True):
    """How far the index is."""

    is_more: bool
    """Messages came that are not in it."""
    old_left: int
    """About so many messages of an old profile are not in it."""
    old_total: int
    """So many there were when their turn began; 0 if there was no such time."""


class Stop(Protocol):
    """Asked now and then whether the answer is still wanted."""

    def is_set(self) -> bool: ...


class SearchReader(Protocol):
    """Reads beside the storage thread, on a thread of its own."""

    def find(self, query: SearchQuery, /, *, limit: int, stop: Stop) -> tuple[FoundMessage, ...]:
        """The newest first, by (Lamport timestamp, id).  Less than there is, once stopped."""

    def close(self) -> None: ...


class SearchStore(Protocol):
    """The part of a profile's store that searches.  Every method may raise StorageError."""

    def index_some(self, *, old: bool) -> Indexed:
        """Add some of what came since to the index; then, if ``old``, of an old profile."""

    def rebuild(self) -> None:
        """Throw the index away, and begin it anew as that of an old profile."""

    def find(self, query: SearchQuery, /, *, limit: int, stop: Stop) -> tuple[FoundMessage, ...]:
        """As ``SearchReader.find``."""

    def reader(self) -> SearchReader | None:
        """A reader, opened on the calling thread; None if no other connection can read this."""
