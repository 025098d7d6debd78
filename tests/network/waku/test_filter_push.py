"""How filter pushes travel: on one stream, in order, and who does not read costs nobody else.

Subscribers of other makes close or reset streams as they like; a client believes no push that it
did not ask for.  Subscribing itself is the other module's.
"""

import asyncio
import itertools

from msgspec.structs import replace

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.codec.waku_filter import (
    FilterSubscribeType,
    MessagePush,
    decode_message_push,
    encode_filter_request,
    encode_message_push,
)
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import Stream
from engine.network.waku.framing import FrameDecoder, encode_frame
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL
from tests.network.waku.filter_net import (
    IMPATIENT,
    OTHER_SHARD,
    SUBSCRIBE,
    ask_by_hand,
    filter_net,
    subscribe_by_hand,
)
from tests.network.waku.service_net import (
    OTHER_TOPIC,
    SHARD,
    TOPIC,
    until,
    until_length,
    waku_message,
)


async def test_many_messages_to_many_take_one_stream_each_and_keep_their_order() -> None:
    async with filter_net() as net:
        clients = [await net.subscriber() for _ in range(5)]
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


async def test_a_subscriber_that_does_not_read_is_dropped_and_costs_no_other_anything() -> None:
    async with filter_net(IMPATIENT) as net:

        async def never_reads(_stream: Stream) -> None:
            await asyncio.Event().wait()

        sleeper = await subscribe_by_hand(net, never_reads)
        _, inbox = await net.subscriber()
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
        ping = replace(SUBSCRIBE, filter_subscribe_type=FilterSubscribeType.SUBSCRIBER_PING)
        answer = await ask_by_hand(net, sleeper, encode_filter_request(ping))
        assert answer.status_code == 404


async def first_number(stream: Stream) -> int:
    frames = FrameDecoder(10_000)
    while chunk := await stream.read_some(1_000):
        for frame in frames.feed(chunk):
            return int(decode_waku_message(decode_message_push(frame).data).payload.split()[0])
    raise AssertionError("the stream ended without a message")


async def test_who_takes_one_message_of_a_stream_and_closes_it_misses_none() -> None:
    """go-waku does so, and drops what follows in silence."""
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


async def test_who_resets_what_comes_too_soon_gets_it_later() -> None:
    """As go-waku does with more than fifteen streams a second."""
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


async def test_who_closes_after_each_message_and_then_takes_no_more_is_given_up() -> None:
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


async def test_who_closes_one_stream_and_leaves_the_next_open_loses_nothing_by_it() -> None:
    async with filter_net(IMPATIENT) as net:
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


async def test_a_client_takes_a_burst_that_comes_on_a_stream_for_each_message() -> None:
    async with filter_net() as net:
        _, inbox = await net.subscriber()
        server, host = net.server_host, net.hosts[0]
        streams = [
            await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL]) for _ in range(200)
        ]
        unwanted = await server.new_stream(host.peer_id, [FILTER_PUSH_PROTOCOL])
        await until(lambda: net.net.counters["filter.push_stream_unwanted"] == 1)
        for number, stream in enumerate(streams):
            push = MessagePush(data=encode_waku_message(waku_message(number)), pubsub_topic=SHARD)
            await stream.write(encode_frame(encode_message_push(push)))
            await stream.close_write()
        await until_length(inbox, 200)
        await unwanted.reset()


async def test_a_burst_waits_for_those_who_read_and_loses_nothing() -> None:
    async with filter_net(IMPATIENT) as net:
        clients = [await net.subscriber() for _ in range(3)]
        for number in range(2_000):
            net.push(waku_message(number, size=1_000))
            await net.server.wait_for_room()
        for _, inbox in clients:
            await until_length(inbox, 2_000)
        assert net.net.counters["filter.push_dropped"] == 0


async def test_a_broken_stream_is_opened_anew_and_nothing_queued_is_lost() -> None:
    async with filter_net(IMPATIENT) as net:
        _, inbox = await net.subscriber()
        net.push(waku_message(0))
        await until(lambda: len(inbox) == 1)
        (stream,) = [s for s in net.hosts[0].streams if s.protocol == FILTER_PUSH_PROTOCOL]
        await stream.reset()
        net.push(waku_message(1))
        await until(lambda: len(inbox) == 2)
        assert net.net.counters["filter.push_stream_broken"] == 1


async def test_a_peer_that_takes_no_stream_is_given_up() -> None:
    async with filter_net(IMPATIENT) as net:
        await net.subscriber()
        del net.hosts[0].handlers[FILTER_PUSH_PROTOCOL]
        net.push(waku_message())
        await until(lambda: net.server.subscriber_count == 0)
        assert net.net.counters["filter.push_stream_refused"] == 3


async def test_a_peer_that_goes_is_forgotten() -> None:
    async with filter_net() as net:
        await net.subscriber()
        await net.hosts[0].disconnect(net.server_host.peer_id)
        assert net.server.subscriber_count == 0
        assert net.push(waku_message()) == 0


async def test_a_client_believes_no_push_that_it_did_not_ask_for() -> None:
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
        await client.unsubscribe(server.peer_id, SHARD, [TOPIC])
        await stream.write(push(good))
        await until(lambda: counters["filter.push_unasked"] == 3)
        assert len(inbox) == 1
