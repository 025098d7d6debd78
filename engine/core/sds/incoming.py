"""The buffer of incoming messages with unmet causal dependencies.

This is participant state of the specification.  Waiting messages are indexed by the dependencies
they wait for, so a delivery wakes exactly those that it completes.  The buffer is bounded in number
and bytes, per sender and per channel.  If a sender's share is full, its newest waiting message
gives way to an older one, because only old ones let the buffer empty; what gave way is fetched
again.  If the channel's room is full, the sender with most gives way to one with less: identities
cost nothing, and a few dozen could fill it.  The caller decides what a dependency is and when it is
met.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import IncomingEntry

_MOST_LEAVING: Final = 32
"""At most this many give way to one message; if it needs more room, it has to wait."""

_CYCLE_LOOKS: Final = 1_024
_MOST_CYCLES: Final = 64


@dataclass(slots=True)
class _Waiting:
    entry: IncomingEntry
    unmet: set[MessageId]


@dataclass(slots=True)
class _Share:
    """One sender's share; ``order`` ascends by (Lamport timestamp, id)."""

    size_bytes: int = 0
    order: list[tuple[int, MessageId]] = field(default_factory=list)


def _place(entry: IncomingEntry) -> tuple[int, MessageId]:
    return entry.message.lamport_timestamp or 0, entry.message.message_id


class IncomingBuffer:
    """Messages that wait, by id, by sender and by what they wait for."""

    def __init__(self, config: SdsConfig) -> None:
        self._config = config
        self.waiting: dict[MessageId, _Waiting] = {}
        """By id; other parts may only test whether a message waits."""
        self.waiters: dict[MessageId, dict[MessageId, None]] = {}
        """By the dependency they wait for; likewise for other parts."""
        self._shares: dict[ParticipantId, _Share] = {}
        self._order: list[tuple[int, MessageId]] = []
        self._size_bytes = 0
        self._unshown: list[tuple[UnixMs, MessageId]] = []

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self.waiting

    def __len__(self) -> int:
        return len(self.waiting)

    def entries(self) -> Iterator[IncomingEntry]:
        return (waiting.entry for waiting in self.waiting.values())

    def before(self, place: Position | None) -> int:
        """How many waiting messages lie before this place; None: all."""
        if place is None:
            return len(self._order)
        return bisect_left(self._order, (place.lamport_timestamp, place.message_id))

    def is_waited_for(self, message_id: MessageId) -> bool:
        return message_id in self.waiters

    def oldest_waiter(self, dependency: MessageId) -> int | None:
        """The smallest Lamport timestamp of what waits for it; None if nothing does."""
        waiters = self.waiters.get(dependency, ())
        return min((_place(self.waiting[waiter].entry)[0] for waiter in waiters), default=None)

    def make_room(self, entry: IncomingEntry) -> list[IncomingEntry] | None:
        """The waiting messages that must give way to ``entry``; None: ``entry`` is refused."""
        config, place, size = self._config, _place(entry), len(entry.raw)
        share = self._shares.get(entry.message.sender_id) or _Share()
        number, share_bytes = len(share.order), share.size_bytes
        total, total_bytes = len(self.waiting), self._size_bytes
        leaving: list[IncomingEntry] = []
        left: dict[ParticipantId, tuple[int, int]] | None = None
        while True:
            share_is_full = (
                number >= config.max_waiting_per_sender
                or share_bytes + size > config.max_waiting_bytes_per_sender
            )
            count_is_full = total >= config.max_waiting
            if not (
                share_is_full or count_is_full or total_bytes + size > config.max_waiting_bytes
            ):
                return leaving
            victim = None
            if not share_is_full and len(leaving) < _MOST_LEAVING:
                if left is None:
                    left = {who: (len(s.order), s.size_bytes) for who, s in self._shares.items()}
                left[entry.message.sender_id] = number + 1, share_bytes + size
                victim = self._of_who_has_most(left, entry.message.sender_id, count_is_full)
            if victim is None:
                if not number or share.order[number - 1] <= place:
                    return None
                victim = self.waiting[share.order[number - 1][1]].entry
                number, share_bytes = number - 1, share_bytes - len(victim.raw)
            leaving.append(victim)
            total, total_bytes = total - 1, total_bytes - len(victim.raw)

    def _of_who_has_most(
        self,
        left: dict[ParticipantId, tuple[int, int]],
        sender_id: ParticipantId,
        by_count: bool,
    ) -> IncomingEntry | None:
        """Take the newest message of the sender with most waiting out of ``left``.

        ``left``: number and bytes per sender, including what is to come.  None if no one has more
        than ``sender_id``.
        """
        place = 0 if by_count else 1
        most = max(left, key=lambda who: left[who][place])
        if left[most][place] <= left[sender_id][place]:
            return None
        number, size_bytes = left[most]
        victim = self.waiting[self._shares[most].order[number - 1][1]].entry
        left[most] = number - 1, size_bytes - len(victim.raw)
        return victim

    def add(self, entry: IncomingEntry, unmet: Iterable[MessageId]) -> None:
        """Buffer a message that waits for ``unmet`` (not empty)."""
        message_id = entry.message.message_id
        waiting = _Waiting(entry, set(unmet))
        self.waiting[message_id] = waiting
        for dependency in waiting.unmet:
            self.waiters.setdefault(dependency, {})[message_id] = None
        share = self._shares.setdefault(entry.message.sender_id, _Share())
        insort(share.order, _place(entry))
        insort(self._order, _place(entry))
        share.size_bytes += len(entry.raw)
        self._size_bytes += len(entry.raw)
        if not entry.shown:
            shown_at = UnixMs(entry.received_ms + self._config.show_waiting_ms)
            heappush(self._unshown, (shown_at, message_id))

    def remove(self, message_id: MessageId) -> IncomingEntry:
        """Remove a message that is delivered or gives way."""
        waiting = self.waiting.pop(message_id)
        entry = waiting.entry
        for dependency in waiting.unmet:
            waiters = self.waiters[dependency]
            del waiters[message_id]
            if not waiters:
                del self.waiters[dependency]
        share = self._shares[entry.message.sender_id]
        del share.order[bisect_left(share.order, _place(entry))]
        del self._order[bisect_left(self._order, _place(entry))]
        share.size_bytes -= len(entry.raw)
        self._size_bytes -= len(entry.raw)
        if not share.order:
            del self._shares[entry.message.sender_id]
        return entry

    def meet(self, dependency: MessageId) -> list[IncomingEntry]:
        """A dependency is met: remove and return what waited for nothing else."""
        complete: list[MessageId] = []
        for message_id in self.waiters.pop(dependency, ()):
            unmet = self.waiting[message_id].unmet
            unmet.discard(dependency)
            if not unmet:
                complete.append(message_id)
        return [self.remove(message_id) for message_id in complete]

    def leave_cycles(self, message_id: MessageId) -> Iterator[list[IncomingEntry]]:
        """Break cycles of messages that wait for each other, as far as this one waits for them.

        Where ids do not depend on histories, anyone can make one, and a message that is wrapped
        again later may name what came after it.  The last one by Lamport timestamp was named before
        it got that timestamp, so it need not wait for the others.  Yields it, removed, or nothing
        if it waits for more.
        """
        for _ in range(_MOST_CYCLES):
            cycle = self._cycle_from(message_id)
            if not cycle:
                return
            yield self._leave(cycle)

    def _leave(self, cycle: Sequence[MessageId]) -> list[IncomingEntry]:
        last = max(cycle, key=lambda each: _place(self.waiting[each].entry))
        dependency = cycle[(cycle.index(last) + 1) % len(cycle)]
        waiting = self.waiting[last]
        for each in waiting.unmet & (self.waiters[last].keys() | {dependency}):
            waiting.unmet.discard(each)
            waiters = self.waiters[each]
            del waiters[last]
            if not waiters:
                del self.waiters[each]
        return [] if waiting.unmet else [self.remove(last)]

    def _cycle_from(self, message_id: MessageId) -> list[MessageId]:
        """A cycle that this message waits for, each waiting for the next; empty if none is found.

        Looks at ``_CYCLE_LOOKS`` messages at most.
        """
        if message_id not in self.waiting:
            return []
        path: dict[MessageId, Iterator[MessageId]] = {}
        done: set[MessageId] = set()
        next_id: MessageId | None = message_id
        for _ in range(_CYCLE_LOOKS):
            if next_id is None:  # A dead end: go back.
                last = next(reversed(path))
                del path[last]
                done.add(last)
            elif next_id in path:
                return list(path)[list(path).index(next_id) :]
            else:
                path[next_id] = iter(sorted(self.waiting[next_id].unmet & self.waiting.keys()))
            if not path:
                return []
            ahead = next(reversed(path.values()))
            next_id = next((each for each in ahead if each not in done), None)
        return []

    def next_deadline(self) -> UnixMs | None:
        """When the next message is to be shown below a gap."""
        unshown = self._unshown
        while unshown and self._is_done(unshown[0][1]):
            heappop(unshown)
        return unshown[0][0] if unshown else None

    def bring_forward(self, now_ms: UnixMs) -> None:
        """The clock was set back: nothing is shown later than if it had come just now."""
        latest_ms = UnixMs(now_ms + self._config.show_waiting_ms)
        self._unshown = [(min(at_ms, latest_ms), message_id) for at_ms, message_id in self._unshown]
        heapify(self._unshown)

    def show_due(self, now_ms: UnixMs) -> list[IncomingEntry]:
        """Mark as shown, and return, what has waited for the soft time-out."""
        due: list[IncomingEntry] = []
        while (deadline_ms := self.next_deadline()) is not None and deadline_ms <= now_ms:
            waiting = self.waiting[heappop(self._unshown)[1]]
            waiting.entry = replace(waiting.entry, shown=True)
            due.append(waiting.entry)
        return due

    def _is_done(self, message_id: MessageId) -> bool:
        waiting = self.waiting.get(message_id)
        return waiting is None or waiting.entry.shown


def waiting_entry(entry: MessageReceived | IncomingEntry, now_ms: UnixMs) -> IncomingEntry:
    """A message just received, in the form in which it is saved if it has to wait."""
    if isinstance(entry, IncomingEntry):
        return entry
    shown = False
    return IncomingEntry(
        entry.message,
        entry.raw,
        entry.author,
        entry.retrieval_hint,
        now_ms,
        shown,
        entry.previous_id,
        entry.replaces,
    )
