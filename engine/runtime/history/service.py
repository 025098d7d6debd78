"""History of a running profile: a backfill for each conversation, its Stores, and the commands.

It is notified when conversations start and end, when connectivity changes, and when sessions miss
messages.  It notifies sessions whether any Store can be asked.  ``backfill`` fetches the messages
of one conversation, ``stores`` keeps the list of Stores.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from engine.core.errors import (
    ChatError,
    CommandError,
    CommandRefusal,
    InputError,
    InputFlaw,
)
from engine.core.history.progress import Purpose
from engine.core.history.queries import Candidate, Topics
from engine.core.ids import ContentTopic, ConversationId, UnixMs
from engine.core.records import GroupRecord
from engine.core.sds.vocabulary import AskStore
from engine.history_views import HistoryView, StoreTestView, StoreView
from engine.inspection_views import StoreReturned
from engine.network.owned_tasks import OwnedTasks
from engine.network_views import StorePast
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.history.backfill import (
    CONNECT_LONGEST_MS,
    DAY_MS,
    Backfill,
)
from engine.runtime.history.dependencies import HistoryDependencies, OpenPage, Sink
from engine.runtime.history.opening_process import OpeningProcess
from engine.runtime.history.progress import INBOX
from engine.runtime.history.stores import StoreRegistry
from engine.runtime.recorded_queries import RecordedQueries, which_is

AT_ONCE: Final = 2
"""How many conversations query Stores at the same time, besides those that the user waits for."""
LOOK_AROUND_S: Final = 5.0
"""Interval of looking for Stores.  A change of connectivity triggers a look at once."""
LONGEST_DAYS: Final = 36_500


@dataclass(slots=True)
class _Running:
    backfill: Backfill
    task: asyncio.Task[None]
    runner: ConversationRunner | None
    """None: the inbox."""


class HistoryService:
    def __init__(self, parts: HistoryDependencies) -> None:
        self._parts = parts
        self._stores = StoreRegistry(
            parts.network,
            parts.store,
            parts.storage,
            clock=parts.clock,
            publish=parts.publish,
        )
        self._opening = OpeningProcess(parts.opening_command, parts.counters)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._running: dict[ConversationId, _Running] = {}
        self._candidates: tuple[Candidate, ...] = ()
        self._tasks = OwnedTasks(parts.counters, failed="history.task_failed")
        self._news = asyncio.Event()

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Call before the first conversation starts.  Raises StorageError."""
        await self._stores.load()
        if self._parts.network is not None:
            self._tasks.spawn(self._look_around())
        self._tasks.spawn(self._stores.keep_records())

    async def stop(self) -> None:
        await self._tasks.cancel_all()
        tasks = [one.task for one in self._running.values()]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._opening.stop()
        with contextlib.suppress(ChatError):
            await self._stores.save_records()

    # --- conversations come and go --------------------------------------------------------------

    def begin(self, runner: ConversationRunner, content_topic: ContentTopic) -> None:
        """Start the backfill of this conversation."""
        self._begin(runner.conversation_id, content_topic, runner, runner)

    def begin_inbox(self, inbox: Sink, content_topic: ContentTopic) -> None:
        self._begin(INBOX, content_topic, inbox, None)

    def _begin(
        self,
        conversation_id: ConversationId,
        content_topic: ContentTopic,
        sink: Sink,
        runner: ConversationRunner | None,
    ) -> None:
        network, parts = self._parts.network, self._parts
        if network is None:
            return
        topics = Topics(
            pubsub_topic=network.pubsub_topic(content_topic), content_topics=(content_topic,)
        )
        which = None if runner is None else which_is(runner.record)
        backfill = Backfill(
            conversation_id,
            topics,
            sink=sink,
            network=network,
            stores=self._stores,
            slots=self._slots,
            parts=parts,
            recorded=RecordedQueries(parts.recording, which),
            open_page=self._opens(runner),
        )
        backfill.stores_changed(self._candidates)
        task = asyncio.create_task(backfill.run(), name="history")
        self._running[conversation_id] = running = _Running(backfill, task, runner)
        if self._candidates:
            self._connect(running)

    def _opens(self, runner: ConversationRunner | None) -> OpenPage | None:
        if runner is None or not isinstance(runner.record, GroupRecord):
            return None
        return partial(self._opening.open, runner.record, session_ready=runner.ready)

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
        is_group = one.runner is not None and not one.runner.is_pair
        if not (is_group and self._parts.online()):
            one.backfill.connect()

    # --- Stores come and go -----------------------------------------------------------------------

    async def _look_around(self) -> None:
        while True:
            came = self._stores.look_around()
            before = {one.store for one in self._candidates}
            if before != {one.store for one in self._stores.candidates()}:
                self._stores_changed()
            for one in self._running.values():
                for store in came:
                    one.backfill.came(store)
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AROUND_S):
                    await self._news.wait()

    def _stores_changed(self) -> None:
        was_reachable = self.reachable()
        self._candidates = self._stores.candidates()
        is_reachable = self.reachable()
        for one in self._running.values():
            one.backfill.stores_changed(self._candidates)
            if is_reachable is not was_reachable and one.runner is not None:
                one.runner.stores_changed(reachable=is_reachable)
            if is_reachable and not was_reachable:
                self._connect(one)
        self._stores.tell()

    # --- commands: fetching -----------------------------------------------------------------------

    async def fetch(self, conversation_id: ConversationId, *, days: int | None) -> None:
        if days is not None and not 1 <= days <= LONGEST_DAYS:
            raise InputError(InputFlaw.DAYS, given=days, limit=LONGEST_DAYS)
        since_ms = 0 if days is None else max(self._parts.clock.clock_ms() - days * DAY_MS, 0)
        await self.fetch_between(conversation_id, UnixMs(since_ms))

    async def fetch_between(
        self, conversation_id: ConversationId, since_ms: UnixMs, until_ms: UnixMs | None = None
    ) -> None:
        """Fetch a window on the user's behalf; ``until_ms`` None means up to now."""
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
            raise CommandError(CommandRefusal.NO_CONVERSATION)
        return one.backfill

    # --- commands: Stores -------------------------------------------------------------------------

    def stores(self) -> Sequence[StoreView]:
        return self._stores.views()

    def stores_past(self) -> Sequence[StorePast]:
        return self._stores.past()

    def returned_by(self, hashes: Iterable[bytes]) -> tuple[StoreReturned, ...]:
        return self._stores.returned_by(hashes)

    async def add_store(self, multiaddr: str) -> None:
        await self._stores.add(multiaddr)
        self._stores_changed()
        self._want_all()

    async def remove_store(self, multiaddr: str) -> None:
        await self._stores.remove(multiaddr)
        self._stores_changed()

    async def move_store(self, multiaddr: str, *, place: int) -> None:
        await self._stores.move(multiaddr, place=place)
        self._stores_changed()

    async def enable_store(self, multiaddr: str, *, enabled: bool) -> None:
        await self._stores.enable(multiaddr, enabled=enabled)
        self._stores_changed()
        if enabled:
            self._want_all()

    async def test_store(self, multiaddr: str) -> StoreTestView:
        topics = [one.backfill.topics.content_topics[0] for one in self._running.values()]
        return await self._stores.test(multiaddr, topics)

    def _want_all(self) -> None:
        """Ask for the last 30 days again: a new Store may have what the others do not."""
        since_ms = UnixMs(max(self._parts.clock.clock_ms() - CONNECT_LONGEST_MS, 0))
        for one in self._running.values():
            one.backfill.request(Purpose.CONNECT, since_ms)
