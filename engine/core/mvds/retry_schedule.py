"""An index of records by ``send_epoch``, so that an epoch costs only what is due.

It holds records by epoch, and a heap of the epochs.  A record that changes or goes leaves its old
entry behind; that is recognised and dropped when its epoch comes.  Records that were given up are
in no schedule.
"""

from heapq import heappop, heappush

from engine.core.mvds.peer import Peer
from engine.core.mvds.vocabulary import NEVER, Epoch, MvdsId, Record

_Entry = tuple[Peer, MvdsId]


class RetrySchedule:
    """Records by the epoch in which they may be sent again."""

    def __init__(self) -> None:
        self._entries: dict[Epoch, list[_Entry]] = {}
        self._epochs: list[Epoch] = []

    def add(self, peer: Peer, record: Record) -> None:
        epoch = record.send_epoch
        entries = self._entries.get(epoch)
        if entries is not None:
            entries.append((peer, record.message_id))
        elif epoch != NEVER:
            self._entries[epoch] = [(peer, record.message_id)]
            heappush(self._epochs, epoch)

    def next_epoch(self) -> Epoch | None:
        while self._epochs:
            epoch = self._epochs[0]
            entries = self._entries[epoch]
            while entries and not _is_current(entries[-1], epoch):
                entries.pop()
            if entries:
                return epoch
            del self._entries[heappop(self._epochs)]
        return None

    def take_due(self, up_to: Epoch) -> list[_Entry]:
        """Remove and return what may be sent up to this epoch, earliest first."""
        due: list[_Entry] = []
        while self._epochs and self._epochs[0] <= up_to:
            epoch = heappop(self._epochs)
            due += [entry for entry in self._entries.pop(epoch) if _is_current(entry, epoch)]
        return due


def _is_current(entry: _Entry, epoch: Epoch) -> bool:
    live = entry[0].live.get(entry[1])
    return live is not None and live.record.send_epoch == epoch
