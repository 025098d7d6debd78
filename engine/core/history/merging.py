"""Runs one query at several Stores and merges their messages into one stream.

Stores omit, reorder, repeat and stall, and none is trusted.  A window is therefore paged at several
Stores in parallel, and their messages are deduplicated by hash.  They come out oldest first, up to
the *watermark*: the time that all these Stores have reached.

- A Store that is too far ahead waits while the reorder buffer is full.
- A Store that delays the others too long is left behind; what it still returns is handed out as it
  comes.
- A Store that errs is given up with its reason, and the next in order replaces it, from the
  beginning.

A hash lookup goes to one Store after another until nothing is missing.  Authenticity is checked by
the session, so an omission is a note about a Store and not a verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, TypeAlias, assert_never

from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.pages import HashPages, Pages, Place, Provenance, WindowPages
from engine.core.history.progress import StoreRef
from engine.core.history.queries import (
    Advanced,
    Answered,
    Ask,
    Cancel,
    Candidate,
    DeadlineReached,
    End,
    Failed,
    FailureKind,
    Fetched,
    HistoryEvent,
    HistoryMessage,
    HistoryTransition,
    HoldChanged,
    Outcome,
    Query,
    QueryEnded,
    QueryInput,
    StoreNote,
    Window,
)
from engine.core.history.store_pager import StorePager
from engine.core.ids import UnixMs, WakuHash

EVERYTHING: Final = 2**63
"""Later than any message's time."""

_Entry: TypeAlias = tuple[int, WakuHash, int, HistoryMessage]
"""Time, hash, size in bytes, message."""


class ReorderBuffer:
    """Messages that wait for slower Stores, ordered by time.

    It only reports when it is full; the caller then stops filling it.
    """

    def __init__(self, *, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._heap: list[_Entry] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def is_full(self) -> bool:
        return len(self._heap) >= self._max_messages or self._bytes >= self._max_bytes

    @property
    def is_half_full(self) -> bool:
        return 2 * len(self._heap) >= self._max_messages or 2 * self._bytes >= self._max_bytes

    def add(self, at_ns: int, item: HistoryMessage) -> None:
        """Add a message at its time.  At equal times the hash decides, as it does in Stores."""
        size = len(item.message.payload)
        self._bytes += size
        heappush(self._heap, (at_ns, item.message_hash, size, item))

    def take_until(self, at_ns: int) -> Iterator[HistoryMessage]:
        """Remove and yield all messages up to ``at_ns``, in order."""
        while self._heap and self._heap[0][0] <= at_ns:
            _, _, size, item = heappop(self._heap)
            self._bytes -= size
            yield item


@dataclass(slots=True)
class _Step:
    now_ms: UnixMs
    asks: list[Ask]
    abandoned: list[int]
    events: list[HistoryEvent]


class StoresQuery:
    """Call ``begin`` once, then ``handle`` until ``ended``."""

    def __init__(  # noqa: PLR0913 - a sans-I/O machine gets all it needs passed in
        self,
        query_id: int,
        query: Query,
        candidates: Sequence[Candidate],
        *,
        config: HistoryConfig,
        random_unit: RandomUnit,
        ask_ids: Iterator[int],
        places: Mapping[StoreRef, Place] | None = None,
    ) -> None:
        """``candidates``: in order of preference; each is queried at most once.

        ``places``: where an earlier query for the same window stopped at Stores that had more.
        """
        self._query_id = query_id
        self._window = query if isinstance(query, Window) else None
        self._missing = {} if isinstance(query, Window) else dict.fromkeys(query.hashes)
        self._candidates = tuple({item.store: item for item in candidates}.values())
        self._config = config
        self._random_unit = random_unit
        self._ask_ids = ask_ids
        self._places = places or {}
        self._provenance = Provenance()
        self._pagers: list[StorePager] = []
        self._waiting = ReorderBuffer(
            max_messages=config.buffer_messages, max_bytes=config.buffer_bytes
        )
        self._start_ns, self._end_ns = (
            (query.start_ns, query.end_ns) if isinstance(query, Window) else (0, 0)
        )
        self._watermark_ns = self._start_ns
        self._still_since_ms: UnixMs | None = None
        """Since when messages wait and the watermark stands still."""
        self._full_since_ms: UnixMs | None = None
        """Since when the buffer has been full, until it is less than half full."""
        self._holding = False
        self._cancelled = False
        self._fetched = 0
        self._reached_ns = self._start_ns
        self.ended: QueryEnded | None = None

    @property
    def query_id(self) -> int:
        return self._query_id

    def places(self) -> dict[StoreRef, Place]:
        """Where paging stopped at Stores with more pages than one query may fetch."""
        return {
            pager.store: left_at
            for pager in self._pagers
            if pager.end is End.TOO_MANY_PAGES and (left_at := pager.pages.left_at) is not None
        }

    @property
    def waiting(self) -> int:
        """How many messages are buffered."""
        return len(self._waiting)

    # --- the entry points ---

    def begin(self, now_ms: UnixMs) -> HistoryTransition:
        return self._run(_Step(now_ms, [], [], []))

    def handle(self, input_: QueryInput, *, now_ms: UnixMs) -> HistoryTransition:
        step = _Step(now_ms, [], [], [])
        if self.ended is not None:
            return HistoryTransition()
        match input_:
            case Answered(ask_id=ask_id, outcome=outcome):
                self._answered(ask_id, outcome, step)
            case HoldChanged(holding=holding):
                self._holding = holding
            case Cancel():
                self._cancel(step)
            case DeadlineReached():
                self._look_at_time(step)
            case _:
                assert_never(input_)
        return self._run(step)

    def next_deadline(self) -> UnixMs | None:
        """When ``DeadlineReached`` is due; None = not before another input."""
        if self.ended is not None:
            return None
        due = [
            deadline_ms
            for pager in self._running()
            if not (self._holding and pager.outstanding is None)
            and (deadline_ms := pager.next_deadline()) is not None
        ]
        if self._laggards():
            due += [
                UnixMs(since_ms + self._config.patience_ms)
                for since_ms in (self._still_since_ms, self._full_since_ms)
                if since_ms is not None
            ]
        return min(due, default=None)

    # --- inputs ---

    def _answered(self, ask_id: int, outcome: Outcome, step: _Step) -> None:
        for pager in self._pagers:
            if pager.outstanding == ask_id:
                self._take(pager, outcome, step)

    def _take(self, pager: StorePager, outcome: Outcome, step: _Step) -> None:
        for item in pager.answered(outcome, step.now_ms):
            self._waiting.add(item.message.timestamp_ns or pager.pages.reached_ns, item)

    def _cancel(self, step: _Step) -> None:
        self._cancelled = True
        self._reach()
        for pager in self._running():
            self._abandon(pager, step)
            pager.cancel()

    def _abandon(self, pager: StorePager, step: _Step) -> None:
        if pager.outstanding is not None:
            step.abandoned.append(pager.outstanding)

    def _look_at_time(self, step: _Step) -> None:
        for pager in self._running():
            if pager.overdue(step.now_ms):
                self._abandon(pager, step)
                self._take(pager, Failed(FailureKind.TIMEOUT), step)
        if self._is_patience_over(self._still_since_ms, step.now_ms) or self._is_patience_over(
            self._full_since_ms, step.now_ms
        ):
            for pager in self._laggards():
                pager.behind = True
            self._still_since_ms = self._full_since_ms = None

    def _is_patience_over(self, since_ms: UnixMs | None, now_ms: UnixMs) -> bool:
        """A time in the future means the clock was set back: no Store is blamed for it."""
        return since_ms is not None and now_ms - since_ms >= self._config.patience_ms

    # --- what follows from any input ---

    def _run(self, step: _Step) -> HistoryTransition:
        again = True
        while again:
            self._start_more(step.now_ms)
            self._hand_out(step)
            self._tell_ended(step)
            again = self._ask(step)
        if not self._running():
            self._finish(step)
        self._look_after_the_slow(step.now_ms)
        return HistoryTransition(
            asks=tuple(step.asks), abandoned=tuple(step.abandoned), events=tuple(step.events)
        )

    def _running(self) -> list[StorePager]:
        return [pager for pager in self._pagers if pager.running]

    def _start_more(self, now_ms: UnixMs) -> None:
        config, is_lookup = self._config, self._window is None
        allowed = config.max_lookup_stores if is_lookup else config.max_stores
        allowed = min(len(self._candidates), allowed)
        while len(self._pagers) < allowed and not self._cancelled and self._wants_more():
            place = len(self._pagers)
            candidate = self._candidates[place]
            left_at = self._places.get(candidate.store)
            pager = StorePager(
                candidate,
                self._pages(place, left_at),
                place,
                behind=self._start_ns < self._watermark_ns,
                version=None if left_at is None else left_at.version,
                config=config,
                random_unit=self._random_unit,
                now_ms=now_ms,
            )
            self._pagers.append(pager)

    def _pages(self, place: int, left_at: Place | None) -> Pages:
        config = self._config
        if self._window is None:
            return HashPages(self._missing, self._provenance, place, at_once=config.hashes_per_ask)
        overlaps_ns = config.restart_overlaps_ns
        pages = WindowPages(self._window, self._provenance, place, overlaps_ns=overlaps_ns)
        if left_at is not None:
            pages.go_on(left_at)
        return pages

    def _wants_more(self) -> bool:
        if self._window is None:
            return bool(self._missing) and len(self._running()) < self._config.lookup_stores
        good = sum(pager.running or pager.is_complete for pager in self._pagers)
        return good < self._config.window_stores

    def _ask(self, step: _Step) -> bool:
        """Ask all Stores that may be asked.  Returns whether one of them ended."""
        if self._holding or self._cancelled:
            return False
        ended = False
        for pager in self._running():
            if self._is_held_up(pager) or not pager.may_ask(step.now_ms):
                continue
            ask = pager.ask(next(self._ask_ids), step.now_ms)
            if ask is None:
                ended = True
            else:
                step.asks.append(ask)
        return ended

    def _is_held_up(self, pager: StorePager) -> bool:
        return self._waiting.is_full and pager.pages.reached_ns > self._watermark_ns

    # --- the stream ---

    def _hand_out(self, step: _Step) -> None:
        before = self._watermark_ns
        self._watermark_ns = max(before, self._common_ns())
        for pager in self._running():
            pager.behind = pager.behind and pager.pages.reached_ns < self._watermark_ns
        until = EVERYTHING if self._window is None else self._watermark_ns
        items = list(self._waiting.take_until(until))
        if not self._running():
            items.extend(self._waiting.take_until(EVERYTHING))
        if self._watermark_ns > before or not self._waiting:
            self._still_since_ms = None
        if not self._waiting.is_half_full:
            self._full_since_ms = None
        if items:
            self._fetched += len(items)
            step.events.append(Fetched(query_id=self._query_id, messages=tuple(items)))
        before = self._reached_ns
        if not self._cancelled:
            self._reach()
        if self._window is not None and (items or self._reached_ns != before):
            step.events.append(Advanced(query_id=self._query_id, reached_ns=self._reached_ns))

    def _common_ns(self) -> int:
        """The watermark: how far the Stores have come together."""
        reached = [pager.pages.reached_ns for pager in self._running() if not pager.behind]
        if reached:
            return min(reached)
        is_complete = any(pager.is_complete for pager in self._pagers)
        return self._end_ns if is_complete else self._watermark_ns

    def _reach(self) -> None:
        """Update how far all Stores have come, including those left behind."""
        running = [pager.pages.sure_ns for pager in self._running()]
        ended = [self._start_ns if pager.lied else pager.pages.sure_ns for pager in self._pagers]
        self._reached_ns = min(running) if running else max(ended, default=self._start_ns)

    def _laggards(self) -> list[StorePager]:
        """The Stores that the others wait for, if there are others."""
        abreast = [pager for pager in self._running() if not pager.behind]
        furthest = max((pager.pages.reached_ns for pager in abreast), default=self._start_ns)
        if any(pager.is_complete for pager in self._pagers):
            furthest = self._end_ns + 1
        slowest = min((pager.pages.reached_ns for pager in abreast), default=furthest)
        return [pager for pager in abreast if pager.pages.reached_ns == slowest < furthest]

    def _look_after_the_slow(self, now_ms: UnixMs) -> None:
        if self._holding:
            self._still_since_ms = self._full_since_ms = None
        elif self._waiting:
            if self._still_since_ms is None or self._still_since_ms > now_ms:
                self._still_since_ms = now_ms
            is_full_anew = self._full_since_ms is None and self._waiting.is_full
            if is_full_anew or (self._full_since_ms is not None and self._full_since_ms > now_ms):
                self._full_since_ms = now_ms

    # --- the end ---

    def _tell_ended(self, step: _Step) -> None:
        for pager in self._pagers:
            end = pager.end
            if end is not None and not pager.told:
                pager.told = True
                step.events.append(pager.ended_event(self._query_id, end))

    def _finish(self, step: _Step) -> None:
        end, reason = self._how()
        everybody = len(self._pagers) == len(self._candidates) > 0
        everybody = everybody and all(pager.is_complete for pager in self._pagers)
        missing: tuple[WakuHash, ...] = tuple(self._missing)
        self.ended = QueryEnded(
            query_id=self._query_id,
            end=end,
            reason=reason,
            fetched=self._fetched,
            reached_ns=None if self._window is None else self._reached_ns,
            notes=self._notes(),
            lacking=missing if everybody else (),
            unknown=() if everybody else missing,
        )
        step.events.append(self.ended)

    def _how(self) -> tuple[End, str]:
        if self._cancelled:
            return End.CANCELLED, ""
        if any(pager.is_complete for pager in self._pagers):
            return End.COMPLETE, ""
        best = max(self._pagers, key=lambda pager: pager.pages.reached_ns, default=None)
        if best is None or best.end is None:
            return End.FAULTED, "no_store"
        return best.end, best.reason

    def _notes(self) -> tuple[StoreNote, ...]:
        trusted = sum(1 << pager.place for pager in self._pagers if pager.trusted)
        return tuple(
            pager.note(end, self._provenance, trusted=trusted)
            for pager in self._pagers
            if (end := pager.end) is not None
        )
