"""Messages given up as lost in a one-to-one conversation, until they arrive after all.

MVDS gives no id to a message that never arrived.  Known are its author and sequence number, the
message after it, and since when it is missing.  These facts are stored as ranges of consecutive
numbers.  A message or statement that arrives with such a number leaves the range, and splits it if
the number was in the middle.

A pair keeps at most ``MAX_RANGES`` ranges; otherwise a peer that leaves out every other number
could fill the disk.  The ranges given up longest ago are forgotten and counted.
``engine.session.pair.order`` decides the order and when a message is given up.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.ids import (
    AuthorSequence,
    ConversationId,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.ports import PutLost, RemoveLost, StoreWrite
from engine.core.records import LostRange
from engine.events import GapView
from engine.history_views import LostView

MAX_RANGES: Final = 256
MAX_RANGES_TOLD: Final = 64
MAX_LOST_TOLD: Final = 1_000_000


class PairLost:
    """Each call appends its changes to ``writes``."""

    def __init__(
        self, conversation_id: ConversationId, kept: Sequence[LostRange], *, counters: Counters
    ) -> None:
        self._conversation_id = conversation_id
        self._ranges = {(lost.instance_id, lost.first): lost for lost in kept}
        self._counters = counters
        self._asked_again: dict[tuple[InstanceId, int], UnixMs] = {}
        """Requested again by the user since the program started."""
        self._views: tuple[LostView, ...] | None = None

    def give_up(self, lost: LostRange, writes: list[StoreWrite]) -> None:
        self._put(lost, writes)
        while len(self._ranges) > MAX_RANGES:
            self._counters.add("pair.lost_forgotten")
            self._remove(min(self._ranges.values(), key=_age), writes)

    def arrived(self, author: AuthorSequence, position: Position, writes: list[StoreWrite]) -> None:
        """A message with this number has its place after all."""
        lost = self._find(author)
        if lost is None:
            return
        asked_ms = self._asked_again.get((lost.instance_id, lost.first))
        if author.sequence > lost.first:
            before = min(position, lost.before)
            self._put(replace(lost, last=author.sequence - 1, before=before), writes)
        else:
            self._remove(lost, writes)
        if author.sequence < lost.last:
            if asked_ms is not None:
                self._asked_again[lost.instance_id, author.sequence + 1] = asked_ms
            self.give_up(replace(lost, first=author.sequence + 1), writes)

    def ask_again(self, before: Sequence[MessageId], now_ms: UnixMs) -> bool:
        """The user asks for lost messages again; False if there are none.

        ``before``: only those lost before one of these messages; all if it is empty.
        """
        asked = [
            key
            for key, lost in self._ranges.items()
            if not before or lost.before.message_id in before
        ]
        self._asked_again |= dict.fromkeys(asked, now_ms)
        self._views = None
        return bool(asked)

    def _find(self, author: AuthorSequence) -> LostRange | None:
        for lost in self._ranges.values():
            is_theirs = lost.instance_id == author.instance_id
            if is_theirs and lost.first <= author.sequence <= lost.last:
                return lost
        return None

    def _put(self, lost: LostRange, writes: list[StoreWrite]) -> None:
        self._ranges[lost.instance_id, lost.first] = lost
        self._views = None
        writes.append(PutLost(conversation_id=self._conversation_id, lost=lost))

    def _remove(self, lost: LostRange, writes: list[StoreWrite]) -> None:
        del self._ranges[lost.instance_id, lost.first]
        self._asked_again.pop((lost.instance_id, lost.first), None)
        self._views = None
        writes.append(
            RemoveLost(
                conversation_id=self._conversation_id,
                instance_id=lost.instance_id,
                first=lost.first,
            )
        )

    # --- views --------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many messages are lost, at most ``MAX_LOST_TOLD``."""
        return min(sum(map(_count, self._ranges.values())), MAX_LOST_TOLD)

    def views(self) -> tuple[LostView, ...]:
        """The latest ranges, without a sender; ``signed`` adds it."""
        if self._views is None:
            latest = sorted(self._ranges.values(), key=_age, reverse=True)[:MAX_RANGES_TOLD]
            self._views = tuple(map(self._view, latest))
        return self._views

    def _view(self, lost: LostRange) -> LostView:
        return LostView(
            message_id=None,
            sender_id=None,
            sender_name="",
            before=lost.before,
            since_ms=lost.since_ms,
            asked_again_ms=self._asked_again.get((lost.instance_id, lost.first)),
            count=min(_count(lost), MAX_LOST_TOLD),
            numbers=(lost.first, lost.last),
            given_up_ms=lost.given_up_ms,
        )

    def snapshot(self) -> tuple[LostRange, ...]:
        """The ranges as the store would load them."""
        return tuple(self._ranges[key] for key in sorted(self._ranges))


def signed(gap: GapView | None, sender_id: ParticipantId, sender_name: str) -> GapView | None:
    """Add the only possible sender of the lost messages to ``gap``."""
    if gap is None or not gap.lost:
        return gap
    theirs = (replace(each, sender_id=sender_id, sender_name=sender_name) for each in gap.lost)
    return replace(gap, lost=tuple(theirs))


def _count(lost: LostRange) -> int:
    return lost.last - lost.first + 1


def _age(lost: LostRange) -> tuple[UnixMs, UnixMs, InstanceId, int]:
    return (lost.given_up_ms, lost.since_ms, lost.instance_id, lost.first)
