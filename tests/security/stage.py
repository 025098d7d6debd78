"""A stage for attacks: real engines with stores on disk and nodes on loopback, clocks to be set.

The victims are composed as ``chat_app`` composes them; only their clocks are ours, and what happens
to bytes on the way to them can be decided by who relays.  Time passes as it does, and goes on by
hours at once while all devices sleep.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import structs

from chat_app.compose import Overrides, make_transport, open_store, port_of, system_entropy
from chat_app.settings import NetworkSettings, Settings, StorageSettings
from engine.core.ids import (
    ContentTopic,
    ConversationId,
    MessageId,
    ParticipantId,
    UnixMs,
    WakuHash,
)
from engine.core.ports import ProfileStore
from engine.core.records import GroupRecord
from engine.core.sds.config import FloodLimits
from engine.core.sds.inputs import DeadlineReached
from engine.core.sds.vocabulary import ChannelState
from engine.core.waku import WakuMessage
from engine.crypto.sealed import content_topic_of
from engine.events import ClockJudged, EngineEvent, MessageView, OwnClockView
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.network.transport import MessageHandler, Receipt, Transport
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.network.wrapped import WrappedTransport
from engine.persistence.database import open_readonly
from engine.persistence.key import obtain_database_key
from engine.persistence.profile_directory import open_profile_directory
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.runtime.engine import Engine, EngineDependencies, SavedTransport
from tests.patience import PATIENCE_S

START_MS: Final = 1_800_000_000_000
STEP_MS: Final = 200
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
YEAR_MS: Final = 365 * DAY_MS
NS_PER_MS: Final = 1_000_000
SETTINGS: Final = Settings(
    network=NetworkSettings(listen_host="127.0.0.1", discovery=False),
    storage=StorageSettings(key="file"),
)

NOTHING_KEPT: Final = replace(SETTINGS, storage=StorageSettings(key="file", keep_days=0))
"""Nobody has a Store: what is lost on the way comes by repair or not at all."""

T = TypeVar("T")
OnTheWay = Callable[[WakuMessage], Sequence[WakuMessage]]
"""What whoever relays makes of a message for somebody: nothing, the same, more."""


def figure(words: str) -> None:
    """Shown by ``pytest -rP``, and where the test fails."""
    sys.stdout.write(f"{words}\n")


class _Way(WrappedTransport):
    """The last stretch to a victim, in the hands of whoever relays there; and what it sends."""

    def __init__(self, inner: Transport, on_the_way: OnTheWay, sent: list[WakuMessage]) -> None:
        super().__init__(inner)
        self._on_the_way = on_the_way
        self._sent = sent

    async def publish(self, message: WakuMessage, /) -> Receipt:
        self._sent.append(message)
        return await super().publish(message)

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        topic = Sharding().pubsub_topic(content_topic)

        def arrived(message: WakuMessage, waku_hash: WakuHash) -> bool:
            passed = [
                handler(each, waku_hash if each is message else message_hash(topic, each))
                for each in self._on_the_way(message)
            ]
            return any(each is not False for each in passed)

        return super().subscribe(content_topic, arrived)


class Victim:
    """One real engine on a real node: what it shows, what it was told, its clock."""

    def __init__(self, name: str, stage: "Stage", ahead_ms: int) -> None:
        self.name = name
        self.ahead_ms = ahead_ms
        """What its system's clock is ahead of the right time."""
        self.on_the_way: OnTheWay = lambda message: (message,)
        self.told: list[EngineEvent] = []
        self.sent: list[WakuMessage] = []
        """Everything that it made the network carry, oldest first."""
        self._stage = stage
        self.place = stage.place / name
        self._directory = open_profile_directory(self.place)
        self.addresses: Callable[[], Sequence[str]] = tuple
        """Where it listens."""
        self._listener: Callable[[], None] | None = None
        self.engine = self.build()

    def build(self) -> Engine:
        engine = Engine(
            EngineDependencies(
                open_store=partial(open_store, self._directory, force_key_file=True),
                make_transport=self._make_transport,
                port_of=port_of,
                entropy=system_entropy(),
                now_ms=lambda: UnixMs(self._stage.now_ms() + self.ahead_ms),
                counted_ms=self._stage.counted_ms,
                flood=self._stage.flood,
            )
        )
        engine.subscribe(self._hear)
        return engine

    def _make_transport(self, seed: SavedTransport) -> Transport:
        inner = make_transport(
            self._stage.settings, Overrides(), self.name, seed, archive=self._directory.archive
        )
        self.addresses = inner.addresses
        return _Way(inner, self._arrives, self.sent)

    def sent_bytes(self, since: int = 0) -> int:
        """Of all that it sent, but for the first ``since`` messages."""
        return sum(len(message.payload) for message in self.sent[since:])

    def _arrives(self, message: WakuMessage) -> Sequence[WakuMessage]:
        return self.on_the_way(message)

    def _hear(self, event: EngineEvent) -> None:
        self.told.append(event)
        self._stage.changed.set()

    async def start(self) -> None:
        await self.engine.start()
        if self.engine.identity() is None:
            await self.engine.create_identity(self.name)

    async def stop(self) -> None:
        await self.engine.stop()

    async def restart(self) -> None:
        await self.engine.stop()
        self.engine = self.build()
        await self.engine.start()

    async def turn(self) -> None:
        """It looks at the time and does what is due, and hands over what it says.

        The runner looks at its deadlines only so often in real time; here hours pass within that.
        """
        runner = self.engine.runner(self._stage.group)
        await runner.do(DeadlineReached())
        await runner.flush(timeout_ms=1_000)

    def set_clock(self, ahead_ms: int) -> None:
        """Somebody sets the time of the system, while the program runs."""
        self.ahead_ms = ahead_ms
        self.engine.own_clock()  # It looks every minute; this is the minute.

    # --- what can be seen -----------------------------------------------------------------------

    async def say(self, text: str) -> MessageId:
        return await self.engine.timeline.send_text(self._stage.group, text)

    async def rows(self) -> tuple[MessageView, ...]:
        page = await self.engine.timeline.latest_page(self._stage.group, limit=500)
        return page.messages

    async def texts(self) -> list[str]:
        """What people said, in its place."""
        return [row.text for row in await self.rows() if row.kind == "text" and not row.waiting]

    async def held(self) -> list[str]:
        """What is readable and marked, and has no place yet."""
        view = await self.engine.timeline.held(self._stage.group)
        return [] if view is None else [row.text for row in view.messages if row.held]

    async def missing(self) -> int:
        gap = await self.engine.timeline.gap(self._stage.group)
        return 0 if gap is None else gap.missing

    async def state(self) -> ChannelState:
        return await self.read(lambda store: store.channel_state(self._stage.group))

    async def lamport_ahead_ms(self) -> int:
        """How far the Lamport timestamp is ahead of the right time."""
        state = await self.state()
        logged = [entry.position.lamport_timestamp for entry in state.log]
        # The saved one may be behind the log, which tells it at the next start.
        return max(state.lamport_timestamp, *logged) - self._stage.now_ms()

    async def raw(self, message_id: MessageId) -> bytes | None:
        return await self.read(lambda store: store.raw(self._stage.group, message_id))

    async def read(self, look: Callable[[ProfileStore], T]) -> T:
        """Of what is saved, by another connection."""
        key = obtain_database_key(self._directory, force_key_file=True)
        store = SqliteProfileStore(open_readonly(self._directory.database, key.key))
        try:
            return look(store)
        finally:
            store.close()

    @property
    def participant_id(self) -> ParticipantId:
        identity = self.engine.identity()
        assert identity is not None
        return identity.participant_id

    def counted(self, name: str) -> int:
        return self.engine.counters().get(name, 0)

    def member_count(self) -> int:
        return len(self.engine.runner(self._stage.group).members)

    def judged(self) -> list[OwnClockView]:
        """Whatever this one was ever told of its clock."""
        clocks = (event.clock for event in self.told if isinstance(event, ClockJudged))
        return [clock for clock in clocks if clock is not None]


class Stage:
    """``async with stage(place) as it``: everybody is gone without a trace afterwards."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.changed = asyncio.Event()
        self.group = ConversationId("")
        self.victims: list[Victim] = []
        self.settings = SETTINGS
        self.flood = FloodLimits()
        """What one member may send in a day; for all who start from now on."""
        self._slept_ms = 0
        self._begun_ms = time.monotonic_ns() // NS_PER_MS
        self._nodes = AsyncExitStack()

    def now_ms(self) -> UnixMs:
        """The right time."""
        return UnixMs(START_MS + self.counted_ms())

    def counted_ms(self) -> int:
        """What counts also while the devices sleep."""
        return time.monotonic_ns() // NS_PER_MS - self._begun_ms + self._slept_ms

    def all_sleep(self, slept_ms: int) -> None:
        """Every device is suspended for so long, and wakes up."""
        self._slept_ms += slept_ms

    async def goes_by(self, passed_ms: int, *, step_ms: int = 1_000) -> None:
        """So much time passes, and everybody does what is due at each step of it."""
        for _ in range(passed_ms // step_ms):
            self.all_sleep(step_ms)
            for victim in self.victims:
                await victim.turn()

    async def next_day(self) -> None:
        """Everybody stops, and starts again a day later."""
        for victim in self.victims:
            await victim.stop()
        self.all_sleep(DAY_MS)
        for victim in self.victims:
            victim.engine = victim.build()
            await victim.start()

    # --- who is there ---------------------------------------------------------------------------

    async def victim(self, name: str, *, ahead_ms: int = 0) -> Victim:
        made = Victim(name, self, ahead_ms)
        self.victims.append(made)
        await made.start()
        return made

    async def founded(self, *names: str) -> list[Victim]:
        """The first one's group, which all the others joined by its link; all know one another."""
        founder = await self.victim(names[0])
        await self.found(founder)
        for name in names[1:]:
            await self.join(await self.victim(name))
        await self.until_alike(self.victims)
        return list(self.victims)

    async def found(self, founder: Victim) -> None:
        self.group = await founder.engine.groups.create("Tide")

    async def link(self) -> str:
        return await self.victims[0].engine.groups.make_invite_link(self.group)

    async def join(self, newcomer: Victim) -> None:
        await newcomer.engine.groups.join(await self.link())

    def topic(self) -> ContentTopic:
        """In clear in every Waku message of the group: no secret to who relays."""
        record = self.victims[0].engine.runner(self.group).record
        assert isinstance(record, GroupRecord)
        return content_topic_of(record.epoch_keys[0])

    def waku(self, payload: bytes) -> WakuMessage:
        """With a fresh Waku timestamp, which anybody can set."""
        return WakuMessage(
            payload=payload,
            content_topic=self.topic(),
            timestamp_ns=self.now_ms() * NS_PER_MS,
        )

    async def relay(self) -> "Relay":
        """Somebody whom all the victims relay with."""
        node = EmbeddedNode(
            NodeSettings(
                network_key=os.urandom(32),
                listen_host="127.0.0.1",
                now_ns=lambda: self.now_ms() * NS_PER_MS,
            )
        )
        relay = Relay(node, self)
        for victim in self.victims:
            node.add_peers(victim.addresses())
        node.on_status(lambda _status: self.changed.set())
        await node.start()
        self._nodes.push_async_callback(node.stop)
        await self.until(lambda: now(node.status().peers >= len(self.victims)))
        return relay

    # --- waiting --------------------------------------------------------------------------------

    async def until(self, check: Callable[[], Awaitable[bool]]) -> float:
        """Look again whenever somebody was told something; gives back how long it took."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self.changed.clear()
                if await check():
                    return loop.time() - begun_s
                await self.changed.wait()

    async def while_time_goes_by(self, check: Callable[[], Awaitable[bool]]) -> float:
        """Look again at each step of it; how long it took of the time that went by.

        What is due in a second need not be waited for.
        """
        begun_ms = self.now_ms()
        async with asyncio.timeout(PATIENCE_S):
            while not await check():
                await self.goes_by(STEP_MS, step_ms=STEP_MS)
        return (self.now_ms() - begun_ms) / 1_000

    async def until_connected(self) -> None:
        """Everybody relays with somebody."""

        async def connected() -> bool:
            return all(one.engine.connection().peers > 0 for one in self.victims)

        await self.until(connected)

    async def until_members(self, count: int) -> None:
        """Everybody knows so many."""
        await self.until(lambda: now(all(v.member_count() == count for v in self.victims)))

    async def until_all_known(self) -> None:
        await self.until_members(len(self.victims))

    async def until_counted(self, person: Victim, name: str) -> None:
        """A counter tells nobody: look again at every turn of the loop."""
        async with asyncio.timeout(PATIENCE_S):
            while not person.counted(name):  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def until_alike(self, victims: Iterable[Victim]) -> float:
        """All know all others, and show the same log with nothing that waits."""
        everybody = list(victims)

        async def alike() -> bool:
            if len({one.member_count() for one in everybody}) > 1:
                return False
            logs = [await one.rows() for one in everybody]
            if any(row.waiting for rows in logs for row in rows):
                return False
            return len({tuple(row.message_id for row in rows) for rows in logs}) == 1

        return await self.while_time_goes_by(alike)

    async def heals(self, texts: Iterable[str], victims: Iterable[Victim] | None = None) -> float:
        """Until all have placed these texts, and their logs are alike; how long it took."""
        wanted, everybody = set(texts), list(victims or self.victims)

        async def placed() -> bool:
            return all([wanted <= set(await one.texts()) for one in everybody])

        took_s = await self.while_time_goes_by(placed)
        return took_s + await self.until_alike(everybody)

    async def close(self) -> None:
        for victim in self.victims:
            await victim.stop()
        await self._nodes.aclose()


class Relay:
    """A node that relays for the group: it hears all of it, opens nothing, says what it likes."""

    def __init__(self, node: EmbeddedNode, stage: Stage) -> None:
        self.node = node
        self.heard: list[WakuMessage] = []
        self._stage = stage
        node.subscribe(stage.topic(), self._hear)

    def _hear(self, message: WakuMessage, _waku_hash: WakuHash) -> None:
        self.heard.append(message)
        self._stage.changed.set()

    async def publish(self, payload: bytes, *, topic: ContentTopic | None = None) -> None:
        """In the group, if no topic is named."""
        message = self._stage.waku(payload)
        if topic is not None:
            message = structs.replace(message, content_topic=topic)
        receipt = await self.node.publish(message)
        assert receipt.peers > 0, "nobody took it, so it was no attack"


async def now(value: bool) -> bool:
    return value


@asynccontextmanager
async def stage(place: Path) -> AsyncIterator[Stage]:
    made = Stage(place)
    try:
        yield made
    finally:
        await made.close()


def run(scenario: Callable[[Stage], Coroutine[object, object, None]], place: Path) -> None:
    async def whole() -> None:
        async with stage(place) as made:
            await scenario(made)

    asyncio.run(whole())
