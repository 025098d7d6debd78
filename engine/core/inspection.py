"""What a store says about one message's place in SDS, for whoever looks into it.

Everything is found by the message's id or by its place, so that a look costs the same in a log of a
million messages (``InspectionStore``).  Nothing here changes anything.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.vocabulary import (
    HistoryEntry,
    HolderEntry,
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
    lamport_timestamp: int | None
    received_ms: UnixMs


class PlacedMessage(NamedTuple):
    """A message in the log, and what the timeline's row of it says, if there is one."""

    position: Position
    sender_id: ParticipantId
    row_sender_id: ParticipantId | None
    """The name that a row of an open channel bears; None: the same, or there is no row."""
    is_shown: bool
    late: bool
    sent_ms: UnixMs | None
    received_ms: UnixMs | None
    """None, like ``sent_ms``: reactions, edits and the like have no row."""
    delivery: str | None
    """``DeliveryState`` of one of ours, as it is written down."""
    came_ms: UnixMs | None = None
    """When it came, if it waited from then until ``received_ms``."""


class InspectionStore(Protocol):
    """Every method may raise StorageError; of a pair's messages only ``came_ms`` knows anything."""

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

    def placed(
        self, conversation_id: ConversationId, before: Position | None, /, *, limit: int
    ) -> list[PlacedMessage]:
        """The messages of the log before a place, or its newest, in order."""

    def came_ms(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, UnixMs]:
        """When those of these messages came that have a row and had to wait for it."""

    def raws(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, bytes]:
        """The bytes of those of these messages that are in the log."""

    def holders_of(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, Sequence[HolderEntry]]:
        """Who is known to hold messages of ours; without those that nobody is known to hold."""

    def missing_between(
        self,
        conversation_id: ConversationId,
        first: Position | None,
        before: Position | None,
        /,
        *,
        limit: int,
    ) -> list[MissingEntry]:
        """What is missing before a message from ``first`` on and ahead of ``before``.

        None stands for no end.  What has no place counts as the newest.
        """
