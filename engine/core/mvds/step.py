"""The writes, sends and events of one step of the node, while it is taken.

A record may change several times in one step (appended, then sent); only its final state is
written.  Bodies are stored before the records that need them, and dropped after.
"""

from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.vocabulary import (
    DropMessage,
    Epoch,
    KeepMessage,
    MvdsEvent,
    MvdsId,
    MvdsSend,
    MvdsTransition,
    MvdsWrite,
    NoteHeld,
    PutPendingAck,
    PutRecord,
    Record,
    RemovePendingAck,
    RemoveRecord,
)

Key = tuple[ParticipantId, MvdsId]


class MvdsStep:
    """Collects what one input causes."""

    __slots__ = (
        "_created",
        "_records",
        "dropped",
        "epoch",
        "events",
        "kept",
        "notes",
        "now_ms",
        "sends",
    )

    def __init__(self, now_ms: UnixMs, epoch: Epoch) -> None:
        self.now_ms = now_ms
        self.epoch = epoch
        self.kept: list[KeepMessage] = []
        self.notes: list[NoteHeld | PutPendingAck | RemovePendingAck] = []
        self.dropped: list[DropMessage] = []
        self.sends: list[MvdsSend] = []
        self.events: list[MvdsEvent] = []
        self._records: dict[Key, Record | None] = {}
        self._created: set[Key] = set()

    def create(self, record: Record) -> None:
        key = (record.peer_id, record.message_id)
        if key not in self._records:
            self._created.add(key)
        self._records[key] = record

    def put(self, record: Record) -> None:
        self._records[record.peer_id, record.message_id] = record

    def remove(self, key: Key) -> None:
        if key in self._created:
            self._created.remove(key)
            del self._records[key]
        else:
            self._records[key] = None

    def transition(self) -> MvdsTransition:
        records: list[MvdsWrite] = [
            RemoveRecord(*key) if record is None else PutRecord(record)
            for key, record in self._records.items()
        ]
        writes = (*self.kept, *records, *self.notes, *self.dropped)
        return MvdsTransition(writes, tuple(self.sends), tuple(self.events))
