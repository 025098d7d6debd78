"""The memory store's data of a one-to-one conversation besides its timeline, as plain dicts.

``pair_tables`` and ``mvds_tables`` are its counterpart in SQLite.  ``MemoryProfileStore`` checks a
batch before applying it, so no write here can fail.  MVDS is the simulator's model, so SQLite is
compared with what trials run on.
"""

from typing import assert_never

from engine.core.ids import InstanceId, MessageId, ParticipantId
from engine.core.mvds.vocabulary import (
    DropMessage,
    Epoch,
    KeepMessage,
    MvdsId,
    MvdsMessage,
    MvdsState,
    MvdsWrite,
    NoteHeld,
    PutPendingAck,
    PutRecord,
    Record,
    RemovePendingAck,
    RemoveRecord,
)
from engine.core.ports import (
    ApplyMvds,
    PutLost,
    PutWaiting,
    RemoveLost,
    RemoveWaiting,
    SavePairAuthor,
    SavePairClock,
)
from engine.core.ratchet import RatchetState, SaveRatchet
from engine.core.records import LostRange, PairState, WaitingContent
from engine.persistence.rules import PairWrite
from engine.sim.mvds.store import MvdsStore


class MemoryPair:
    def __init__(self) -> None:
        self._lamport_timestamp = 0
        self._authors: dict[InstanceId, int] = {}
        self._waiting: dict[MessageId, WaitingContent] = {}
        self._lost: dict[tuple[InstanceId, int], LostRange] = {}
        self._ratchet: RatchetState | None = None
        self._mvds = MemoryMvds()

    def apply(self, write: PairWrite) -> None:
        match write:
            case ApplyMvds(writes=mvds_writes):
                for mvds_write in mvds_writes:
                    self._mvds.apply(mvds_write)
            case SavePairClock(lamport_timestamp=lamport):
                self._lamport_timestamp = max(self._lamport_timestamp, lamport)
            case SavePairAuthor(instance_id=instance_id, sequence=sequence):
                self._authors[instance_id] = sequence
            case PutWaiting(waiting=waiting):
                self._waiting[waiting.message_id] = waiting
            case RemoveWaiting(message_id=message_id):
                self._waiting.pop(message_id, None)
            case PutLost(lost=lost):
                self._lost[lost.instance_id, lost.first] = lost
            case RemoveLost(instance_id=instance_id, first=first):
                self._lost.pop((instance_id, first), None)
            case SaveRatchet(state=state):
                self._ratchet = state
            case _:
                assert_never(write)

    def state(self) -> PairState:
        return PairState(
            lamport_timestamp=self._lamport_timestamp,
            authors=dict(self._authors),
            waiting=tuple(self._waiting.values()),
            lost=tuple(self._lost[key] for key in sorted(self._lost)),
            ratchet=self._ratchet,
        )

    def mvds_state(self, limit: int) -> MvdsState:
        return self._mvds.state(limit)

    def mvds_records(
        self, from_epoch: Epoch, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        return self._mvds.records_from(from_epoch, limit)

    def mvds_record(self, peer_id: ParticipantId, message_id: MvdsId) -> Record | None:
        return self._mvds.record(peer_id, message_id)

    def mvds_message(self, message_id: MvdsId) -> MvdsMessage | None:
        return self._mvds.message(message_id)


class MemoryMvds:
    """The simulator's model, made to bear what a store must bear."""

    def __init__(self) -> None:
        self._store = MvdsStore()

    def apply(self, write: MvdsWrite) -> None:
        if isinstance(write, PutRecord):  # The model wants its body first; a store does not.
            record = write.record
            self._store.records[record.peer_id, record.message_id] = record
        elif self._changes_something(write):
            self._store.apply([write])

    def _changes_something(self, write: MvdsWrite) -> bool:
        """The model is strict; a store bears what was done before, or is there no longer."""
        store = self._store
        match write:
            case KeepMessage(message_id=message_id):
                return message_id not in store.bodies
            case DropMessage(message_id=message_id):
                return message_id in store.bodies
            case NoteHeld(message_id=message_id):
                return message_id not in store.held
            case RemoveRecord(peer_id=peer_id, message_id=message_id):
                return (peer_id, message_id) in store.records
            case RemovePendingAck(peer_id=peer_id, message_id=message_id):
                return (peer_id, message_id) in store.pending_acks
            case PutRecord() | PutPendingAck():
                return True
            case _:
                assert_never(write)

    def state(self, limit: int) -> MvdsState:
        return self._store.state(limit=limit)

    def records_from(
        self, from_epoch: Epoch, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        return self._store.records_from(from_epoch, limit)

    def record(self, peer_id: ParticipantId, message_id: MvdsId) -> Record | None:
        return self._store.records.get((peer_id, message_id))

    def message(self, message_id: MvdsId) -> MvdsMessage | None:
        return self._store.bodies.get(message_id)
