"""The state of 2/MVDS: per-peer records of type OFFER, REQUEST and MESSAGE, never of type ACK.

All changes of records go through here.  So memory, schedule and disk agree, and a message's body is
dropped when no record needs it.

A node may start with the records that are due soonest and load the others later, in order of
``send_epoch`` or by id when a peer names one.  One load is open at a time.  A record removed in the
meantime is not restored from its answer, and records in memory are newer than those on disk.
"""

from collections.abc import Iterable, Mapping

from engine.core.counters import Counters
from engine.core.ids import ParticipantId
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.peer import Live, Peer
from engine.core.mvds.retry_schedule import RetrySchedule
from engine.core.mvds.step import Key, MvdsStep
from engine.core.mvds.vocabulary import (
    NEVER,
    DropMessage,
    Epoch,
    LoadRecords,
    MvdsId,
    MvdsState,
    Record,
    RecordsLoaded,
    RecordType,
)


class Records:
    """The records in memory, and what is known of those on disk."""

    def __init__(
        self,
        peers: Mapping[ParticipantId, Peer],
        *,
        config: MvdsConfig,
        state: MvdsState,
        counters: Counters,
    ) -> None:
        self.schedule = RetrySchedule()
        self.loaded_before = state.loaded_before
        self._peers = peers
        self._config = config
        self._counters = counters
        self._bodies: dict[MvdsId, int] = {}
        self._count = 0
        self._loading = False
        self._asked_from: Epoch | None = None
        self._wanted: dict[Key, None] = {}
        self._gone: set[Key] = set()
        self._take_in(state.records)

    def __len__(self) -> int:
        return self._count

    @property
    def complete(self) -> bool:
        """Whether all records are in memory."""
        return self.loaded_before is None

    @property
    def has_own(self) -> bool:
        return bool(self._bodies)

    def is_own(self, message_id: MvdsId) -> bool:
        """Whether it is a message of ours that a peer still needs."""
        return message_id in self._bodies

    # --- changes ---

    def create(self, peer: Peer, record: Record, step: MvdsStep) -> Live:
        step.create(record)
        return self._insert(peer, record)

    def replace(self, live: Live, record: Record, step: MvdsStep) -> None:
        """Replace a record.  Its peer and message stay the same; a REQUEST stays a REQUEST."""
        live.record = record
        step.put(record)

    def remove(self, peer: Peer, message_id: MvdsId, step: MvdsStep) -> None:
        record = peer.live[message_id].record
        peer.remove(message_id)
        self._count -= 1
        key = (peer.peer_id, message_id)
        step.remove(key)
        if self._loading:
            self._gone.add(key)
        if record.type is RecordType.REQUEST:
            return
        self._bodies[message_id] -= 1
        if not self._bodies[message_id]:
            del self._bodies[message_id]
            step.dropped.append(DropMessage(message_id))

    def _insert(self, peer: Peer, record: Record) -> Live:
        self._count += 1
        if record.type is not RecordType.REQUEST:
            self._bodies[record.message_id] = self._bodies.get(record.message_id, 0) + 1
        return peer.add(record)

    # --- records on disk ---

    def want(self, key: Key) -> bool:
        """Look a record up by id; False if all are in memory, or too many look-ups wait."""
        if self.complete:
            return False
        if key not in self._wanted and len(self._wanted) >= self._config.max_wanted_ids:
            self._counters.add("mvds.too_many_wanted")
            return False
        self._wanted[key] = None
        return True

    def ask(self, step: MvdsStep, *, hurry: bool) -> None:
        """Load records that are due or were looked up; with ``hurry`` load more in any case."""
        before = self.loaded_before
        if before is None or self._loading:
            return
        from_epoch = before if hurry or before <= step.epoch else None
        if from_epoch is None and not self._wanted:
            return
        ids, self._wanted = tuple(self._wanted), {}
        self._loading, self._asked_from = True, from_epoch
        step.sends.append(LoadRecords(from_epoch, self._config.load_records, ids))

    def loaded(self, answer: RecordsLoaded) -> list[Record]:
        """Take loaded records; returns those that were not in memory yet."""
        if self._asked_from is not None:  # Else the load was only by id.
            self.loaded_before = answer.loaded_before
        self._loading = False
        taken = self._take_in(answer.records)
        self._gone.clear()
        return taken

    def next_load(self) -> Epoch | None:
        """When the records on disk are needed; None if all of those were given up."""
        before = self.loaded_before
        return None if self._loading or before == NEVER else before

    def _take_in(self, records: Iterable[Record]) -> list[Record]:
        taken, touched = [], set()
        for record in records:
            peer = self._peers.get(record.peer_id)
            key = (record.peer_id, record.message_id)
            if peer is None or record.message_id in peer.live or key in self._gone:
                continue
            self._insert(peer, record)
            self.schedule.add(peer, record)
            taken.append(record)
            touched.add(peer)
        for peer in touched:
            peer.sort()
        return taken
