"""The relay's driver over streams in memory that can be broken, frozen and flooded."""

import asyncio
import hashlib
from contextlib import suppress

import pytest

from engine.codec.gossipsub import PublishedMessage, Rpc, encode_rpc
from engine.core.errors import TransportError
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.protocols import RELAY_PROTOCOL
from engine.network.waku.relay.relay import RelaySettings
from engine.network.waku.relay.session import SessionSettings
from engine.network.waku.send_queue import SendQueueLimits
from tests.network.waku.memory_host import MemoryStream
from tests.network.waku.relay_net import TOPIC, Net, Node, waku_data
from tests.patience import PATIENCE_S

QUICK = RelaySettings(
    session=SessionSettings(
        first_pause_s=0.01,
        write_timeout_s=0.05,
        lasting_s=0,
        queue=SendQueueLimits(soft_bytes=20_000, message_bytes=60_000, write_bytes=8_000),
    ),
    patience_s=0.02,
)
"""Small and impatient, so that every bound is reached within milliseconds."""


async def test_messages_arrive_once_and_in_order() -> None:
    async with Net() as net:
        one, other = await net.pair()
        for number in range(200):
            assert await one.relay.publish(TOPIC, waku_data(number)) == 1
        await other.until(lambda: len(other.inbox) == 200)
        assert other.inbox == list(range(200))
        assert one.inbox == []


async def test_to_nobody_nothing_is_handed() -> None:
    async with Net() as net:
        one = await net.node("one")
        assert await one.relay.publish(TOPIC, waku_data(1)) == 0


async def test_a_peer_that_does_not_relay_is_left_alone() -> None:
    async with Net() as net:
        one = await net.node("one")
        plain = net.wire.host("plain")
        await plain.start()
        await one.host.connect("/memory/plain")
        assert await one.relay.publish(TOPIC, waku_data(1)) == 0
        assert one.counters.snapshot() == {}
        await plain.stop()


async def test_a_burst_beyond_every_queue_is_slowed_down_not_lost() -> None:
    async with Net() as net:
        one, other = await net.pair(RelaySettings(session=QUICK.session, patience_s=PATIENCE_S))
        for number in range(500):
            await one.relay.publish(TOPIC, waku_data(number, 1_000))
        await other.until(lambda: len(other.inbox) == 500)
        assert other.inbox == list(range(500))
        assert one.counters["relay.dropped_queue_full"] == 0


async def test_a_peer_that_says_very_much_waits_and_the_others_are_heard() -> None:
    async with Net() as net:
        tight = RelaySettings(new_bytes_per_s=1, new_bytes_burst=20_000)
        hub = await net.node("hub", tight)
        flooder, other = [await net.node(name) for name in ("flooder", "other")]
        for node in (flooder, other):
            await node.host.connect("/memory/hub")
        await hub.until_meshed(2)
        await other.until_meshed(1)
        for number in range(1, 201):
            await flooder.relay.publish(TOPIC, waku_data(number, 1_000))
        await hub.until(lambda: len(hub.inbox) == 20)  # Twenty overdraw the bucket.
        await other.relay.publish(TOPIC, waku_data(0))
        await hub.until(lambda: 0 in hub.inbox)
        assert hub.inbox == [*range(1, 21), 0]
        assert hub.counters["relay.paced"] == 1


async def test_peers_that_say_much_share_what_is_read_and_one_that_says_little_is_heard() -> None:
    async with Net() as net:
        tight = RelaySettings(new_bytes_per_s=1, new_bytes_burst=20_000, own_share=1 / 4)
        hub = await net.node("hub", tight)
        first, second, other = [await net.node(name) for name in ("first", "second", "other")]
        for node in (first, second, other):
            await node.host.connect("/memory/hub")
        await hub.until_meshed(3)
        await other.until_meshed(1)
        for number in range(1, 101):
            await first.relay.publish(TOPIC, waku_data(number, 1_000))
            await second.relay.publish(TOPIC, waku_data(100 + number, 1_000))
        await hub.until(lambda: hub.counters["relay.paced"] == 2)
        flood = len(hub.inbox)
        assert 20 <= flood <= 26, "the common bucket, and what each has read beyond it"
        said = [1_000 + number for number in range(20)]
        for number in said:
            await other.relay.publish(TOPIC, waku_data(number, 100))
        await hub.until(lambda: said[-1] in hub.inbox)
        assert hub.inbox[flood:] == said


async def test_what_a_flood_overdrew_is_not_waited_for_long_after_it() -> None:
    """Many identities with a share each overdraw the common bucket for as long as they like."""
    async with Net() as net:
        settings = RelaySettings(new_bytes_per_s=1, new_bytes_burst=20_000, longest_pace_s=0.01)
        hub, flooder = await net.node("hub", settings), await net.node("flooder")
        await flooder.host.connect("/memory/hub")
        await hub.until_meshed(1)
        for number in range(1, 61):
            await flooder.relay.publish(TOPIC, waku_data(number, 1_000))
        await hub.until(lambda: 60 in hub.inbox)
        assert hub.counters["relay.paced"] > 0


async def test_what_was_heard_before_costs_a_peer_nothing() -> None:
    async with Net() as net:
        tight = RelaySettings(new_bytes_per_s=1, new_bytes_burst=20_000)
        hub, echo = await net.node("hub", tight), await net.node("echo")
        await echo.host.connect("/memory/hub")
        await hub.until_meshed(1)
        asking = await echo.host.new_stream(PeerId("hub"), [RELAY_PROTOCOL])
        said = PublishedMessage(topic=TOPIC, data=waku_data(1, 1_000))
        for _ in range(100):
            await asking.write(encode_frame(encode_rpc(Rpc(publish=(said,)))))
        said = PublishedMessage(topic=TOPIC, data=waku_data(2, 1_000))
        await asking.write(encode_frame(encode_rpc(Rpc(publish=(said,)))))
        await hub.until(lambda: hub.inbox == [1, 2])
        assert hub.counters["relay.paced"] == 0


def outbound(node: Node, peer: str) -> MemoryStream:
    """The stream that ``node`` opened last to ``peer`` (the handlers' ends come from the peer)."""
    return [s for s in node.host.streams if s.peer_id == PeerId(peer)][-1]


async def test_a_frozen_peer_costs_bounded_memory_and_nobody_elses_messages() -> None:
    async with Net() as net:
        settings = RelaySettings(
            session=SessionSettings(write_timeout_s=PATIENCE_S, queue=QUICK.session.queue),
            patience_s=1,  # Waited for once, and none that reads is ever so slow.
        )
        hub, frozen, alive = [await net.node(n, settings) for n in ("hub", "frozen", "alive")]
        await hub.host.connect("/memory/frozen")
        await hub.host.connect("/memory/alive")
        await hub.until_meshed(2)
        for stream in frozen.host.streams:
            await stream.inward.set(frozen=True)
        for number in range(300):
            await hub.relay.publish(TOPIC, waku_data(number, 1_000))
        await alive.until(lambda: len(alive.inbox) == 300)
        assert alive.inbox == list(range(300))
        assert hub.counters["relay.peer_slow"] == 1
        assert hub.counters["relay.dropped_queue_full"] > 100
        assert frozen.inbox == []


async def test_a_stuck_stream_is_replaced_and_the_waiting_messages_still_arrive() -> None:
    async with Net() as net:
        one, other = await net.pair(QUICK)
        for stream in other.host.streams:
            await stream.inward.set(frozen=True)
        for number in range(5):
            await one.relay.publish(TOPIC, waku_data(number))
        await other.until(lambda: len(other.inbox) == 5)
        assert other.inbox == list(range(5))
        assert one.counters["relay.stream_stuck"] == 1


async def test_a_broken_stream_is_opened_again_and_both_go_on() -> None:
    async with Net() as net:
        one, other = await net.pair(QUICK)
        for stream in list(one.host.streams):
            await stream.reset()
        await one.relay.publish(TOPIC, waku_data(1))
        await other.relay.publish(TOPIC, waku_data(2))
        await other.until(lambda: other.inbox == [1])
        await one.until(lambda: one.inbox == [2])
        assert one.counters["relay.stream_broken"] >= 1


async def test_a_peer_that_breaks_every_stream_is_given_up() -> None:
    async with Net() as net:
        one = await net.node("one", RelaySettings(session=SessionSettings(first_pause_s=0.001)))
        rude = net.wire.host("rude")
        rude.set_stream_handler(RELAY_PROTOCOL, lambda stream: stream.reset())
        await rude.start()
        await one.host.connect("/memory/rude")
        await one.until(lambda: one.counters["relay.stream_broken"] == 4)
        assert await one.relay.publish(TOPIC, waku_data(1)) == 0
        await rude.stop()


async def test_a_peer_that_was_given_up_gets_another_chance_while_it_is_connected() -> None:
    async with Net() as net:
        one = await net.node(
            "one", RelaySettings(session=SessionSettings(first_pause_s=0.001), reopen_s=0.01)
        )
        sorry = net.wire.host("sorry")
        sorry.set_stream_handler(RELAY_PROTOCOL, lambda stream: stream.reset())
        await sorry.start()
        await one.host.connect("/memory/sorry")
        await one.until(lambda: one.counters["relay.stream_broken"] >= 4)
        heard = asyncio.Event()

        async def listen(stream: Stream) -> None:
            await stream.read_some(4_096)
            heard.set()
            await _swallow(stream)

        sorry.set_stream_handler(RELAY_PROTOCOL, listen)
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
        await sorry.stop()


async def test_what_a_peer_asks_for_and_does_not_take_is_not_piled_up() -> None:
    async with Net() as net:
        settings = RelaySettings(
            session=SessionSettings(write_timeout_s=PATIENCE_S, queue=QUICK.session.queue),
            patience_s=PATIENCE_S,
        )
        one, other = await net.pair(settings)
        data = [waku_data(number, 3_000) for number in range(10)]
        for each in data:
            await one.relay.publish(TOPIC, each)
        await other.until(lambda: len(other.inbox) == 10)
        for stream in other.host.streams:
            await stream.inward.set(frozen=True)
        asking = await other.host.new_stream(PeerId("one"), [RELAY_PROTOCOL])
        wanted = tuple(hashlib.sha256(each).digest() for each in data)
        for _ in range(3):
            await asking.write(encode_frame(encode_rpc(Rpc(iwant=wanted))))
        await asking.write(b"\xff" * 6)
        with pytest.raises(TransportError):
            await asking.read_some(1)  # It was reset, which says that all was read.
        assert one.counters["relay.iwant_unanswered"] > 0
        assert one.counters["relay.dropped_queue_full"] == 0


async def test_dialling_again_in_the_same_breath_keeps_the_relay() -> None:
    async with Net() as net:
        one, other = await net.pair()
        await one.host.disconnect(PeerId("other"))
        await one.host.connect("/memory/other")
        await one.until_meshed(1)
        await other.until_meshed(1)
        await one.relay.publish(TOPIC, waku_data(7))
        await other.until(lambda: other.inbox == [7])


async def test_garbage_on_the_stream_is_counted_and_its_sender_not_heard_for_a_while() -> None:
    async with Net() as net:
        one = await net.node("one")
        rude = net.wire.host("rude")
        rude.set_stream_handler(RELAY_PROTOCOL, _swallow)
        await rude.start()
        await rude.connect("/memory/one")
        stream = await rude.new_stream(PeerId("one"), [RELAY_PROTOCOL])
        await stream.write(encode_frame(b"\xff\xff garbage") * 50)
        await stream.write(b"\xff\xff\xff\xff\xff\xff")
        with pytest.raises(TransportError):
            await stream.read_some(1)  # It was reset, which says that all was read.
        assert one.counters["relay.frame_prefix_malformed"] == 1
        assert one.counters["relay.rpc_malformed"] == 38
        assert one.counters["relay.graylisted"] == 12
        await rude.stop()


async def _swallow(stream: Stream) -> None:
    with suppress(TransportError):
        while await stream.read_some(4_096):
            pass
