"""A channel of the memory store: the simulator's model, made to bear what a store must bear.

So SQLite is compared with what trials run on.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from engine.core.ids import HolderSource, MessageId, ParticipantId, Position
from engine.core.records import KeptAside
from engine.core.sds.vocabulary import (
    ChannelState,
    HolderEntry,
    LogEntry,
    MarkAccepted,
    RemoveIncoming,
    RemoveMissing,
    RemoveOutgoing,
    ReplaceRaw,
    SaveClock,
    SaveRetrievalHint,
    Write,
)
from engine.sim.channel_store import ChannelStore


class MemoryChannel:
    def __init__(self, lamport_timestamp: int) -> None:
        self._store = ChannelStore(lamport_timestamp)
        self._clock = lamport_timestamp
        """As it was saved.  The model's follows the log, too, as a channel's does at its start."""

    def has_logged(self, message_id: MessageId) -> bool:
        return message_id in self._store

    def raw(self, message_id: MessageId) -> bytes | None:
        return self._store.raw.get(message_id)

    def position(self, message_id: MessageId) -> Position | None:
        entry = self._store.log.get(message_id)
        return entry.position if entry else None

    @property
    def tables(self) -> ChannelStore:
        return self._store

    def log(self) -> Iterable[LogEntry]:
        """The log, unordered."""
        return self._store.log.values()

    def holders(self, message_id: MessageId) -> list[HolderEntry]:
        return self._store.holders(message_id)

    def apply(self, write: Write) -> None:
        if isinstance(write, SaveClock):
            self._clock = write.lamport_timestamp
        if self._changes_something(write):
            self._store.apply([write])

    def _changes_something(self, write: Write) -> bool:
        """The model is strict; a store bears a change of what is not there."""
        store = self._store
        match write:
            case SaveRetrievalHint(message_id=message_id) | ReplaceRaw(message_id=message_id):
                return message_id in store.log
            case MarkAccepted(message_id=message_id) | RemoveOutgoing(message_id=message_id):
                return message_id in store.outgoing
            case RemoveIncoming(message_id=message_id):
                return message_id in store.incoming
            case RemoveMissing(message_id=message_id):
                return message_id in store.missing
            case _:
                return True

    def state(self, current_members: set[ParticipantId]) -> ChannelState:
        state = self._store.state()
        settled = {
            message_id
            for message_id in {holder.message_id for holder in state.holders}
            if self._is_settled(message_id, current_members)
        }
        return replace(
            state,
            lamport_timestamp=self._clock,
            holders=tuple(each for each in state.holders if each.message_id not in settled),
        )

    def _is_settled(self, message_id: MessageId, current_members: set[ParticipantId]) -> bool:
        """Whether all current members but one (the author), and at least one, certainly hold it."""
        certain = sum(
            holder.source is not HolderSource.BLOOM and holder.participant_id in current_members
            for holder in self.holders(message_id)
        )
        return certain > 0 and certain >= len(current_members) - 1

    def set_aside(self, sender_id: ParticipantId, limit: int) -> list[KeptAside]:
        of_sender = (
            put
            for put in self._store.set_aside.values()
            if put.entry.sender_id == sender_id and put.entry.size
        )
        ordered = sorted(
            of_sender, key=lambda put: (put.entry.lamport_timestamp, put.entry.message_id)
        )
        return [KeptAside(put.raw, put.retrieval_hint) for put in ordered[:limit]]
