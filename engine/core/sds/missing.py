"""Missing dependencies: when to ask for each again, and when it counts as lost.

This is the Periodic Incoming Buffer Sweep of the specification (retrieval, *irretrievably lost*)
and SDS-R's outgoing requests.  A dependency is first requested at T_req, then with doubling waits
until it is here or lost, and less often if its namer names what no one has (``request_turns``).

Lost means: looked for during the configured *online* time.  Time offline or asleep does not count.
A lost dependency is remembered, so delivering what waited for it violates no causal order.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import chain

from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import RetrieveLostRequested
from engine.core.sds.repair import RepairTimes
from engine.core.sds.request_turns import Namer, RequestTurns
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import (
    HistoryEntry,
    MissingEntry,
    MissingState,
    PutMissing,
    RemoveMissing,
    StoresSaid,
)

_SET_BACK_MS = 1_000
"""Smaller steps are ordinary clock corrections and delay nothing important."""
LOST_KEPT = 10_000
_MAX_ASKED_AGAIN = 256
"""Lost dependencies that the user asked for again; beyond that the oldest are dropped."""
_MAX_ASKED_OF_MEMBERS = 24
"""A few sync messages' worth of requests, so that one button causes no storm."""
MAX_QUOTED = 64
"""Quoted messages looked for or lost, since anybody can quote what never was."""
_SLACK = 64
_NAMERS_KEPT = 4
"""Namers kept per dependency.  A message names its author's and others' newest ten, so each has
many."""
_CROWDED_SHARES = 16
"""Once half of the room is taken, no namer gets more than this part of a share."""
_UNKNOWN: tuple[Namer, ...] = (None,)


class OnlineClock:
    """Milliseconds spent online and awake, counted from when the machine was built."""

    __slots__ = ("_at_ms", "_longest_tick_ms", "elapsed_ms", "online")

    def __init__(self, *, online: bool, now_ms: UnixMs, longest_tick_ms: int) -> None:
        self.online = online
        self.elapsed_ms = 0
        self._at_ms = now_ms
        self._longest_tick_ms = longest_tick_ms

    def tick(self, now_ms: UnixMs) -> bool:
        """Note that time has passed; True if the clock was set back."""
        passed_ms = now_ms - self._at_ms
        if not passed_ms:
            return False
        self._at_ms = now_ms
        if passed_ms < 0:
            return passed_ms < -_SET_BACK_MS
        if self.online:
            self.elapsed_ms += min(self._longest_tick_ms, passed_ms)
        return False


class MissingTable:
    """Wanted and lost dependencies by id, wanted ones also by when to ask and when to give up."""

    def __init__(
        self,
        entries: Iterable[MissingEntry],
        *,
        config: SdsConfig,
        times: RepairTimes,
        clock: OnlineClock,
    ) -> None:
        self._config = config
        self._times = times
        self._clock = clock
        self._wanted: dict[MessageId, MissingEntry] = {}
        self._places: dict[Position | None, dict[MessageId, None]] = {}
        """The wanted ones by the first message known to depend on them."""
        self._order: list[Position] = []
        """Those places in order: used often, and there may be thousands."""
        self._lost: dict[MessageId, MissingEntry] = {}
        self._asked_again: dict[MessageId, None] = {}
        self._untold_again: dict[MessageId, UnixMs] = {}
        """Of those, the ones we have yet to request from members, and since when."""
        self._quoted: dict[MessageId, None] = {}
        """What the user wants because it was quoted, since the program started."""
        self._turns = RequestTurns(config, self._request_at_ms)
        self._losses: list[tuple[int, MessageId]] = []
        self._lost_at: dict[MessageId, int] = {}
        self._named_by: dict[MessageId, tuple[Namer, ...]] = {}
        """Who named it; the first is the one in whose share it counts."""
        self._named: dict[Namer, int] = {}
        self._unplaced: dict[Namer, int] = {}
        """Per namer: how many of them no message waits for."""
        for entry in entries:
            if entry.state is MissingState.LOST:
                self._lost[entry.entry.message_id] = entry
            else:
                self._set(entry)
                self._name(entry, None)
                self._watch(entry)

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._wanted or message_id in self._lost

    def __len__(self) -> int:
        """How many dependencies are wanted."""
        return len(self._wanted)

    def entries(self) -> Iterator[MissingEntry]:
        return chain(self._lost.values(), self._wanted.values())

    def wanted(self) -> Iterator[MissingEntry]:
        """The wanted ones, longest missing first."""
        return iter(self._wanted.values())

    def places(self, limit: int) -> list[tuple[Position | None, list[MissingEntry]]]:
        """Where something is missing, in order, unknown places last: up to ``limit`` places."""
        places: list[Position | None] = [*self._order[:limit]]
        if None in self._places:
            places.append(None)
        return [(place, self._entries_at(place)) for place in places]

    def _entries_at(self, place: Position | None) -> list[MissingEntry]:
        return [self._wanted[message_id] for message_id in self._places[place]]

    def find(self, message_id: MessageId) -> MissingEntry | None:
        """The entry if it is wanted."""
        return self._wanted.get(message_id)

    def is_lost(self, message_id: MessageId) -> bool:
        return message_id in self._lost

    def is_asked_again(self, message_id: MessageId) -> bool:
        """Whether it is lost and the user asked for it again."""
        return message_id in self._asked_again

    def room_for(self, number: int, sender_id: ParticipantId) -> bool:
        """Whether ``number`` more dependencies that this sender names are within the bounds."""
        config = self._config
        named, total = self._named.get(sender_id, 0), len(self._wanted)
        share = config.max_missing_per_sender
        if 2 * total > config.max_missing:
            share //= _CROWDED_SHARES
        return total + number <= config.max_missing and named + number <= share

    def room_for_syncs(self, sender_id: ParticipantId) -> int:
        """How many more this sender may name that no message waits for."""
        share = self._config.max_missing_named_by_syncs - self._unplaced.get(sender_id, 0)
        return max(min(share, self._config.max_missing - len(self._wanted)), 0)

    def want(
        self,
        entry: HistoryEntry,
        *,
        named_by: ParticipantId,
        step: Step,
        before: Position | None = None,
        is_old: bool = False,
    ) -> None:
        """Start looking for a dependency, or learn more about one that is wanted already.

        ``before``: the place of the message that names it.  ``is_old``: that message was older than
        the time-out when it came, so the search need not last that long again.
        """
        config = self._config
        looked_for_ms = max(config.lost_after_ms - config.lost_if_old_after_ms, 0) if is_old else 0
        known = self._wanted.get(entry.message_id)
        if known is not None:
            self._learn(known, entry, before, step)
            self.also_named_by(entry.message_id, named_by)
            if is_old:
                self._lose_by(
                    entry.message_id, self._clock.elapsed_ms + config.lost_if_old_after_ms
                )
            return
        first_request = self._times.request_delay_ms(entry.message_id)
        missing = MissingEntry(
            entry=entry,
            state=MissingState.WANTED,
            since_ms=step.now_ms,
            online_ms=looked_for_ms,
            request_at_ms=UnixMs(step.now_ms + first_request),
            requests=0,
            before=before,
        )
        self._put(missing, step)
        self._name(missing, named_by)
        self._watch(missing)
        step.gap_changed = True

    def also_named_by(self, message_id: MessageId, named_by: ParticipantId) -> None:
        """Another member names a wanted dependency: their turns count for it, too.

        If there are many namers, those with the fewest fruitless requests are kept.
        """
        namers, entry = self._named_by[message_id], self._wanted[message_id]
        if named_by in namers:
            return
        first, *others = namers
        if first is None:
            self._leave_share(entry, first)
            self._take_share(entry, named_by)
            kept = [named_by, *others]
        else:
            others.append(named_by)
            others.sort(key=self._turns.asked_in_vain)
            kept = [first, *others[: _NAMERS_KEPT - 1]]
        self._named_by[message_id] = tuple(kept)
        if named_by in kept:
            self._turns.schedule(message_id, (named_by,), entry.request_at_ms)

    def ask_for_lost(self, request: RetrieveLostRequested, step: Step) -> tuple[MissingEntry, ...]:
        """Request these once more; they stay lost until they come.  Returns those known."""
        entries = tuple(self._lost[each] for each in request.message_ids if each in self._lost)
        for entry in entries:
            message_id = entry.entry.message_id
            self._asked_again[message_id] = None
            if request.of_members and len(self._untold_again) < _MAX_ASKED_OF_MEMBERS:
                self._untold_again[message_id] = step.now_ms
        while len(self._asked_again) > _MAX_ASKED_AGAIN:
            self._forget_asked_again(next(iter(self._asked_again)))
        return entries

    def want_quoted(
        self, message_id: MessageId, own_id: ParticipantId, before: Position, step: Step
    ) -> None:
        """Look now for what a message at ``before`` quotes; it may be nowhere.

        Beyond the bound the one wanted longest is given up, as if it were looked for long enough.
        """
        if message_id not in self._wanted:
            entry = HistoryEntry(message_id=message_id)
            self.want(entry, named_by=own_id, before=before, is_old=True, step=step)
        self._request_at(self._wanted[message_id], step.now_ms, step)
        self._quoted[message_id] = None
        while len(self._quoted) > MAX_QUOTED:
            forgotten = next(iter(self._quoted))
            del self._quoted[forgotten]
            self.give_up(forgotten, step)

    def ask_again_for_quoted(self, step: Step) -> None:
        """Somebody is here who was not asked for what was quoted and is lost."""
        message_ids = tuple(each for each in self._quoted if each in self._lost)
        if message_ids:
            self.ask_for_lost(RetrieveLostRequested(message_ids=message_ids), step)

    def note_stores(self, message_id: MessageId, said: StoresSaid, step: Step) -> None:
        """Note the result of asking Stores; for a wanted one only if it is news."""
        known = self._wanted.get(message_id)
        if known is not None:
            before = known.stores
            if before is None or replace(before, at_ms=said.at_ms) != said:
                self._put(replace(known, stores=said), step)
                step.gap_changed = True
        elif message_id in self._lost:
            entry = self._lost[message_id] = replace(self._lost[message_id], stores=said)
            step.writes.append(PutMissing(entry=entry))
            step.gap_changed = True

    def remove(self, message_id: MessageId, step: Step) -> None:
        """It is here, or no longer wanted."""
        if message_id in self._wanted:
            namers = self._named_by[message_id]
            self._take_out(message_id)
            self._turns.found(namers)
        elif self._lost.pop(message_id, None) is None:
            return
        self._forget_asked_again(message_id)
        self._quoted.pop(message_id, None)
        step.writes.append(RemoveMissing(message_id=message_id))
        step.gap_changed = True

    def forget(self, message_id: MessageId, step: Step) -> None:
        """What waited for it gave way; if that comes again, it names it again."""
        if message_id in self._wanted:
            self._take_out(message_id)
            step.writes.append(RemoveMissing(message_id=message_id))
            step.gap_changed = True

    def take_lost(self, step: Step) -> list[HistoryEntry]:
        """Mark as lost, and return, what was looked for long enough."""
        lost: list[HistoryEntry] = []
        while (top := self._first_loss()) is not None and top <= self._clock.elapsed_ms:
            lost.append(self._lose(heappop(self._losses)[1], step))
        self._forget_oldest_lost(step)
        return lost

    def give_up(self, message_id: MessageId, step: Step) -> HistoryEntry | None:
        """Mark as lost early; None if it is not wanted."""
        if message_id not in self._wanted:
            return None
        lost = self._lose(message_id, step)
        self._forget_oldest_lost(step)
        return lost

    def keep_back(self, message_id: MessageId, step: Step) -> None:
        """We are not to have it: nothing waits for it, and it counts as missing nowhere."""
        if message_id in self._wanted:
            self._take_out(message_id)
        entry = kept_back(message_id, step.now_ms)
        self._lost[message_id] = entry
        step.writes.append(PutMissing(entry=entry))
        step.gap_changed = True
        self._forget_oldest_lost(step)

    def _lose(self, message_id: MessageId, step: Step) -> HistoryEntry:
        entry = self._take_out(message_id)
        online_ms = self._config.lost_after_ms
        entry = replace(entry, state=MissingState.LOST, online_ms=online_ms)
        self._lost[message_id] = entry
        step.writes.append(PutMissing(entry=entry))
        step.gap_changed = True
        return entry.entry

    def _forget_oldest_lost(self, step: Step) -> None:
        while len(self._lost) > LOST_KEPT:
            # If a member names it again, we look for it again.
            forgotten = next(iter(self._lost))
            del self._lost[forgotten]
            self._forget_asked_again(forgotten)
            step.writes.append(RemoveMissing(message_id=forgotten))

    def next_loss(self, now_ms: UnixMs) -> UnixMs | None:
        """When the next dependency counts as lost, if we stay online."""
        at = self._first_loss()
        return None if at is None else UnixMs(now_ms + max(at - self._clock.elapsed_ms, 0))

    def next_request(self) -> UnixMs | None:
        """When to request the next dependency."""
        first = self._turns.next_ms()
        requested = next(iter(self._untold_again.values()), first)
        return requested if first is None or requested is None else min(first, requested)

    def take_due(self, limit: int, step: Step) -> tuple[HistoryEntry, ...]:
        """Up to ``limit`` dependencies to request now; each is scheduled again."""
        due: list[HistoryEntry] = []
        if not (self._wanted or self._untold_again):
            return ()
        while self._untold_again and len(due) < limit:
            message_id = next(iter(self._untold_again))
            del self._untold_again[message_id]
            due.append(self._lost[message_id].entry)
        for message_id in self._turns.take(limit - len(due), step.now_ms):
            entry = self._wanted[message_id]
            self._reschedule(replace(entry, requests=entry.requests + 1), step)
            due.append(entry.entry)
        return tuple(due)

    def asked_by_other(self, message_id: MessageId, step: Step) -> None:
        """Another member just asked; its answer would reach us too, so wait."""
        entry = self._wanted.get(message_id)
        if entry is not None:
            earliest = step.now_ms + self._times.request_delay_ms(message_id)
            if entry.request_at_ms < earliest:
                self._reschedule(entry, step)

    def ask_now(self, step: Step) -> None:
        """The user wants everything requested again."""
        self._turns.begin_anew()
        for entry in list(self._wanted.values()):
            self._request_at(replace(entry, requests=0), step.now_ms, step)

    def bring_forward(self, now_ms: UnixMs) -> None:
        """The clock was set back: no request is later than if it were scheduled now."""
        self._turns.begin_anew(UnixMs(now_ms + self._config.namer_backoff_max_ms))
        for message_id, entry in list(self._wanted.items()):
            latest_ms = UnixMs(now_ms + self._wait_ms(entry))
            if entry.request_at_ms > latest_ms:
                self._set(replace(entry, request_at_ms=latest_ms))
                self._turns.schedule(message_id, self._named_by[message_id], latest_ms)

    def _reschedule(self, entry: MissingEntry, step: Step) -> None:
        self._request_at(entry, UnixMs(step.now_ms + self._wait_ms(entry)), step)

    def _wait_ms(self, entry: MissingEntry) -> int:
        delay = self._times.request_delay_ms(entry.entry.message_id)
        return min(delay << min(max(entry.requests - 1, 0), 20), self._longest_wait_ms)

    @property
    def _longest_wait_ms(self) -> int:
        return max(self._config.repair_backoff_max_ms, self._config.repair_t_max_ms)

    def _request_at(self, entry: MissingEntry, at_ms: UnixMs, step: Step) -> None:
        message_id = entry.entry.message_id
        left_ms = self._lost_at[message_id] - self._clock.elapsed_ms
        online_ms = self._config.lost_after_ms - left_ms
        self._put(replace(entry, request_at_ms=at_ms, online_ms=online_ms), step)
        self._turns.schedule(message_id, self._named_by[message_id], at_ms)

    def _learn(
        self, known: MissingEntry, entry: HistoryEntry, before: Position | None, step: Step
    ) -> None:
        old = known.entry
        better = HistoryEntry(
            message_id=old.message_id,
            retrieval_hint=old.retrieval_hint or entry.retrieval_hint,
            sender_id=old.sender_id or entry.sender_id,
        )
        if before is None or (known.before is not None and known.before < before):
            before = known.before
        if better != old or before != known.before:
            first = self._named_by[old.message_id][0]
            self._leave_share(known, first)
            known = replace(known, entry=better, before=before)
            self._take_share(known, first)
            self._put(known, step)
            step.gap_changed = True

    def _set(self, entry: MissingEntry) -> None:
        message_id = entry.entry.message_id
        known = self._wanted.get(message_id)
        if known is None or known.before != entry.before:
            if known is not None:
                self._unplace(known)
            if entry.before is not None and entry.before not in self._places:
                insort(self._order, entry.before)
            self._places.setdefault(entry.before, {})[message_id] = None
        self._wanted[message_id] = entry

    def _unplace(self, entry: MissingEntry) -> None:
        here = self._places[entry.before]
        del here[entry.entry.message_id]
        if not here:
            del self._places[entry.before]
            if entry.before is not None:
                del self._order[bisect_left(self._order, entry.before)]

    def _put(self, entry: MissingEntry, step: Step) -> None:
        self._set(entry)
        step.writes.append(PutMissing(entry=entry))

    def _watch(self, entry: MissingEntry) -> None:
        left_ms = self._config.lost_after_ms - entry.online_ms
        self._lose_by(entry.entry.message_id, self._clock.elapsed_ms + left_ms)

    def _lose_by(self, message_id: MessageId, lost_at: int) -> None:
        """Look for it at most until then."""
        if self._lost_at.get(message_id, lost_at + 1) <= lost_at:
            return
        self._lost_at[message_id] = lost_at
        heappush(self._losses, (lost_at, message_id))
        if len(self._losses) > 2 * len(self._lost_at) + _SLACK:  # Most turn up within a day.
            self._losses = [(at, key) for key, at in self._lost_at.items()]
            heapify(self._losses)

    def _forget_asked_again(self, message_id: MessageId) -> None:
        self._asked_again.pop(message_id, None)
        self._untold_again.pop(message_id, None)

    def _take_out(self, message_id: MessageId) -> MissingEntry:
        """Remove a dependency that is no longer wanted."""
        entry = self._wanted.pop(message_id)
        self._unplace(entry)
        del self._lost_at[message_id]
        self._leave_share(entry, self._named_by.pop(message_id)[0])
        return entry

    def _name(self, entry: MissingEntry, named_by: Namer) -> None:
        message_id = entry.entry.message_id
        self._named_by[message_id] = (named_by,) if named_by is not None else _UNKNOWN
        self._take_share(entry, named_by)
        self._turns.schedule(message_id, (named_by,), entry.request_at_ms)

    def _take_share(self, entry: MissingEntry, named_by: Namer) -> None:
        self._named[named_by] = self._named.get(named_by, 0) + 1
        if entry.before is None:
            self._unplaced[named_by] = self._unplaced.get(named_by, 0) + 1

    def _leave_share(self, entry: MissingEntry, named_by: Namer) -> None:
        _count_down(self._named, named_by)
        if entry.before is None:
            _count_down(self._unplaced, named_by)

    def _first_loss(self) -> int | None:
        losses = self._losses
        while losses and self._lost_at.get(losses[0][1]) != losses[0][0]:
            heappop(losses)
        return losses[0][0] if losses else None

    def _request_at_ms(self, message_id: MessageId) -> UnixMs | None:
        entry = self._wanted.get(message_id)
        return None if entry is None else entry.request_at_ms


def kept_back(message_id: MessageId, now_ms: UnixMs) -> MissingEntry:
    return MissingEntry(
        entry=HistoryEntry(message_id=message_id),
        state=MissingState.LOST,
        since_ms=now_ms,
        online_ms=0,
        request_at_ms=now_ms,
        requests=0,
        stores=StoresSaid(at_ms=now_ms, lacked=0, kept_back=True),
    )


def _count_down(counts: dict[Namer, int], who: Namer) -> None:
    counts[who] -= 1
    if not counts[who]:
        del counts[who]
