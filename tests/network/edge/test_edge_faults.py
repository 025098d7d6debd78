"""Any order of faults at three service nodes; once all is well again, so are the subscriptions.

While things go wrong no message is handed on twice, and at no more nodes is anything subscribed
than redundancy asks for.  Afterwards two of them hold what is wanted.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.codec.waku_filter import (
    FilterSubscribeResponse,
    FilterSubscribeType,
    MessagePush,
    decode_filter_request,
    encode_filter_response,
    encode_message_push,
)
from engine.core.counters import Counters
from engine.core.errors import TransportError
from engine.core.ids import ContentTopic, WakuHash
from engine.network.edge.push_record import MAX_SEEN, MAX_WATCHED, PushRecord
from engine.network.edge.service_nodes import ServiceNodes
from engine.network.edge.settings import EdgePace
from engine.network.edge.subscriptions import Subscriptions
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.filter.client import FilterClient, Pushed
from engine.network.waku.framing import encode_frame
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL, FILTER_SUBSCRIBE_PROTOCOL
from engine.network.waku.service.exchange import answer, first_bytes, read_request
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import QUICK, SHARD, ServiceNet, until, waku_message
from tests.patience import PATIENCE_S

PACE: Final = EdgePace(
    request_timeout_s=0.05,
    ping_interval_s=0.03,
    unheard_grace_s=0.02,
    refresh_first_s=0.02,
    refresh_cap_s=0.1,
    rest_first_s=0.01,
    busy_rest_s=0.01,
    filter_interval_s=0.01,
    rest_cap_s=0.04,
)
UNRENEWED: Final = replace(PACE, pings_per_renewal=1_000_000)
"""Only what another node pushes tells of what was forgotten."""
TOPICS: Final = [ContentTopic(f"/causerie/1/topic{number}/proto") for number in range(3)]
KEYS: Final = [bytes([number]) * 32 for number in range(1, 4)]
TURNS: Final = 30
PEERS: Final = [TcpHost(key, []).peer_id for key in KEYS]


class Fault(Enum):
    LEAVE = auto()
    COME = auto()
    FORGET = auto()
    REFUSE = auto()
    ACCEPT = auto()
    FREEZE = auto()
    THAW = auto()
    WANT = auto()
    UNWANT = auto()
    WRITE = auto()


Step = tuple[Fault, int]
STEPS: Final = st.lists(st.tuples(st.sampled_from(Fault), st.integers(0, 2)), max_size=25)


@dataclass(slots=True, eq=False)
class Node:
    host: MemoryHost
    topics: set[ContentTopic] = field(default_factory=set)
    status: int = 200
    flows: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, stream: Stream) -> None:
        first = await first_bytes(stream)
        request = decode_filter_request(
            await read_request(stream, first, max_bytes=100_000, timeout_s=5)
        )
        await self.flows.wait()
        status = self.status
        if request.filter_subscribe_type is FilterSubscribeType.SUBSCRIBER_PING:
            status = status if self.topics else 404
        elif status == 200:
            wanted = set(request.content_topics)
            is_more = request.filter_subscribe_type is FilterSubscribeType.SUBSCRIBE
            self.topics = self.topics | wanted if is_more else self.topics - wanted
        response = FilterSubscribeResponse(
            request_id=request.request_id, status_code=status, status_desc=""
        )
        with suppress(TransportError):  # not connected any more
            await answer(stream, encode_filter_response(response), timeout_s=5)

    async def push(self, edge: PeerId, number: int, topic: ContentTopic) -> None:
        if topic not in self.topics or not self.flows.is_set():
            return
        data = encode_waku_message(waku_message(number, content_topic=topic))
        frame = encode_frame(encode_message_push(MessagePush(data=data, pubsub_topic=SHARD)))
        try:
            stream = await self.host.new_stream(edge, [FILTER_PUSH_PROTOCOL])
            await stream.write(frame)
            await stream.close_write()
        except TransportError:
            return  # not connected


class Play:
    """One edge node's subscriptions among the nodes, and what was handed on."""

    def __init__(
        self, net: ServiceNet, edge: MemoryHost, nodes: list[Node], pace: EdgePace
    ) -> None:
        self.edge = edge
        self.nodes = nodes
        self.wanted: set[ContentTopic] = set()
        self.forgotten = {TOPICS[0], TOPICS[1]}
        self.delivered: Counter[WakuHash] = Counter()
        self.written = 0
        self.counters = Counters()
        self.known = ServiceNodes(
            pace,
            random=Random(1).random,
            now_s=lambda: asyncio.get_running_loop().time(),
            counters=self.counters,
            changed=self._reconsider,
        )
        self.known.add([f"/ip4/127.0.0.1/tcp/{n}/p2p/{peer}" for n, peer in enumerate(PEERS, 1)])
        self.known.watch(edge)
        client = FilterClient(
            edge,
            new_request_id=net.new_request_id,
            deliver=self._take,
            counters=self.counters,
            limits=QUICK,
        )
        self.subscriptions = Subscriptions(
            self.known,
            client,
            pace=pace,
            heard=PushRecord(pace.unheard_grace_s),
            deliver=self._deliver,
            changed=lambda: None,
            counters=self.counters,
        )
        client.start()
        edge.on_peer_connected(lambda _peer: self._reconsider())
        edge.on_peer_disconnected(lambda _peer: self._reconsider())
        self.subscriptions.start()

    def _reconsider(self) -> None:
        self.subscriptions.reconsider()

    def _take(self, pushed: Pushed) -> None:
        self.subscriptions.take(pushed)

    def _deliver(self, pushed: Pushed) -> None:
        self.delivered[pushed.message_hash] += 1

    async def do(self, fault: Fault, number: int) -> None:
        node, topic = self.nodes[number], TOPICS[number]
        match fault:
            case Fault.LEAVE | Fault.COME:
                await self.link(node, comes=fault is Fault.COME)
            case Fault.FORGET:
                node.topics -= self.forgotten  # a ping does not tell of a single one
            case Fault.REFUSE | Fault.ACCEPT:
                node.status = 429 if fault is Fault.REFUSE else 200
            case Fault.FREEZE:
                node.flows.clear()
            case Fault.THAW:
                node.flows.set()
            case Fault.WANT | Fault.UNWANT:
                self.want(topic, wanted=fault is Fault.WANT)
            case Fault.WRITE:
                await self.write(topic)
        for _ in range(TURNS):  # Some of the next faults come in the middle of a request.
            await asyncio.sleep(0)
        self.check()

    async def link(self, node: Node, *, comes: bool) -> None:
        if comes:
            await self.edge.connect(f"/memory/{node.host.peer_id}")
        else:
            await self.edge.disconnect(node.host.peer_id)
            node.topics.clear()

    def want(self, topic: ContentTopic, *, wanted: bool) -> None:
        self.wanted = self.wanted | {topic} if wanted else self.wanted - {topic}
        self.subscriptions.want({(SHARD, each) for each in self.wanted})

    async def write(self, topic: ContentTopic) -> None:
        self.written += 1
        for node in self.nodes:
            await node.push(self.edge.peer_id, self.written, topic)

    async def heal(self) -> None:
        for number in range(len(self.nodes)):
            for healing in (Fault.ACCEPT, Fault.THAW, Fault.COME, Fault.WANT):
                await self.do(healing, number)
        async with asyncio.timeout(PATIENCE_S):
            while not self.is_well():
                await self.do(Fault.WRITE, self.written % len(TOPICS))

    def check(self) -> None:
        assert len(self.subscriptions.complete()) <= PACE.redundancy
        assert not self.delivered or max(self.delivered.values()) == 1

    def is_well(self) -> bool:
        complete = {node.peer_id for node in self.subscriptions.complete()}
        holding = [
            node
            for node in self.nodes
            if node.host.peer_id in complete and node.topics >= self.wanted
        ]
        return len(holding) == PACE.redundancy


@asynccontextmanager
async def a_play(pace: EdgePace) -> AsyncIterator[Play]:
    async with ServiceNet() as net:
        edge = await net.host("edge")
        nodes = [Node(await net.host(peer)) for peer in PEERS]
        for node in nodes:
            node.flows.set()
            node.host.set_stream_handler(FILTER_SUBSCRIBE_PROTOCOL, node.serve)
        play = Play(net, edge, nodes, pace)
        try:
            await play.heal()
            yield play
        finally:
            await play.subscriptions.stop()


async def heals_after(steps: Sequence[Step], pace: EdgePace) -> None:
    async with a_play(pace) as play:
        for fault, number in steps:
            await play.do(fault, number)
        await play.heal()
        before = len(play.delivered)
        await play.do(Fault.WRITE, 0)
        await until(lambda: len(play.delivered) == before + 1)
        play.check()


@settings(max_examples=30, deadline=None)
@example([(Fault.LEAVE, 0), (Fault.FORGET, 1), (Fault.FORGET, 2)])
@given(STEPS)
def test_after_any_faults_the_subscriptions_heal(steps: list[Step]) -> None:
    asyncio.run(heals_after(steps, PACE))


@settings(max_examples=20, deadline=None)
@given(STEPS)
def test_what_one_node_forgot_is_noticed_by_what_another_pushes(steps: list[Step]) -> None:
    """Whatever else goes wrong; what all have forgotten, nobody pushes."""
    one_forgets = [(each, 0 if each is Fault.FORGET else number) for each, number in steps]
    asyncio.run(heals_after(one_forgets, UNRENEWED))


def test_what_is_remembered_of_messages_is_bounded() -> None:
    heard = PushRecord(grace_s=1.0)
    for number in range(MAX_SEEN + 10):
        assert heard.note(WakuHash(number.to_bytes(32, "big")), PeerId("a"), now_s=0.0)
    assert not heard.note(WakuHash((MAX_SEEN).to_bytes(32, "big")), PeerId("b"), now_s=0.0)
    overdue = list(heard.overdue(now_s=2.0))
    assert len(overdue) == MAX_WATCHED
    assert heard.next_due_s() is None


def test_own_messages_are_expected_back_unless_nobody_took_them() -> None:
    heard = PushRecord(grace_s=1.0)
    first, second = WakuHash(b"1" * 32), WakuHash(b"2" * 32)
    heard.note_own(first, now_s=0.0)
    heard.note_own(second, now_s=0.0)
    heard.expect_no_more(second)
    heard.expect_no_more(second)
    assert not heard.note(first, PeerId("a"), now_s=0.5)
    assert [by for _, by in heard.overdue(now_s=5.0)] == [{PeerId("a")}]


async def test_what_all_nodes_forgot_in_part_is_subscribed_again_in_the_end() -> None:
    async with a_play(PACE) as play:
        for node in play.nodes:
            node.topics -= play.forgotten
        await until(play.is_well)
