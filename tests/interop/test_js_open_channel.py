"""Untouched ``ReliableChannel``s of js-waku and our applications in one open channel, two of each.

They meet over a node of ours.  The engines are whole: sockets, disks, Stores.  Only the network is
disturbed: of what each of the four sends a fifth never gets to the node, and of what the node sends
to each a fifth never comes; nobody is told.  One of ours keeps to js-waku's numbers and one to
ours.  js-waku's own intervals are set shorter through its options, or the test would take half an
hour; its code is not changed.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random

import pytest

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import decode_message
from engine.core.faults import FaultPlan, FaultSpec, SeededRandom
from engine.core.ids import ChannelId, ContentTopic, ConversationId, MessageId, ParticipantId
from engine.core.records import ChannelName, OpenPace
from engine.core.waku import WakuMessage
from engine.events import MessageRemoved
from engine.network.faults import FaultyTransport
from engine.network.transport import Receipt, Transport
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.network.wrapped import WrappedTransport
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.sim.judge import Observation, causal_violations
from tests.interop.js_waku import JsWaku, js_reliable
from tests.runtime.history.history_stage import KEY, Person, StoreNode, shown_in, until

NAME = ChannelName(
    channel_id=ChannelId("general"),
    content_topic=ContentTopic("/my-app/1/room/utf8"),
    cluster_id=Sharding().cluster_id,
)
EACH = 5
PATIENCE_S = 180
QUICK = {
    "syncMinIntervalMs": 3_000,
    "retryIntervalMs": 3_000,
    "retrieveFrequencyMs": 1_000,
    "sweepInBufIntervalMs": 500,
    "processTaskMinElapseMs": 100,
}
"""A tenth of js-waku's own intervals."""


class Uplink(WrappedTransport):
    """Loses what is sent, and says that the node has it."""

    def __init__(self, inner: Transport, spec: FaultSpec, name: str) -> None:
        super().__init__(inner)
        self._spec = spec
        self._random = SeededRandom(spec.seed, f"{name} up")
        self.gone = 0
        """How much was sent or lost."""

    async def publish(self, message: WakuMessage, /) -> Receipt:
        if self._random() < self._spec.loss:
            self._counters.add("faults.lost_outward")
            topic = self.sharding.pubsub_topic(message.content_topic)
            receipt = Receipt(waku_hash=message_hash(topic, message), peers=1)
        else:
            receipt = await super().publish(message)
        self.gone += 1
        return receipt


def observation(person: Person, channel: ConversationId) -> Observation:
    """What the window was shown, in the order in which each got its place; when it is over."""
    seen: dict[MessageId, None] = {}
    for event in person.told:
        assert not isinstance(event, MessageRemoved)
        for row in shown_in(event):
            if not row.waiting:
                seen.setdefault(row.message_id)
    observed = Observation(participant_id=ParticipantId(person.name))
    store = SqliteProfileStore.open(person.database, KEY)
    for message_id in seen:
        raw = store.raw(channel, message_id)
        assert raw is not None
        history = decode_message(raw).causal_history
        observed.deliveries.append((message_id, tuple(e.message_id for e in history)))
    store.close()
    return observed


class Room:
    """The four of them, connected to one node that relays, serves and keeps everything."""

    def __init__(self, place: Path, spec: FaultSpec, name: ChannelName = NAME) -> None:
        self._place, self._spec, self.name = place, spec, name
        self.tcp = self.websocket = ""
        self.node = StoreNode(place, "node")
        self.ours: list[Person] = []
        self.uplinks: dict[str, Uplink] = {}
        self.js: list[JsWaku] = []
        self.said: list[str] = []

    async def open(self, stack: AsyncExitStack) -> None:
        self.tcp = tcp = await self.node.start(websocket_port=0, shards=tuple(range(8)))
        stack.push_async_callback(self.node.stop)
        assert self.node.node is not None
        (self.websocket,) = [each for each in self.node.node.addresses() if "/ws/" in each]
        for name, pace in (("Ann", OpenPace.JS_WAKU), ("Bob", OpenPace.CAUSERIE)):
            person = Person(name, self._place, peers=(tcp,))
            person.wrap = partial(self._disturbed, name)
            await person.start()
            stack.push_async_callback(person.stop)
            self.channel = await person.engine.open_channels.join(
                self.name, label="", nick=name, pace=pace
            )
            await person.until_online()
            self.ours.append(person)
        for number in range(2):
            self.js.append(await self.another_js(stack, number, self.name))

    def _disturbed(self, name: str, inner: Transport) -> Transport:
        self.uplinks[name] = Uplink(inner, self._spec, name)
        return FaultyTransport(self.uplinks[name], FaultPlan(self._spec, name))

    async def another_js(self, stack: AsyncExitStack, number: int, name: ChannelName) -> JsWaku:
        js = await stack.enter_async_context(js_reliable())
        sharding = Sharding()
        await js.ask(
            "start",
            address=self.websocket,
            cluster=sharding.cluster_id,
            shardCount=sharding.shard_count,
        )
        joined = await js.ask(
            "join",
            topic=name.content_topic,
            channelId=name.channel_id,
            key=name.key.hex(),
            senderId=f"js-{number}",
            loss=self._spec.loss,
            seed=self._spec.seed * 2 + number,
            options=QUICK,
        )
        assert joined["started"]
        assert joined["pubsubTopic"] == sharding.pubsub_topic(name.content_topic)
        return js

    async def say(self, who: int, text: str) -> None:
        """Returns once the node has it, or the network has lost it."""
        self.said.append(text)
        if who < len(self.ours):
            person = self.ours[who]
            uplink = self.uplinks[person.name]
            before = uplink.gone
            await person.engine.timeline.send_text(self.channel, text)
            await until(lambda: uplink.gone > before)
        else:
            await self.js[who - len(self.ours)].ask("say", payload=text)

    async def talk(self, each: int, seed: int) -> None:
        """All four, in turns that the seed draws, each once the one before has been sent."""
        random = Random(seed)
        turns = [who for who in range(4) for _ in range(each)]
        random.shuffle(turns)
        for number, who in enumerate(turns):
            await self.say(who, f"{number} by {who}")

    async def until_ours_are_complete(self) -> None:
        for person in self.ours:
            async with asyncio.timeout(PATIENCE_S):
                await person.until(partial(self._is_complete, person))

    def _is_complete(self, person: Person) -> bool:
        rows = (row for event in person.told for row in shown_in(event))
        placed = {row.text for row in rows if not row.waiting}
        return placed >= set(self.said)

    async def js_delivered(self) -> list[set[MessageId]]:
        looks = [await js.ask("look") for js in self.js]
        return [{MessageId(each) for each in look["delivered"]} for look in looks]

    def violations(self) -> int:
        seen = [observation(one, self.channel) for one in self.ours]
        assert all(len(each.deliveries) == len(self.said) for each in seen)
        return sum(map(causal_violations, seen))


def ids(texts: Sequence[str]) -> set[MessageId]:
    return {message_id_of_content(text.encode()) for text in texts}


async def test_four_talk_in_one_channel_and_acknowledge_each_other(tmp_path: Path) -> None:
    room = Room(tmp_path, FaultSpec())
    async with AsyncExitStack() as stack:
        await room.open(stack)
        await room.talk(3, seed=1)
        await room.until_ours_are_complete()
        for number, js in enumerate(room.js):
            async with asyncio.timeout(PATIENCE_S):
                while not await _has_all(js, room.said, number):  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.2)
        looks = [await js.ask("look") for js in room.js]
        assert all(look["counts"].get("message-acknowledged", 0) for look in looks)
        assert not any(look["counts"].get("sds:error-task", 0) for look in looks)
        for person in room.ours:
            assert await person.engine.timeline.gap(room.channel) is None
            log = [text for _, _, text in await person.log(room.channel)]
            assert sorted(log) == sorted(room.said)
    assert room.violations() == 0


async def _has_all(js: JsWaku, said: Sequence[str], number: int) -> bool:
    """All that the others said."""
    look = await js.ask("look")
    wanted = ids([text for text in said if not text.endswith(f"by {2 + number}")])
    return wanted <= set(look["delivered"])


def bugs(counted: Mapping[str, int]) -> dict[str, int]:
    """Counted bugs of ours, and refusals in the channel: all of these members are honest."""
    crashes = ("crashed", "listener_failed", "task_failed", "handler_failed")
    refusals = {name for name in counted if name.startswith("open.")} - {"open.replayed"}
    return {
        name: number
        for name, number in counted.items()
        if name.endswith(crashes) or name in refusals
    }


async def lossy(place: Path, seed: int) -> None:
    room = Room(place, FaultSpec(loss=0.2, seed=seed))
    async with AsyncExitStack() as stack:
        await room.open(stack)
        await room.talk(EACH, seed)
        await room.until_ours_are_complete()
        lost: Counter[str] = Counter()
        for person in room.ours:
            log = [text for _, _, text in await person.log(room.channel)]
            assert sorted(log) == sorted(room.said)
            counted = person.engine.counters()
            assert not bugs(counted)
            lost += Counter(counted)
        for js in room.js:
            counts = (await js.ask("look"))["counts"]
            assert "sds:error-task" not in counts
            lost += Counter(counts)
        ways = ("faults.lost", "faults.lost_outward", "lostInward", "lostOutward")
        assert all(lost[way] > 0 for way in ways)
    assert room.violations() == 0


async def test_with_a_fifth_lost_ours_are_complete_and_in_causal_order(tmp_path: Path) -> None:
    await lossy(tmp_path, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
async def test_so_they_are_with_any_seed(tmp_path: Path, seed: int) -> None:
    await lossy(tmp_path, seed)
