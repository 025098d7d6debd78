"""Backfills one conversation from Stores: runs its ``HistoryScheduler`` and passes on results.

There is one task per conversation; requests run beside it.  Fetched messages take the same path as
live ones, which opens, checks and deduplicates them.  Pages are handled while those before them are
committed and, in a large window, those after them are opened in another process.  Few are under
way, so Stores are asked for no more than the session can process.  Once a page is durable, the
window's progress is saved, at most once a second.

If many messages wait for missing dependencies, those are looked up before the window continues.
After a storage error everything restarts from what is durable.  What a message says is handled in
the session.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Final, assert_never

from msgspec import Struct

from engine.core.errors import StorageError
from engine.core.history.progress import (
    HistoryWrite,
    KeptWrite,
    Purpose,
    SaveCovered,
    SaveReach,
    StoreRef,
    ms_of,
    ns_of,
)
from engine.core.history.queries import (
    Advanced,
    Answered,
    Ask,
    Candidate,
    Covered,
    DeadlineReached,
    DependenciesMissing,
    End,
    Fetched,
    GaveUp,
    HashesMissing,
    HistoryEvent,
    HistoryInput,
    HistoryMessage,
    HistoryTransition,
    Page,
    PressureChanged,
    QueryEnded,
    QueryStarted,
    StoreEnded,
    StoreNote,
    StoresChanged,
    Topics,
    Window,
    WindowCancelled,
    WindowWanted,
    starts,
)
from engine.core.history.scheduler import HistoryScheduler
from engine.core.ids import ConversationId, MessageId, UnixMs, WakuHash
from engine.core.problems import QueryFailed
from engine.core.sds.inputs import HastenStoreQuery, StoreAnswered, StoresMissing, WindowAnswered
from engine.core.sds.vocabulary import AskStore, StoreWindow
from engine.core.waku_store import HASH_BYTES
from engine.history_views import HistoryChanged, HistoryReason, HistoryState, HistoryView
from engine.network.stores.port import StoreNetwork
from engine.runtime.history.dependencies import HistoryDependencies, OpenPage, Sink
from engine.runtime.history.progress import (
    INBOX,
    SAVE_EVERY_MS,
    HistoryEventPublisher,
    ProgressStore,
)
from engine.runtime.history.query_slot import QuerySlot
from engine.runtime.history.stores import StoreRegistry
from engine.runtime.recorded_queries import RecordedQueries
from engine.session.group.opening import OpenedEnvelope, OpenedPage
from engine.session.inputs import MessageArrived, RetrieveKeptBack

DAY_MS: Final = 24 * 3_600_000
CONNECT_LONGEST_MS: Final = 30 * DAY_MS
"""How far back a backfill goes without a request by the user."""
CONNECT_AFTER_MS: Final = 5 * 60_000
EARLIER_MS: Final = 30 * DAY_MS
TRY_AGAIN_S: Final = 2.0
LONGEST_WAIT_S: Final = 60.0
MAX_HASHES: Final = 10_000
ASKED_FOR: Final = frozenset({Purpose.USER, Purpose.EARLIER})
PAGES_UNDER_WAY: Final = 8
PAGES_OF_A_LARGE_WINDOW: Final = 24
"""Under way: ten are committed, ten are handled, two are opened and two come next."""
BYTES_UNDER_WAY: Final = 16 * 1024 * 1024
"""Of their payloads.  With more, fewer pages are under way."""
LARGE_MESSAGES: Final = 200
"""After this many, the pages of a window are opened in another process."""

logger = logging.getLogger(__name__)


class _PageUnderWay(Struct, frozen=True, kw_only=True):
    """A page of a window that was fed and may not be durable yet."""

    page: Fetched
    fed: asyncio.Task[None]
    size: int
    """Bytes of its messages."""
    writes: list[HistoryWrite]
    """The progress it makes, to be kept once it is durable."""


class Backfill:
    def __init__(  # noqa: PLR0913 - keyword-only: what one backfill depends on
        self,
        conversation_id: ConversationId,
        topics: Topics,
        *,
        sink: Sink,
        network: StoreNetwork,
        stores: StoreRegistry,
        slots: asyncio.Semaphore,
        parts: HistoryDependencies,
        recorded: RecordedQueries,
        open_page: OpenPage | None = None,
    ) -> None:
        """``open_page`` opens a page elsewhere, as far as that is possible now."""
        self.conversation_id = conversation_id
        self.topics = topics
        self._sink = sink
        self._network = network
        self._stores = stores
        self._parts = parts
        self._recorded = recorded
        self._open_page = open_page
        self._last_queued: asyncio.Event | None = None
        """Set once the newest page under way is queued for the session."""
        self._paged = 0
        """Messages of the window so far."""
        steady_ms = parts.clock.steady_ms
        self._progress = ProgressStore(conversation_id, parts.store, parts.storage, steady_ms)
        self._publisher = HistoryEventPublisher(conversation_id, self._tell, steady_ms)
        self._scheduler: HistoryScheduler | None = None
        self._candidates: tuple[Candidate, ...] = ()
        self._inputs: deque[HistoryInput] = deque()
        self._wake = asyncio.Event()
        self._slot = QuerySlot(slots)
        self._asks: dict[int, asyncio.Task[None]] = {}
        self._queries: dict[int, QueryStarted] = {}
        self._looked_up: dict[WakuHash, MessageId] = {}
        """The hashes that are looked up; the oldest are dropped."""
        self._under_way: deque[_PageUnderWay] = deque()
        self._pressure = 0
        self._connect_wanted = False
        self._notes: tuple[StoreNote, ...] = ()
        self._durable: list[tuple[HistoryInput | None, asyncio.Future[None]]] = []
        """Callers that wait until an input has been handled."""

    def _tell(self, view: HistoryView) -> None:
        if self.conversation_id != INBOX:
            self._parts.publish(HistoryChanged(history=view))

    # --- calls from the service -----------------------------------------------------------------

    @property
    def view(self) -> HistoryView | None:
        return self._publisher.view

    def stores_changed(self, candidates: tuple[Candidate, ...]) -> None:
        self._candidates = candidates
        self._publisher.stores(any_=bool(candidates))
        if self._scheduler is not None:
            self._put(StoresChanged(candidates))

    def connect(self) -> None:
        """Request the messages since the last success, at most 30 days back."""
        if self._scheduler is None:
            self._connect_wanted = True
            return
        self.request(Purpose.CONNECT, self._back_to(self._progress.kept.through_ms))

    def _back_to(self, known_ms: UnixMs | None) -> UnixMs:
        now_ms = self._parts.clock.clock_ms()
        since_ms = 0 if known_ms is None or known_ms > now_ms else known_ms
        return UnixMs(max(since_ms, now_ms - CONNECT_LONGEST_MS, 0))

    def came(self, store: StoreRef) -> None:
        """A Store appeared on the network; it may have messages that the others do not."""
        now_ms = self._parts.clock.clock_ms()
        covered_ms = self._progress.kept.covered.get(store)
        if covered_ms is not None and 0 <= now_ms - covered_ms <= CONNECT_AFTER_MS:
            return
        self.request(Purpose.CONNECT, self._back_to(covered_ms))

    def ask(self, ask: AskStore) -> None:
        """Perform a Store request of the conversation's session; hints must be hashes."""
        hashes: list[WakuHash] = []
        for entry in ask.missing:
            hint = entry.retrieval_hint
            if hint is not None and len(hint) == HASH_BYTES:
                hashes.append(WakuHash(hint))
                self._looked_up[WakuHash(hint)] = entry.message_id
        while len(self._looked_up) > MAX_HASHES:
            del self._looked_up[next(iter(self._looked_up))]
        if hashes:
            self._put(DependenciesMissing(tuple(hashes)))
        for window in ask.windows:
            since_ms, until_ms = window.since_ms, window.until_ms
            self._put(
                WindowWanted(purpose=Purpose.DEPENDENCY, since_ms=since_ms, until_ms=until_ms)
            )
        if ask.since_ms is not None:
            self.request(Purpose.CONNECT, ask.since_ms)

    def request(self, purpose: Purpose, since_ms: UnixMs, until_ms: UnixMs | None = None) -> None:
        since_ms = max(since_ms, self._sink.reads_since_ms or since_ms)  # The rest is withheld.
        self._publisher.waits(purpose, since_ms)
        if until_ms is not None and until_ms <= since_ms:
            self._publisher.ended(purpose, HistoryState.DONE)
            return
        self._put(WindowWanted(purpose=purpose, since_ms=since_ms, until_ms=until_ms))
        if purpose in ASKED_FOR:
            self._slot.is_urgent.set()

    def want_earlier(self) -> None:
        """Request 30 days before the earliest time requested so far, or before the oldest row."""
        view = self._publisher.view
        if view is not None and not view.is_over and view.reason is HistoryReason.EARLIER:
            return
        known = (self._progress.kept.since_ms, self._sink.oldest_ms, self._parts.clock.clock_ms())
        until_ms = min(at_ms for at_ms in known if at_ms is not None)
        self.request(Purpose.EARLIER, UnixMs(max(until_ms - EARLIER_MS, 0)), until_ms)

    def cancel(self) -> None:
        """Cancel the windows that the user requested."""
        self._inputs = deque(
            one
            for one in self._inputs
            if not (isinstance(one, WindowWanted) and one.purpose in ASKED_FOR)
        )
        for purpose in (Purpose.USER, Purpose.EARLIER):
            self._put(WindowCancelled(purpose))
            self._publisher.ended(purpose, HistoryState.CANCELLED)

    async def durable(self) -> None:
        """Return once all requests made so far survive a crash."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._durable.append((self._inputs[-1] if self._inputs else None, done))
        self._wake.set()
        await done

    def _put(self, input_: HistoryInput) -> None:
        self._inputs.append(input_)
        self._wake.set()

    # --- running --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            while True:
                try:
                    await self._fill()
                except StorageError:
                    self._parts.counters.add("history.not_saved")
                except Exception:
                    self._parts.counters.add("history.crashed")
                    logger.exception("filling ended unexpectedly")
                await self._begin_anew()
                await asyncio.sleep(TRY_AGAIN_S)
        finally:
            await self._begin_anew()

    async def _begin_anew(self) -> None:
        """Reset to what is durable; anything fetched but not durable is fetched again."""
        asks, self._asks = self._asks, {}
        for ask in asks.values():
            ask.cancel()
        pages = [page.fed for page in self._under_way]
        self._under_way.clear()
        self._last_queued = None
        for page in pages:
            page.cancel()
        await asyncio.gather(*asks.values(), *pages, return_exceptions=True)
        self._inputs = deque(
            one
            for one in self._inputs
            if isinstance(one, WindowWanted | WindowCancelled | DependenciesMissing)
        )
        self._scheduler = None
        self._queries.clear()
        self._recorded.forget()
        self._connect_wanted = True
        self._rest()

    async def _fill(self) -> None:
        await self._progress.load()
        self._scheduler = scheduler = HistoryScheduler(
            self.conversation_id,
            self.topics,
            config=self._parts.config,
            random_unit=self._parts.random_unit,
            progress=self._progress.kept.progress,
            counters=self._parts.counters,
        )
        for progress in self._progress.kept.progress:
            self._publisher.waits(progress.purpose, ms_of(progress.start_ns))
        self._inputs.appendleft(StoresChanged(self._candidates))
        if self._connect_wanted:
            self._connect_wanted = False
            self.connect()
        while True:
            input_ = await self._next(scheduler)
            if not isinstance(input_, Answered | PressureChanged):
                await self._settle()
            if isinstance(input_, WindowWanted) and input_.purpose is Purpose.DEPENDENCY:
                input_ = self._within_horizon(input_)
            elif isinstance(input_, WindowWanted):
                await self._progress.reach(input_.since_ms)
            if starts(input_):
                await self._slot.take()
            await self._perform(self._handled(scheduler, input_))
            self._tell_durable(input_)
            if not self._queries and not self._asks:
                self._rest()

    def _rest(self) -> None:
        """Give the turn back; what the user wants and has not begun stays urgent."""
        self._slot.rest()
        if any(isinstance(one, WindowWanted) and one.purpose in ASKED_FOR for one in self._inputs):
            self._slot.is_urgent.set()

    def _handled(self, scheduler: HistoryScheduler, input_: HistoryInput) -> HistoryTransition:
        clock = self._parts.clock
        return scheduler.handle(input_, now_ms=clock.steady_ms(), clock_ms=clock.clock_ms())

    async def _next(self, scheduler: HistoryScheduler) -> HistoryInput:
        while True:
            self._wake.clear()
            await self._settle_durable()
            if self._inputs:
                return self._inputs.popleft()
            deadline_ms, wait_s = scheduler.next_deadline(), LONGEST_WAIT_S
            if deadline_ms is not None:
                wait_ms = max(deadline_ms - self._parts.clock.steady_ms(), 0)
                wait_s = min(wait_ms / 1_000, wait_s)
            if self._progress.has_unsaved:
                wait_s = min(wait_s, SAVE_EVERY_MS / 1_000)
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                await self._progress.save_due()
                if deadline_ms is not None and deadline_ms <= self._parts.clock.steady_ms():
                    return DeadlineReached()

    def _tell_durable(self, input_: HistoryInput) -> None:
        left: list[tuple[HistoryInput | None, asyncio.Future[None]]] = []
        for awaited, done in self._durable:
            if awaited is not None and awaited is not input_:
                left.append((awaited, done))
            elif not done.done():
                done.set_result(None)
        self._durable = left

    # --- carrying out transitions -----------------------------------------------------------------

    async def _perform(self, transition: HistoryTransition) -> None:
        for ask_id in transition.abandoned:
            abandoned = self._asks.pop(ask_id, None)
            if abandoned is not None:
                abandoned.cancel()
        for ask in transition.asks:  # While earlier results are handled, more arrive.
            self._asks[ask.ask_id] = asyncio.create_task(self._ask(ask), name="store ask")
        for event in transition.events:
            if not isinstance(event, Fetched | Advanced):
                await self._settle()
            await self._take(event)
        if self._under_way:
            self._under_way[-1].writes.extend(transition.writes)
        else:
            await self._progress.keep(transition.writes)

    async def _ask(self, ask: Ask) -> None:
        outcome = await self._network.perform(ask)
        if isinstance(outcome, Page):
            self._stores.returned(ask.store, (each.message_hash for each in outcome.messages))
        self._asks.pop(ask.ask_id, None)
        self._put(Answered(ask.ask_id, outcome))

    async def _take(self, event: HistoryEvent) -> None:  # noqa: C901 - a table of events
        match event:
            case QueryStarted():
                self._queries[event.query_id] = event
                self._recorded.started(event)
                if isinstance(event.query, Window):
                    self._paged = 0
                    self._publisher.started(
                        event.purpose,
                        event.query,
                        stores=min(len(self._candidates), self._parts.config.window_stores),
                        arrived=self._sink.arrived,
                    )
            case Fetched():
                await self._fetched(event)
            case Advanced():
                self._publisher.advanced(event.reached_ns)
            case StoreEnded():
                self._stores.trouble(event)
            case QueryEnded():
                started = self._queries.pop(event.query_id, None)
                if started is not None and isinstance(started.query, Window):
                    self._notes = event.notes
                self._stores.note(event.notes)
                self._recorded.ended(event)
            case Covered():
                await self._covered(event)
            case GaveUp():
                problem = QueryFailed(event.end, event.reason)
                self._publisher.ended(event.purpose, HistoryState.FAILED, problem)
            case HashesMissing():
                await self._lacks(event)
            case _:
                assert_never(event)

    async def _lacks(self, lacks: HashesMissing) -> None:
        known = [one for one in lacks.hashes if one in self._looked_up]
        ids = tuple(self._looked_up[one] for one in known)
        if lacks.decided:
            self._forget(known)
        if ids:
            silent = tuple(self._stores.address_of(store) for store in lacks.silent)
            missing = StoresMissing(
                message_ids=ids, lacked=lacks.lacked, silent=silent, decided=lacks.decided
            )
            await self._sink.feed([missing])

    def _forget(self, hashes: Sequence[WakuHash]) -> None:
        for one in hashes:
            self._looked_up.pop(one, None)

    async def _fetched(self, event: Fetched) -> None:
        started = self._queries.get(event.query_id)
        if started is not None and isinstance(started.query, Window):
            await self._feed_page(event)
            return
        await self._settle()
        self._recorded.feeds(event.query_id)
        await self._feed_looked_up(event.messages)
        self._recorded.feeds(None)
        await self._note_pressure()

    async def _feed_page(self, page: Fetched) -> None:
        """Feed a page of the window, and wait until few enough are under way."""
        self._paged += len(page.messages)
        if not self._under_way:
            self._recorded.feeds(page.query_id)
        before, queued = self._last_queued, asyncio.Event()
        self._last_queued = queued
        feeding = self._open_and_feed(page.messages, before, queued)
        fed = asyncio.create_task(feeding, name="page")
        fed.add_done_callback(lambda _fed: self._wake.set())
        size = sum(len(one.message.payload) for one in page.messages)
        self._under_way.append(_PageUnderWay(page=page, fed=fed, size=size, writes=[]))
        while self._has_enough_under_way():
            await self._settle(leaving=len(self._under_way) - 1)

    def _has_enough_under_way(self) -> bool:
        size = sum(page.size for page in self._under_way)
        is_large = self._open_page is not None and self._paged > LARGE_MESSAGES
        most = PAGES_OF_A_LARGE_WINDOW if is_large else PAGES_UNDER_WAY
        return len(self._under_way) >= most or size >= BYTES_UNDER_WAY

    async def _open_and_feed(
        self,
        messages: Sequence[HistoryMessage],
        before: asyncio.Event | None,
        queued: asyncio.Event,
    ) -> None:
        """Pages may be opened together, but are queued in order: this one after ``before``."""
        opened: OpenedPage = ()
        with self._sink.more_to_come():
            if self._open_page is not None and self._paged > LARGE_MESSAGES:
                opened = await self._open_page(messages)
            if before is not None:
                await before.wait()
        results = chain(opened, repeat(None))
        feeding = self._sink.feed([_arrived(*one) for one in zip(messages, results, strict=False)])
        queued.set()  # They are queued before anything else runs.
        await feeding

    async def _settle(self, *, leaving: int = 0) -> None:
        """Wait until no more than that many pages are under way."""
        while len(self._under_way) > leaving:
            await self._under_way[0].fed
            await self._settle_durable()

    async def _settle_durable(self) -> None:
        """Keep the progress of the pages that have become durable, and tell of them."""
        while self._under_way and self._under_way[0].fed.done():
            durable = self._under_way.popleft()
            durable.fed.result()
            if not self._under_way:
                self._recorded.feeds(None)
            messages = durable.page.messages
            first_ns = next((one.message.timestamp_ns for one in messages), None)
            self._publisher.fetched(len(messages), first_ns, arrived=self._sink.arrived)
            await self._note_pressure()
            await self._progress.keep(durable.writes)

    async def _note_pressure(self) -> None:
        waiting = self._sink.waiting
        if waiting != self._pressure:
            self._pressure = waiting
            self._inputs.appendleft(PressureChanged(waiting))
        if waiting >= self._parts.config.pressure_messages:
            await self._sink.feed([HastenStoreQuery()])

    async def _feed_looked_up(self, messages: Sequence[HistoryMessage]) -> None:
        """Feed dependencies, those last that are older than anything that was requested.

        These count as lost if the messages that depend on them are old as well, and are not shown,
        unless the user asked for them after they were given up.
        """
        horizon_ns = self._horizon_ns()
        newer: list[MessageArrived] = []
        older: list[MessageArrived | StoresMissing] = []
        for one in messages:
            is_older = 0 < (one.message.timestamp_ns or 0) < horizon_ns
            message_id = self._looked_up.get(one.message_hash)
            if is_older and message_id is not None:
                kept_back = StoresMissing(message_ids=(message_id,), lacked=0, kept_back=True)
                older += [kept_back, _arrived(one, if_wanted=message_id)]
            else:
                (older if is_older else newer).append(_arrived(one))
        await self._sink.feed([*newer, *older])
        self._forget([one.message_hash for one in messages])

    def _within_horizon(self, wanted: WindowWanted) -> WindowWanted:
        """A window for dependencies without what is older than anything that was requested.

        Otherwise each message in it would lead to still older ones that it depends on.
        """
        horizon_ms = ms_of(self._horizon_ns())
        until_ms = max(wanted.until_ms or horizon_ms, horizon_ms)
        return WindowWanted(
            purpose=wanted.purpose, since_ms=max(wanted.since_ms, horizon_ms), until_ms=until_ms
        )

    def _horizon_ns(self) -> int:
        """The time before which nothing was requested and no row is here."""
        known = [
            at for at in (self._progress.kept.since_ms, self._sink.oldest_ms) if at is not None
        ]
        return ns_of(min(known)) if known else 0

    async def _covered(self, covered: Covered) -> None:
        writes: list[KeptWrite] = []
        if covered.purpose in (Purpose.CONNECT, Purpose.TRAILING):
            await self._sink.feed([StoreAnswered(through_ms=covered.through_ms)])
            writes.append(SaveReach(through_ms=covered.through_ms))
        if covered.purpose is Purpose.DEPENDENCY:
            await self._sink.feed([self._window_answered(covered)])
        else:
            writes += [
                SaveCovered(store=note.store, through_ms=covered.through_ms)
                for note in self._notes
                if note.end is End.COMPLETE
            ]
        if writes:
            await self._progress.save(writes)
        if covered.purpose in ASKED_FOR:
            await self._sink.feed([RetrieveKeptBack()])
        self._publisher.ended(covered.purpose, HistoryState.DONE)

    def _window_answered(self, covered: Covered) -> WindowAnswered:
        """What is older than anything that was requested counts as answered, too."""
        ends = [(note.store, note.end is End.COMPLETE) for note in self._notes]
        is_at_horizon = covered.since_ms <= ms_of(self._horizon_ns())
        since_ms = UnixMs(0) if is_at_horizon else covered.since_ms
        return WindowAnswered(
            window=StoreWindow(since_ms=since_ms, until_ms=covered.until_ms),
            lacked=sum(complete for _, complete in ends),
            silent=tuple(
                self._stores.address_of(store) for store, complete in ends if not complete
            ),
        )


def _arrived(
    item: HistoryMessage,
    opened: OpenedEnvelope | None = None,
    *,
    if_wanted: MessageId | None = None,
) -> MessageArrived:
    return MessageArrived(
        item.message, item.message_hash, stored=True, if_wanted=if_wanted, opened=opened
    )
