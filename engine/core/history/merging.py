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
from typing import assert_never

from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.hash_pages import HashPages
from engine.core.history.pages import Place
from engine.core.history.provenance import Provenance
from engine.core.history.queried_store import QueriedStore
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
    StoreRef,
    Window,
)
from engine.core.history.reorder_buffer import EVERYTHING, ReorderBuffer
from engine.core.history.store_pager import StorePager
from engine.core.history.window_pages import WindowPages
from engine.core.ids import UnixMs, WakuHash


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
        self._queried: list[QueriedStore] = []
        self._waiting = ReorderBuffer(
            max_messages=config.buffer_messages, max_bytes=config.buffer_bytes
        )
        self._sign = 1 if self._window is None or self._window.forward else -1
        self._first_key, self._last_key = _keys(self._window)
        self._watermark = self._first_key
        self._still_since_ms: UnixMs | None = None
        """Since when messages wait and the watermark stands still."""
        self._full_since_ms: UnixMs | None = None
        """Since when the buffer has been full, until it is less than half full."""
        self._holding = False
        self._cancelled = False
        self._fetched = 0
        self._reached_key = self._first_key
        self.ended: QueryEnded | None = None

    @property
    def query_id(self) -> int:
        return self._query_id

    def places(self) -> dict[StoreRef, Place]:
        """Where paging stopped at Stores with more pages than one query may fetch."""
        return {
            queried.paging.store: queried.window.place
            for queried in self._queried
            if queried.paging.end is End.TOO_MANY_PAGES
            and queried.window is not None
            and queried.window.place is not None
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
            for queried in self._running()
            if not (self._holding and queried.paging.outstanding is None)
            and (deadline_ms := queried.paging.next_deadline()) is not None
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
        for queried in self._queried:
            if queried.paging.outstanding == ask_id:
                self._take(queried, outcome, step)

    def _take(self, queried: QueriedStore, outcome: Outcome, step: _Step) -> None:
        for item in queried.paging.answered(outcome, step.now_ms):
            timestamp_ns = item.message.timestamp_ns
            key = self._sign * timestamp_ns if timestamp_ns else queried.key
            self._waiting.add(key, item)

    def _cancel(self, step: _Step) -> None:
        self._cancelled = True
        self._reach()
        for queried in self._running():
            self._abandon(queried, step)
            queried.paging.cancel()

    def _abandon(self, queried: QueriedStore, step: _Step) -> None:
        if queried.paging.outstanding is not None:
            step.abandoned.append(queried.paging.outstanding)

    def _look_at_time(self, step: _Step) -> None:
        for queried in self._running():
            if queried.paging.overdue(step.now_ms):
                self._abandon(queried, step)
                self._take(queried, Failed(FailureKind.TIMEOUT), step)
        if self._is_patience_over(self._still_since_ms, step.now_ms) or self._is_patience_over(
            self._full_since_ms, step.now_ms
        ):
            for queried in self._laggards():
                queried.behind = True
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

    def _running(self) -> list[QueriedStore]:
        return [queried for queried in self._queried if queried.running]

    def _start_more(self, now_ms: UnixMs) -> None:
        config, is_lookup = self._config, self._window is None
        allowed = config.max_lookup_stores if is_lookup else config.max_stores
        allowed = min(len(self._candidates), allowed)
        while len(self._queried) < allowed and not self._cancelled and self._wants_more():
            place = len(self._queried)
            candidate = self._candidates[place]
            left_at = self._places.get(candidate.store)
            window = self._window_pages(place, left_at)
            pages = window or HashPages(
                self._missing, self._provenance, place, at_once=config.hashes_per_ask
            )
            paging = StorePager(
                candidate,
                pages,
                config=config,
                random_unit=self._random_unit,
                now_ms=now_ms,
            )
            if left_at is not None:
                paging.version = left_at.version
            behind = self._first_key < self._watermark
            self._queried.append(QueriedStore(paging, window, place, behind))

    def _window_pages(self, place: int, left_at: Place | None) -> WindowPages | None:
        if self._window is None:
            return None
        overlaps_ns = self._config.restart_overlaps_ns
        pages = WindowPages(self._window, self._provenance, place, overlaps_ns=overlaps_ns)
        if left_at is not None:
            pages.go_on(left_at)
        return pages

    def _wants_more(self) -> bool:
        if self._window is None:
            return bool(self._missing) and len(self._running()) < self._config.lookup_stores
        good = sum(queried.running or queried.is_complete for queried in self._queried)
        return good < self._config.window_stores

    def _ask(self, step: _Step) -> bool:
        """Ask all Stores that may be asked.  Returns whether one of them ended."""
        if self._holding or self._cancelled:
            return False
        ended = False
        for queried in self._running():
            if self._is_held_up(queried) or not queried.paging.may_ask(step.now_ms):
                continue
            ask = queried.paging.ask(next(self._ask_ids), step.now_ms)
            if ask is None:
                ended = True
            else:
                step.asks.append(ask)
        return ended

    def _is_held_up(self, queried: QueriedStore) -> bool:
        return self._waiting.is_full and queried.key > self._watermark

    # --- the stream ---

    def _hand_out(self, step: _Step) -> None:
        before = self._watermark
        self._watermark = max(before, self._common_key())
        for queried in self._running():
            queried.behind = queried.behind and queried.key < self._watermark
        until = EVERYTHING if self._window is None else self._watermark
        items = list(self._waiting.take_until(until))
        if not self._running():
            items.extend(self._waiting.take_until(EVERYTHING))
        if self._watermark > before or not self._waiting:
            self._still_since_ms = None
        if not self._waiting.is_half_full:
            self._full_since_ms = None
        if items:
            self._fetch(items, step)
        before = self._reached_key
        if not self._cancelled:
            self._reach()
        if self._window is not None and (items or self._reached_key != before):
            step.events.append(
                Advanced(
                    query_id=self._query_id,
                    reached_ns=self._sign * self._reached_key,
                    fetched=self._fetched,
                )
            )

    def _fetch(self, items: list[HistoryMessage], step: _Step) -> None:
        if self._sign < 0:
            items.reverse()
        self._fetched += len(items)
        step.events.append(Fetched(query_id=self._query_id, messages=tuple(items)))

    def _common_key(self) -> int:
        """The watermark: how far the Stores have come together."""
        keys = [queried.key for queried in self._running() if not queried.behind]
        if keys:
            return min(keys)
        return (
            self._last_key
            if any(queried.is_complete for queried in self._queried)
            else self._watermark
        )

    def _reach(self) -> None:
        """Update how far all Stores have come, including those left behind."""
        running = [queried.sure_key for queried in self._running()]
        ended = [self._first_key if queried.lied else queried.sure_key for queried in self._queried]
        self._reached_key = min(running) if running else max(ended, default=self._first_key)

    def _laggards(self) -> list[QueriedStore]:
        """The Stores that the others wait for, if there are others."""
        abreast = [queried for queried in self._running() if not queried.behind]
        furthest = max((queried.key for queried in abreast), default=self._first_key)
        if any(queried.is_complete for queried in self._queried):
            furthest = self._last_key + 1
        slowest = min((queried.key for queried in abreast), default=furthest)
        return [queried for queried in abreast if queried.key == slowest < furthest]

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
        for queried in self._queried:
            end = queried.paging.end
            if end is not None and not queried.told:
                queried.told = True
                step.events.append(queried.ended_event(self._query_id, end))

    def _finish(self, step: _Step) -> None:
        end, reason = self._how()
        everybody = len(self._queried) == len(self._candidates) > 0
        everybody = everybody and all(queried.is_complete for queried in self._queried)
        missing: tuple[WakuHash, ...] = tuple(self._missing)
        self.ended = QueryEnded(
            query_id=self._query_id,
            end=end,
            reason=reason,
            fetched=self._fetched,
            reached_ns=None if self._window is None else self._sign * self._reached_key,
            notes=self._notes(),
            lacking=missing if everybody else (),
            unknown=() if everybody else missing,
        )
        step.events.append(self.ended)

    def _how(self) -> tuple[End, str]:
        if self._cancelled:
            return End.CANCELLED, ""
        if any(queried.is_complete for queried in self._queried):
            return End.COMPLETE, ""
        best = max(self._queried, key=lambda queried: queried.key, default=None)
        if best is None or best.paging.end is None:
            return End.FAULTED, "no_store"
        return best.paging.end, best.paging.reason

    def _notes(self) -> tuple[StoreNote, ...]:
        trusted = sum(1 << queried.place for queried in self._queried if queried.trusted)
        return tuple(
            queried.note(end, self._provenance, trusted=trusted)
            for queried in self._queried
            if (end := queried.paging.end) is not None
        )


def _keys(window: Window | None) -> tuple[int, int]:
    """First and last key; keys grow in the direction of paging."""
    if window is None:
        return 0, 0
    if window.forward:
        return window.start_ns, window.end_ns
    return -window.end_ns, -window.start_ns
