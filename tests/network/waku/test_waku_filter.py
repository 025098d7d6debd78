"""Filter: what is asked for is pushed, on one stream, and nobody who does not read costs much."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.codec.waku_filter import (
    FilterSubscribeRequest,
    FilterSubscribeResponse,
    FilterSubscribeType,
    MessagePush,
    decode_filter_response,
    decode_message_push,
    encode_filter_request,
    encode_filter_response,
    encode_message_push,
)
from engine.core.errors import RemoteProtocolError, TransportError
from engine.core.types import ContentTopic, PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import PeerId, Stream, StreamHandler
from engine.network.waku.filter_client import FilterClient, Pushed
from engine.network.waku.filter_push import FILTER_PUSH_PROTOCOL, PushSettings
from engine.network.waku.filter_server import (
    FILTER_SUBSCRIBE_PROTOCOL,
    FilterServer,
    FilterSettings,
)
from engine.network.waku.framing import FrameDecoder, encode_frame
from engine.network.waku.message_hash import message_hash
from engine.network.waku.send_queue import SendQueueLimits
from engine.network.waku.service_gate import GateLimits
from engine.network.waku.service_server import ServiceSettings
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import (
    PATIENT,
    SHARD,
    TOPIC,
    ServiceNet,
    exchange,
    until,
    until_length,
    waku_message,
)

OTHER_TOPIC = ContentTopic("/causerie/1/other/proto")
OTHER_SHARD = PubsubTopic("/waku/2/rs/42/1")
IMPATIENT = FilterSettings(
    push=PushSettings(
        queue=SendQueueLimits(soft_bytes=50_000, message_bytes=100_000, write_bytes=8_000),
        write_timeout_s=1.0,  # a busy machine must not make the reader look stuck
        pause_s=0.01,
    )
)


@dataclass
class Net:
    net: ServiceNet
    server: FilterServer
    server_host: MemoryHost
    clients: list[FilterClient] = field(default_factory=list)
    inboxes: list[list[Pushed]] = field(default_factory=list)
    hosts: list[MemoryHost] = field(default_factory=list)

    async def client(self) -> tuple[FilterClient, list[Pushed]]:
        host = await self.net.host(f"client {len(self.clients)}")
        inbox: list[Pushed] = []
        made = FilterClient(
            host,
            new_request_id=self.net.new_request_id,
            deliver=inbox.append,
            counters=self.net.counters,
            limits=PATIENT,
        )
        made.start()
        self.clients.append(made)
        self.hosts.append(host)
        await host.connect("/memory/server")
        return made, inbox

    def push(self, message: WakuMessage, shard: PubsubTopic = SHARD) -> int:
        return self.server.push(shard, message.content_topic, encode_waku_message(message))


@asynccontextmanager
async def filter_net(settings: FilterSettings | None = None) -> AsyncIterator[Net]:
    async with ServiceNet() as net:
        host = await net.host("server")
        server = FilterServer(host, settings or FilterSettings(), counters=net.counters)
        server.start()
        try:
            yield Net(net=net, server=server, server_host=host)
        finally:
            await server.stop()


def test_what_was_asked_for_is_pushed_and_nothing_else() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            client, inbox = await net.client()
            peer = net.server_host.peer_id
            assert (await client.subscribe(peer, SHARD, [TOPIC])).accepted
            assert (await client.ping(peer)).accepted
            wanted = waku_message(1)
            assert net.push(wanted) == 1
            assert net.push(waku_message(2, content_topic=OTHER_TOPIC)) == 0
            assert net.push(waku_message(3), OTHER_SHARD) == 0
            await until(lambda: len(inbox) == 1)
            assert inbox == [
                Pushed(
                    peer_id=peer,
                    pubsub_topic=SHARD,
                    message=wanted,
                    message_hash=message_hash(SHARD, wanted),
                )
            ]

    asyncio.run(scenario())


def test_many_messages_to_many_take_one_stream_each_and_keep_their_order() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            clients = [await net.client() for _ in range(5)]
            for client, _ in clients:
                await client.subscribe(net.server_host.peer_id, SHARD, [TOPIC])
            for number in range(300):
                assert net.push(waku_message(number)) == 5
                await asyncio.sleep(0)
            for _, inbox in clients:
                await until_length(inbox, 300)
                numbers = [int(pushed.message.payload.split()[0]) for pushed in inbox]
                assert numbers == list(range(300))
            for host in net.hosts:
                opened = [s for s in host.streams if s.protocol == FILTER_PUSH_PROTOCOL]
                assert len(opened) == 1

    asyncio.run(scenario())


def test_unsubscribing_ends_it_and_a_ping_says_so() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            client, _ = await net.client()
            peer = net.server_host.peer_id
            assert (await client.ping(peer)).status_code == 404
            assert (await client.unsubscribe(peer, SHARD, [TOPIC])).status_code == 404
            assert (await client.unsubscribe_all(peer)).status_code == 404
            await client.subscribe(peer, SHARD, [TOPIC, OTHER_TOPIC])
            assert (await client.unsubscribe(peer, SHARD, [TOPIC])).accepted
            assert net.push(waku_message()) == 0
            assert net.push(waku_message(content_topic=OTHER_TOPIC)) == 1
            assert (await client.unsubscribe(peer, SHARD, [OTHER_TOPIC])).accepted
            assert (await client.ping(peer)).status_code == 404
            await client.subscribe(peer, SHARD, [TOPIC])
            assert (await client.unsubscribe_all(peer)).accepted
            assert net.push(waku_message()) == 0
            assert net.server.subscriber_count == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (FilterSubscribeRequest(
            request_id="1", filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
            content_topics=(TOPIC,)), 400),
        (FilterSubscribeRequest(
            request_id="1", filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
            pubsub_topic=SHARD), 400),
        (FilterSubscribeRequest(
            request_id="1", filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
            pubsub_topic=PubsubTopic("anything"), content_topics=(TOPIC,)), 400),
        (FilterSubscribeRequest(
            request_id="1", filter_subscribe_type=FilterSubscribeType.UNSUBSCRIBE,
            pubsub_topic=SHARD), 400),
        (FilterSubscribeRequest(
            request_id="1", filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
            pubsub_topic=SHARD,
            content_topics=tuple(ContentTopic(f"/a/1/{n}/b") for n in range(101))), 400),
    ],
)  # fmt: skip
def test_criteria_that_are_none_are_refused(request_: FilterSubscribeRequest, status: int) -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            await net.client()
            answer = decode_filter_response(
                await exchange(
                    net.hosts[0],
                    net.server_host.peer_id,
                    FILTER_SUBSCRIBE_PROTOCOL,
                    encode_filter_request(request_),
                )
            )
            assert (answer.status_code, answer.request_id) == (status, "1")
            assert answer.status_desc
            assert net.server.subscriber_count == 0

    asyncio.run(scenario())


def test_peers_and_topics_are_bounded() -> None:
    async def scenario() -> None:
        async with filter_net(FilterSettings(max_peers=1, max_topics_per_peer=2)) as net:
            first, _ = await net.client()
            second, _ = await net.client()
            peer = net.server_host.peer_id
            topics = [ContentTopic(f"/a/1/{n}/b") for n in range(3)]
            assert (await first.subscribe(peer, SHARD, topics)).status_code == 503
            assert (await first.subscribe(peer, SHARD, topics[:2])).accepted
            assert (await first.subscribe(peer, SHARD, topics[:2])).accepted
            assert (await first.subscribe(peer, SHARD, topics[2:])).status_code == 503
            assert (await second.subscribe(peer, SHARD, topics[:1])).status_code == 503
            assert net.push(waku_message(content_topic=topics[2])) == 0
            await first.unsubscribe_all(peer)
            assert (await second.subscribe(peer, SHARD, topics[:1])).accepted

    asyncio.run(scenario())


def test_a_subscriber_that_does_not_read_is_dropped_and_costs_no_other_anything() -> None:
    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            reader, inbox = await net.client()
            sleeper = await net.net.host("sleeper")
            await sleeper.connect("/memory/server")

            async def never_reads(_stream: Stream) -> None:
                await asyncio.Event().wait()

            sleeper.set_stream_handler(FILTER_PUSH_PROTOCOL, never_reads)
            request = FilterSubscribeRequest(
                request_id="1",
                filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
                pubsub_topic=SHARD,
                content_topics=(TOPIC,),
            )
            await exchange(
                sleeper,
                net.server_host.peer_id,
                FILTER_SUBSCRIBE_PROTOCOL,
                encode_filter_request(request),
            )
            await reader.subscribe(net.server_host.peer_id, SHARD, [TOPIC])
            for number in range(400):
                net.push(waku_message(number, size=1_000))
                await net.server.wait_for_room()
                await until_length(inbox, number + 1)
            counters = net.net.counters
            await until(lambda: net.server.subscriber_count == 1)
            assert counters["filter.push_dropped"] > 100
            assert counters["filter.subscriber_stuck"] == 1
            assert counters["filter.subscriber_dropped"] == 1
            assert len(inbox) == 400
            ping = replace(request, filter_subscribe_type=FilterSubscribeType.SUBSCRIBER_PING)
            answer = await exchange(
                sleeper,
                net.server_host.peer_id,
                FILTER_SUBSCRIBE_PROTOCOL,
                encode_filter_request(ping),
            )
            assert decode_filter_response(answer).status_code == 404

    asyncio.run(scenario())


async def subscribe_by_hand(net: Net, serve: StreamHandler) -> MemoryHost:
    """A subscriber of another make."""
    host = await net.net.host("another")
    await host.connect("/memory/server")
    host.set_stream_handler(FILTER_PUSH_PROTOCOL, serve)
    request = FilterSubscribeRequest(
        request_id="1",
        filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
        pubsub_topic=SHARD,
        content_topics=(TOPIC,),
    )
    await exchange(
        host, net.server_host.peer_id, FILTER_SUBSCRIBE_PROTOCOL, encode_filter_request(request)
    )
    return host


async def first_number(stream: Stream) -> int:
    frames = FrameDecoder(10_000)
    while chunk := await stream.read_some(1_000):
        for frame in frames.feed(chunk):
            return int(decode_waku_message(decode_message_push(frame).data).payload.split()[0])
    raise AssertionError("the stream ended without a message")


def test_who_takes_one_message_of_a_stream_and_closes_it_misses_none() -> None:
    """go-waku does so, and drops what follows in silence."""

    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            heard: list[int] = []

            async def reads_one(stream: Stream) -> None:
                heard.append(await first_number(stream))
                await stream.close_write()

            host = await subscribe_by_hand(net, reads_one)
            for number in range(20):
                assert net.push(waku_message(number)) == 1
            await until_length(heard, 20)
            for number in range(20, 40):
                assert net.push(waku_message(number)) == 1
                await until_length(heard, number + 1)
            assert heard == list(range(40))
            assert len([s for s in host.streams if s.protocol == FILTER_PUSH_PROTOCOL]) == 40
            assert net.net.counters["filter.push_stream_broken"] == 0

    asyncio.run(scenario())


def test_who_resets_what_comes_too_soon_gets_it_later() -> None:
    """As go-waku does with more than fifteen streams a second."""

    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            heard: list[int] = []
            streams = itertools.count(1)

            async def has_a_limit(stream: Stream) -> None:
                if next(streams) % 3 == 0:
                    await stream.reset()
                    return
                heard.append(await first_number(stream))
                await stream.close_write()

            await subscribe_by_hand(net, has_a_limit)
            for number in range(30):
                assert net.push(waku_message(number)) == 1
            await until_length(heard, 30)
            assert heard == list(range(30))
            assert net.server.subscriber_count == 1

    asyncio.run(scenario())


def test_who_closes_after_each_message_and_then_takes_no_more_is_given_up() -> None:
    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            heard: list[int] = []

            async def loses_interest(stream: Stream) -> None:
                if heard:
                    await stream.reset()
                    return
                heard.append(await first_number(stream))
                await stream.close_write()

            await subscribe_by_hand(net, loses_interest)
            for number in range(5):
                net.push(waku_message(number))
            await until(lambda: net.server.subscriber_count == 0)
            assert heard == [0]
            assert net.net.counters["filter.push_stream_broken"] == 3

    asyncio.run(scenario())


def test_who_closes_one_stream_and_leaves_the_next_open_loses_nothing_by_it() -> None:
    async def scenario() -> None:
        settings_ = replace(IMPATIENT, push=replace(IMPATIENT.push, write_timeout_s=0.1))
        async with filter_net(settings_) as net:
            heard: list[int] = []

            async def closes_the_first(stream: Stream) -> None:
                heard.append(await first_number(stream))
                if len(heard) == 1:
                    await stream.close_write()
                else:
                    await stream.read_some(1)

            await subscribe_by_hand(net, closes_the_first)
            net.push(waku_message(0))
            await until_length(heard, 1)
            net.push(waku_message(1))
            await until_length(heard, 2)
            net.push(waku_message(2))
            await until_length(heard, 3)
            assert heard == [0, 1, 2]
            assert net.server.subscriber_count == 1

    asyncio.run(scenario())


def test_a_client_takes_a_burst_that_comes_on_a_stream_for_each_message() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            client, inbox = await net.client()
            server, host = net.server_host, net.hosts[0]
            await client.subscribe(server.peer_id, SHARD, [TOPIC])
            streams = [
                await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL]) for _ in range(200)
            ]
            unwanted = await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL])
            await until(lambda: net.net.counters["filter.push_stream_unwanted"] == 1)
            for number, stream in enumerate(streams):
                push = MessagePush(
                    data=encode_waku_message(waku_message(number)), pubsub_topic=SHARD
                )
                await stream.write(encode_frame(encode_message_push(push)))
                await stream.close_write()
            await until_length(inbox, 200)
            await unwanted.reset()

    asyncio.run(scenario())


def test_a_burst_waits_for_those_who_read_and_loses_nothing() -> None:
    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            clients = [await net.client() for _ in range(3)]
            for client, _ in clients:
                await client.subscribe(net.server_host.peer_id, SHARD, [TOPIC])
            for number in range(2_000):
                net.push(waku_message(number, size=1_000))
                await net.server.wait_for_room()
            for _, inbox in clients:
                await until_length(inbox, 2_000)
            assert net.net.counters["filter.push_dropped"] == 0

    asyncio.run(scenario())


def test_a_broken_stream_is_opened_anew_and_nothing_queued_is_lost() -> None:
    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            client, inbox = await net.client()
            await client.subscribe(net.server_host.peer_id, SHARD, [TOPIC])
            net.push(waku_message(0))
            await until(lambda: len(inbox) == 1)
            (stream,) = [s for s in net.hosts[0].streams if s.protocol == FILTER_PUSH_PROTOCOL]
            await stream.reset()
            net.push(waku_message(1))
            await until(lambda: len(inbox) == 2)
            assert net.net.counters["filter.push_stream_broken"] == 1

    asyncio.run(scenario())


def test_a_peer_that_takes_no_stream_is_given_up() -> None:
    async def scenario() -> None:
        async with filter_net(IMPATIENT) as net:
            client, _ = await net.client()
            await client.subscribe(net.server_host.peer_id, SHARD, [TOPIC])
            del net.hosts[0].handlers[FILTER_PUSH_PROTOCOL]
            net.push(waku_message())
            await until(lambda: net.server.subscriber_count == 0)
            assert net.net.counters["filter.push_stream_refused"] == 3

    asyncio.run(scenario())


def test_a_peer_that_goes_is_forgotten() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            client, _ = await net.client()
            await client.subscribe(net.server_host.peer_id, SHARD, [TOPIC])
            await net.hosts[0].disconnect(net.server_host.peer_id)
            assert net.server.subscriber_count == 0
            assert net.push(waku_message()) == 0

    asyncio.run(scenario())


def test_a_client_believes_no_push_that_it_did_not_ask_for() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            client, inbox = await net.client()
            server, host = net.server_host, net.hosts[0]
            counters = net.net.counters
            unwanted = await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL])
            await until(lambda: counters["filter.push_stream_unwanted"] == 1)
            await unwanted.reset()
            await client.subscribe(server.peer_id, SHARD, [TOPIC])

            def push(data: bytes, topic: PubsubTopic | None = SHARD) -> bytes:
                return encode_frame(encode_message_push(MessagePush(data=data, pubsub_topic=topic)))

            good = encode_waku_message(waku_message(7))
            stream = await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL])
            await stream.write(push(encode_waku_message(waku_message(content_topic=OTHER_TOPIC))))
            await stream.write(push(good, OTHER_SHARD))
            await stream.write(push(b"\xff"))
            await stream.write(encode_frame(b"\xff"))
            await stream.write(push(good, None))
            await until(lambda: len(inbox) == 1)
            assert inbox[0].pubsub_topic == SHARD
            assert counters["filter.push_unasked"] == 2
            assert counters["filter.message_malformed"] == 1
            assert counters["filter.push_malformed"] == 1
            await client.unsubscribe_all(server.peer_id)
            await stream.write(push(good))
            await until(lambda: counters["filter.push_unasked"] == 3)
            assert len(inbox) == 1

    asyncio.run(scenario())


def test_whoever_asks_too_often_is_told_429() -> None:
    async def scenario() -> None:
        service = ServiceSettings(
            max_request_bytes=32_768, gate=GateLimits(per_second=0.001, burst=1)
        )
        async with filter_net(FilterSettings(service=service)) as net:
            client, _ = await net.client()
            peer = net.server_host.peer_id
            assert (await client.ping(peer)).status_code == 404
            refused = await client.ping(peer)
            assert (refused.status_code, refused.accepted) == (429, False)
            answer = await exchange(net.hosts[0], peer, FILTER_SUBSCRIBE_PROTOCOL, b"\xff")
            assert decode_filter_response(answer).status_code == 429

    asyncio.run(scenario())


def test_a_subscription_that_was_not_confirmed_is_none() -> None:
    async def scenario() -> None:
        async def lies(stream: Stream) -> None:
            response = FilterSubscribeResponse(request_id="other", status_code=200)
            await stream.write(encode_frame(encode_filter_response(response)))
            await stream.close_write()

        async with filter_net() as net:
            client, inbox = await net.client()
            server, host = net.server_host, net.hosts[0]
            server.set_stream_handler(FILTER_SUBSCRIBE_PROTOCOL, lies)
            with pytest.raises(RemoteProtocolError, match="other_request"):
                await client.subscribe(server.peer_id, SHARD, [TOPIC])
            del server.handlers[FILTER_SUBSCRIBE_PROTOCOL]
            with pytest.raises(TransportError):
                await client.subscribe(server.peer_id, SHARD, [TOPIC])
            stream = await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL])
            await until(lambda: net.net.counters["filter.push_stream_unwanted"] == 1)
            await stream.reset()
            assert inbox == []

    asyncio.run(scenario())


TOPICS = [ContentTopic(f"/causerie/1/{letter}/proto") for letter in "abc"]
steps = st.lists(
    st.tuples(
        st.sampled_from(FilterSubscribeType),
        st.sampled_from(range(3)),
        st.sampled_from([SHARD, OTHER_SHARD]),
        st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3).map(tuple),
    ),
    max_size=25,
)


class Subscriptions:
    """A model of what a server of two peers with four topics each should hold."""

    def __init__(self) -> None:
        self.held: dict[PeerId, set[tuple[PubsubTopic, ContentTopic]]] = {}

    def ask(
        self,
        peer: PeerId,
        kind: FilterSubscribeType,
        wanted: set[tuple[PubsubTopic, ContentTopic]],
    ) -> int:
        """The status that should come back."""
        known = self.held.pop(peer, set())
        if kind is FilterSubscribeType.SUBSCRIBE:
            fits = len(known | wanted) <= 4 and (known or len(self.held) < 2)
            self._keep(peer, known | wanted if fits else known)
            return 200 if fits else 503
        if kind is FilterSubscribeType.SUBSCRIBER_PING:
            self._keep(peer, known)
        elif kind is FilterSubscribeType.UNSUBSCRIBE:
            self._keep(peer, known - wanted)
        return 200 if known else 404

    def _keep(self, peer: PeerId, criteria: set[tuple[PubsubTopic, ContentTopic]]) -> None:
        if criteria:
            self.held[peer] = criteria


@settings(max_examples=60, deadline=None)
@given(steps)
def test_whatever_is_asked_in_which_order_the_subscriptions_are_those_of_a_model(
    asked: list[tuple[FilterSubscribeType, int, PubsubTopic, tuple[ContentTopic, ...]]],
) -> None:
    async def scenario() -> None:
        async with filter_net(FilterSettings(max_peers=2, max_topics_per_peer=4)) as net:
            for _ in range(3):
                await net.client()
            peers = [host.peer_id for host in net.hosts]
            model = Subscriptions()
            for kind, who, shard, topics in asked:
                request = FilterSubscribeRequest(
                    request_id="1",
                    filter_subscribe_type=kind,
                    pubsub_topic=shard,
                    content_topics=topics,
                )
                answer = await net.server.respond(peers[who], encode_filter_request(request))
                expected = model.ask(peers[who], kind, {(shard, topic) for topic in topics})
                assert decode_filter_response(answer).status_code == expected
                assert net.server.subscriber_count == len(model.held)
                for pair in itertools.product([SHARD, OTHER_SHARD], TOPICS):
                    count = sum(pair in held for held in model.held.values())
                    assert net.server.push(*pair, b"") == count

    asyncio.run(scenario())


def test_junk_is_answered_with_400() -> None:
    async def scenario() -> None:
        async with filter_net() as net:
            await net.client()
            answer = await exchange(
                net.hosts[0], net.server_host.peer_id, FILTER_SUBSCRIBE_PROTOCOL, b"\xff\xff"
            )
            assert decode_filter_response(answer).status_code == 400

    asyncio.run(scenario())
