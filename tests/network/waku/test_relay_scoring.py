"""Each part of the score, and what it leads to, with real relay sessions on streams in memory.

Heartbeats and the decay of scores come every few milliseconds here; nothing else is different.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from engine.codec.gossipsub import IHave, Prune, PublishedMessage, Rpc, Subscription, encode_rpc
from engine.core.errors import TransportError
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.gossip.score_params import ScoreParams, TopicScoreParams
from engine.network.waku.gossip.vocabulary import PEER
from engine.network.waku.protocols import RELAY_PROTOCOL
from engine.network.waku.relay.relay import RelaySettings
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.relay_net import TOPIC, Net, Node, waku_data
from tests.patience import PATIENCE_S

SOON = replace(PEER, heartbeat_interval_ms=10, iwant_followup_ms=20)
NEVER_MS = 10**9


def relaying(score: ScoreParams | None = None) -> RelaySettings:
    params = score or ScoreParams(decay_interval_ms=NEVER_MS)
    return RelaySettings(gossipsub=replace(SOON, score=params))


class Attacker:
    """Speaks gossipsub by hand, says what it likes, and hears everything."""

    def __init__(self, host: MemoryHost) -> None:
        self.host = host
        self.stream: Stream | None = None

    async def say(self, rpc: Rpc) -> None:
        await self.say_bytes(encode_rpc(rpc))

    async def say_bytes(self, data: bytes) -> None:
        assert self.stream is not None
        await self.stream.write(encode_frame(data))

    async def publish(self, data: bytes) -> None:
        await self.say(Rpc(publish=(PublishedMessage(topic=TOPIC, data=data),)))


async def attacker(net: Net, victim: Node, *, ip: str = "", name: str = "attacker") -> Attacker:
    host = net.wire.host(name)
    host.ip = ip
    host.set_stream_handler(RELAY_PROTOCOL, _swallow)
    await host.start()
    one = Attacker(host)
    await host.connect(f"/memory/{victim.host.peer_id}")
    one.stream = await host.new_stream(victim.host.peer_id, [RELAY_PROTOCOL])
    await one.say(Rpc(subscriptions=(Subscription(topic=TOPIC, subscribe=True),)))
    await victim.until(lambda: PeerId(name) in victim.relay.topic_peers(TOPIC))
    return one


async def _swallow(stream: Stream) -> None:
    with suppress(TransportError):
        while await stream.read_some(4_096):
            pass


async def until(condition: Callable[[], bool]) -> None:
    """For what no event tells: a score."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 -- see above
            await asyncio.sleep(0.005)


def run(scenario: Callable[[Net], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Net() as net:
            await scenario(net)
            for host in [*net.wire.hosts.values()]:
                if host not in [node.host for node in net.nodes]:
                    await host.stop()

    asyncio.run(whole())


# --- what is good ---------------------------------------------------------------------------------


def test_p1_a_peer_in_the_mesh_gains_a_little() -> None:
    async def scenario(net: Net) -> None:
        topic = TopicScoreParams(time_in_mesh_quantum_ms=1)
        one, other = await net.pair(relaying(ScoreParams(decay_interval_ms=10, topic=topic)))
        await until(lambda: one.relay.score(PeerId("other")) >= 0.1)
        await until(lambda: other.relay.score(PeerId("one")) >= 0.1)

    run(scenario)


def test_p2_whoever_brings_a_message_first_gains() -> None:
    async def scenario(net: Net) -> None:
        one, other = await net.pair()
        for number in range(4):
            await one.relay.publish(TOPIC, waku_data(number))
        await other.until(lambda: len(other.inbox) == 4)
        assert other.relay.score(PeerId("one")) == 4
        assert one.relay.score(PeerId("other")) == 0

    run(scenario)


# --- what is not ----------------------------------------------------------------------------------


def test_p3_a_mesh_peer_that_brings_nothing_is_pruned_and_what_it_owed_sticks() -> None:
    async def scenario(net: Net) -> None:
        topic = TopicScoreParams(
            mesh_message_deliveries_weight=-1,
            mesh_message_deliveries_threshold=5,
            mesh_message_deliveries_cap=10,
            mesh_message_deliveries_activation_ms=100,
            mesh_failure_penalty_weight=-1,
            mesh_failure_penalty_decay=0.999999,
        )
        victim = await net.node("victim", relaying(ScoreParams(decay_interval_ms=10, topic=topic)))
        await attacker(net, victim)
        await until(lambda: victim.counters["relay.pruned_for_score"] == 1)
        assert not victim.relay.mesh_peers(TOPIC)
        assert victim.relay.score(PeerId("attacker")) < -24  # P3 has ended, P3b has not

    run(scenario)


def test_p4_whoever_sends_invalid_messages_is_pruned_then_graylisted_and_the_others_are_not() -> (
    None
):
    async def scenario(net: Net) -> None:
        victim, honest = await net.pair(relaying())
        bad = await attacker(net, victim)
        await bad.publish(b"\xff invalid")
        await until(lambda: victim.relay.mesh_peers(TOPIC) == {PeerId("other")})
        for number in range(30):
            await bad.publish(b"\xff invalid %d" % number)
        await until(lambda: victim.counters["relay.graylisted"] > 0)
        assert victim.counters["relay.message_malformed"] == 11
        await bad.publish(waku_data(1))
        await honest.relay.publish(TOPIC, waku_data(2))
        await victim.until(lambda: victim.inbox == [2])
        await until(lambda: victim.counters["relay.graylisted"] == 21)
        assert victim.relay.score(PeerId("other")) >= 0
        assert honest.relay.score(victim.host.peer_id) >= 0
        assert honest.counters["relay.message_malformed"] == 0

    run(scenario)


def test_the_graylisted_are_not_heard_again_by_connecting_again() -> None:
    async def scenario(net: Net) -> None:
        victim = await net.node("victim", relaying())
        bad = await attacker(net, victim)
        for number in range(20):
            await bad.publish(b"\xff invalid %d" % number)
        await until(lambda: victim.counters["relay.graylisted"] == 9)
        await bad.host.disconnect(victim.host.peer_id)
        await bad.host.connect("/memory/victim")
        bad.stream = await bad.host.new_stream(victim.host.peer_id, [RELAY_PROTOCOL])
        await bad.publish(waku_data(1))
        await until(lambda: victim.counters["relay.graylisted"] == 10)
        assert victim.inbox == []

    run(scenario)


def test_p6_a_crowd_at_one_address_does_not_get_the_mesh() -> None:
    async def scenario(net: Net) -> None:
        victim = await net.node("victim", relaying())
        for number in range(7):
            await attacker(net, victim, ip="8.8.4.4", name=f"sybil{number}")
        await victim.until_meshed(0)
        honest = await net.node("honest", relaying(), ip="9.9.9.9")
        await honest.host.connect("/memory/victim")
        await victim.until_meshed(1)
        assert victim.relay.mesh_peers(TOPIC) == {PeerId("honest")}
        assert victim.relay.score(PeerId("sybil0")) == -200

    run(scenario)


def test_p7_whoever_promises_and_does_not_deliver_loses_until_its_gossip_is_ignored() -> None:
    async def scenario(net: Net) -> None:
        victim, honest = await net.pair(relaying())
        bad = await attacker(net, victim)
        number = 0
        async with asyncio.timeout(PATIENCE_S):
            while victim.counters["relay.ihave_ignored"] == 0 or (
                victim.relay.score(PeerId("attacker")) >= victim_threshold
            ):
                number += 1
                ihave = IHave(topic=TOPIC, message_ids=(number.to_bytes(32, "big"),))
                await bad.say(Rpc(ihave=(ihave,)))
                await asyncio.sleep(0.002)
        assert victim.counters["relay.promise_broken"] > 6
        await until(lambda: victim.relay.mesh_peers(TOPIC) == {PeerId("other")})
        assert victim.relay.score(PeerId("other")) >= 0
        assert honest.relay.score(victim.host.peer_id) >= 0

    victim_threshold = ScoreParams().gossip_threshold
    run(scenario)


def test_p7_whoever_grafts_again_and_again_within_the_back_off_loses() -> None:
    async def scenario(net: Net) -> None:
        victim = await net.node("victim", relaying())
        bad = await attacker(net, victim)
        await bad.say(Rpc(prune=(Prune(topic=TOPIC, backoff_s=60),)))
        await victim.until_meshed(0)
        for _ in range(5):
            await bad.say(Rpc(graft=(TOPIC,)))
        await until(lambda: victim.counters["relay.graft_during_backoff"] == 5)
        assert victim.relay.score(PeerId("attacker")) < -100
        assert not victim.relay.mesh_peers(TOPIC)

    run(scenario)


def test_own_messages_reach_the_mildly_bad_and_not_the_very_bad() -> None:
    async def scenario(net: Net) -> None:
        victim = await net.node("victim", relaying())
        mild = await attacker(net, victim, name="mild")
        bad = await attacker(net, victim, name="bad")
        await mild.publish(b"\xff invalid")
        for number in range(4):
            await bad.publish(b"\xff invalid %d" % number)
        await until(lambda: victim.counters["relay.message_malformed"] == 5)
        assert await victim.relay.publish(TOPIC, waku_data(1)) == 1

    run(scenario)
