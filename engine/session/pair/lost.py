"""What was given up in a one-to-one conversation, and what of it turns up after all.

MVDS names no message before it comes, so what never came has no id: known are its author, its
number, what came after it, and since when it lacks.  That is kept, as ranges of numbers in a row,
until it comes: whatever bears the number then, one message or statement, takes it out, and parts
the range if it stood in its middle.  The ranges of one pair are bounded, or who leaves out every
other number could fill the disk: those given up longest ago are forgotten, which is counted.

It refuses to know the order itself, and why something was given up.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

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
    """What one call changes is appended to ``writes``."""

    def __init__(
        self, conversation_id: ConversationId, kept: Sequence[LostRange], *, counters: Counters
    ) -> None:
        self._conversation_id = conversation_id
        self._ranges = {(lost.instance_id, lost.first): lost for lost in kept}
        self._counters = counters
        self._asked_again: dict[tuple[InstanceId, int], UnixMs] = {}
        """Since the program started."""
        self._views: tuple[LostView, ...] | None = None

    def give_up(self, lost: LostRange, writes: list[StoreWrite]) -> None:
        self._put(lost, writes)
        while len(self._ranges) > MAX_RANGES:
            self._counters.add("pair.lost_forgotten")
            self._remove(min(self._ranges.values(), key=_age), writes)

    def arrived(self, author: AuthorSequence, position: Position, writes: list[StoreWrite]) -> None:
        """Something of this number has its place after all."""
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
        """Somebody wants it asked for once more; False: there is nothing.

        ``before``: only what is lost before one of these messages; none: all.
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

    # --- looking ------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many messages are lost, as far as that is told."""
        return min(sum(map(_count, self._ranges.values())), MAX_LOST_TOLD)

    def views(self) -> tuple[LostView, ...]:
        """The latest; of nobody yet, see ``signed``."""
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
        """As the store would give it back."""
        return tuple(self._ranges[key] for key in sorted(self._ranges))


def signed(gap: GapView | None, sender_id: ParticipantId, sender_name: str) -> GapView | None:
    """With the one who alone can have written what is lost."""
    if gap is None or not gap.lost:
        return gap
    theirs = (replace(each, sender_id=sender_id, sender_name=sender_name) for each in gap.lost)
    return replace(gap, lost=tuple(theirs))


def _count(lost: LostRange) -> int:
    return lost.last - lost.first + 1


def _age(lost: LostRange) -> tuple[UnixMs, UnixMs, InstanceId, int]:
    return (lost.given_up_ms, lost.since_ms, lost.instance_id, lost.first)
