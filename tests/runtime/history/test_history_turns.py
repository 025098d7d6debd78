"""A few conversations ask Stores at a time; the one that the user waits for does not wait."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import pytest

from engine.core.counters import Counters
from engine.core.history.config import HistoryConfig
from engine.core.history.progress import Purpose, StoreRef
from engine.core.history.queries import Ask, Candidate, Outcome, StoreVersion, Topics
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs
from engine.network.stores import port
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.storage_thread import StorageThread
from engine.runtime.history.backfill import Backfill
from engine.runtime.history.dependencies import HistoryDependencies
from engine.runtime.history.progress import INBOX
from engine.runtime.history.stores import StoreRegistry
from engine.runtime.job_queue import JobInput
from engine.runtime.own_clock import OwnClock
from engine.runtime.recorded_queries import RecordedQueries
from tests.patience import PATIENCE_S

STORE = Candidate(store=StoreRef("/dns4/a.example/tcp/1/p2p/x"))
NOW_MS = UnixMs(1_700_000_000_000)


class NeverAnswers:
    """A network of Stores of which one notes only that it was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def pubsub_topic(self, _content_topic: ContentTopic, /) -> PubsubTopic:
        return PubsubTopic("/waku/2/rs/1/0")

    def found(self) -> tuple[port.FoundStore, ...]:
        return ()

    def versions(self, _store: StoreRef, /) -> tuple[StoreVersion, ...]:
        return ()

    async def perform(self, _ask: Ask, /) -> Outcome:
        self.asked.set()
        never: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        return await never

    async def test(
        self, multiaddr: str, content_topics: Sequence[ContentTopic], /, *, timeout_s: float
    ) -> port.TestedStore:
        raise NotImplementedError


class Nowhere:
    """What comes goes nowhere, at once."""

    waiting = arrived = 0
    oldest_ms: UnixMs | None = None

    async def feed(self, _inputs: Sequence[JobInput], /) -> None:
        return

    def more_to_come(self) -> AbstractContextManager[None]:
        return nullcontext()


def backfill_of(
    network: NeverAnswers, store: SqliteProfileStore, storage: StorageThread, free: int
) -> Backfill:
    clock = OwnClock(lambda: NOW_MS)
    parts = HistoryDependencies(
        network=network,
        store=store,
        storage=storage,
        random_unit=lambda: 0.5,
        publish=lambda _event: None,
        counters=Counters(),
        online=lambda: True,
        config=HistoryConfig(),
        clock=clock,
    )
    topic = ContentTopic("/a/1/b/proto")
    registry = StoreRegistry(network, store, storage, clock=clock, publish=lambda _event: None)
    return Backfill(
        INBOX,
        Topics(pubsub_topic=network.pubsub_topic(topic), content_topics=(topic,)),
        sink=Nowhere(),
        network=network,
        stores=registry,
        slots=asyncio.Semaphore(free),
        parts=parts,
        recorded=RecordedQueries(),
    )


def at_once(backfill: Backfill) -> None:
    backfill.stores_changed((STORE,))


def while_others_are_told(backfill: Backfill) -> None:
    backfill.stores_changed(())
    backfill.stores_changed((STORE,))


@pytest.mark.parametrize("begin", [at_once, while_others_are_told])
async def test_what_the_user_wants_before_it_begins_waits_for_no_turn(
    begin: Callable[[Backfill], None],
) -> None:
    network, storage = NeverAnswers(), StorageThread()
    store = await storage.run(SqliteProfileStore.in_memory)
    backfill = backfill_of(network, store, storage, free=0)
    begin(backfill)
    backfill.request(Purpose.USER, UnixMs(NOW_MS - 1_000_000))
    running = asyncio.create_task(backfill.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await network.asked.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await storage.close(store.close)
