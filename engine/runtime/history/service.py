"""History of a running profile: its Stores, a backfill for each conversation, and the commands.

It is notified when conversations start and end, when connectivity changes, and when sessions miss
messages.  It notifies sessions whether any Store can be asked.  ``backfill`` fetches the messages
of one conversation.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Final

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.errors import ChatError, ConfigError, LocalProtocolError
from engine.core.history.config import HistoryConfig
from engine.core.history.inputs import Topics
from engine.core.history.progress import Purpose
from engine.core.history.queries import (
    Candidate,
    StoreEnded,
    StoreNote,
    StoreRef,
)
from engine.core.ids import ContentTopic, ConversationId, UnixMs
from engine.core.ports import ProfileStore, PutStore, RemoveStore, StoreWrite
from engine.core.sds.types import AskStore
from engine.delivery.recorder import Recorder
from engine.events import EngineEvent
from engine.history_views import (
    HistoryChanged,
    HistoryView,
    StoresChanged,
    StoreTestView,
    StoreView,
)
from engine.network.stores.port import StoreNetwork
from engine.persistence.storage_thread import StorageThread
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.history.backfill import CONNECT_LONGEST_MS, DAY_MS, Backfill
from engine.runtime.history.backfill_context import BackfillContext
from engine.runtime.history.progress_tables import (
    ConversationProgressTable,
    InboxProgressTable,
    ProgressTable,
)
from engine.runtime.history.query_slots import AT_ONCE
from engine.runtime.history.sinks import ContactInbox, InboxSink, RunnerSink, Sink
from engine.runtime.history.store_registry import StoreRegistry
from engine.runtime.own_clock import OwnClock
from engine.runtime.recorded_queries import RecordedQueries, which_is

LOOK_AROUND_S: Final = 5.0
"""Interval of looking for Stores.  A change of connectivity triggers a look at once."""
SAVE_EVERY_S: Final = 5.0
TEST_TIMEOUT_S: Final = 20.0
INBOX: Final = ConversationId("inbox")
NO_CONVERSATION: Final = "no such conversation"
LONGEST_DAYS: Final = 36_500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryDependencies:
    network: StoreNetwork | None
    """None: no Stores are ever asked."""
    store: ProfileStore
    storage: StorageThread
    random_unit: RandomUnit
    publish: Callable[[EngineEvent], None]
    counters: Counters
    online: Callable[[], bool]
    config: HistoryConfig
    clock: OwnClock
    recorder: Recorder | None = None


@dataclass(slots=True)
class _Running:
    backfill: Backfill
    task: asyncio.Task[None]
    tell_stores: Callable[[bool], None]
    is_group: bool


class HistoryService:
    def __init__(self, parts: HistoryDependencies) -> None:
        self._parts = parts
        self._book = StoreRegistry(parts.network)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._running: dict[ConversationId, _Running] = {}
        self._candidates: tuple[Candidate, ...] = ()
        self._tasks: set[asyncio.Task[None]] = set()
        self._dirty: set[StoreRef] = set()
        self._news = asyncio.Event()

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Call before the first conversation starts.  Raises StorageError."""
        self._book.load(await self._parts.storage.run(self._parts.store.stores))
        if self._parts.network is not None:
            self._own(self._look_around())
        self._own(self._keep_records())

    async def stop(self) -> None:
        tasks = [*self._tasks, *(one.task for one in self._running.values())]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(ChatError):
            await self._save_records()

    def _own(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- conversations come and go --------------------------------------------------------------

    def begin(self, runner: ConversationRunner, content_topic: ContentTopic) -> None:
        """Start the backfill of this conversation."""
        table = ConversationProgressTable(
            runner.conversation_id, self._parts.store, self._parts.storage
        )
        self._begin(
            runner.conversation_id,
            content_topic,
            sink=RunnerSink(runner),
            table=table,
            tell_stores=lambda reachable: runner.stores_changed(reachable=reachable),
            is_group=not runner.is_pair,
            recorded=RecordedQueries(self._parts.recorder, which_is(runner.record)),
        )

    def begin_inbox(self, inbox: ContactInbox, content_topic: ContentTopic) -> None:
        self._begin(
            INBOX,
            content_topic,
            sink=InboxSink(inbox),
            table=InboxProgressTable(self._parts.store, self._parts.storage),
            tell_stores=lambda _reachable: None,
            is_group=False,
            recorded=RecordedQueries(),
        )

    def _begin(  # noqa: PLR0913 - where conversations and the inbox differ
        self,
        conversation_id: ConversationId,
        content_topic: ContentTopic,
        *,
        sink: Sink,
        table: ProgressTable,
        tell_stores: Callable[[bool], None],
        is_group: bool,
        recorded: RecordedQueries,
    ) -> None:
        network, parts = self._parts.network, self._parts
        if network is None:
            return
        topics = Topics(
            pubsub_topic=network.pubsub_topic(content_topic), content_topics=(content_topic,)
        )
        backfill = Backfill(
            conversation_id,
            topics,
            sink=sink,
            table=table,
            parts=BackfillContext(
                network=network,
                slots=self._slots,
                config=parts.config,
                random_unit=parts.random_unit,
                clock=parts.clock,
                counters=parts.counters,
                tell=self._tell,
                note=self._note,
                trouble=self._trouble,
                address_of=self._book.address_of,
            ),
            recorded=recorded,
        )
        backfill.stores_changed(self._candidates)
        running = _Running(
            backfill, asyncio.create_task(backfill.run(), name="history"), tell_stores, is_group
        )
        self._running[conversation_id] = running
        if self._candidates:
            self._connect(running)

    async def end(self, conversation_id: ConversationId) -> None:
        one = self._running.pop(conversation_id, None)
        if one is not None:
            one.task.cancel()
            await asyncio.gather(one.task, return_exceptions=True)

    # --- sessions and connectivity ----------------------------------------------------------------

    def reachable(self) -> bool:
        return bool(self._candidates)

    def ask(self, conversation_id: ConversationId, ask: AskStore) -> None:
        one = self._running.get(conversation_id)
        if one is None:
            self._parts.counters.add("history.no_store")
        else:
            one.backfill.ask(ask)

    def online_changed(self) -> None:
        """After coming online, request the messages that were missed."""
        self._news.set()
        self._stores_changed()
        for one in self._running.values():
            if self._candidates:
                self._connect(one)

    def _connect(self, one: _Running) -> None:
        """Connect, except for an online group: its session knows what it missed and asks for it."""
        if not (one.is_group and self._parts.online()):
            one.backfill.connect()

    # --- Stores come and go -----------------------------------------------------------------------

    async def _look_around(self) -> None:
        while True:
            came = self._book.look_around()
            if self._changes(self._book.candidates(self._parts.clock.clock_ms())):
                self._stores_changed()
            for one in self._running.values():
                for store in came:
                    one.backfill.came(store)
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AROUND_S):
                    await self._news.wait()

    def _changes(self, candidates: Sequence[Candidate]) -> bool:
        before = {one.store for one in self._candidates}
        return before != {one.store for one in candidates}

    def _stores_changed(self) -> None:
        was_reachable = self.reachable()
        self._candidates = self._book.candidates(self._parts.clock.clock_ms())
        is_reachable = self.reachable()
        for one in self._running.values():
            one.backfill.stores_changed(self._candidates)
            if is_reachable is not was_reachable:
                one.tell_stores(is_reachable)
            if is_reachable and not was_reachable:
                self._connect(one)
        self._tell_list()

    def _trouble(self, ended: StoreEnded) -> None:
        if self._book.trouble(ended, self._parts.clock.clock_ms()):
            logger.warning(
                "a Store was left", extra={"reason": ended.reason or ended.end, "area": "history"}
            )
            self._tell_list()

    def _note(self, notes: Sequence[StoreNote]) -> None:
        before = self._book.views()
        for note in notes:
            record = self._book.note(note, self._parts.clock.clock_ms())
            if record is not None:
                self._dirty.add(record.store)
        if self._book.views() != before:
            self._tell_list()

    async def _keep_records(self) -> None:
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            try:
                await self._save_records()
            except ChatError as error:
                logger.warning("Stores were not saved", extra={"error": type(error).__name__})

    async def _save_records(self) -> None:
        dirty, self._dirty = self._dirty, set()
        writes = [PutStore(record=one) for one in self._book.records if one.store in dirty]
        if writes:
            await self._parts.storage.run(self._parts.store.apply, writes)

    # --- commands: fetching -----------------------------------------------------------------------

    async def fetch(self, conversation_id: ConversationId, *, days: int | None) -> None:
        if days is not None and not 1 <= days <= LONGEST_DAYS:
            raise ConfigError(f"{days} days: allowed are 1 to {LONGEST_DAYS}")
        since_ms = 0 if days is None else max(self._parts.clock.clock_ms() - days * DAY_MS, 0)
        await self.fetch_since(conversation_id, UnixMs(since_ms))

    async def fetch_since(
        self, conversation_id: ConversationId, since_ms: UnixMs, until_ms: UnixMs | None = None
    ) -> None:
        """Fetch the window on the user's behalf; ``until_ms`` None means up to now."""
        backfill = self._backfill(conversation_id)
        backfill.request(Purpose.USER, since_ms, until_ms)
        await backfill.durable()

    async def fetch_earlier(self, conversation_id: ConversationId) -> None:
        backfill = self._backfill(conversation_id)
        backfill.want_earlier()
        await backfill.durable()

    async def cancel(self, conversation_id: ConversationId) -> None:
        backfill = self._backfill(conversation_id)
        backfill.cancel()
        await backfill.durable()

    def view(self, conversation_id: ConversationId) -> HistoryView | None:
        one = self._running.get(conversation_id)
        return one.backfill.view if one else None

    def _backfill(self, conversation_id: ConversationId) -> Backfill:
        one = self._running.get(conversation_id)
        if one is None or conversation_id == INBOX:
            raise LocalProtocolError(NO_CONVERSATION)
        return one.backfill

    def _tell(self, view: HistoryView) -> None:
        if view.conversation_id != INBOX:
            self._parts.publish(HistoryChanged(history=view))

    # --- commands: Stores -------------------------------------------------------------------------

    def stores(self) -> Sequence[StoreView]:
        return self._book.views()

    async def add_store(self, multiaddr: str) -> None:
        record = self._book.add(multiaddr)
        await self._apply([PutStore(record=record)])
        self._want_all()

    async def remove_store(self, multiaddr: str) -> None:
        record = self._book.remove(multiaddr)
        await self._apply([RemoveStore(store=record.store), *self._all_records()])

    async def move_store(self, multiaddr: str, *, place: int) -> None:
        self._book.move(multiaddr, place)
        await self._apply(self._all_records())

    async def enable_store(self, multiaddr: str, *, enabled: bool) -> None:
        self._book.enable(multiaddr, enabled=enabled)
        await self._apply(self._all_records())
        if enabled:
            self._want_all()

    async def test_store(self, multiaddr: str) -> StoreTestView:
        network = self._parts.network
        if network is None:
            raise LocalProtocolError("there is no network to test a Store in")
        topics = [one.backfill.topics.content_topics[0] for one in self._running.values()]
        tested = await network.test(multiaddr, topics, timeout_s=TEST_TIMEOUT_S)
        view = StoreTestView(
            multiaddr=multiaddr,
            tested_ms=self._parts.clock.clock_ms(),
            problem=tested.problem,
            reachable=tested.reachable,
            versions=tuple(version.value for version in tested.versions),
            cluster=tested.cluster,
            round_trip_ms=tested.round_trip_ms,
            clock_ahead_ms=tested.clock_ahead_ms,
            oldest_ms=tested.oldest_ms,
        )
        self._book.tested(view)
        self._tell_list()
        return view

    def _all_records(self) -> list[StoreWrite]:
        return [PutStore(record=record) for record in self._book.records]

    async def _apply(self, writes: Sequence[StoreWrite]) -> None:
        await self._parts.storage.run(self._parts.store.apply, writes)
        self._stores_changed()

    def _want_all(self) -> None:
        """Ask for the last 30 days again: a new Store may have what the others do not."""
        since_ms = UnixMs(max(self._parts.clock.clock_ms() - CONNECT_LONGEST_MS, 0))
        for one in self._running.values():
            one.backfill.request(Purpose.CONNECT, since_ms)

    def _tell_list(self) -> None:
        self._parts.publish(StoresChanged(stores=self._book.views()))
