"""What scores lead to in the router: mesh, gossip, publishing, the graylist; and under loss."""

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from engine.codec.gossipsub import IHave, Prune, PublishedMessage, Rpc, decode_rpc, encode_rpc
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.score_params import ScoreParams
from engine.network.waku.gossip.vocabulary import (
    HUB,
    DeadlineReached,
    GossipsubSettings,
    Input,
    Join,
    MalformedReceived,
    PeerGone,
    PeerReady,
    Publish,
    RpcReceived,
    SendControl,
    Transition,
)
from tests.network.waku.gossip_bench import (
    TOPIC,
    Bench,
    controls,
    id_of,
    joined,
    peers,
    recipients,
    waku_data,
)

STRICT = GossipsubSettings(score=ScoreParams(behaviour_penalty_threshold=0))


def misbehave(bench: Bench, peer_id: PeerId, times: int) -> None:
    for _ in range(times):
        bench(MalformedReceived(peer_id=peer_id, reason="rpc_malformed"))


def send_invalid(bench: Bench, peer_id: PeerId, times: int) -> None:
    for number in range(times):
        bench.hear_message(peer_id, b"\xff" + number.to_bytes(2, "big"))


def beat(bench: Bench, times: int) -> None:
    for _ in range(times):
        bench.heartbeat()


# --- the thresholds -------------------------------------------------------------------------------


def test_below_zero_a_peer_is_pruned_and_not_grafted_nor_let_in_again() -> None:
    bench, (peer_id,) = joined(1)
    send_invalid(bench, peer_id, 1)
    assert bench.router.score(peer_id) == -100
    assert controls(bench.heartbeat())[peer_id].prune == (Prune(topic=TOPIC, backoff_s=60),)
    assert bench.counters["relay.pruned_for_score"] == 1
    beat(bench, 61)  # The back-off is over, and the score is not yet forgotten.
    assert bench.router.score(peer_id) < 0
    assert not bench.router.mesh_peers(TOPIC)
    assert controls(bench.hear(peer_id, Rpc(graft=(TOPIC,))))[peer_id].prune
    assert bench.counters["relay.graft_refused"] == 1
    beat(bench, 62)  # The back-off again: it was refreshed.
    assert bench.router.mesh_peers(TOPIC) == {peer_id}


def test_at_the_gossip_threshold_there_still_is_gossip_and_below_none() -> None:
    bench, everybody = joined(2, replace(STRICT, d=2, d_low=2, d_out=0))
    outsider, source = everybody
    bench.hear(outsider, Rpc(prune=(Prune(topic=TOPIC, backoff_s=3_000),)))
    send_invalid(bench, outsider, 1)
    for is_above in (True, False):
        assert (bench.router.score(outsider) >= -100) is is_above
        data = waku_data(f"news {is_above}")
        bench.hear_message(source, data)
        told = controls(bench.heartbeat()).get(outsider, Rpc())
        assert bool(told.ihave) is is_above
        asked = bench.hear(outsider, Rpc(ihave=(IHave(topic=TOPIC, message_ids=(b"i" * 32,)),)))
        assert bool(controls(asked)) is is_above
        assert (recipients(bench.hear(outsider, Rpc(iwant=(id_of(data),)))) != []) is is_above
        misbehave(bench, outsider, 1)
    assert bench.counters["relay.ihave_ignored"] == 1
    assert bench.counters["relay.iwant_ignored"] == 1


@pytest.mark.parametrize("flood_publish", [True, False])
def test_own_messages_go_to_nobody_below_the_publish_threshold(*, flood_publish: bool) -> None:
    bench, everybody = joined(2, replace(STRICT, flood_publish=flood_publish))
    send_invalid(bench, everybody[0], 3)
    assert bench.router.score(everybody[0]) == -900
    assert everybody[0] in recipients(bench(Publish(topic=TOPIC, data=waku_data("1"))))
    send_invalid(bench, everybody[0], 4)
    assert bench.router.score(everybody[0]) < -1_000
    told = recipients(bench(Publish(topic=TOPIC, data=waku_data("2"))))
    assert told == [everybody[1]]


def test_a_fanout_has_nobody_below_the_publish_threshold() -> None:
    bench = Bench(replace(STRICT, flood_publish=False))
    bad, good = bench.subscribers(2)
    assert recipients(bench(Publish(topic=TOPIC, data=waku_data("1")))) == [bad, good]
    misbehave(bench, bad, 11)
    bench.heartbeat()
    assert recipients(bench(Publish(topic=TOPIC, data=waku_data("2")))) == [good]


def test_below_the_graylist_threshold_nothing_is_heard_until_it_is_forgiven() -> None:
    bench, (peer_id, _) = joined(2)
    send_invalid(bench, peer_id, 10)
    assert not bench.router.is_graylisted(peer_id)
    bench.hear_message(peer_id, b"\xff\x00\x00")  # One of them again costs as much.
    assert bench.router.is_graylisted(peer_id)
    assert peer_id not in bench.router.topic_peers(TOPIC)
    assert bench.hear_message(peer_id, waku_data("x")) == Transition()
    assert bench.counters["relay.graylisted"] == 1
    bench(PeerGone(peer_id=peer_id))
    bench(PeerReady(peer_id=peer_id))
    assert bench.router.is_graylisted(peer_id)  # Dialling again does not help.
    beat(bench, 24)
    assert bench.hear_message(peer_id, waku_data("y")).delivered


# --- what costs -----------------------------------------------------------------------------------


def test_whoever_repeats_an_invalid_message_is_no_better_than_who_brought_it() -> None:
    bench, (first, second) = joined(2)
    for peer_id in (first, second, second):
        bench.hear_message(peer_id, b"\xff")
    assert (bench.router.score(first), bench.router.score(second)) == (-100, -400)
    assert bench.counters["relay.message_malformed"] == 1


def test_a_message_that_is_only_ignored_costs_nothing() -> None:
    bench, (peer_id,) = joined(1)
    for _ in range(2):
        bench.hear_message(peer_id, waku_data("x", "/not-a-topic"))
    assert bench.router.score(peer_id) == 0


def test_delivering_first_is_rewarded_and_delivering_again_is_not() -> None:
    bench, (first, second) = joined(2)
    for number in range(5):
        bench.hear_message(first, waku_data(str(number)))
        bench.hear_message(second, waku_data(str(number)))
    assert (bench.router.score(first), bench.router.score(second)) == (5, 0)


def test_promising_and_not_delivering_costs_more_each_time() -> None:
    bench, (peer_id, other) = joined(2, STRICT)
    kept = waku_data("kept")
    bench.hear(peer_id, Rpc(ihave=(IHave(topic=TOPIC, message_ids=(id_of(kept),)),)))
    bench.hear_message(other, kept)  # From anybody: the promise is kept.
    for number in range(40):
        ihave = IHave(topic=TOPIC, message_ids=(bytes([number]) * 32,))
        bench.hear(peer_id, Rpc(ihave=(ihave,)))
        bench.heartbeat()
    assert bench.counters["relay.promise_broken"] > 3
    assert bench.router.score(peer_id) < -100
    assert bench.counters["relay.ihave_ignored"] > 0
    assert bench.router.score(other) >= 0


def test_a_graft_during_back_off_costs_and_twice_if_it_comes_at_once() -> None:
    bench, (peer_id,) = joined(1, STRICT)
    bench.hear(peer_id, Rpc(prune=(Prune(topic=TOPIC, backoff_s=60),)))
    bench.now_ms += 10_000
    bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    assert bench.router.score(peer_id) == -10
    bench.hear(peer_id, Rpc(graft=(TOPIC,)))  # The back-off began anew just now.
    assert bench.router.score(peer_id) == -10 * 3**2
    assert bench.counters["relay.graft_during_backoff"] == 2


def test_a_few_accidents_cost_nothing() -> None:
    """A lost PRUNE, a restart within a back-off, a message lost on its way."""
    bench, (peer_id,) = joined(1)
    bench.hear(peer_id, Rpc(prune=(Prune(topic=TOPIC, backoff_s=60),)))
    for _ in range(3):
        bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    assert bench.router.score(peer_id) == 0


def test_many_peers_at_one_address_stay_out_of_the_mesh() -> None:
    bench = Bench()
    bench(Join(topic=TOPIC))
    for peer_id in peers(6):
        bench(PeerReady(peer_id=peer_id, host="8.8.8.8"))
    assert {bench.router.score(peer_id) for peer_id in peers(6)} == {-50}
    near = Bench()
    for peer_id in peers(60):
        near(PeerReady(peer_id=peer_id, host="192.168.1.1"))
    assert {near.router.score(peer_id) for peer_id in peers(60)} == {0}
    team = Bench(HUB)
    for peer_id in peers(60):
        team(PeerReady(peer_id=peer_id, host="8.8.8.8"))
    assert {team.router.score(peer_id) for peer_id in peers(60)} == {0}


# --- a mesh that is too large, or that nothing comes from -----------------------------------------


def crowded(*, outbound: int) -> tuple[Bench, list[PeerId]]:
    """Eight in the mesh who grafted us, and then those that we dialled, who may come on top."""
    bench = Bench()
    bench(Join(topic=TOPIC))
    everybody = bench.subscribers(8 + outbound, outbound=outbound)
    for peer_id in everybody:
        bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    assert bench.router.mesh_peers(TOPIC) == set(everybody)
    return bench, everybody


def test_past_d_high_the_best_stay_and_as_many_as_wanted_of_those_we_dialled() -> None:
    bench, everybody = crowded(outbound=4)
    best, dialled = everybody[:4], everybody[8:]
    for number, peer_id in enumerate(best):
        bench.hear_message(peer_id, waku_data(str(number)))
    pruned = {p for p, rpc in controls(bench.heartbeat()).items() if rpc.prune}
    staying = bench.router.mesh_peers(TOPIC)
    assert len(staying) == bench.settings.d_keep
    assert len(staying & set(dialled)) >= bench.settings.d_out
    assert len(staying & set(best)) >= bench.settings.d_keep - bench.settings.d_out
    assert pruned == set(everybody) - staying


def test_an_inbound_graft_past_d_high_is_refused() -> None:
    bench, everybody = crowded(outbound=0)
    late = PeerId("peer999")
    bench(PeerReady(peer_id=late))
    assert controls(bench.hear(late, Rpc(graft=(TOPIC,))))[late].prune
    assert bench.router.mesh_peers(TOPIC) == set(everybody)


def test_a_mesh_of_those_who_dialled_us_is_given_some_that_we_dialled() -> None:
    bench = Bench()
    bench(Join(topic=TOPIC))
    everybody = bench.subscribers(9, outbound=3)
    assert bench.router.mesh_peers(TOPIC) == set(everybody[:6])
    bench.heartbeat()
    assert bench.router.mesh_peers(TOPIC) == set(everybody)


def test_a_hub_that_is_overrun_keeps_most() -> None:
    bench = Bench(HUB)
    bench(Join(topic=TOPIC))
    everybody = bench.subscribers(131, outbound=3)
    for peer_id in everybody:
        bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    bench.heartbeat()
    assert len(bench.router.mesh_peers(TOPIC)) == HUB.d_keep


@pytest.mark.parametrize(("threshold", "helps"), [(1.0, True), (0.0, False)])
def test_out_of_a_mesh_of_idlers_the_router_grafts_who_does_something(
    threshold: float, *, helps: bool
) -> None:
    score = ScoreParams(opportunistic_graft_threshold=threshold)
    bench, everybody = joined(9, GossipsubSettings(score=score))
    active = sorted(set(everybody) - bench.router.mesh_peers(TOPIC))
    for beats in range(1, 121):
        for peer_id in active:
            bench.hear_message(peer_id, waku_data(f"{beats} {peer_id}"))
        bench.heartbeat()
        if beats < 60:
            assert not bench.router.mesh_peers(TOPIC) & set(active)
    in_mesh = bench.router.mesh_peers(TOPIC) & set(active)
    assert (len(in_mesh) >= 2) is helps
    assert (bench.counters["relay.grafted_opportunistically"] > 0) is helps


# --- networks that lose ---------------------------------------------------------------------------


class LossyNetwork:
    """Routers on links that lose RPCs, whole ones, as a queue that is full does."""

    def __init__(self, links: list[tuple[int, int]], *, seed: int, loss: float) -> None:
        self.random = Random(seed)
        self.loss = loss
        count = 1 + max(max(link) for link in links)
        self.ids = peers(count)
        self.benches = {p: Bench(seed=n) for n, p in enumerate(self.ids)}
        self.heard: dict[PeerId, set[bytes]] = {p: set() for p in self.ids}
        self.wire: list[tuple[PeerId, PeerId, bytes]] = []
        self.worst = 0.0
        for peer_id in self.ids:
            self.step(peer_id, Join(topic=TOPIC))
        for one, other in links:
            a, b = self.ids[one], self.ids[other]
            self.step(a, PeerReady(peer_id=b, outbound=True))
            self.step(b, PeerReady(peer_id=a))
        self.settle(loss=0.0)

    def step(self, at: PeerId, input_: Input) -> None:
        transition = self.benches[at](input_)
        self.heard[at].update(item.message.payload for item in transition.delivered)
        for send in transition.sends:
            if isinstance(send, SendControl):
                self.wire.append((at, send.peer_id, encode_rpc(send.rpc)))
                continue
            message = PublishedMessage(topic=send.topic, data=send.data)
            frame = encode_rpc(Rpc(publish=(message,)))
            self.wire += [(at, peer_id, frame) for peer_id in send.peer_ids]

    def settle(self, *, loss: float) -> None:
        while self.wire:
            sender, receiver, frame = self.wire.pop(0)
            if self.random.random() >= loss:
                rpc = decode_rpc(frame).rpc
                self.step(receiver, RpcReceived(peer_id=sender, rpc=rpc))

    def second(self) -> None:
        for peer_id, bench in self.benches.items():
            bench.now_ms += 1_000
            self.step(peer_id, DeadlineReached())
        self.settle(loss=self.loss)
        self.worst = min(
            self.worst,
            *(b.router.score(p) for b in self.benches.values() for p in self.ids),
        )


def ring(count: int) -> list[tuple[int, int]]:
    return [(index, (index + 1) % count) for index in range(count)]


def star(count: int) -> list[tuple[int, int]]:
    return [(index, 0) for index in range(1, count)]


def everybody_knows(count: int) -> list[tuple[int, int]]:
    return [(one, other) for other in range(count) for one in range(other)]


@pytest.mark.parametrize("topology", [ring, star, everybody_knows])
@pytest.mark.parametrize("loss", [0.02, 0.1])
def test_honest_peers_under_loss_stay_above_the_gossip_threshold(
    topology: Callable[[int], list[tuple[int, int]]], loss: float
) -> None:
    network = LossyNetwork(topology(12), seed=1, loss=loss)
    for second in range(300):
        author = network.random.choice(network.ids)
        network.step(author, Publish(topic=TOPIC, data=waku_data(str(second))))
        network.second()
    assert network.worst > ScoreParams().gossip_threshold
