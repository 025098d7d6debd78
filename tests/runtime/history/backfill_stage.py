"""One real backfill with a disk, but with Stores and a session that a test plays."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

from engine.core.counters import Counters
from engine.core.history.config import HistoryConfig
from engine.core.history.progress import StoreRef
from engine.core.history.queries import Ask, Candidate, Outcome, StoreVersion, Topics
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs
from engine.network.stores import port
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.storage_thread import StorageThread
from engine.runtime.history.backfill import Backfill
from engine.runtime.history.dependencies import HistoryDependencies, OpenPage, Sink
from engine.runtime.history.progress import INBOX
from engine.runtime.history.stores import StoreRegistry
from engine.runtime.job_queue import JobInput
from engine.runtime.own_clock import OwnClock
from engine.runtime.recorded_queries import RecordedQueries
from tests.core.history.history_model import NOW_MS, PUBSUB, TOPIC, ModelStore

DEFAULT = HistoryConfig()
STORE = Candidate(store=StoreRef("/dns4/a.example/tcp/1/p2p/x"))


class StoresOfATest:
    """A network with one Store, which notes that it was asked.  It answers if it ``has`` anything.

    Else it never does.
    """

    def __init__(self, has: ModelStore | None = None) -> None:
        self._has = has
        self.asked = asyncio.Event()

    def pubsub_topic(self, _content_topic: ContentTopic, /) -> PubsubTopic:
        return PUBSUB

    def found(self) -> tuple[port.FoundStore, ...]:
        return ()

    def versions(self, _store: StoreRef, /) -> tuple[StoreVersion, ...]:
        return ()

    async def perform(self, ask: Ask, /) -> Outcome:
        self.asked.set()
        if self._has is not None:
            return self._has.answer(ask.request)
        never: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        return await never

    async def test(
        self, multiaddr: str, content_topics: Sequence[ContentTopic], /, *, timeout_s: float
    ) -> port.TestedStore:
        raise NotImplementedError


class Noted:
    """Notes what comes, and is done with it at once."""

    waiting = arrived = 0
    oldest_ms: UnixMs | None = None
    reads_since_ms: UnixMs | None = None

    def __init__(self) -> None:
        self.fed: list[JobInput] = []

    async def feed(self, inputs: Sequence[JobInput], /) -> None:
        self.fed += inputs

    def more_to_come(self) -> AbstractContextManager[None]:
        return nullcontext()


@asynccontextmanager
async def running_backfill(
    network: StoresOfATest,
    sink: Sink,
    *,
    free: int = 1,
    open_page: OpenPage | None = None,
    config: HistoryConfig = DEFAULT,
) -> AsyncIterator[Backfill]:
    """It begins when the caller first waits.  ``free``: how many conversations may ask then."""
    storage = StorageThread()
    store = await storage.run(SqliteProfileStore.in_memory)
    clock = OwnClock(lambda: NOW_MS)
    parts = HistoryDependencies(
        network=network,
        store=store,
        storage=storage,
        random_unit=lambda: 0.5,
        publish=lambda _event: None,
        counters=Counters(),
        online=lambda: True,
        config=config,
        clock=clock,
    )
    backfill = Backfill(
        INBOX,
        Topics(pubsub_topic=PUBSUB, content_topics=(TOPIC,)),
        sink=sink,
        network=network,
        stores=StoreRegistry(network, store, storage, clock=clock, publish=lambda _event: None),
        slots=asyncio.Semaphore(free),
        parts=parts,
        recorded=RecordedQueries(),
        open_page=open_page,
    )
    running = asyncio.create_task(backfill.run())
    try:
        yield backfill
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await storage.close(store.close)
