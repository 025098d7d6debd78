"""The memory store's data of a one-to-one conversation besides its timeline, as plain dicts.

``pair_tables`` and ``mvds_tables`` are its counterpart in SQLite.  ``MemoryProfileStore`` checks a
batch before applying it, so no write here can fail.
"""

from bisect import bisect_left
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
    RecordType,
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
from engine.core.records import LostRange, PairState, WaitingContent
from engine.persistence.rules import PairWrite


class MemoryPair:
    def __init__(self) -> None:
        self._lamport_timestamp = 0
        self._authors: dict[InstanceId, int] = {}
        self._waiting: dict[MessageId, WaitingContent] = {}
        self._lost: dict[tuple[InstanceId, int], LostRange] = {}
        self._mvds = _MemoryMvds()

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
            case _:
                assert_never(write)

    def state(self) -> PairState:
        return PairState(
            lamport_timestamp=self._lamport_timestamp,
            authors=dict(self._authors),
            waiting=tuple(self._waiting.values()),
            lost=tuple(self._lost[key] for key in sorted(self._lost)),
        )

    def mvds_state(self, limit: int) -> MvdsState:
        return self._mvds.state(limit)

    def mvds_records(
        self, from_epoch: Epoch, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        return self._mvds.records_from(from_epoch, limit)

    def mvds_record(self, peer_id: ParticipantId, message_id: MvdsId) -> Record | None:
        return self._mvds.records.get((peer_id, message_id))

    def mvds_message(self, message_id: MvdsId) -> MvdsMessage | None:
        return self._mvds.messages.get(message_id)


class _MemoryMvds:
    def __init__(self) -> None:
        self.records: dict[tuple[ParticipantId, MvdsId], Record] = {}
        self.messages: dict[MvdsId, MvdsMessage] = {}
        self._peers_of: dict[MvdsId, set[ParticipantId]] = {}
        """The peers with a record of the message; never an empty set."""
        self._held: set[MvdsId] = set()
        self._pending_acks: dict[tuple[ParticipantId, MvdsId], None] = {}

    def apply(self, write: MvdsWrite) -> None:
        match write:
            case PutRecord(record=record):
                self.records[record.peer_id, record.message_id] = record
                self._peers_of.setdefault(record.message_id, set()).add(record.peer_id)
            case RemoveRecord(peer_id=peer_id, message_id=message_id):
                self._remove_record(peer_id, message_id)
            case NoteHeld(message_id=message_id):
                self._held.add(message_id)
            case PutPendingAck(peer_id=peer_id, message_id=message_id):
                self._pending_acks[peer_id, message_id] = None
            case RemovePendingAck(peer_id=peer_id, message_id=message_id):
                self._pending_acks.pop((peer_id, message_id), None)
            case KeepMessage(message_id=message_id, message=message):
                self.messages.setdefault(message_id, message)
            case DropMessage(message_id=message_id):
                if not self._is_needed(message_id):
                    self.messages.pop(message_id, None)
            case _:
                assert_never(write)

    def _is_needed(self, message_id: MvdsId) -> bool:
        peers = self._peers_of.get(message_id, ())
        kinds = (self.records[peer_id, message_id].type for peer_id in peers)
        return any(kind is not RecordType.REQUEST for kind in kinds)

    def _remove_record(self, peer_id: ParticipantId, message_id: MvdsId) -> None:
        if self.records.pop((peer_id, message_id), None) is None:
            return
        self._peers_of[message_id].remove(peer_id)
        if not self._peers_of[message_id]:
            del self._peers_of[message_id]

    def state(self, limit: int) -> MvdsState:
        records = self._due()
        return MvdsState(
            records=tuple(records[:limit]),
            loaded_before=records[limit].send_epoch if len(records) > limit else None,
            pending_acks=tuple(self._pending_acks),
            held=frozenset(self._held),
        )

    def records_from(
        self, from_epoch: Epoch, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        """Whole epochs, as many as fit in ``limit``, but at least the first one."""
        due = self._due()
        records = due[bisect_left(due, from_epoch, key=lambda record: record.send_epoch) :]
        if len(records) <= limit:
            return tuple(records), None
        fits = records[limit].send_epoch
        if fits == records[0].send_epoch:
            fits = Epoch(fits + 1)
        end = bisect_left(records, fits, key=lambda record: record.send_epoch)
        return tuple(records[:end]), records[end].send_epoch if end < len(records) else None

    def _due(self) -> list[Record]:
        return sorted(self.records.values(), key=due_order)


def due_order(record: Record) -> tuple[Epoch, int, ParticipantId, MvdsId]:
    """Sort key: soonest due first, oldest first within an epoch; given-up records last."""
    return (record.send_epoch, record.created_ms, record.peer_id, record.message_id)
