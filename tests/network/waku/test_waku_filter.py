"""Filter: who may subscribe to what, what is refused, and that exactly that is pushed.

How pushes travel, and what a subscriber that reads badly costs, is the module on pushing.
"""

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku_filter import (
    MAX_FILTER_REQUEST_BYTES,
    FilterSubscribeRequest,
    FilterSubscribeResponse,
    FilterSubscribeType,
    decode_filter_response,
    encode_filter_request,
    encode_filter_response,
)
from engine.core.errors import RemoteProtocolError, TransportError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.filter.client import Pushed
from engine.network.waku.filter.server import FilterSettings
from engine.network.waku.framing import encode_frame
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL, FILTER_SUBSCRIBE_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings
from tests.network.waku.filter_net import OTHER_SHARD, SUBSCRIBE, ask_by_hand, filter_net
from tests.network.waku.service_net import OTHER_TOPIC, SHARD, TOPIC, exchange, until, waku_message
from tests.network.waku.strict_reader import FILTER_RESPONSE, missing_fields


async def test_what_was_asked_for_is_pushed_and_nothing_else() -> None:
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


async def test_unsubscribing_ends_it_and_a_ping_says_so() -> None:
    async with filter_net() as net:
        client, _ = await net.client()
        peer = net.server_host.peer_id
        assert (await client.ping(peer)).status_code == 404
        assert (await client.unsubscribe(peer, SHARD, [TOPIC])).status_code == 404
        await client.subscribe(peer, SHARD, [TOPIC, OTHER_TOPIC])
        assert (await client.unsubscribe(peer, SHARD, [TOPIC])).accepted
        assert net.push(waku_message()) == 0
        assert net.push(waku_message(content_topic=OTHER_TOPIC)) == 1
        assert (await client.unsubscribe(peer, SHARD, [OTHER_TOPIC])).accepted
        assert (await client.ping(peer)).status_code == 404
        assert net.server.subscriber_count == 0


async def test_all_subscriptions_end_at_once() -> None:
    """As others' subscribers may ask for; ours never does."""
    everything = FilterSubscribeRequest(
        request_id="1", filter_subscribe_type=FilterSubscribeType.UNSUBSCRIBE_ALL
    )
    async with filter_net() as net:
        client, _ = await net.client()
        peer, unsubscribe = net.server_host.peer_id, encode_filter_request(everything)
        assert (await ask_by_hand(net, net.hosts[0], unsubscribe)).status_code == 404
        await client.subscribe(peer, SHARD, [TOPIC, OTHER_TOPIC])
        assert (await ask_by_hand(net, net.hosts[0], unsubscribe)).status_code == 200
        assert net.push(waku_message()) == 0
        assert net.server.subscriber_count == 0


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
async def test_criteria_that_are_none_are_refused(
    request_: FilterSubscribeRequest, status: int
) -> None:
    async with filter_net() as net:
        await net.client()
        answer = await ask_by_hand(net, net.hosts[0], encode_filter_request(request_))
        assert (answer.status_code, answer.request_id) == (status, "1")
        assert answer.status_desc
        assert net.server.subscriber_count == 0


async def test_a_strict_reader_can_read_every_answer() -> None:
    gate = GateLimits(per_second=0.001, burst=4)
    service = ServiceSettings(max_request_bytes=MAX_FILTER_REQUEST_BYTES, gate=gate)
    async with filter_net(FilterSettings(service=service)) as net:
        await net.client()
        ping = FilterSubscribeRequest(
            request_id="1", filter_subscribe_type=FilterSubscribeType.SUBSCRIBER_PING
        )
        requests = [
            encode_filter_request(SUBSCRIBE),
            encode_filter_request(ping),
            encode_filter_request(replace(ping, request_id="")),
            b"\xff\xff",
            encode_filter_request(ping),
            b"\xff\xff",
        ]
        ids = []
        for request in requests:
            answer = await exchange(
                net.hosts[0], net.server_host.peer_id, FILTER_SUBSCRIBE_PROTOCOL, request
            )
            assert missing_fields(answer, FILTER_RESPONSE) == []
            ids.append(decode_filter_response(answer).request_id)
        assert ids == ["1", "1", "", "N/A", "1", "N/A"]
        assert net.net.counters["filter.rate_limited"] == 2


async def test_peers_and_topics_are_bounded() -> None:
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
        await first.unsubscribe(peer, SHARD, topics[:2])
        assert (await second.subscribe(peer, SHARD, topics[:1])).accepted


async def test_whoever_asks_too_often_is_told_429() -> None:
    service = ServiceSettings(max_request_bytes=32_768, gate=GateLimits(per_second=0.001, burst=1))
    async with filter_net(FilterSettings(service=service)) as net:
        client, _ = await net.client()
        peer = net.server_host.peer_id
        assert (await client.ping(peer)).status_code == 404
        refused = await client.ping(peer)
        assert (refused.status_code, refused.accepted) == (429, False)
        answer = await ask_by_hand(net, net.hosts[0], b"\xff")
        assert answer.status_code == 429


async def test_a_subscription_that_was_not_confirmed_is_none() -> None:
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


async def test_junk_is_answered_with_400() -> None:
    async with filter_net() as net:
        await net.client()
        answer = await ask_by_hand(net, net.hosts[0], b"\xff\xff")
        assert answer.status_code == 400
