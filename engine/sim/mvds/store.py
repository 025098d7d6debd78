"""An MVDS node's durable state as a model: writes go in, ``MvdsState`` comes out.

It is what a crash leaves behind in a simulation, and the plainest statement of what each write
means.  SQLite is compared with it (``tests/persistence/memory_pair.py``).  It is strict: a write
that contradicts the state raises KeyError or ValueError, because then the node is wrong.
"""

from collections.abc import Iterable
from typing import assert_never

from engine.core.ids import ParticipantId
from engine.core.mvds.vocabulary import (
    DropMessage,
    Epoch,
    KeepMessage,
    LoadRecords,
    MvdsId,
    MvdsMessage,
    MvdsState,
    MvdsWrite,
    NoteHeld,
    PutPendingAck,
    PutRecord,
    Record,
    RecordsLoaded,
    RecordType,
    RemovePendingAck,
    RemoveRecord,
)

_Key = tuple[ParticipantId, MvdsId]


class MvdsStore:
    """Tables of one node, in memory."""

    def __init__(self) -> None:
        self.records: dict[_Key, Record] = {}
        self.bodies: dict[MvdsId, MvdsMessage] = {}
        self.held: set[MvdsId] = set()
        self.pending_acks: dict[_Key, None] = {}

    def apply(self, writes: Iterable[MvdsWrite]) -> None:
        """Apply all writes of one transition, in order."""
        for write in writes:
            self._apply_one(write)

    def state(self, *, limit: int) -> MvdsState:
        """The state from which a new node would start, with ``limit`` records at most."""
        records = self._due()
        return MvdsState(
            records=tuple(records[:limit]),
            loaded_before=records[limit].send_epoch if len(records) > limit else None,
            pending_acks=tuple(self.pending_acks),
            held=frozenset(self.held),
        )

    def load(self, question: LoadRecords) -> RecordsLoaded:
        """The answer.  If only ids were requested, its ``loaded_before`` means nothing."""
        records: tuple[Record, ...] = ()
        loaded_before: Epoch | None = None
        if question.from_epoch is not None:
            records, loaded_before = self.records_from(question.from_epoch, question.limit)
        named = (self.records[key] for key in question.ids if key in self.records)
        return RecordsLoaded(
            records=(*records, *named), loaded_before=loaded_before, asked_ids=question.ids
        )

    def records_from(
        self, from_epoch: Epoch, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        """Whole epochs, as many as fit in ``limit``, but at least the first one.

        Also the first epoch that is left out, or None.
        """
        records = [record for record in self._due() if record.send_epoch >= from_epoch]
        if len(records) <= limit:
            return tuple(records), None
        last = max(records[0].send_epoch, records[limit].send_epoch - 1)
        whole = tuple(record for record in records if record.send_epoch <= last)
        rest = records[len(whole) :]
        return whole, rest[0].send_epoch if rest else None

    def leftovers(self) -> tuple[object, ...]:
        """Everything that should be gone once all messages are acknowledged."""
        return (*self.records, *self.bodies, *self.pending_acks)

    def _due(self) -> list[Record]:
        """Soonest due first, oldest first within an epoch; given-up records last."""
        return sorted(
            self.records.values(),
            key=lambda one: (one.send_epoch, one.created_ms, one.peer_id, one.message_id),
        )

    def _is_needed(self, message_id: MvdsId) -> bool:
        return any(
            record.message_id == message_id and record.type is not RecordType.REQUEST
            for record in self.records.values()
        )

    def _apply_one(self, write: MvdsWrite) -> None:  # noqa: C901 - one case per kind of write
        match write:
            case KeepMessage(message_id=message_id, message=message):
                if message_id in self.bodies:
                    raise ValueError("a body is kept twice")
                self.bodies[message_id] = message
            case DropMessage(message_id=message_id):
                if not self._is_needed(message_id):
                    del self.bodies[message_id]
            case PutRecord(record=record):
                if record.type is not RecordType.REQUEST and record.message_id not in self.bodies:
                    raise ValueError("a record without its body")
                self.records[record.peer_id, record.message_id] = record
            case RemoveRecord(peer_id=peer_id, message_id=message_id):
                del self.records[peer_id, message_id]
            case NoteHeld(message_id=message_id):
                if message_id in self.held:
                    raise ValueError("a message is delivered twice")
                self.held.add(message_id)
            case PutPendingAck(peer_id=peer_id, message_id=message_id):
                self.pending_acks[peer_id, message_id] = None
            case RemovePendingAck(peer_id=peer_id, message_id=message_id):
                del self.pending_acks[peer_id, message_id]
            case _:
                assert_never(write)
