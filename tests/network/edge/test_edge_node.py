"""An edge node among service nodes that work, die, freeze, refuse, forget and do not belong."""

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.codec.waku_filter import FilterSubscribeType
from engine.codec.waku_lightpush import PushStatus
from engine.core.errors import LocalProtocolError, TransportError
from engine.core.ids import ContentTopic
from engine.core.problems import ConnectionReason
from engine.core.waku import WakuMessage
from engine.network.edge.settings import EdgePace
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.node.services import ServiceSettings
from engine.network.transport import Transport, TransportLevel, TransportRole
from engine.network.waku.filter.server import FilterSettings
from engine.network.waku.lightpush.server import LightpushSettings
from engine.network.waku.protocols import FILTER_SUBSCRIBE_PROTOCOL, LIGHTPUSH_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.runtime.maintenance import connection_view
from tests.network.edge.edge_net import QUICK, TOPIC, EdgeNet, addresses, message
from tests.network.edge.faulty_nodes import peerless
from tests.network.libp2p.tls_proxy import LOCALHOST, certificate, tls_proxy
from tests.patience import PATIENCE_S
from ui.connection_words import reason_words

IMPATIENT = replace(QUICK, request_timeout_s=1.0, hedge_s=0.5)
PINGS_OFTEN = replace(QUICK, ping_interval_s=0.1)
STRICT_A_MINUTE = 30
"""Filter requests that nwaku accepts."""


def said(node: Transport) -> str:
    """What the window says of its connection."""
    return reason_words(connection_view(node.status()))


async def test_two_edge_nodes_talk_through_two_service_nodes() -> None:
    async with EdgeNet() as net:
        first, second = await net.service_nodes(2)
        alice, heard_by_alice = await net.good_edge(addresses(first, second))
        bob, heard_by_bob = await net.good_edge(addresses(second, first))
        assert (await alice.publish(message(1))).peers == 2
        assert (await bob.publish(message(2))).peers == 2
        await heard_by_bob.until_heard(1)
        await heard_by_alice.until_heard(1)
        assert (heard_by_alice.inbox, heard_by_bob.inbox) == ([2], [1])
        status = alice.status()
        assert (status.reason, status.peers) == (ConnectionReason.SERVICE_NODES, 2)
        assert (status.role, status.peers) == (TransportRole.EDGE, 2)
        assert status.bytes_in > 0
        assert status.bytes_out > 0


async def test_a_relaying_node_and_an_edge_node_hear_each_other() -> None:
    async with EdgeNet() as net:
        first, second = await net.service_nodes(2)
        edge, heard_by_edge = await net.good_edge(addresses(first, second))
        relay, heard_by_relay = await net.relaying(addresses(first, second))
        await heard_by_relay.until_peers(2)
        await edge.publish(message(1))
        await relay.publish(message(2))
        await heard_by_relay.until_heard(1)
        await heard_by_edge.until_heard(1)
        assert (heard_by_relay.inbox, heard_by_edge.inbox) == ([1], [2])


async def test_no_message_is_lost_while_one_of_two_service_nodes_dies_in_a_burst() -> None:
    count = 200

    async with EdgeNet() as net:
        first, second = await net.service_nodes(2)
        alice, heard_by_alice = await net.good_edge(addresses(first, second))
        _, heard_by_bob = await net.good_edge(addresses(second, first))

        async def burst() -> None:
            for number in range(count):
                receipt = await alice.publish(message(number))
                assert receipt.peers >= 1, number

        sending = asyncio.create_task(burst())
        await heard_by_bob.until_heard(count // 4)
        await first.stop()
        await sending
        await heard_by_bob.until_heard(count)
        assert sorted(heard_by_bob.inbox) == list(range(count))
        await heard_by_alice.until_level(TransportLevel.MINIMAL)
        assert heard_by_alice.inbox == []


async def test_a_third_node_takes_over_from_one_that_disconnects() -> None:
    async with EdgeNet() as net:
        first, second, third = await net.service_nodes(3)
        alice, heard_by_alice = await net.good_edge(addresses(first, second))
        alice.add_service_nodes(addresses(third))
        await heard_by_alice.until(lambda: len(alice.reach([FILTER_SUBSCRIBE_PROTOCOL])) == 3)
        assert third.gauges()["filter_subscribers"] == 0
        await first.stop()
        await heard_by_alice.until(lambda: third.gauges()["filter_subscribers"] == 1)
        await heard_by_alice.until_level(TransportLevel.GOOD)
        assert (await alice.publish(message(1))).peers == 2


async def test_a_frozen_node_holds_up_nothing_and_is_replaced() -> None:
    async with EdgeNet() as net:
        first, second, third = await net.service_nodes(3)
        wire, wired = await net.wire(first)
        alice, heard_by_alice = await net.edge([wired], pace=IMPATIENT)
        bob, heard_by_bob = await net.edge(addresses(second, third))
        await heard_by_alice.until_peers(1)
        alice.add_service_nodes(addresses(second))
        await heard_by_alice.until_level(TransportLevel.GOOD)
        alice.add_service_nodes(addresses(third))
        await heard_by_alice.until(lambda: len(alice.reach([FILTER_SUBSCRIBE_PROTOCOL])) == 3)
        await heard_by_bob.until_level(TransportLevel.GOOD)
        wire.freeze()
        # It cannot take what it is sent, so another does.
        assert (await alice.publish(message(1))).peers == 2
        # It pushes nothing of what others push, is asked why, and does not answer.
        await bob.publish(message(2))
        await heard_by_alice.until_heard(1)
        await heard_by_alice.until(lambda: bool(alice.service_nodes()[0].problem))
        await heard_by_alice.until(lambda: third.gauges()["filter_subscribers"] == 2)
        await heard_by_bob.until_heard(1)
        assert (heard_by_alice.inbox, heard_by_bob.inbox) == ([2], [1])
        assert alice.counters()["edge.push_slow"] >= 1
        wire.thaw()


@pytest.mark.parametrize("status", [404, 429, 503])
async def test_a_node_that_refuses_subscriptions_is_passed_over_and_named(status: int) -> None:
    async with EdgeNet() as net:
        grumpy = await net.scripted_node()
        grumpy.filter_status = status
        (good,) = await net.service_nodes(1)
        alice, heard_by_alice = await net.edge([*addresses(grumpy.host), *addresses(good)])
        await heard_by_alice.until(lambda: bool(alice.status().peers))
        await grumpy.until_asked(FilterSubscribeType.SUBSCRIBE, 2)
        reason = said(alice)
        assert reason.startswith("everything depends on one service node: 127.0.0.1:")
        assert f"refuses subscriptions ({status} as told)" in reason
        grumpy.filter_status = 200
        await heard_by_alice.until_level(TransportLevel.GOOD)


def test_the_usual_pace_is_one_that_a_strict_node_takes() -> None:
    pace = EdgePace()
    assert pace.filter_burst + 60 / pace.filter_interval_s <= STRICT_A_MINUTE


async def test_many_groups_made_one_after_another_share_filter_requests() -> None:
    """Making and leaving them takes less than a minute."""
    groups = [ContentTopic(f"/causerie/1/group{number}/proto") for number in range(40)]

    async with EdgeNet() as net:
        strict = await net.scripted_node()
        strict.filter_allowance = STRICT_A_MINUTE
        pace = replace(QUICK, filter_interval_s=1.0)
        alice, heard_by_alice = await net.edge(addresses(strict.host), pace=pace)
        await heard_by_alice.until_peers(1)
        (host,) = alice.hosts()
        assert isinstance(host, TcpHost)
        leave = []
        for group in groups:
            leave.append(alice.subscribe(group, lambda _message, _hash: None))
            for _ in range(5):  # time enough for a request of its own
                await host.ping(strict.host.peer_id)
        await heard_by_alice.until(lambda: strict.topics == {TOPIC, *groups})
        await heard_by_alice.until_peers(1)
        for each in leave:
            each()
            for _ in range(5):
                await host.ping(strict.host.peer_id)
        await heard_by_alice.until(lambda: strict.topics == {TOPIC})
        assert len(strict.asked) <= strict.filter_allowance
        counters = alice.counters()
        assert counters["edge.filter_request_shared"] >= 2
        assert "edge.filter_failed" not in counters
        assert "edge.unsubscribe_refused" not in counters


async def test_a_lost_subscription_is_noticed_by_a_ping_and_renewed() -> None:
    async with EdgeNet() as net:
        forgetful = await net.scripted_node()
        alice, heard_by_alice = await net.edge(addresses(forgetful.host), pace=PINGS_OFTEN)
        await heard_by_alice.until_peers(1)
        await forgetful.until_asked(FilterSubscribeType.SUBSCRIBER_PING)
        forgetful.filter_status = 404
        forgetful.topics.clear()
        await heard_by_alice.until(lambda: "edge.subscription_lost" in alice.counters())
        forgetful.filter_status = 200
        await heard_by_alice.until_peers(1)
        await heard_by_alice.until(lambda: forgetful.topics == {TOPIC})


async def test_a_subscription_lost_without_a_word_is_noticed_by_what_others_push() -> None:
    async with EdgeNet() as net:
        silent = await net.scripted_node()
        (good,) = await net.service_nodes(1)
        alice, heard_by_alice = await net.good_edge([*addresses(silent.host), *addresses(good)])
        bob, heard_by_bob = await net.edge(addresses(good))
        await heard_by_bob.until_peers(1)
        asked_before = silent.asked.count(FilterSubscribeType.SUBSCRIBE)
        await bob.publish(message(1))
        await silent.until_asked(FilterSubscribeType.SUBSCRIBE, asked_before + 1)
        assert heard_by_alice.inbox == [1]
        assert alice.counters()["edge.push_missed"] >= 1


@pytest.mark.parametrize(
    "status", [PushStatus.TOO_MANY_REQUESTS, PushStatus.UNAVAILABLE, PushStatus.NO_PEERS, 404]
)
async def test_a_node_that_takes_no_messages_is_passed_over(status: int) -> None:
    async with EdgeNet() as net:
        grumpy = await net.scripted_node()
        grumpy.push_status = status
        second, third = await net.service_nodes(2)
        alice, heard_by_alice = await net.edge([*addresses(grumpy.host), *addresses(second, third)])
        await heard_by_alice.until(lambda: len(alice.reach([FILTER_SUBSCRIBE_PROTOCOL])) == 3)
        assert (await alice.publish(message(1))).peers == 2
        assert grumpy.pushed == 1
        assert (await alice.publish(message(2))).peers == 2
        assert grumpy.pushed == 1, "it rests"


@pytest.mark.parametrize("echo_first", [True, False], ids=["echo first", "answer first"])
async def test_a_message_that_a_node_pushes_back_is_accepted_whatever_it_answers(
    echo_first: bool,
) -> None:
    """That is nwaku without a relay peer: it says 505, having archived and pushed the message."""
    async with EdgeNet() as net:
        lone = await net.scripted_node()
        lone.push_status = PushStatus.NO_PEERS
        lone.echoes = True
        pace = replace(QUICK, echo_s=PATIENCE_S)
        alice, heard_by_alice = await net.edge(addresses(lone.host), pace=pace)
        await heard_by_alice.until_peers(1)
        seen = len(heard_by_alice.told)
        if echo_first:
            lone.echo_freed.set()
        publishing = [asyncio.create_task(alice.publish(message(n))) for n in range(3)]
        if not echo_first:
            await heard_by_alice.until(
                lambda: alice.counters().get("edge.echo_awaited") == lone.pushed == 3
            )
            assert not any(each.done() for each in publishing)
            lone.echo_freed.set()
        assert [(await each).peers for each in publishing] == [1, 1, 1]
        assert (await alice.publish(message(4))).peers == 1
        assert heard_by_alice.inbox == []
        assert heard_by_alice.told[seen:] == []
        assert "edge.lightpush_failed" not in alice.counters()


async def test_a_node_with_no_peers_that_pushes_nothing_back_has_not_accepted() -> None:
    async with EdgeNet() as net:
        lone = await net.scripted_node()
        lone.push_status = PushStatus.NO_PEERS
        pace = replace(QUICK, echo_s=0.05)
        alice, heard_by_alice = await net.edge(addresses(lone.host), pace=pace)
        await heard_by_alice.until_peers(1)
        assert (await alice.publish(message(1))).peers == 0
        assert "takes no messages now (505 as told)" in said(alice)
        assert alice.counters()["edge.lightpush_failed"] == 1


async def test_a_message_that_another_node_accepted_waits_for_no_echo() -> None:
    async with EdgeNet() as net:
        lone, good, late = [await net.scripted_node() for _ in range(3)]
        lone.push_status = PushStatus.NO_PEERS
        pace = replace(QUICK, echo_s=1_000.0)
        alice, heard_by_alice = await net.edge(addresses(lone.host, good.host), pace=pace)
        await heard_by_alice.until_peers(2)
        assert (await alice.publish(message(1))).peers == 1
        assert (await alice.publish(message(2))).peers == 1
        assert (lone.pushed, good.pushed) == (1, 2), "it is in doubt"
        assert "edge.push_slow" not in alice.counters()
        alice.add_service_nodes(addresses(late.host))
        await heard_by_alice.until(lambda: len(alice.reach([LIGHTPUSH_PROTOCOL])) == 3)
        assert (await alice.publish(message(3))).peers == 2


async def test_nobody_waits_for_an_echo_that_cannot_come() -> None:
    """Nobody here is subscribed to the topic."""
    async with EdgeNet() as net:
        lone = await net.scripted_node()
        lone.push_status = PushStatus.NO_PEERS
        pace = replace(QUICK, echo_s=1_000.0)
        alice, heard_by_alice = await net.edge(addresses(lone.host), pace=pace)
        await heard_by_alice.until_peers(1)
        other = ContentTopic("/causerie/1/other/proto")
        assert (await alice.publish(message(1, other))).peers == 0


async def test_a_message_waits_for_a_node_that_is_only_busy() -> None:
    async with EdgeNet() as net:
        busy = await net.scripted_node()
        busy.push_status = PushStatus.TOO_MANY_REQUESTS
        alice, heard_by_alice = await net.edge(addresses(busy.host))
        await heard_by_alice.until_peers(1)
        publishing = asyncio.create_task(alice.publish(message(1)))
        await heard_by_alice.until(lambda: busy.pushed >= 2)
        assert not publishing.done()
        busy.push_status = PushStatus.SUCCESS
        assert (await publishing).peers == 1


async def test_a_node_that_was_busy_for_a_moment_counts_again_by_itself() -> None:
    async with EdgeNet() as net:
        busy = await net.scripted_node()
        good = await net.scripted_node()
        busy.push_status = PushStatus.TOO_MANY_REQUESTS
        alice, heard_by_alice = await net.good_edge(addresses(busy.host, good.host))
        seen = len(heard_by_alice.told)
        assert (await alice.publish(message(1))).peers == 1
        await heard_by_alice.until_level(TransportLevel.GOOD)
        told = heard_by_alice.told[seen:]
        levels = [status.level for status in told]
        once = [TransportLevel.MINIMAL, TransportLevel.GOOD]
        assert levels == once * (len(levels) // 2), "again where the good one is slow"
        assert "takes no messages now (429 as told)" in reason_words(connection_view(told[0]))


async def test_a_refused_message_is_not_repeated_for_ever() -> None:
    async with EdgeNet() as net:
        strict = await net.scripted_node()
        strict.push_status = PushStatus.INVALID_MESSAGE
        alice, heard_by_alice = await net.edge(addresses(strict.host))
        await heard_by_alice.until_peers(1)
        assert (await alice.publish(message(1))).peers == 0
        assert strict.pushed == 1
        assert "refused a message (420 as told)" in said(alice)
        strict.push_status = PushStatus.SUCCESS
        assert (await alice.publish(message(2))).peers == 1
        assert "refused" not in said(alice)


async def test_a_node_of_another_cluster_is_named_and_left_alone() -> None:
    async with EdgeNet() as net:
        foreign = await net.service_node(cluster=43)
        alice, heard_by_alice = await net.edge(addresses(foreign))
        await heard_by_alice.until(
            lambda: "it is in cluster 43, this device in cluster 42" in said(alice)
        )
        await heard_by_alice.until_level(TransportLevel.OFFLINE)
        assert (await alice.publish(message(1))).peers == 0


def test_wrong_addresses_are_named_in_the_reason_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with EdgeNet() as net:
            first, second = await net.service_nodes(2)
            stranger = addresses(second)[0].rpartition("/")[2]
            wrong = f"{peerless(first.addresses())[0]}/p2p/{stranger}"
            alice, heard_by_alice = await net.edge([wrong])
            await heard_by_alice.until(lambda: "expected was" in said(alice))
            assert f"expected was {stranger}" in said(alice)
            await heard_by_alice.until(lambda: alice.counters()["libp2p.dial_wrong_peer"] >= 2)
            alice.add_service_nodes(peerless(first.addresses()))
            alice.add_service_nodes(["/ip4/192.0.2.1/udp/1/quic-v1"])
            alice.add_service_nodes(["/ip4/192.0.2.1/udp/1/quic-v1"])
            assert alice.counters()["edge.service_node_unusable"] == 3

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    lines = [str(vars(record).get("problem")) for record in caplog.records]
    assert len([line for line in lines if "wrong_peer" in line]) == 1
    assert len([line for line in lines if "peer_not_named" in line]) == 1
    assert len([line for line in lines if "no_tcp" in line]) == 1


def test_a_bad_certificate_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with EdgeNet() as net:
            node = await net.service_node(websocket=True)
            plain = next(address for address in node.addresses() if "/ws/" in address)
            pem = certificate(tmp_path, [LOCALHOST])
            async with tls_proxy(pem, parse_multiaddr(plain)) as port:
                peer_id = plain.rpartition("/")[2]
                wss = f"/ip4/127.0.0.1/tcp/{port}/wss/p2p/{peer_id}"
                alice, heard_by_alice = await net.edge([wss])
                await heard_by_alice.until(lambda: "certificate" in said(alice))
                assert said(alice) == (
                    f"no service node answers: 127.0.0.1:{port} cannot be reached"
                    " (its certificate is not valid (self-signed certificate))"
                )
                relay, heard_by_relay = await net.relaying([wss])
                await heard_by_relay.until(
                    lambda: relay.counters().get("libp2p.dial_failed", 0) >= 2
                )
                await alice.stop()
                await relay.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    lines = [str(vars(record).get("problem")) for record in caplog.records]
    assert len([line for line in lines if "certificate" in line]) == 2, "each of them once"


async def test_nodes_are_exchanged_while_it_runs() -> None:
    async with EdgeNet() as net:
        first, second, third = await net.service_nodes(3)
        alice, heard_by_alice = await net.edge(addresses(first))
        await heard_by_alice.until_peers(1)
        await alice.set_service_nodes(addresses(second, third))
        await heard_by_alice.until_level(TransportLevel.GOOD)
        assert [node.order for node in alice.service_nodes()] == [0, 1]
        await heard_by_alice.until(lambda: first.gauges()["filter_subscribers"] == 0)
        assert second.gauges()["filter_subscribers"] == 1
        await alice.set_service_nodes([])
        assert alice.status().level is TransportLevel.OFFLINE
        assert alice.status().reason is ConnectionReason.NO_SERVICE_NODE


async def test_topics_come_and_go_at_every_node() -> None:
    other = ContentTopic("/causerie/1/other/proto")

    async with EdgeNet() as net:
        node = await net.scripted_node()
        alice, heard_by_alice = await net.edge(addresses(node.host))
        await heard_by_alice.until_peers(1)
        undo = alice.subscribe(other, lambda _message, _hash: None)
        undo_second = alice.subscribe(other, lambda _message, _hash: None)
        await node.until_asked(FilterSubscribeType.SUBSCRIBE, 2)
        assert node.topics == {TOPIC, other}
        undo()
        undo()
        undo_second()
        await node.until_asked(FilterSubscribeType.UNSUBSCRIBE)
        assert node.topics == {TOPIC}


async def test_a_hundred_topics_are_subscribed_in_requests_that_nodes_take() -> None:
    topics = [ContentTopic(f"/causerie/1/topic{number}/proto") for number in range(100)]

    async with EdgeNet() as net:
        node = await net.scripted_node()
        alice, heard_by_alice = await net.edge(addresses(node.host))
        for topic in topics:
            alice.subscribe(topic, lambda _message, _hash: None)
        await heard_by_alice.until_peers(1)
        assert node.topics == {TOPIC, *topics}


async def test_a_node_that_takes_few_requests_gets_all_topics_and_messages_in_time() -> None:
    topics = [ContentTopic(f"/causerie/1/topic{number}/proto") for number in range(100)]
    few = GateLimits(per_second=2, burst=1)
    patient = replace(QUICK, busy_rest_s=0.52, rest_cap_s=1, publish_timeout_s=PATIENCE_S)
    services = ServiceSettings(
        filter=FilterSettings(service=replace(FilterSettings().service, gate=few)),
        lightpush=LightpushSettings(service=replace(LightpushSettings().service, gate=few)),
    )

    async with EdgeNet() as net:
        node = await net.service_node(services=services)
        alice, heard_by_alice = await net.edge([], pace=patient)
        for topic in topics:
            alice.subscribe(topic, lambda _message, _hash: None)
        alice.add_service_nodes(addresses(node))
        await heard_by_alice.until_peers(1)
        assert alice.counters()["edge.subscribe_paced"] >= 1
        receipts = await asyncio.gather(*(alice.publish(message(number)) for number in range(3)))
        assert [receipt.peers for receipt in receipts] == [1, 1, 1]
        assert alice.counters()["edge.lightpush_failed"] >= 1, "it was busy"


async def test_stopped_and_started_again_it_is_subscribed_again() -> None:
    async with EdgeNet() as net:
        first, second = await net.service_nodes(2)
        alice, heard_by_alice = await net.good_edge(addresses(first, second))
        bob, _ = await net.edge(addresses(first, second))
        await alice.stop()
        assert (alice.status().level, alice.status().reason) == (
            TransportLevel.OFFLINE,
            ConnectionReason.NOT_STARTED,
        )
        assert (await alice.publish(message(0))).peers == 0
        await alice.start()
        with pytest.raises(LocalProtocolError):
            await alice.start()
        await heard_by_alice.until_level(TransportLevel.GOOD)
        await bob.publish(message(1))
        await heard_by_alice.until_heard(1)


async def test_what_cannot_be_published_is_our_own_mistake() -> None:
    async with EdgeNet() as net:
        alice, _ = await net.edge([])
        huge = WakuMessage(payload=bytes(200_000), content_topic=TOPIC)
        with pytest.raises(TransportError):
            await alice.publish(huge)
        with pytest.raises(LocalProtocolError):
            alice.subscribe(ContentTopic("nonsense"), lambda _message, _hash: None)
