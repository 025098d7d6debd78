"""Which records become due when: an index on ``send_epoch``, so an epoch costs what is due.

A heap.  A record that changes or goes leaves its old entry behind, which is recognised and thrown
away when its epoch comes.  Records that were given up are in no schedule.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from engine.core.mvds.peer import Peer
from engine.core.mvds.types import NEVER, Epoch, MvdsId, Record
from engine.core.types import ParticipantId

_Entry = tuple[Epoch, int, ParticipantId, MvdsId]


class Schedule:
    """Records by the epoch in which they may be sent again."""

    def __init__(self, peers: Mapping[ParticipantId, Peer]) -> None:
        self._peers = peers
        self._heap: list[_Entry] = []

    def fill(self) -> None:
        """With everything that the peers hold, at the start."""
        self._heap = [
            _entry(live.record)
            for peer in self._peers.values()
            for live in peer.live.values()
            if not live.record.given_up
        ]
        heapify(self._heap)

    def add(self, record: Record) -> None:
        if record.send_epoch != NEVER:
            heappush(self._heap, _entry(record))

    def next_epoch(self) -> Epoch | None:
        heap = self._heap
        while heap:
            if self._is_current(heap[0]):
                return heap[0][0]
            heappop(heap)
        return None

    def take_due(self, epoch: Epoch) -> list[tuple[Peer, MvdsId]]:
        """What may be sent up to this epoch, earliest first."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= epoch:
            entry = heappop(heap)
            if self._is_current(entry):
                due.append((self._peers[entry[2]], entry[3]))
        return due

    def _is_current(self, entry: _Entry) -> bool:
        peer = self._peers[entry[2]]
        live = peer.live.get(entry[3])
        if live is None or live.record.send_epoch != entry[0]:
            return False
        return entry[3] not in peer.due and entry[3] not in peer.fresh


def _entry(record: Record) -> _Entry:
    return record.send_epoch, record.created_ms, record.peer_id, record.message_id
