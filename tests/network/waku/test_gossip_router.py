"""One router, told what its peers say."""

import pytest

from engine.codec.gossipsub import (
    IHave,
    Prune,
    PublishedMessage,
    Rpc,
    Subscription,
)
from engine.core.errors import ConfigError
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.vocabulary import (
    HUB,
    GossipsubSettings,
    Join,
    Leave,
    MalformedReceived,
    PeerGone,
    PeerReady,
    Publish,
    SendMessage,
    Transition,
)
from tests.network.waku.gossip_bench import (
    OTHER,
    TOPIC,
    Bench,
    controls,
    id_of,
    joined,
    peers,
    recipients,
    waku_data,
)

# --- subscriptions and mesh -----------------------------------------------------------------------


def test_a_new_peer_is_told_our_topics() -> None:
    bench = Bench()
    bench(Join(topic=TOPIC))
    hello = controls(bench(PeerReady(peer_id=peers(1)[0])))[peers(1)[0]]
    assert hello.subscriptions == (Subscription(topic=TOPIC, subscribe=True),)


def test_a_subscriber_is_grafted_at_once_up_to_d() -> None:
    bench, everybody = joined(20)
    assert len(bench.router.mesh_peers(TOPIC)) == bench.settings.d
    assert bench.router.topic_peers(TOPIC) == set(everybody)


def test_joining_late_grafts_those_who_are_there() -> None:
    bench = Bench()
    bench.subscribers(20)
    asked = controls(bench(Join(topic=TOPIC)))
    grafted = {peer_id for peer_id, rpc in asked.items() if rpc.graft == (TOPIC,)}
    assert grafted == bench.router.mesh_peers(TOPIC)
    assert len(grafted) == bench.settings.d
    assert all(rpc.subscriptions for rpc in asked.values())


def test_grafts_are_taken_up_to_d_high_and_then_pruned_with_a_back_off() -> None:
    bench, everybody = joined(12)
    for peer_id in everybody:
        answer = controls(bench.hear(peer_id, Rpc(graft=(TOPIC,))))
        if peer_id not in bench.router.mesh_peers(TOPIC):
            assert answer[peer_id].prune == (Prune(topic=TOPIC, backoff_s=60),)
    assert len(bench.router.mesh_peers(TOPIC)) == bench.settings.d_high


def test_a_hub_keeps_everybody() -> None:
    bench, everybody = joined(100, HUB)
    for peer_id in everybody:
        bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    for _ in range(5):
        bench.heartbeat()
    assert bench.router.mesh_peers(TOPIC) == set(everybody)


def test_a_graft_for_a_topic_that_we_did_not_join_gets_no_answer() -> None:
    bench, (peer_id,) = joined(1)
    assert bench.hear(peer_id, Rpc(graft=(OTHER,))) == Transition()
    assert bench.counters["relay.graft_unknown_topic"] == 1


def test_whoever_pruned_us_is_left_alone_for_as_long_as_it_said() -> None:
    bench, (peer_id,) = joined(1)
    assert bench.router.mesh_peers(TOPIC) == {peer_id}
    bench.hear(peer_id, Rpc(prune=(Prune(topic=TOPIC, backoff_s=30),)))
    for _ in range(29):
        bench.heartbeat()
        assert not bench.router.mesh_peers(TOPIC)
    asked = [bench.heartbeat(), bench.heartbeat()]
    assert any(controls(step).get(peer_id, Rpc()).graft == (TOPIC,) for step in asked)


@pytest.mark.parametrize(
    ("backoff_s", "waits_s"), [(None, 60), (0, 60), (2**63, 3_600), (5, 5)], ids=str
)
def test_a_back_off_has_a_default_and_an_upper_bound(backoff_s: int | None, waits_s: int) -> None:
    bench, (peer_id,) = joined(1)
    bench.hear(peer_id, Rpc(prune=(Prune(topic=TOPIC, backoff_s=backoff_s),)))
    bench.now_ms += waits_s * 1_000 - 1
    bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    assert bench.counters["relay.graft_during_backoff"] == 1
    bench, (peer_id,) = joined(1)
    bench.hear(peer_id, Rpc(prune=(Prune(topic=TOPIC, backoff_s=backoff_s),)))
    bench.now_ms += waits_s * 1_000
    bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    assert bench.router.mesh_peers(TOPIC) == {peer_id}


def test_grafting_during_back_off_is_refused_even_after_dialling_again() -> None:
    bench, (peer_id,) = joined(1)
    bench.hear(peer_id, Rpc(prune=(Prune(topic=TOPIC, backoff_s=30),)))
    bench(PeerGone(peer_id=peer_id))
    bench.subscribers(1)
    answer = bench.hear(peer_id, Rpc(graft=(TOPIC,)))
    assert controls(answer)[peer_id].prune
    assert not bench.router.mesh_peers(TOPIC)


def test_leaving_prunes_the_mesh_and_says_so_to_everybody() -> None:
    bench, everybody = joined(8)
    members = bench.router.mesh_peers(TOPIC)
    said = controls(bench(Leave(topic=TOPIC)))
    assert set(said) == set(everybody)
    assert {peer_id for peer_id, rpc in said.items() if rpc.prune} == members
    unsubscribed = (Subscription(topic=TOPIC, subscribe=False),)
    assert all(rpc.subscriptions == unsubscribed for rpc in said.values())
    assert bench(Leave(topic=TOPIC)) == Transition()


def test_who_unsubscribes_leaves_the_mesh_and_the_heartbeat_finds_others() -> None:
    bench, _ = joined(20)
    for peer_id in sorted(bench.router.mesh_peers(TOPIC))[:4]:
        bench.hear(peer_id, Rpc(subscriptions=(Subscription(topic=TOPIC, subscribe=False),)))
    assert len(bench.router.mesh_peers(TOPIC)) == 2
    bench.heartbeat()
    assert len(bench.router.mesh_peers(TOPIC)) == bench.settings.d


def test_after_a_broken_stream_hello_and_graft_are_said_again() -> None:
    bench, (peer_id,) = joined(1)
    again = controls(bench(PeerReady(peer_id=peer_id)))[peer_id]
    assert again.graft == (TOPIC,)
    assert again.subscriptions == (Subscription(topic=TOPIC, subscribe=True),)


# --- messages -------------------------------------------------------------------------------------


def test_a_valid_message_is_delivered_and_forwarded_to_the_mesh_but_not_back() -> None:
    bench, everybody = joined(12)
    sender = everybody[0]
    step = bench.hear_message(sender, waku_data("hello"))
    assert [item.message.payload for item in step.delivered] == [b"hello"]
    assert set(recipients(step)) == bench.router.mesh_peers(TOPIC) - {sender}


def test_a_second_copy_is_neither_delivered_nor_forwarded() -> None:
    bench, everybody = joined(3)
    bench.hear_message(everybody[0], waku_data("once"))
    assert bench.hear_message(everybody[1], waku_data("once")) == Transition()
    assert bench.counters["relay.duplicate"] == 1


def test_a_message_is_remembered_for_two_minutes() -> None:
    bench, (peer_id,) = joined(1)
    bench.hear_message(peer_id, waku_data("x"))
    for _ in range(119):
        bench.heartbeat()
    assert not bench.hear_message(peer_id, waku_data("x")).delivered
    bench.heartbeat()
    assert bench.hear_message(peer_id, waku_data("x")).delivered


def test_the_seen_cache_is_bounded_and_says_so() -> None:
    bench, (peer_id,) = joined(1, GossipsubSettings(max_seen=10))
    for number in range(15):
        bench.hear_message(peer_id, waku_data(str(number)))
    assert bench.counters["relay.seen_cache_full"] == 5


def test_own_messages_flood_to_every_subscriber() -> None:
    bench, everybody = joined(20)
    step = bench(Publish(topic=TOPIC, data=waku_data("mine")))
    assert sorted(recipients(step)) == everybody
    assert not step.delivered
    assert not bench.hear_message(everybody[0], waku_data("mine")).delivered


def test_without_flooding_own_messages_go_to_the_mesh() -> None:
    bench, _ = joined(20, GossipsubSettings(flood_publish=False))
    step = bench(Publish(topic=TOPIC, data=waku_data("mine")))
    assert set(recipients(step)) == bench.router.mesh_peers(TOPIC)


def test_publishing_to_a_topic_that_we_did_not_join_uses_a_steady_fanout() -> None:
    bench = Bench(GossipsubSettings(flood_publish=False))
    bench.subscribers(20)
    first = set(recipients(bench(Publish(topic=TOPIC, data=waku_data("1")))))
    bench.heartbeat()
    second = set(recipients(bench(Publish(topic=TOPIC, data=waku_data("2")))))
    assert first == second
    assert len(first) == bench.settings.d
    bench(Join(topic=TOPIC))
    assert bench.router.mesh_peers(TOPIC) == first


def test_a_fanout_is_forgotten_after_a_minute() -> None:
    bench = Bench(GossipsubSettings(flood_publish=False, d=2, d_low=1, d_out=0))
    bench.subscribers(50)
    chosen = {
        frozenset(recipients(bench(Publish(topic=TOPIC, data=waku_data(str(minute))))))
        for minute in range(5)
        if [bench.heartbeat() for _ in range(61)]
    }
    assert len(chosen) > 1


def test_nobody_there_means_no_recipients() -> None:
    bench = Bench()
    bench(Join(topic=TOPIC))
    assert recipients(bench(Publish(topic=TOPIC, data=waku_data("x")))) == []


@pytest.mark.parametrize(
    ("data", "reason", "blamed"),
    [
        (b"\xff garbage", "message_malformed", True),
        (b"\x0a\x02hi", "content_topic_missing", False),
        (waku_data("x", "/not-a-topic"), "content_topic_malformed", False),
    ],
)
def test_an_invalid_message_is_counted_and_goes_no_further(
    data: bytes, reason: str, *, blamed: bool
) -> None:
    bench, everybody = joined(3)
    assert bench.hear_message(everybody[0], data) == Transition()
    assert bench.counters[f"relay.{reason}"] == 1
    for number in range(10):
        bench.hear_message(everybody[0], data + b"\x78" + bytes([number]))
    assert bench.router.is_graylisted(everybody[0]) is blamed


def test_messages_of_other_topics_are_left_lying() -> None:
    bench, (peer_id,) = joined(1)
    message = PublishedMessage(topic=OTHER, data=waku_data("x"))
    assert bench.hear(peer_id, Rpc(publish=(message,))) == Transition()
    assert bench.counters["relay.topic_not_joined"] == 1


def test_a_stranger_is_not_heard() -> None:
    bench, _ = joined(0)
    assert bench.hear_message(PeerId("stranger"), waku_data("x")) == Transition()
    assert bench.counters["relay.unknown_peer"] == 1


# --- gossip ---------------------------------------------------------------------------------------


def test_peers_outside_the_mesh_are_told_what_they_may_have_missed() -> None:
    bench, everybody = joined(12)
    data = waku_data("news")
    bench.hear_message(everybody[0], data)
    for expected in (True, True, True, False):
        gossip = {p: rpc.ihave for p, rpc in controls(bench.heartbeat()).items() if rpc.ihave}
        assert bool(gossip) is expected
        assert not bench.router.mesh_peers(TOPIC) & set(gossip)
        assert all(
            said == (IHave(topic=TOPIC, message_ids=(id_of(data),)),) for said in gossip.values()
        )
        assert len(gossip) in (0, bench.settings.d_lazy)


def test_what_is_unknown_is_asked_for_once_and_what_is_known_is_not() -> None:
    bench, (peer_id,) = joined(1)
    known, unknown = waku_data("known"), b"u" * 32
    bench.hear_message(peer_id, known)
    ihave = IHave(topic=TOPIC, message_ids=(id_of(known), unknown, unknown))
    assert controls(bench.hear(peer_id, Rpc(ihave=(ihave,))))[peer_id].iwant == (unknown,)
    foreign = IHave(topic=OTHER, message_ids=(b"v" * 32,))
    assert bench.hear(peer_id, Rpc(ihave=(foreign,))) == Transition()


def test_a_message_is_served_three_times_to_one_peer_while_it_is_cached() -> None:
    bench, (peer_id, other) = joined(2)
    data = waku_data("wanted")
    bench.hear_message(other, data)
    served = [recipients(bench.hear(peer_id, Rpc(iwant=(id_of(data),)))) for _ in range(4)]
    assert served == [[peer_id], [peer_id], [peer_id], []]
    assert recipients(bench.hear(other, Rpc(iwant=(id_of(data), b"?" * 32)))) == [other]
    for _ in range(5):
        bench.heartbeat()
    assert recipients(bench.hear(other, Rpc(iwant=(id_of(data),)))) == []


def test_the_message_cache_is_bounded_in_bytes_and_drops_the_oldest() -> None:
    bench, (peer_id,) = joined(1, GossipsubSettings(max_cached_bytes=10_000))
    data = [waku_data(str(number) * 900) for number in range(10)]
    for item in data:
        bench.hear_message(peer_id, item)
    assert bench.counters["relay.message_cache_full"] > 0
    served = bench.hear(peer_id, Rpc(iwant=tuple(map(id_of, data))))
    assert 0 < len(recipients(served)) < 10
    newest = [send for send in served.sends if isinstance(send, SendMessage)][-1]
    assert newest.data == data[-1]


def test_asking_is_bounded_per_heartbeat() -> None:
    bench, (peer_id,) = joined(1, GossipsubSettings(max_ihave_length=10))
    fresh = iter(range(1_000))
    asked = 0
    for _ in range(3):
        ids = tuple(next(fresh).to_bytes(32, "big") for _ in range(8))
        said = bench.hear(peer_id, Rpc(ihave=(IHave(topic=TOPIC, message_ids=ids),)))
        asked += sum(len(rpc.iwant) for rpc in controls(said).values())
    assert asked == 10
    assert bench.counters["relay.ihave_flood"] == 2


def test_a_flood_of_ihaves_and_iwants_is_ignored() -> None:
    bench, (peer_id,) = joined(1, GossipsubSettings(max_iwant_served=5))
    for number in range(12):
        ihave = IHave(topic=TOPIC, message_ids=(bytes([number]) * 32,))
        bench.hear(peer_id, Rpc(ihave=(ihave,)))
    assert bench.counters["relay.ihave_ignored"] == 2
    bench.hear(peer_id, Rpc(iwant=(b"?" * 32,) * 6))
    assert bench.counters["relay.iwant_flood"] == 1


def test_a_promise_must_be_kept_by_somebody() -> None:
    bench, (peer_id,) = joined(1)
    data = waku_data("late")
    bench.hear(peer_id, Rpc(ihave=(IHave(topic=TOPIC, message_ids=(id_of(data),)),)))
    bench.hear_message(peer_id, data)
    bench.hear(peer_id, Rpc(ihave=(IHave(topic=TOPIC, message_ids=(b"l" * 32,)),)))
    for _ in range(4):
        bench.heartbeat()
    assert bench.counters["relay.promise_broken"] == 1


def test_who_does_not_want_a_message_is_spared_it() -> None:
    bench, everybody = joined(3)
    data = waku_data("big")
    bench.hear(everybody[1], Rpc(idontwant=(id_of(data),)))
    assert recipients(bench.hear_message(everybody[0], data)) == [everybody[2]]


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="d_low <= d <= d_high"):
        GossipsubSettings(d_high=3)
    with pytest.raises(ConfigError, match="history_gossip"):
        GossipsubSettings(history_gossip=6)
    with pytest.raises(ConfigError, match="d_out must be below d_low"):
        GossipsubSettings(d_out=4)
    with pytest.raises(ConfigError, match="d_low <= d_keep <= d_high"):
        GossipsubSettings(d_keep=9)


# --- rest -----------------------------------------------------------------------------------------


def test_where_nothing_happens_the_router_rests_and_goes_on_with_the_next_input() -> None:
    bench, everybody = joined(3)
    bench.hear_message(everybody[0], waku_data("x"))
    beats = 0
    while bench.router.next_deadline() is not None:
        bench.heartbeat()
        beats += 1
        assert beats < 200
    assert beats >= 120  # What was seen is remembered for two minutes.
    bench.now_ms += 3_600_000
    bench.hear_message(everybody[0], b"\xff invalid")
    assert bench.router.next_deadline() == bench.now_ms + 1_000
    assert controls(bench.heartbeat())[everybody[0]].prune


def test_a_router_does_not_rest_while_a_back_off_or_a_bad_score_has_to_end() -> None:
    bench, everybody = joined(2)
    bench.hear(everybody[0], Rpc(prune=(Prune(topic=TOPIC, backoff_s=300),)))
    for _ in range(299):
        bench.heartbeat()
        assert bench.router.next_deadline() is not None
    bench(MalformedReceived(peer_id=everybody[1], reason="rpc_malformed"))
    bench(PeerGone(peer_id=everybody[1]))
    for _ in range(3_000):
        bench.heartbeat()
    assert bench.router.next_deadline() is None
    assert bench.router.mesh_peers(TOPIC) == {everybody[0]}
