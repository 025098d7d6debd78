"""Embedded nodes on real sockets over loopback."""

import asyncio
import socket
from random import Random

import pytest

from engine.codec.gossipsub import PublishedMessage, Rpc, encode_rpc
from engine.core.errors import ConfigError, LocalProtocolError, TransportError
from engine.core.faults import FaultPlan, FaultSpec
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.problems import ConnectionReason
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES, WakuMessage
from engine.network.faults import FaultyTransport
from engine.network.libp2p.host import TcpHost
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.network.node.standalone import run_node
from engine.network.transport import Transport, TransportLevel, TransportStatus
from engine.network.waku.framing import encode_frame
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import RELAY_PROTOCOL
from engine.network.waku.topics import Sharding
from tests.network.node.loopback import TOPIC, Loopback, message, settings_of
from tests.patience import PATIENCE_S

PUBSUB = PubsubTopic("/waku/2/rs/42/4")


def port_of(address: str) -> int:
    return int(address.split("/")[4])


async def test_two_nodes_talk() -> None:
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        receipt = await alice.node.publish(message(1))
        assert receipt.peers == 1
        assert receipt.waku_hash == message_hash(PUBSUB, message(1))
        await bob.until_heard(1)
        assert bob.hashes == [receipt.waku_hash]
        assert (await bob.node.publish(message(2))).peers == 1
        await alice.until_heard(1)
        assert (alice.inbox, bob.inbox) == ([2], [1])


async def test_a_copy_is_written_when_the_socket_has_it() -> None:
    async with Loopback() as net:
        alice, _ = await net.joined([(0, 1)], 2)
        for number in range(20):
            before = alice.node.status().bytes_out
            receipt = await alice.node.publish(message(number, size=1_000))
            assert receipt.written is not None
            async with asyncio.timeout(PATIENCE_S):
                await receipt.written
            assert alice.node.status().bytes_out >= before + 1_000


async def test_with_nobody_there_nothing_is_to_be_written() -> None:
    async with Loopback() as net:
        (alone,) = await net.joined([], 1)
        assert (await alone.node.publish(message(1))).written is None


async def test_what_was_published_just_before_the_end_still_arrives() -> None:
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        for number in range(300):
            assert (await alice.node.publish(message(number, size=1_000))).peers == 1
        await alice.node.stop()
        await bob.until_heard(300)
        assert bob.inbox == list(range(300))


async def test_along_a_line_of_five_everything_arrives_exactly_once() -> None:
    async with Loopback() as net:
        nodes = await net.joined([(0, 1), (1, 2), (2, 3), (3, 4)], 5)
        for number in range(50):
            await nodes[number % 5].node.publish(message(number))
        for index, node in enumerate(nodes):
            await node.until_heard(40)
            assert sorted(node.inbox) == [n for n in range(50) if n % 5 != index]


async def test_a_burst_through_a_hub_reaches_every_leaf() -> None:
    async with Loopback() as net:
        nodes = await net.joined([(leaf, 0) for leaf in range(1, 7)], 7)
        source, *leaves = nodes[1:]
        for number in range(1_000):
            await source.node.publish(message(number, size=1_000))
        for leaf in leaves:
            await leaf.until_heard(1_000)
            assert leaf.inbox == list(range(1_000))
        assert sorted(nodes[0].inbox) == list(range(1_000))
        assert source.inbox == []


async def test_when_all_talk_at_once_in_a_full_mesh_everybody_hears_everything_once() -> None:
    async with Loopback() as net:
        nodes = await net.joined([(a, b) for a in range(5) for b in range(a)], 5)

        async def talk(index: int) -> None:
            for number in range(index * 100, index * 100 + 100):
                await nodes[index].node.publish(message(number, size=500))

        await asyncio.gather(*(talk(index) for index in range(5)))
        for index, node in enumerate(nodes):
            await node.until_heard(400)
            assert sorted(node.inbox) == [n for n in range(500) if n // 100 != index]


async def test_bursts_of_long_messages_around_a_triangle_are_neither_stuck_nor_lost() -> None:
    async with Loopback() as net:
        nodes = await net.joined([(0, 1), (1, 2), (2, 0)], 3)

        async def talk(index: int) -> None:
            for number in range(index * 100, index * 100 + 100):
                await nodes[index].node.publish(message(number, size=100_000))

        await asyncio.gather(*(talk(index) for index in range(3)))
        for index, node in enumerate(nodes):
            # A copy that a slow neighbour had no room for comes from the other one, so only
            # what arrives counts, not on which edge and in which order.
            await node.until_heard(200)
            assert sorted(node.inbox) == [n for n in range(300) if n // 100 != index]


async def test_the_largest_message_travels_and_a_larger_one_is_our_own_mistake() -> None:
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        await alice.node.publish(message(1, size=MAX_WAKU_MESSAGE_BYTES - 60))
        await bob.until_heard(1)
        with pytest.raises(TransportError, match="cannot be published"):
            await alice.node.publish(message(1, size=MAX_WAKU_MESSAGE_BYTES))


async def test_a_node_that_restarts_on_its_port_is_found_again() -> None:
    async with Loopback() as net:
        alice = await net.node()
        bob = await net.node()
        bob.node.add_peers(alice.node.addresses())
        await bob.until_peers(1)
        await alice.until_peers(1)
        port = port_of(alice.node.addresses()[0])
        await alice.node.stop()
        await bob.until_peers(0)
        assert (await bob.node.publish(message(1))).peers == 0
        alice = await net.node(settings=settings_of(1, remembered_port=port))
        await bob.until_peers(1)
        await alice.until_peers(1)
        assert (await bob.node.publish(message(2))).peers == 1
        await alice.until_heard(1)
        await alice.node.publish(message(3))
        await bob.until_heard(1)
        assert (alice.inbox, bob.inbox) == ([2], [3])


async def test_nodes_that_dial_each_other_at_once_hear_everything_once_on_whole_streams() -> None:
    turns = Random(7)
    async with Loopback() as net:
        for _ in range(20):
            one, other = await net.node(), await net.node()
            one.node.add_peers(other.node.addresses())
            for _ in range(turns.randrange(30)):
                await asyncio.sleep(0)
            other.node.add_peers(one.node.addresses())
            await one.until_peers(1)
            await other.until_peers(1)
            for number in range(10):
                await one.node.publish(message(number))
                await other.node.publish(message(number + 100))
            await one.until_heard(10)
            await other.until_heard(10)
            assert sorted(one.inbox) == list(range(100, 110))
            assert sorted(other.inbox) == list(range(10))
            for node in (one, other):
                assert "relay.stream_broken" not in node.node.counters()
                assert node.node.status().peers == 1


async def test_two_nodes_with_one_identity_disturb_nobody_else() -> None:
    """A profile that was copied: the hub hears both, and the first stays as it was."""
    async with Loopback() as net:
        hub, first, friend, second = [
            await net.node(settings=settings_of(number)) for number in (1, 2, 3, 2)
        ]
        for node in (first, friend):
            node.node.add_peers(hub.node.addresses())
        await hub.until_peers(2)
        await first.until_peers(1)
        await friend.until_peers(1)
        second.node.add_peers(hub.node.addresses())
        counters = hub.node.counters
        async with asyncio.timeout(PATIENCE_S):
            while "relay.peer_has_several_streams" not in counters():  # noqa: ASYNC110 - no event
                await asyncio.sleep(0)
        assert counters()["relay.peer_has_several_streams"] == 1
        for number in range(10):
            await first.node.publish(message(number))
            await friend.node.publish(message(number + 100))
        await hub.until_heard(20)
        await friend.until_heard(10)
        await first.until_heard(10)
        assert sorted(friend.inbox) == list(range(10))
        assert sorted(first.inbox) == list(range(100, 110))
        assert sorted(hub.inbox) == sorted(friend.inbox + first.inbox)
        for node in (hub, first, friend):
            assert "relay.stream_broken" not in node.node.counters()


async def test_a_node_can_be_stopped_and_started() -> None:
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        await alice.node.stop()
        await alice.node.stop()
        await bob.until_peers(0)
        assert alice.node.addresses() == ()
        await alice.node.start()
        with pytest.raises(LocalProtocolError, match="started already"):
            await alice.node.start()
        await alice.until_peers(1)
        await bob.until_peers(1)
        await bob.node.publish(message(1))
        await alice.until_heard(1)


async def test_garbage_on_the_topic_is_counted_and_not_forwarded() -> None:
    async with Loopback() as net:
        middle, end = await net.joined([(0, 1)], 2)
        rude = TcpHost(b"r" * 32, [])
        rude.set_stream_handler(RELAY_PROTOCOL, lambda stream: stream.reset())
        await rude.start()
        peer = await rude.connect(middle.node.addresses()[0])
        stream = await rude.new_stream(peer.peer_id, [RELAY_PROTOCOL])
        garbage = (b"\xff\xff", b"\x0a\x02no topic", b"\x12\x03abc")
        for data in garbage:
            published = (PublishedMessage(topic=PUBSUB, data=data),)
            await stream.write(encode_frame(encode_rpc(Rpc(publish=published))))
        signed = b"\x12\x16\x12\x01x\x22\x0f" + PUBSUB.encode() + b"\x2a\x00"
        await stream.write(encode_frame(signed))
        await stream.write(encode_frame(b"\xff no rpc"))
        await stream.write(b"\xff\xff\xff\xff\xff\xff")
        with pytest.raises(TransportError):
            await stream.read_exactly(1)
        counted = middle.node.counters()
        assert counted["relay.message_malformed"] == 2
        assert counted["relay.content_topic_malformed"] == 1
        assert counted["relay.message_signed"] == 1
        assert counted["relay.rpc_malformed"] == 1
        assert counted["relay.frame_prefix_malformed"] == 1
        await middle.node.publish(message(1))
        await end.until_heard(1)
        assert end.node.counters()["relay.received"] == 1
        assert not [n for n in end.node.counters() if "malformed" in n or "signed" in n]
        assert middle.inbox == []
        await rude.stop()


async def test_only_subscribed_content_topics_are_handed_on() -> None:
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        await alice.node.publish(message(1, topic=ContentTopic("/causerie/1/other/proto")))
        await alice.node.publish(message(2))
        await bob.until_heard(1)
        assert bob.inbox == [2]
        assert bob.node.counters()["relay.received"] == 2


async def test_subscribing_to_another_application_joins_its_shard() -> None:
    topic = ContentTopic("/toychat/2/huilong/proto")
    assert Sharding().pubsub_topic(topic) != Sharding().pubsub_topic(TOPIC)
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        heard: list[bytes] = []

        def take(received: WakuMessage, _: WakuHash) -> None:
            heard.append(received.payload)
            bob.news.set()

        bob.node.subscribe(topic, take)
        number = 0
        async with asyncio.timeout(PATIENCE_S):
            while not (await alice.node.publish(message(number, topic=topic))).peers:
                number += 1  # The subscription has not arrived yet.
                await asyncio.sleep(0)
        await bob.until(lambda: bool(heard))
        assert heard == [b"%d " % number]
        with pytest.raises(LocalProtocolError):
            bob.node.subscribe(ContentTopic("nonsense"), lambda *_: None)


async def test_status_says_how_things_are_and_why() -> None:
    async with Loopback() as net:
        alice = await net.node()
        told: list[TransportStatus] = []
        alice.node.on_status(told.append)
        assert alice.node.status().level is TransportLevel.OFFLINE
        assert alice.node.status().reason is ConnectionReason.NOBODY_CONNECTED
        await net.node(peers=alice.node.addresses())
        await alice.until(lambda: alice.node.status().level is TransportLevel.MINIMAL)
        await net.node(peers=alice.node.addresses())
        await alice.until(lambda: alice.node.status().level is TransportLevel.GOOD)
        await alice.node.stop()
        levels = [status.level for status in told]
        assert levels[0] is TransportLevel.MINIMAL
        assert told[0].reason is ConnectionReason.ONE_PEER
        assert TransportLevel.GOOD in levels
        assert (told[-1].level, told[-1].reason) == (
            TransportLevel.OFFLINE,
            ConnectionReason.NOT_STARTED,
        )
        assert len(told) == len(set(told))


async def test_peers_addresses_become_known() -> None:
    async with Loopback() as net:
        alice = await net.node()
        known: list[str] = []

        def note(address: str) -> None:
            known.append(address)
            alice.news.set()

        alice.node.on_peer_address(note)
        bob = await net.node(peers=alice.node.addresses())
        await alice.until(lambda: bool(known))
        assert known == list(bob.node.addresses())


def test_unusable_addresses_are_counted_and_skipped() -> None:
    async def scenario() -> None:
        async with Loopback() as net:
            alice = await net.node()
            good = alice.node.addresses()[0]
            bob = await net.node(
                peers=["nonsense", "/ip4/127.0.0.1/tcp/1", "/ip4/1.2.3.4/udp/1/quic", good, good]
            )
            await bob.until_peers(1)
            counted = bob.node.counters()
            assert counted["node.peer_address_unusable"] == 2
            assert counted["node.peer_address_without_peer"] == 1


def test_how_many_peers_are_kept_is_bounded() -> None:
    node = EmbeddedNode(settings_of(1))
    peer_id = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
    node.add_peers([f"/ip4/127.0.0.1/tcp/{port}/p2p/{peer_id}" for port in range(1, 61)])
    assert node.counters() == {"node.too_many_peer_addresses": 10}


async def test_a_remembered_port_that_is_taken_gives_way_and_the_users_does_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with Loopback() as net:
            node = await net.node(settings=settings_of(1, remembered_port=port))
            assert port_of(node.node.addresses()[0]) != port
            assert node.node.counters()["node.remembered_port_taken"] == 1
            with pytest.raises(TransportError, match=str(port)):
                await net.node(settings=settings_of(2, port=port))


def test_both_families_can_be_listened_on() -> None:
    settings = NodeSettings(network_key=b"k" * 32, listen_host="::1")
    assert settings.listen_multiaddr(0) == "/ip6/::1/tcp/0"
    assert settings_of(1).listen_multiaddr(7) == "/ip4/127.0.0.1/tcp/7"


def test_keys_are_not_shown() -> None:
    assert "key" not in repr(settings_of(1))


async def test_what_was_counted_outlives_a_restart() -> None:
    async with Loopback() as net:
        alice, bob = await net.joined([(0, 1)], 2)
        await bob.node.publish(message(1))
        await alice.until_heard(1)
        await alice.node.stop()
        assert alice.node.counters()["relay.received"] == 1


async def test_behind_the_fault_layer_a_node_is_still_a_transport() -> None:
    async with Loopback() as net:
        bob = await net.node()
        inner = EmbeddedNode(settings_of(50))
        plan = FaultPlan(FaultSpec(loss=0.5, delay_ms=(1, 3), seed=1))
        faulty: Transport = FaultyTransport(inner, plan)
        heard: list[int] = []
        last = asyncio.Event()

        def take(received: WakuMessage, _: WakuHash) -> None:
            heard.append(int(received.payload.split()[0]))
            if len(heard) > 10:
                last.set()

        faulty.subscribe(TOPIC, take)
        faulty.add_peers(bob.node.addresses())
        await faulty.start()
        await bob.until_peers(1)
        for number in range(100):
            await bob.node.publish(message(number))
        async with asyncio.timeout(PATIENCE_S):
            await last.wait()
        assert faulty.counters()["faults.lost"] > 0
        await faulty.stop()
        assert faulty.status().level is TransportLevel.OFFLINE


def test_settings_that_cannot_be_are_named() -> None:
    with pytest.raises(ConfigError, match="port 70000: allowed are 0 to 65535"):
        settings_of(1, port=70_000)


async def test_a_node_alone_serves_until_it_is_told_to_stop() -> None:
    stop = asyncio.Event()
    ready: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
    service = asyncio.create_task(
        run_node(settings_of(9), ready=lambda found: ready.set_result(list(found)), stop=stop)
    )
    async with Loopback() as net:
        addresses = await ready
        alice = await net.node(peers=addresses)
        bob = await net.node(peers=addresses)
        for leaf in (alice, bob):
            await leaf.until_peers(1)
        await alice.node.publish(message(1))
        await bob.until_heard(1)
        stop.set()
        await service
        await alice.until_peers(0)


def test_the_node_is_a_transport() -> None:
    def takes(transport: Transport) -> TransportLevel:
        return transport.status().level

    assert takes(EmbeddedNode(NodeSettings(network_key=b"k" * 32))) is TransportLevel.OFFLINE
