"""Engines of several people in one process: real stores on disk, a network in memory."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

import pytest

from engine.core.entropy import Entropy
from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ContentTopic, ConversationId, UnixMs
from engine.core.ports import BeforeCommit, StoreWrite
from engine.core.records import GroupRecord
from engine.core.sds.config import FloodLimits
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.log_table import LogTable
from engine.crypto.sealed import content_topic_of
from engine.events import EngineEvent, MessageAdded, MessageKind
from engine.network.memory import MemoryNetwork
from engine.network.transport import Transport
from engine.persistence.database import open_readonly
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, OpenedStore
from engine.runtime.own_clock import boot_time_ms
from tests.patience import PATIENCE_S
from tests.persistence.new_database import new_database

KEY = bytes(range(32))


def hurried_entropy() -> Entropy:
    """Whatever waits for a drawn time, so that not all speak together, draws a short one."""
    return Entropy(random_bytes=os.urandom, random_unit=lambda: SystemRandom().random() / 10)


class BreakableStore(SqliteProfileStore):
    """The real store; while ``broken`` is set the disk refuses every write."""

    broken = False
    endless = False
    """Reading a log comes to no end, a slice at a time."""
    unreadable = False
    """The logs cannot be read."""
    before_write: Callable[[Sequence[StoreWrite]], None] | None = None
    """Called on the storage thread, which waits for it."""

    def read_log(self, conversation_id: ConversationId, log: LogTable, /, *, limit: int) -> bool:
        if self.unreadable:
            raise StorageError("The database is damaged.", StorageFault.DAMAGED)
        return self.endless or super().read_log(conversation_id, log, limit=limit)

    def apply(self, writes: Sequence[StoreWrite], /, before_commit: BeforeCommit = None) -> None:
        if self.broken:
            raise StorageError("The disk is full.")
        if self.before_write is not None:
            self.before_write(writes)
        super().apply(writes, before_commit)


class Person:
    """One engine, everything that it told, and how to wait for what it will tell."""

    passed_ms = 0
    """Time for which nobody waited: timers count it, and the time of the system goes on with it."""
    ahead_ms = 0
    """Added to the system's time; timers do not count it."""
    flood = FloodLimits()
    endless = False
    """Whether its conversations are still being loaded, until ``store.endless`` says otherwise."""
    unreadable = False
    """Whether its logs cannot be read, until ``store.unreadable`` says otherwise."""

    def __init__(self, name: str, place: Path, network: MemoryNetwork) -> None:
        self.name = name
        self.place = place
        self.network = network
        self.told: list[EngineEvent] = []
        self.transport = network.attach(name)
        self.store: BreakableStore | None = None
        self.database = place / f"{name}.db"
        self._changed = asyncio.Event()
        self.parts = EngineDependencies(
            flood=self.flood,
            open_store=self._open,
            make_transport=lambda _seed: self._worn(),
            port_of=lambda _transport: None,
            entropy=hurried_entropy(),
            now_ms=self.now_ms,
            counted_ms=self._counted_ms,
        )
        self.engine = Engine(self.parts)
        self.engine.subscribe(self._hear)

    def _open(self) -> OpenedStore:
        self.store = BreakableStore.open(new_database(self.database, KEY), KEY)
        self.store.endless = self.endless
        self.store.unreadable = self.unreadable
        return OpenedStore(store=self.store, key_storage="key file")

    def _worn(self) -> Transport:
        """What the engine sees of the transport."""
        return self.transport

    def now_ms(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000 + self.passed_ms + self.ahead_ms)

    def _counted_ms(self) -> int:
        return boot_time_ms() + self.passed_ms

    def pass_time(self, conversation_id: ConversationId, ms: int) -> None:
        """Everything in it that waits so long is due."""
        self.passed_ms += ms
        self.engine.runner(conversation_id).offer(DeadlineReached())

    def _hear(self, event: EngineEvent) -> None:
        self.told.append(event)
        self._changed.set()

    @contextmanager
    def disk(self) -> Iterator[SqliteProfileStore]:
        """What is saved, to be read by another connection while the engine runs."""
        store = SqliteProfileStore(open_readonly(self.database, KEY))
        try:
            yield store
        finally:
            store.close()

    def save(self, writes: Sequence[StoreWrite]) -> None:
        """While the engine does not run."""
        store = SqliteProfileStore.open(self.database, KEY)
        store.apply(writes)
        store.close()

    async def start(self) -> "Person":
        await self.engine.start()
        if self.engine.identity() is None:
            await self.engine.create_identity(self.name)
        return self

    async def restart(self) -> None:
        """The same profile, in a new engine; what was told before is forgotten."""
        await self.engine.stop()
        self.told.clear()
        self.engine = Engine(self.parts)
        self.engine.subscribe(self._hear)
        await self.engine.start()
        await self.engine.loaded()

    def group(self, conversation_id: ConversationId) -> GroupRecord:
        record = self.engine.runner(conversation_id).record
        assert isinstance(record, GroupRecord)
        return record

    def topic(self, conversation_id: ConversationId) -> ContentTopic:
        return content_topic_of(self.group(conversation_id).epoch_keys[0])

    async def until(self, wanted: Callable[[EngineEvent], bool]) -> EngineEvent:
        """The first event, told already or still to come, that is wanted."""
        seen = 0
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for event in self.told[seen:]:
                    seen += 1
                    if wanted(event):
                        return event
                self._changed.clear()
                await self._changed.wait()

    async def until_in_time(
        self,
        wanted: Callable[[EngineEvent], bool],
        conversation_id: ConversationId,
        *others: "Person",
    ) -> EngineEvent:
        """As ``until``, while time goes by for all of these: fifty times as fast."""
        found = asyncio.create_task(self.until(wanted))
        while not found.done():
            for one in (self, *others):
                one.pass_time(conversation_id, 1_000)
            await asyncio.wait([found], timeout=0.02)
        return found.result()

    async def join(self, founder: "Person", group: ConversationId) -> None:
        """By a link, and until what was said before is here, which members send by and by."""
        await self.engine.groups.join(await founder.engine.groups.make_invite_link(group))
        await self.until_in_time(
            lambda event: (
                isinstance(event, MessageAdded)
                and event.message.conversation_id == group
                and event.message.kind is MessageKind.CREATED
            ),
            group,
            founder,
        )

    async def until_counted(self, name: str, count: int) -> None:
        """A counter tells nobody: look again at every turn of the loop."""
        async with asyncio.timeout(PATIENCE_S):
            while self.engine.counters().get(name, 0) < count:  # noqa: ASYNC110
                await asyncio.sleep(0)


MakePerson = Callable[[str], Coroutine[object, object, Person]]


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[MakePerson]:
    """A function that makes and starts people on one network; all are stopped at the end."""
    network = MemoryNetwork()
    people: list[Person] = []

    async def make(name: str) -> Person:
        made = Person(name, tmp_path, network)
        people.append(made)
        return await made.start()

    yield make
    for one in people:
        await one.engine.stop()
