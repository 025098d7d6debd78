"""What a node tells of its peers and of what happened is what happened; and it is bounded."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.core.ids import PubsubTopic
from engine.core.problems import LinkEnded, LinkReason, OtherCluster, Unreachable
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.link_log import MOST_EVENTS, LinkLog
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.score_params import ScoreParams
from engine.network.waku.gossip.scoring import PeerScores
from engine.network_views import LinkEventKind
from tests.network.libp2p.loopback_hosts import Proxy, running_hosts
from tests.network.node.loopback import Loopback, message

TOPIC = PubsubTopic("/waku/2/rs/16/0")
ELSEWHERE = parse_multiaddr("/ip4/192.0.2.1/tcp/1")


def address(number: int) -> str:
    return f"/ip4/192.0.{number // 256}.{number % 256}/tcp/{4_000 + number}"


async def test_a_node_tells_of_a_peer_what_it_measured() -> None:
    async with Loopback() as net:
        one = await net.node()
        two = await net.node(peers=one.node.addresses())
        await one.until_peers(1)
        await two.until_peers(1)
        receipt = await two.node.publish(message(1))
        await one.until_heard(1)
        assert receipt.taken is not None
        await receipt.taken  # The ping that confirms it is the one that is measured.
        (peer,) = two.node.facts().peers
        assert peer.outbound
        assert peer.is_kept
        assert f"{peer.address}/p2p/{peer.peer_id}" in one.node.addresses()
        assert peer.round_trip_ms is not None
        assert 0 <= peer.round_trip_ms < 5_000
        assert peer.bytes_in > 0
        assert peer.relay is not None
        assert peer.relay.of_topics == peer.relay.topics == 1
        (seen,) = one.node.facts().peers
        assert seen.bytes_in == peer.bytes_out
        assert not seen.outbound
        assert seen.relay is not None
        assert seen.relay.score.first_deliveries > 0, "it brought a message first"
        assert seen.since_ms == one.node.facts().events[0].at_ms


async def test_why_a_connection_ended_is_told_by_each_side_from_what_it_knows() -> None:
    async with running_hosts(3) as (one, two, three):
        for other in (two, three):
            await one.connect(other.addresses()[0])
        gone = asyncio.get_running_loop().create_future()
        three.on_peer_disconnected(gone.set_result)
        await one.disconnect(two.peer_id)
        await one.disconnect(three.peer_id, OtherCluster(1, 16))
        await gone
        newest, before, *_ = one.facts().events
        assert (newest.kind, newest.problem) == (LinkEventKind.CLOSED, OtherCluster(1, 16))
        assert before.problem == LinkEnded(LinkReason.WE_CLOSED)
        assert three.facts().events[0].problem == LinkEnded(LinkReason.PEER_CLOSED)
        assert one.facts().peers == ()


async def test_a_frozen_peer_is_told_to_have_been_silent() -> None:
    limits = HostLimits(ping_interval_ms=20, ping_timeout_ms=60)
    async with running_hosts(2, limits=limits) as (one, two), Proxy(two.addresses()[0]) as proxy:
        gone = asyncio.get_running_loop().create_future()
        one.on_peer_disconnected(gone.set_result)
        await one.connect(proxy.address)
        proxy.freeze()
        await gone
        assert one.facts().events[0].problem == LinkEnded(LinkReason.SILENT)


def test_strangers_who_knock_push_out_nothing_that_happened_to_peers() -> None:
    now = iter(range(1_000_000))
    log = LinkLog(lambda: next(now))
    log.connected(PeerId("peer"), ELSEWHERE, outbound=True)
    for number in range(3 * MOST_EVENTS):
        at = parse_multiaddr(address(number))
        log.not_admitted(at, "handshakes_limit")
        log.handshake_failed(at, RemoteProtocolError("noise_bad_mac"))
    events = log.events()
    assert len(events) == MOST_EVENTS + 1
    assert events[-1].kind is LinkEventKind.CONNECTED
    assert [event.at_ms for event in events] == sorted(
        (event.at_ms for event in events), reverse=True
    )


def test_the_same_vain_dial_again_only_counts() -> None:
    now = iter((1, 2, 3, 4))
    log = LinkLog(lambda: next(now))
    silent = TransportError("no answer", TransportFault.NO_ANSWER)
    for _ in range(3):
        log.not_reached(ELSEWHERE, silent)
    log.not_reached(ELSEWHERE, TransportError("refused", TransportFault.CLOSED))
    newest, counted = log.events()
    assert (counted.times, counted.first_ms, counted.at_ms) == (3, 1, 3)
    assert counted.problem == Unreachable(TransportFault.NO_ANSWER)
    assert newest.times == 1


@given(
    st.lists(st.tuples(st.sampled_from("gfipmd"), st.integers(0, 3)), max_size=40),
    st.sampled_from((0.0, 2.0)),
)
def test_the_parts_of_a_score_are_the_score(doings: list[tuple[str, int]], cap: float) -> None:
    params = ScoreParams(topic_score_cap=cap, ip_colocation_factor_threshold=1)
    scores, random = PeerScores(params), Random(1)
    peers = [PeerId(f"peer {number}") for number in range(4)]
    for peer_id in peers:
        scores.connected(peer_id, address="192.0.2.1")
    for now_s, (doing, number) in enumerate(doings):
        peer_id, now_ms = peers[number], now_s * 1_500
        scores.refresh(now_ms=now_ms)
        match doing:
            case "g":
                scores.grafted(peer_id, TOPIC, now_ms=now_ms)
            case "f":
                scores.delivered_first(peer_id, TOPIC, random.randbytes(8), now_ms=now_ms)
            case "i":
                scores.delivered_invalid(peer_id, TOPIC)
            case "p":
                scores.pruned(peer_id, TOPIC)
            case "m":
                scores.misbehaved(peer_id, 8)
            case _:
                scores.disconnected(peer_id, now_ms=now_ms)
        for each in peers:
            assert scores.parts(each).total == pytest.approx(scores.score(each))
