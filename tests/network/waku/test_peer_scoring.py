"""The score by itself: what counts, what fades, what is kept, and the bounds of all of it."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.score_params import ScoreParams, TopicScoreParams, colocation_key
from engine.network.waku.gossip.scoring import MAX_DELIVERIES, MAX_RETAINED, PeerScores

TOPIC, OTHER = PubsubTopic("/waku/2/rs/42/4"), PubsubTopic("/waku/2/rs/42/5")
PEER = PeerId("peer")
INTERVAL_MS = ScoreParams().decay_interval_ms
STRICT = ScoreParams(behaviour_penalty_threshold=0)
P3 = ScoreParams(
    topic=TopicScoreParams(
        mesh_message_deliveries_weight=-1.0,
        mesh_message_deliveries_threshold=4.0,
        mesh_message_deliveries_cap=6.0,
        mesh_message_deliveries_activation_ms=20_000,
        mesh_failure_penalty_weight=-1.0,
        time_in_mesh_weight=0.0,
        first_message_deliveries_weight=0.0,
    )
)


def known(params: ScoreParams | None = None, *, address: str | None = None) -> PeerScores:
    scores = PeerScores(params or ScoreParams())
    scores.connected(PEER, address=address)
    scores.refresh(now_ms=0)
    return scores


# --- each part ------------------------------------------------------------------------------------


def test_nobody_and_a_newcomer_are_worth_nothing() -> None:
    assert known().score(PEER) == known().score(PeerId("stranger")) == 0


def test_p1_time_in_the_mesh_counts_up_to_its_cap() -> None:
    scores = known()
    scores.grafted(PEER, TOPIC, now_ms=7_000)
    assert scores.score(PEER) == 0  # "calculated lazily during the decay update"
    scores.refresh(now_ms=INTERVAL_MS)
    assert scores.score(PEER) == pytest.approx(0.01 * 5)
    scores.refresh(now_ms=100 * INTERVAL_MS)
    assert scores.score(PEER) == pytest.approx(0.01 * 10)
    scores.pruned(PEER, TOPIC)
    assert scores.score(PEER) == 0


def test_p2_first_deliveries_count_up_to_their_cap_and_halve() -> None:
    scores = known()
    for number in range(25):
        scores.delivered_first(PEER, TOPIC, b"%d" % number, now_ms=0)
    assert scores.score(PEER) == 10
    scores.refresh(now_ms=INTERVAL_MS)
    assert scores.score(PEER) == 5


def test_p3_too_few_deliveries_cost_once_the_peer_has_been_there_for_a_while() -> None:
    scores = known(P3)
    scores.grafted(PEER, TOPIC, now_ms=0)
    scores.refresh(now_ms=INTERVAL_MS)
    assert scores.score(PEER) == 0  # not yet
    scores.refresh(now_ms=2 * INTERVAL_MS)
    assert scores.score(PEER) == -16
    scores.delivered_first(PEER, TOPIC, b"1", now_ms=2 * INTERVAL_MS)
    assert scores.score(PEER) == -9
    for number in range(20):
        scores.delivered_first(PEER, TOPIC, b"x%d" % number, now_ms=2 * INTERVAL_MS)
    assert scores.score(PEER) == 0


def test_p3_near_first_deliveries_count_once_and_only_within_the_window() -> None:
    scores, other = known(P3), PeerId("other")
    scores.connected(other, address=None)
    for peer_id in (PEER, other):
        scores.grafted(peer_id, TOPIC, now_ms=0)
    now_ms = 3 * INTERVAL_MS
    scores.refresh(now_ms=now_ms)
    scores.delivered_first(other, TOPIC, b"1", now_ms=now_ms)
    scores.delivered_again(PEER, TOPIC, b"1", now_ms=now_ms + 6)
    assert scores.score(PEER) == -16
    for _ in range(3):
        scores.delivered_again(PEER, TOPIC, b"1", now_ms=now_ms + 5)
    assert scores.score(PEER) == -9
    scores.delivered_again(other, TOPIC, b"1", now_ms=now_ms + 1)
    assert scores.score(other) == -9


def test_p3b_what_was_owed_when_leaving_sticks_for_a_while() -> None:
    scores = known(P3)
    scores.grafted(PEER, TOPIC, now_ms=0)
    scores.refresh(now_ms=2 * INTERVAL_MS)
    scores.pruned(PEER, TOPIC)
    assert scores.score(PEER) == -16
    scores.grafted(PEER, TOPIC, now_ms=2 * INTERVAL_MS)
    scores.refresh(now_ms=3 * INTERVAL_MS)
    assert scores.score(PEER) == -8


def test_p4_invalid_messages_count_squared() -> None:
    scores = known()
    for count in range(1, 12):
        scores.delivered_invalid(PEER, TOPIC)
        assert scores.score(PEER) == -100 * count**2
    scores.refresh(now_ms=INTERVAL_MS)
    assert scores.score(PEER) == -100 * 5.5**2


def test_topics_are_weighted_and_what_good_they_do_is_capped() -> None:
    params = ScoreParams(topic_score_cap=12, topic=TopicScoreParams(topic_weight=2))
    scores = known(params)
    for topic in (TOPIC, OTHER):
        for number in range(3):
            scores.delivered_first(PEER, topic, b"%d" % number, now_ms=0)
    assert scores.score(PEER) == 12
    scores.delivered_invalid(PEER, OTHER)
    assert scores.score(PEER) == 2 * (3 + 3 - 100)


def test_p5_is_what_the_application_says() -> None:
    opinions = {PEER: -3.0}
    scores = PeerScores(ScoreParams(app_specific_weight=2), app_specific=opinions.__getitem__)
    scores.connected(PEER, address=None)
    assert scores.score(PEER) == -6


def test_p6_more_peers_at_one_address_than_there_should_be_cost_each_of_them() -> None:
    scores = PeerScores(ScoreParams())
    crowd = [PeerId(f"sybil{number}") for number in range(8)]
    for count, peer_id in enumerate(crowd, start=1):
        scores.connected(peer_id, address="8.8.8.8")
        surplus = max(0, count - 5)
        assert {scores.score(each) for each in crowd[:count]} == {-50 * surplus**2}
    for peer_id in crowd[5:]:
        scores.disconnected(peer_id, now_ms=0)  # Their score is bad, so they stay at the address.
    assert scores.score(crowd[0]) == -450
    scores.refresh(now_ms=0)
    scores.refresh(now_ms=ScoreParams().retain_score_ms)
    assert scores.score(crowd[0]) == 0


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("127.0.0.1", None),
        ("192.168.7.7", None),
        ("100.64.1.1", None),
        ("169.254.3.3", None),
        ("::1", None),
        ("fe80::1", None),
        ("fd00::1", None),
        ("example.org", None),
        ("", None),
        ("8.8.8.8", "8.8.8.8"),
        ("::ffff:8.8.8.8", "8.8.8.8"),
        ("::ffff:10.0.0.1", None),
        ("2a00:1450:4001::1", "2a00:1450:4001::/64"),
        ("2a00:1450:4001::ffff:1", "2a00:1450:4001::/64"),
    ],
)
def test_only_global_addresses_can_be_crowded(host: str, key: str | None) -> None:
    assert colocation_key(host) == key


def test_p7_broken_rules_count_squared_above_the_threshold() -> None:
    scores = known(ScoreParams(behaviour_penalty_threshold=2))
    for expected in (0, 0, -10, -40, -90):
        scores.misbehaved(PEER)
        assert scores.score(PEER) == expected


# --- time -----------------------------------------------------------------------------------------


@given(
    first=st.integers(0, 12),
    invalid=st.integers(0, 12),
    bad=st.integers(0, 40),
    pauses_ms=st.lists(st.integers(0, 100_000), max_size=20),
)
def test_fading_depends_on_the_time_and_not_on_how_often_one_looks(
    first: int, invalid: int, bad: int, pauses_ms: list[int]
) -> None:
    often, once = known(STRICT), known(STRICT)
    for scores in (often, once):
        for number in range(first):
            scores.delivered_first(PEER, TOPIC, b"%d" % number, now_ms=0)
        for _ in range(invalid):
            scores.delivered_invalid(PEER, TOPIC)
        for _ in range(bad):
            scores.misbehaved(PEER)
    now_ms = 0
    for pause_ms in pauses_ms:
        before = often.score(PEER)
        now_ms += pause_ms
        often.refresh(now_ms=now_ms)
        if not first:  # What was good fades sooner than what was bad.
            assert before <= often.score(PEER) <= 0
    once.refresh(now_ms=now_ms)
    assert once.score(PEER) == pytest.approx(often.score(PEER), abs=0.05)


@given(
    events=st.lists(
        st.sampled_from(["first", "again", "invalid", "bad", "graft", "prune", "wait", "gone"]),
        max_size=80,
    )
)
def test_whatever_is_done_a_score_stays_within_what_it_can_be(events: list[str]) -> None:
    params = replace(P3, topic=replace(P3.topic, first_message_deliveries_weight=1.0))
    scores, now_ms, bad = known(params), 0, 0
    for number, event in enumerate(events):
        match event:
            case "first":
                scores.delivered_first(PEER, TOPIC, b"%d" % number, now_ms=now_ms)
            case "again":
                scores.delivered_again(PEER, TOPIC, b"%d" % (number - 1), now_ms=now_ms)
            case "invalid":
                scores.delivered_invalid(PEER, TOPIC)
            case "bad":
                scores.misbehaved(PEER)
                bad += 1
            case "graft":
                scores.grafted(PEER, TOPIC, now_ms=now_ms)
            case "prune":
                scores.pruned(PEER, TOPIC)
            case "wait":
                now_ms += INTERVAL_MS
                scores.refresh(now_ms=now_ms)
            case _:
                before = scores.score(PEER)
                scores.disconnected(PEER, now_ms=now_ms)
                scores.connected(PEER, address=None)
                # A good name is lost with the connection, a bad one is not.
                assert scores.score(PEER) <= max(before, 0)
        assert math.isfinite(scores.score(PEER))
        assert scores.score(PEER) <= params.topic.first_message_deliveries_cap
    topic = params.topic.invalid_message_deliveries_weight
    floor = topic * events.count("invalid") ** 2 - 10 * bad**2 - 16 * len(events) - 16
    assert scores.score(PEER) >= floor
    scores.disconnected(PEER, now_ms=now_ms)
    scores.refresh(now_ms=now_ms + 2 * params.retain_score_ms)
    assert len(scores) == 0


def test_what_is_too_small_is_nothing() -> None:
    scores = known(STRICT)
    scores.misbehaved(PEER, 0.0101)
    assert scores.score(PEER) < 0
    scores.refresh(now_ms=INTERVAL_MS)
    assert scores.score(PEER) == 0


def test_a_bad_score_waits_for_its_owner_and_does_not_fade_meanwhile() -> None:
    scores = known()
    scores.delivered_invalid(PEER, TOPIC)
    scores.disconnected(PEER, now_ms=0)
    scores.refresh(now_ms=ScoreParams().retain_score_ms - INTERVAL_MS)
    scores.connected(PEER, address=None)
    assert scores.score(PEER) == -100
    scores.disconnected(PEER, now_ms=600_000)
    scores.refresh(now_ms=1_200_000)
    assert scores.score(PEER) == 0
    assert len(scores) == 0


def test_first_deliveries_do_not_outlive_the_connection() -> None:
    scores = known()
    for number in range(10):
        scores.delivered_first(PEER, TOPIC, b"%d" % number, now_ms=0)
    scores.delivered_invalid(PEER, TOPIC)
    assert scores.score(PEER) == -90
    scores.disconnected(PEER, now_ms=0)
    assert scores.score(PEER) == -100


def test_of_those_that_left_the_worst_are_remembered() -> None:
    scores = PeerScores(STRICT)
    for number in range(MAX_RETAINED + 5):
        peer_id = PeerId(f"bad{number:04}")
        scores.connected(peer_id, address=None)
        scores.misbehaved(peer_id, 1 + number)
        scores.disconnected(peer_id, now_ms=0)
    assert len(scores) == MAX_RETAINED
    assert scores.score(PeerId("bad0004")) == 0
    assert scores.score(PeerId("bad0005")) == -360


def test_remembered_deliveries_are_bounded() -> None:
    scores, second, now_ms = known(P3), PeerId("second"), 2 * INTERVAL_MS

    def after_a_copy_of(message_id: bytes) -> float:
        scores.delivered_again(second, TOPIC, message_id, now_ms=now_ms)
        return scores.score(second)

    scores.connected(second, address=None)
    scores.grafted(second, TOPIC, now_ms=0)
    scores.refresh(now_ms=INTERVAL_MS)
    scores.refresh(now_ms=now_ms)
    for number in range(MAX_DELIVERIES + 1):
        scores.delivered_first(PEER, TOPIC, b"%d" % number, now_ms=now_ms)
    assert after_a_copy_of(b"0") == -16, "the oldest was forgotten"
    assert after_a_copy_of(b"1") == -9
    scores.refresh(now_ms=now_ms + INTERVAL_MS)
    before = scores.score(second)
    assert after_a_copy_of(b"2") == before, "all were forgotten"


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ScoreParams(gossip_threshold=1), "gossip_threshold < 0"),
        (lambda: ScoreParams(publish_threshold=-10), "publish_threshold < gossip_threshold"),
        (lambda: ScoreParams(behaviour_penalty_weight=1), "behaviour_penalty_weight"),
        (lambda: ScoreParams(behaviour_penalty_decay=1), "behaviour_penalty_decay"),
        (lambda: ScoreParams(decay_to_zero=0), "decay_to_zero"),
        (lambda: ScoreParams(ip_colocation_factor_threshold=0), "ip_colocation_factor_threshold"),
    ],
)
def test_parameters_that_cannot_be_are_named(make: Callable[[], ScoreParams], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make()


def test_parameters_of_topics_that_cannot_be_are_named() -> None:
    with pytest.raises(ConfigError, match="invalid_message_deliveries_weight"):
        TopicScoreParams(invalid_message_deliveries_weight=1)
    with pytest.raises(ConfigError, match="its cap"):
        TopicScoreParams(mesh_message_deliveries_threshold=1)
