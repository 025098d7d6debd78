"""Schedules the Store queries of one conversation: one window and one hash lookup at a time.

Windows are requested by the user (a number of days, or messages earlier than the local ones), after
being offline, and for the trailing edge, to catch what Stores received during paging.  A window
that the user waits for comes first and interrupts others, which resume later.

Missing dependencies are looked up by hash in batches.  If many messages wait for them, the window
pauses until the lookups are done.  Sessions then name times in which the rest must lie: windows
that are queried last, and dropped if they fail, since the session asks again.

Progress is handed out to be made durable, so a window survives a crash.  Repeats are harmless: the
session recognises known messages.  It also opens messages and checks that they are genuine.
"""

from collections.abc import Sequence
from itertools import count
from typing import assert_never

from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.dependencies import DependencyBudget
from engine.core.history.merging import StoresQuery
from engine.core.history.progress import (
    DropProgress,
    HistoryWrite,
    Progress,
    Purpose,
    SaveProgress,
    ms_of,
    ns_of,
    rest_ns,
)
from engine.core.history.queries import (
    Advanced,
    Answered,
    Ask,
    ByHash,
    Cancel,
    Candidate,
    Covered,
    DeadlineReached,
    DependenciesMissing,
    End,
    GaveUp,
    HashesMissing,
    HistoryEvent,
    HistoryInput,
    HistoryTransition,
    HoldChanged,
    Page,
    PressureChanged,
    Query,
    QueryEnded,
    QueryInput,
    QueryStarted,
    StoreNote,
    StoresChanged,
    Topics,
    Window,
    WindowCancelled,
    WindowWanted,
)
from engine.core.history.requests import (
    HashLookups,
    WindowRequest,
    WindowRequests,
    comes_first,
    retry_at,
)
from engine.core.ids import ConversationId, UnixMs, WakuHash


class _Step:
    __slots__ = ("abandoned", "asks", "clock_ms", "events", "now_ms", "writes")

    def __init__(self, now_ms: UnixMs, clock_ms: UnixMs) -> None:
        self.now_ms = now_ms
        self.clock_ms = clock_ms
        self.asks: list[Ask] = []
        self.abandoned: list[int] = []
        self.events: list[HistoryEvent] = []
        self.writes: list[HistoryWrite] = []

    def transition(self) -> HistoryTransition:
        writes = {_purpose_of(write): write for write in self.writes}
        return HistoryTransition(
            asks=tuple(self.asks),
            abandoned=tuple(self.abandoned),
            events=tuple(self.events),
            writes=tuple(writes.values()),
        )


def _purpose_of(write: HistoryWrite) -> Purpose:
    """Of several writes for one purpose, only the last one matters."""
    return write.progress.purpose if isinstance(write, SaveProgress) else write.purpose


class HistoryScheduler:
    def __init__(  # noqa: PLR0913 - a sans-I/O machine gets all it needs passed in
        self,
        conversation_id: ConversationId,
        topics: Topics,
        *,
        config: HistoryConfig,
        random_unit: RandomUnit,
        progress: Sequence[Progress] = (),
        counters: Counters | None = None,
    ) -> None:
        """``progress``: the saved windows.  The first input must be ``StoresChanged``."""
        self._conversation_id = conversation_id
        self._topics = topics
        self._config = config
        self._random_unit = random_unit
        self._counters = counters if counters is not None else Counters()
        self._requests = WindowRequests(progress, config=config)
        self._lookups = HashLookups(config=config)
        self._dependency_budget = DependencyBudget(config)
        self._candidates: tuple[Candidate, ...] = ()
        self._ask_ids = count(1)
        self._query_ids = count(1)
        self._window: StoresQuery | None = None
        self._running_window: WindowRequest | None = None
        """The request that ``_window`` serves."""
        self._lookup: StoresQuery | None = None
        self._pressure = 0
        self._held = False
        """Whether ``_window`` is paused."""

    # --- the entry points ---

    def handle(
        self, input_: HistoryInput, *, now_ms: UnixMs, clock_ms: UnixMs | None = None
    ) -> HistoryTransition:
        """Handle an input.  ``now_ms`` is steady time; ``clock_ms`` is the time of messages."""
        step = _Step(now_ms, now_ms if clock_ms is None else clock_ms)
        match input_:
            case StoresChanged(candidates=candidates):
                self._stores_changed(candidates, step)
            case WindowWanted():
                self._window_wanted(input_, step)
            case DependenciesMissing(hashes=hashes):
                refused = self._lookups.add(hashes)
                if refused:
                    self._counters.add("history.too_many_wants", refused)
            case PressureChanged(waiting=waiting):
                self._pressure = waiting
            case WindowCancelled(purpose=purpose):
                self._window_cancelled(purpose, step)
            case Answered() | DeadlineReached():
                self._charge(input_, step)
                self._pass_on(input_, step)
                self._interrupt_what_takes_too_much(step)
            case _:
                assert_never(input_)
        self._start_what_is_due(step)
        return step.transition()

    def next_deadline(self) -> UnixMs | None:
        """When ``DeadlineReached`` is due; None = not before another input."""
        queries = (self._window, self._lookup)
        due = [query.next_deadline() for query in queries if query is not None]
        if self._candidates and self._window is None:
            again_ms = self._dependency_budget.again_ms()
            due.append(self._requests.next_ms(dependencies_from_ms=again_ms))
        return min((at_ms for at_ms in due if at_ms is not None), default=None)

    @property
    def running(self) -> Purpose | None:
        """The purpose of the running window; None if none runs."""
        return None if self._running_window is None else self._running_window.purpose

    # --- inputs ---

    def _stores_changed(self, candidates: tuple[Candidate, ...], step: _Step) -> None:
        self._candidates = candidates
        self._requests.revive()
        if not candidates:
            self._cancel_window(step)
            if self._lookup is not None:
                self._feed(self._lookup, Cancel(), step)

    def _window_wanted(self, input_: WindowWanted, step: _Step) -> None:
        until_ms = step.clock_ms if input_.until_ms is None else input_.until_ms
        ahead_ms = self._config.ahead_ms if input_.until_ms is None else 0
        since_ns = max(ns_of(input_.since_ms), 0)
        if input_.purpose is Purpose.CONNECT:  # To catch late arrivals.
            since_ns = max(since_ns - self._config.overlap_ns, 0)
        end_ns = max(ns_of(UnixMs(until_ms + ahead_ms)), since_ns)
        if input_.purpose is Purpose.DEPENDENCY:
            window = self._progress(input_.purpose, since_ns, end_ns, step.clock_ms)
            if not self._requests.add_dependency(window, running=self._running_window):
                self._counters.add("history.too_many_windows")
            return
        running = None if self._running_window is None else self._running_window.progress
        is_same = running is not None and running.purpose is input_.purpose
        if running is not None and is_same and since_ns < running.start_ns:
            self._cancel_window(step)  # Its progress no longer counts.
        request = self._requests.add(self._progress(input_.purpose, since_ns, end_ns, until_ms))
        if request.is_durable:
            step.writes.append(SaveProgress(request.progress))
        if self._running_window is not None and comes_first(
            request.purpose, self._running_window.purpose
        ):
            self._cancel_window(step)

    def _progress(self, purpose: Purpose, start_ns: int, end_ns: int, at_ms: UnixMs) -> Progress:
        return Progress(
            conversation_id=self._conversation_id,
            purpose=purpose,
            start_ns=start_ns,
            end_ns=end_ns,
            through_ns=ns_of(at_ms),
            reached_ns=start_ns,
        )

    def _window_cancelled(self, purpose: Purpose, step: _Step) -> None:
        if self._running_window is not None and self._running_window.purpose is purpose:
            self._cancel_window(step)
        request = self._requests.find(purpose)
        if request is not None:
            self._drop(request, step)

    def _drop(self, request: WindowRequest, step: _Step) -> None:
        self._requests.remove(request)
        if request.is_durable:
            step.writes.append(DropProgress(self._conversation_id, request.purpose))

    def _cancel_window(self, step: _Step) -> None:
        if self._window is not None:
            self._feed(self._window, Cancel(), step)

    def _pass_on(self, input_: Answered | DeadlineReached, step: _Step) -> None:
        for query in (self._window, self._lookup):
            if query is not None:
                self._feed(query, input_, step)

    # --- what windows for dependencies take ---

    def _charge(self, input_: Answered | DeadlineReached, step: _Step) -> None:
        """Answers to lookups that come meanwhile count as well."""
        if self.running is Purpose.DEPENDENCY and isinstance(input_, Answered):
            size = input_.outcome.size if isinstance(input_.outcome, Page) else 0
            self._dependency_budget.spend(step.now_ms, size=size)

    def _interrupt_what_takes_too_much(self, step: _Step) -> None:
        request = self._running_window
        if request is None or request.purpose is not Purpose.DEPENDENCY:
            return
        if step.now_ms >= self._dependency_budget.again_ms():
            return
        self._counters.add("history.dependencies_over_budget")
        self._cancel_window(step)
        request.periods += 1
        if request.periods >= self._config.max_dependency_periods:
            self._requests.remove(request)  # The session asks again.
            step.events.append(GaveUp(purpose=request.purpose, end=End.TOO_MANY_PAGES, reason=""))

    # --- queries ---

    def _feed(self, query: StoresQuery, input_: QueryInput, step: _Step) -> None:
        self._take(query, query.handle(input_, now_ms=step.now_ms), step)

    def _take(self, query: StoresQuery, transition: HistoryTransition, step: _Step) -> None:
        step.asks += transition.asks
        if query is self._window and self.running is Purpose.DEPENDENCY:
            self._dependency_budget.spend(step.now_ms, asks=len(transition.asks))
        step.abandoned += transition.abandoned
        step.events += transition.events
        for event in transition.events:
            if isinstance(event, Advanced) and self._running_window is not None:
                self._advance(self._running_window, event.reached_ns, step)
        if query.ended is None:
            return
        if query is self._window:
            self._window_ended(query.ended, step)
        else:
            self._lookup_ended(query.ended, step)

    def _advance(self, request: WindowRequest, reached_ns: int, step: _Step) -> None:
        if request.advance(reached_ns) and request.is_durable and not request.is_done:
            step.writes.append(SaveProgress(request.progress))

    def _start_what_is_due(self, step: _Step) -> None:
        self._hold(step)
        while self._candidates and (self._start_lookup(step) or self._start_window(step)):
            self._hold(step)

    def _start_lookup(self, step: _Step) -> bool:
        if self._lookup is not None or not len(self._lookups):
            return False
        query = ByHash(hashes=self._lookups.take())
        self._lookup = StoresQuery(
            next(self._query_ids),
            query,
            self._candidates,
            config=self._config,
            random_unit=self._random_unit,
            ask_ids=self._ask_ids,
        )
        self._begin(self._lookup, query, Purpose.DEPENDENCY, step)
        return True

    def _start_window(self, step: _Step) -> bool:
        if self._window is not None:
            return False
        again_ms = self._dependency_budget.again_ms()
        request = self._requests.due(step.now_ms, dependencies_from_ms=again_ms)
        if request is None:
            return False
        start_ns, end_ns = rest_ns(request.progress, overlap_ns=self._config.overlap_ns)
        request.asked_from_ns, request.not_before_ms = request.progress.reached_ns, None
        query = Window(
            pubsub_topic=self._topics.pubsub_topic,
            content_topics=self._topics.content_topics,
            start_ns=start_ns,
            end_ns=end_ns,
        )
        places, request.places = request.places, {}
        config, candidates = self._config, self._candidates
        if request.purpose is Purpose.DEPENDENCY:
            config = replace(config, max_pages=config.dependency_pages)
            candidates = self._dependency_budget.stores(candidates, step.now_ms)
        self._running_window, self._held = request, False
        self._window = StoresQuery(
            next(self._query_ids),
            query,
            candidates,
            config=config,
            random_unit=self._random_unit,
            ask_ids=self._ask_ids,
            places=places,
        )
        self._begin(self._window, query, request.purpose, step)
        return True

    def _begin(self, machine: StoresQuery, query: Query, purpose: Purpose, step: _Step) -> None:
        step.events.append(QueryStarted(query_id=machine.query_id, purpose=purpose, query=query))
        self._take(machine, machine.begin(step.now_ms), step)

    def _hold(self, step: _Step) -> None:
        """Pause or resume the window.  Lookups always end, so they never pause it for good."""
        looks_up = self._lookup is not None or len(self._lookups) > 0
        holding = self._pressure >= self._config.pressure_messages and looks_up
        if self._window is not None and holding is not self._held:
            self._held = holding
            self._feed(self._window, HoldChanged(holding), step)

    # --- their ends ---

    def _window_ended(self, ended: QueryEnded, step: _Step) -> None:
        request, window, self._window, self._running_window = (
            self._running_window,
            self._window,
            None,
            None,
        )
        if request is None:
            return
        request.places = {} if window is None else window.places()
        if request.purpose is Purpose.DEPENDENCY:
            self._dependency_budget.ended(ended.notes, step.now_ms)
        if ended.end is End.COMPLETE and request.is_done:
            self._done(request, step)
        elif ended.end is not End.CANCELLED:
            self._try_again(request, ended, step)

    def _done(self, request: WindowRequest, step: _Step) -> None:
        progress = request.progress
        self._drop(request, step)
        step.events.append(
            Covered(
                purpose=request.purpose,
                since_ms=ms_of(progress.start_ns),
                until_ms=ms_of(progress.end_ns),
                through_ms=ms_of(progress.through_ns),
            )
        )
        is_open = progress.end_ns > progress.through_ns
        if is_open and request.is_durable:
            self._add_trailing(progress, step)

    def _add_trailing(self, progress: Progress, step: _Step) -> None:
        """Request a trailing check, from when the window was requested to when the check is due."""
        due_ms = UnixMs(step.now_ms + self._config.trailing_ms)
        at_ms = UnixMs(step.clock_ms + self._config.trailing_ms)
        start_ns = max(progress.through_ns - self._config.overlap_ns, 0)
        end_ns = ns_of(UnixMs(at_ms + self._config.ahead_ms))
        trailing = self._progress(Purpose.TRAILING, start_ns, max(start_ns, end_ns), at_ms)
        self._requests.add(trailing, not_before_ms=due_ms)

    def _try_again(self, request: WindowRequest, ended: QueryEnded, step: _Step) -> None:
        """Retry now if the window progressed or grew, else later, up to a limit."""
        further = request.progress.reached_ns - request.asked_from_ns
        goes_on = bool(request.places) and ended.fetched > 0
        if ended.end is End.COMPLETE or goes_on or further > self._config.overlap_ns:
            request.continuations, request.retries = request.continuations + 1, 0
        else:
            request.retries += 1
        config = self._config
        if request.retries > config.max_retries or request.continuations > config.max_continuations:
            request.given_up = True
            step.events.append(GaveUp(purpose=request.purpose, end=ended.end, reason=ended.reason))
            if request.purpose is Purpose.DEPENDENCY:
                self._requests.remove(request)  # The session asks again.
        elif request.retries:
            request.not_before_ms = retry_at(
                request, config=config, random_unit=self._random_unit, now_ms=step.now_ms
            )

    def _lookup_ended(self, ended: QueryEnded, step: _Step) -> None:
        self._lookup = None
        asked = self._lookups.answered()
        missing = (*ended.lacking, *ended.unknown)
        self._lookups.found(asked - set(missing))
        if missing and ended.end is not End.CANCELLED:
            self._tell_missing(missing, ended.notes, step)

    def _tell_missing(
        self, missing: tuple[WakuHash, ...], notes: tuple[StoreNote, ...], step: _Step
    ) -> None:
        """Report missing hashes; a silent Store delays the decision, but not forever."""
        lacked = sum(note.end is End.COMPLETE for note in notes)
        silent = tuple(note.store for note in notes if note.end is not End.COMPLETE)
        decided = missing if lacked else ()
        if silent:
            self._lookups.unanswered(missing)
            decided = tuple(item for item in decided if self._lookups.waited_enough(item))
        undecided = tuple(item for item in missing if item not in set(decided))
        for hashes, is_decided in ((decided, True), (undecided, False)):
            if hashes:
                lacks = HashesMissing(
                    hashes=hashes, lacked=lacked, silent=silent, decided=is_decided
                )
                step.events.append(lacks)
