"""What a store says about one message's place in SDS, for whoever looks into it.

Everything is found by the message's id or by its place, so that a look costs the same in a log of a
million messages (``InspectionStore``).  Nothing here changes anything.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position
from engine.core.sds.vocabulary import (
    HistoryEntry,
    IncomingEntry,
    LogEntry,
    MissingEntry,
    OutgoingEntry,
)


class LoggedRaw(NamedTuple):
    """A message in the log, with its bytes as they were received or sent."""

    position: Position
    sender_id: ParticipantId
    raw: bytes


class WaitingMessage(NamedTuple):
    """A message in the incoming buffer, and what it names."""

    message_id: MessageId
    sender_id: ParticipantId
    causal_history: tuple[HistoryEntry, ...]


class InspectionStore(Protocol):
    """Every method may raise StorageError; none knows anything of a pair's messages."""

    def log_entry(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> LogEntry | None: ...

    def incoming(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> IncomingEntry | None:
        """A message that is here and has no place yet."""

    def waiting(self, conversation_id: ConversationId, /, *, limit: int) -> list[WaitingMessage]:
        """The first of those that are here and have no place yet."""

    def outgoing(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> OutgoingEntry | None:
        """A message of ours that nobody is known to hold for certain."""

    def missing(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, MissingEntry]:
        """Those of these messages that are looked for, or were given up."""

    def following(
        self, conversation_id: ConversationId, after: Position, /, *, limit: int
    ) -> list[LoggedRaw]:
        """The next messages of the log."""
