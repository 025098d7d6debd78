"""What one peer still has to receive: its records, and which of them may go now.

A record is in one of three places: in the node's schedule until its ``send_epoch``; in ``fresh`` if
it was never sent and need not wait; in ``due`` when its epoch has come.  ``forward`` lists those to
send early because the peer was seen.  The sender decides when a payload goes.
"""

from collections import deque
from typing import Final

from engine.core.ids import ParticipantId, UnixMs
from engine.core.mvds.vocabulary import Epoch, MvdsId, Record, RecordType, WireGeneration

UNSENT: Final = Epoch(-1)


class Live:
    """A record in memory, and when this run of the node last sent it, and last as a MESSAGE."""

    __slots__ = ("message_epoch", "record", "sent_epoch")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.sent_epoch = UNSENT
        self.message_epoch = UNSENT


class Peer:
    """Everything that waits for one peer."""

    __slots__ = (
        "acks",
        "at_once_epoch",
        "at_once_used",
        "due",
        "forward",
        "forwarding",
        "fresh",
        "generation",
        "heard_ms",
        "live",
        "open_epoch",
        "peer_id",
        "requests",
        "seen_ms",
    )

    def __init__(self, peer_id: ParticipantId, generation: WireGeneration) -> None:
        self.peer_id = peer_id
        self.generation = generation
        """The one it used last; until it is heard, ours."""
        self.live: dict[MvdsId, Live] = {}
        """In order of creation."""
        self.requests = 0
        self.acks: dict[MvdsId, bool] = {}
        """Pending acknowledgements; True = on disk."""
        self.fresh: dict[MvdsId, None] = {}
        self.due: dict[MvdsId, None] = {}
        self.forward: deque[MvdsId] = deque()
        self.forwarding = False
        """Also bring forward the records that are still on disk."""
        self.heard_ms: UnixMs | None = None
        """When the peer's last payload came."""
        self.seen_ms: UnixMs | None = None
        self.open_epoch = Epoch(0)
        """The epoch from which the next regular payload may go."""
        self.at_once_epoch = UNSENT
        self.at_once_used = 0

    @property
    def waiting(self) -> bool:
        """Whether a payload would not be empty."""
        return bool(self.acks or self.fresh or self.due or self.forward)

    def add(self, record: Record) -> Live:
        live = self.live[record.message_id] = Live(record)
        self.requests += record.type is RecordType.REQUEST
        return live

    def remove(self, message_id: MvdsId) -> None:
        live = self.live.pop(message_id)
        self.requests -= live.record.type is RecordType.REQUEST
        self.fresh.pop(message_id, None)
        self.due.pop(message_id, None)

    def sort(self) -> None:
        """Restore the order after records came from disk."""
        self.live = dict(sorted(self.live.items(), key=_created_ms))

    def take_at_once(self, epoch: Epoch, limit: int) -> bool:
        """Whether one more payload may go early in this epoch; if so, it is counted."""
        if self.at_once_epoch != epoch:
            self.at_once_epoch, self.at_once_used = epoch, 0
        if self.at_once_used >= limit:
            return False
        self.at_once_used += 1
        return True


def _created_ms(item: tuple[MvdsId, Live]) -> UnixMs:
    return item[1].record.created_ms
