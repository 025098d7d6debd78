"""Periodic sync: prompt where it matters, silent when all is said, slow when nobody answers."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from engine.core.faults import FaultSpec
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.config import SdsConfig
from engine.core.sds.log import head_of
from engine.core.sds.vocabulary import SequenceRange
from engine.sim.channel_participant import ChannelParticipant, instance_of
from engine.sim.network import SimNetwork
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    MEMBERS,
    NOW,
    SMALL,
    after,
    content,
    dep,
    entries,
    holds,
    id_of,
    member,
    opened,
    run_until,
    sync,
    syncs,
)

HOUR = 3_600_000
CROWD = frozenset(ParticipantId(f"member-{number}") for number in range(30)) | {ALICE, BOB}
TWO = frozenset({ALICE, BOB})


def test_a_sync_is_empty_and_carries_history_filter_holdings_and_a_higher_clock() -> None:
    alice = member()
    first = content(BOB, "b", sequence=1)
    alice.handle(first, now_ms=NOW)
    clock = alice.channel.snapshot().lamport_timestamp
    (at_ms, sent), *_ = syncs(run_until(alice, after(2_500)))
    message = sent.message
    assert message.content is None
    assert message.lamport_timestamp is not None
    assert message.lamport_timestamp == max(clock + 1, at_ms)
    assert [entry.message_id for entry in message.causal_history] == [id_of(first)]
    assert message.bloom_filter
    (held,) = (sent.holdings or {}).items()
    head = head_of(id_of(first))
    assert held == (instance_of(BOB), (SequenceRange(first=1, last=1, head=head),))


def test_it_is_in_no_buffer_log_history_or_filter_afterwards() -> None:
    alice = member()
    theirs = content(BOB, "b")
    alice.handle(theirs, now_ms=NOW)
    before = alice.channel.snapshot()
    assert syncs(run_until(alice, after(2_500)))
    state = alice.channel.snapshot()
    assert replace(state, lamport_timestamp=0) == replace(before, lamport_timestamp=0)
    (sent,) = opened(alice.send("x", now_ms=after(3_000)))
    assert len(sent.message.causal_history) == 1
    assert sent.message.bloom_filter == filter_of(id_of(theirs))


def test_what_we_heard_in_a_sync_is_in_no_buffer_log_history_or_filter_either() -> None:
    alice = member()
    theirs = content(BOB, "b")
    alice.handle(theirs, now_ms=NOW)
    before = alice.channel.snapshot()
    alice.handle(sync(CAROL, lamport=NOW + 1, history=dep(theirs)), now_ms=NOW)
    assert alice.channel.snapshot() == before
    (sent,) = opened(alice.send("x", now_ms=after(1)))
    assert [entry.message_id for entry in sent.message.causal_history] == [id_of(theirs)]
    assert sent.message.bloom_filter == filter_of(id_of(theirs))


def filter_of(*ids: MessageId) -> bytes:
    """The filter of a member who has received these, and nothing else."""
    bloom = BloomFilter(capacity=SMALL.bloom_capacity, fixed=False)
    bloom.include(ids)
    return bytes(bloom)


@pytest.mark.parametrize("restarted", [False, True])
def test_no_two_syncs_bear_one_timestamp_though_the_clock_is_set_back(restarted: bool) -> None:
    alice = member(members=TWO)
    (_, first), *_ = syncs(run_until(alice, after(2_500)))
    back = after(-60_000)
    if restarted:
        alice.restart(now_ms=back)
    else:
        alice.advance(now_ms=back)
    alice.set_members(MEMBERS, now_ms=back)  # So it introduces itself again.
    at_ms = alice.next_deadline()
    assert at_ms is not None
    assert at_ms < NOW
    (second,) = opened(alice.advance(now_ms=at_ms))
    assert second.message.is_sync
    assert second.message.lamport_timestamp == (first.message.lamport_timestamp or 0) + 1


def test_in_a_small_group_content_is_acknowledged_within_a_second_by_one_sync_for_all() -> None:
    for seed in range(20):
        alice = member(seed=seed)
        for number in range(5):
            alice.handle(content(BOB, str(number), lamport=NOW + number), now_ms=after(number * 50))
        times = [at_ms - NOW for at_ms, _ in syncs(run_until(alice, after(2_300)))]
        assert len(times) == 1
        shortest, longest = SMALL.prompt_sync_ms or (0, 0)
        assert shortest <= times[0] <= longest == 1_000


def test_in_a_crowd_the_wait_is_js_wakus() -> None:
    waits = []
    for seed in range(40):
        alice = member(members=CROWD, config=SdsConfig(), seed=seed)
        alice.handle(content(BOB, "b"), now_ms=NOW)
        waits += [at_ms - NOW for at_ms, _ in syncs(run_until(alice, after(15_000)))][:1]
    assert len(waits) == 40
    assert max(waits) > 5_000


def test_nothing_is_said_when_everybody_is_level() -> None:
    alice = member(members=TWO)
    alice.send("x", now_ms=NOW)
    assert run_until(alice, after(3_000))
    alice.handle(sync(BOB, lamport=NOW + 9, holdings=holds((ALICE, 1, 1))), now_ms=after(3_000))
    late = [at_ms for at_ms, _ in run_until(alice, after(HOUR)) if at_ms > after(65_000)]
    assert late == []
    assert alice.next_deadline() is None


def test_alone_there_is_nobody_to_talk_to() -> None:
    alice = member(members=frozenset({ALICE}))
    assert syncs(run_until(alice, after(HOUR))) == []


def test_a_silent_member_is_told_again_and_again_ever_more_slowly() -> None:
    alice = member(members=TWO)
    (sent,) = opened(alice.send("x", now_ms=NOW))
    alice.handle(sync(BOB, history=dep(sent)), now_ms=NOW)  # Ends the rebroadcast, claims nothing.
    times = [at_ms for at_ms, _ in syncs(run_until(alice, after(6 * HOUR)))]
    gaps = [b - a for a, b in pairwise(times)]
    assert len(times) > 20
    assert max(gaps) <= 2 * 20 * SMALL.sync_interval_ms
    assert gaps[0] <= 2 * 2 * SMALL.sync_interval_ms
    assert sum(gaps[-10:]) > 10 * 5 * 60_000


def test_a_lost_newest_message_is_noticed_from_the_next_sync() -> None:
    alice, bob = member(ALICE, members=TWO), member(BOB, members=TWO, seed=2)
    (lost,) = opened(alice.send("lost", now_ms=NOW))
    (_, noticed), *_ = syncs(run_until(alice, after(60_000)))
    bob.handle(noticed, now_ms=after(60_000))
    assert [e.entry.message_id for e in bob.channel.snapshot().missing] == [id_of(lost)]


def test_who_syncs_is_answered_though_we_think_all_is_level() -> None:
    alice = member(members=TWO)
    run_until(alice, after(10_000))
    claim = sync(BOB, lamport=NOW + 1, holdings=holds())
    alice.handle(claim, now_ms=after(200_000))
    answers = [at for at, _ in syncs(run_until(alice, after(203_000))) if at >= after(200_000)]
    assert len(answers) == 1
    alice.handle(sync(BOB, lamport=NOW + 2, holdings=holds()), now_ms=after(203_000))
    echo = [at for at, _ in syncs(run_until(alice, after(204_900))) if at >= after(203_000)]
    assert echo == []


def test_an_author_who_sends_again_is_told_again_that_we_hold_it() -> None:
    alice = member(members=TWO)
    theirs = content(BOB, "b", sequence=1)
    alice.handle(theirs, now_ms=NOW)
    alice.handle(sync(BOB, lamport=NOW + 1, holdings=holds((BOB, 1, 1))), now_ms=NOW)
    assert len(syncs(run_until(alice, after(9_000)))) == 1
    alice.handle(theirs, now_ms=after(10_000))
    assert len(syncs(run_until(alice, after(12_100)))) == 1


def test_in_a_crowd_a_round_is_left_to_whoever_said_the_same() -> None:
    alice = member(members=CROWD, config=SdsConfig())
    alice.handle(sync(BOB, lamport=NOW + 1, holdings=holds()), now_ms=NOW)
    alice.handle(content(CAROL, "c", sequence=1), now_ms=NOW)
    run_until(alice, after(31_000))
    heard = sync(BOB, lamport=NOW + 5, holdings=holds((CAROL, 1, 1)))
    alice.handle(heard, now_ms=after(31_000))
    first = alice.next_deadline()
    assert first is not None
    assert opened(alice.advance(now_ms=first)) == []


def test_who_says_the_same_again_in_a_crowd_is_answered_ever_more_rarely() -> None:
    """It has not heard somebody, perhaps us; but if it is another, our answers are in vain."""
    alice = member(members=CROWD, config=SdsConfig())
    alice.handle(content(CAROL, "c", sequence=1), now_ms=NOW)
    answers: list[int] = []
    for at_s in range(0, 3_600, 10):
        claim = sync(BOB, lamport=NOW + at_s, holdings=holds((CAROL, 1, 1)))
        alice.handle(claim, now_ms=after(1_000 * at_s))
        answers += [at - NOW for at, _ in syncs(run_until(alice, after(1_000 * at_s + 9_999)))]
    assert 3 <= sum(at <= 120_000 for at in answers) <= 6
    assert len(answers) <= 15
    assert answers[-1] > 900_000


def test_who_acknowledges_is_not_answered() -> None:
    alice = member(members=TWO)
    alice.handle(sync(BOB, lamport=NOW, holdings=holds()), now_ms=NOW)
    assert syncs(run_until(alice, after(60_000)))
    alice.send("x", now_ms=after(60_000))
    heard = sync(BOB, lamport=after(61_000), holdings=holds((ALICE, 1, 1)))
    alice.handle(heard, now_ms=after(61_000))
    assert [at for at, _ in syncs(run_until(alice, after(HOUR))) if at > after(60_000)] == []


def quiet_group(size: int, *, loss: float = 0.0) -> tuple[SimNetwork, list[ChannelParticipant]]:
    """All have introduced themselves and fallen silent."""
    names = frozenset(ParticipantId(f"member-{number}") for number in range(size))
    network = SimNetwork(FaultSpec(loss=loss, delay_ms=(20, 400), seed=7), start_ms=NOW)
    config = SdsConfig.for_small_group() if size <= 16 else SdsConfig()
    people = [
        ChannelParticipant(name, members=names, config=config, seed=7, now_ms=NOW)
        for name in sorted(names)
    ]
    for person in people:
        network.add(person.participant_id, person)
    network.run_until(after(HOUR))
    return network, people


def sent_syncs(people: list[ChannelParticipant]) -> int:
    return sum(person.sends.get("sync", 0) for person in people)


def holders_known(speaker: ChannelParticipant) -> int:
    return len(speaker.seen.certain_holders.get(speaker.seen.sent[-1], ()))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 8, 16, 17, 20, 64])
def test_a_message_in_a_quiet_group_costs_one_sync_for_each_who_receives_it(size: int) -> None:
    network, people = quiet_group(size)
    assert sent_syncs(people) <= 1.5 * size
    for speaker in people[:3]:
        before = sent_syncs(people)
        sent_ms = network.now_ms
        network.broadcast(speaker.participant_id, speaker.send("x", now_ms=sent_ms))
        network.run_until(UnixMs(sent_ms + 20_000))
        assert holders_known(speaker) == size - 1
        network.run_until(UnixMs(sent_ms + HOUR))
        assert size - 1 <= sent_syncs(people) - before <= 1.3 * size


@pytest.mark.parametrize(("size", "loss"), [(8, 0.4), (17, 0.1), (20, 0.2), (20, 0.4)])
def test_with_loss_the_sender_knows_within_minutes_and_then_all_are_silent(
    size: int, loss: float
) -> None:
    network, people = quiet_group(size, loss=loss)
    speaker, before, sent_ms = people[1], sent_syncs(people), network.now_ms
    network.broadcast(speaker.participant_id, speaker.send("x", now_ms=sent_ms))
    network.run_until(UnixMs(sent_ms + 6 * 60_000))
    assert holders_known(speaker) == size - 1
    network.run_until(UnixMs(sent_ms + HOUR))
    assert sent_syncs(people) - before <= 20 * size
    before = sent_syncs(people)
    network.run_until(UnixMs(sent_ms + 4 * HOUR))
    assert sent_syncs(people) == before


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 40])
def test_one_member_that_is_away_does_not_keep_the_others_talking(size: int) -> None:
    network, people = quiet_group(size)
    network.crash(people[3].participant_id)
    speaker, sent_ms = people[0], network.now_ms
    network.broadcast(speaker.participant_id, speaker.send("x", now_ms=sent_ms))
    network.run_until(UnixMs(sent_ms + HOUR))
    before = sent_syncs(people)
    network.run_until(UnixMs(sent_ms + 4 * HOUR))
    assert 3 <= sent_syncs(people) - before <= 3 * (40 + size)  # A few rounds, hourly answers.
    people[3].restart(now_ms=network.now_ms)
    network.add(people[3].participant_id, people[3])
    network.run_until(UnixMs(network.now_ms + 5 * 60_000))
    assert holders_known(speaker) == size - 1


def test_offline_nothing_is_said_and_online_we_introduce_ourselves() -> None:
    alice = member()
    alice.set_online(False, now_ms=NOW)
    alice.handle(content(BOB, "b", history=entries("missing")), now_ms=NOW)
    assert run_until(alice, after(HOUR)) == []
    alice.set_online(True, now_ms=after(HOUR))
    assert len(syncs(run_until(alice, after(HOUR + 2_000)))) >= 1


def test_a_newcomer_makes_members_introduce_themselves() -> None:
    alice = member(members=TWO)
    run_until(alice, after(200_000))
    alice.set_members(frozenset({ALICE, BOB, CAROL}), now_ms=after(200_000))
    assert [at for at, _ in syncs(run_until(alice, after(202_100))) if at >= after(200_000)]


def test_an_open_channel_keeps_js_wakus_rounds_going() -> None:
    config = SdsConfig.js_defaults()
    alice = member(members=frozenset(), config=config)
    assert syncs(run_until(alice, after(HOUR))) == []  # An empty log: nothing to say.
    alice.handle(content(BOB, "b", lamport=after(HOUR), verified=False), now_ms=after(HOUR))
    found = syncs(run_until(alice, after(2 * HOUR)))
    assert len(found) > 60
    assert all(len(item.message.bloom_filter or b"") == 18_752 for _, item in found)
