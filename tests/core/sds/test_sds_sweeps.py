"""Both buffer sweeps: distinct periods, offline time does not count, waiting, lost for good."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from engine.core.errors import LocalProtocolError
from engine.core.ids import MessageId, UnixMs
from engine.core.sds.bloom import BloomFilter
from engine.core.sds.inputs import CopyAccepted, ResendRequested
from engine.core.sds.vocabulary import (
    DependencyLost,
    MessageDelivered,
    MessageShownWaiting,
    OutgoingChanged,
)
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    NOW,
    SMALL,
    after,
    content,
    dep,
    entries,
    id_of,
    log_of,
    member,
    opened,
    run_until,
    said,
    sync,
)

EXACT = replace(SMALL, resend_jitter=0.0)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def accept(alice: ChannelParticipant, message_id: MessageId) -> None:
    alice.handle(CopyAccepted(message_id=message_id, peers=1), now_ms=NOW)


def resent_at(alice: ChannelParticipant, end_ms: int) -> list[int]:
    """When, in ms from the start, our content was sent again."""
    return [
        at_ms - NOW
        for at_ms, item in run_until(alice, end_ms)
        if not opened([item])[0].message.is_sync
    ]


def test_unacknowledged_are_sent_again_after_ten_seconds_doubling_to_ten_minutes() -> None:
    alice = member(config=EXACT)
    (sent,) = opened(alice.send("x", now_ms=NOW))
    accept(alice, id_of(sent))
    times = [0, *resent_at(alice, after(HOUR))]
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == [
        10_000,
        20_000,
        40_000,
        80_000,
        160_000,
        320_000,
        600_000,
        600_000,
        600_000,
        600_000,
    ]


def test_possibly_acknowledged_are_sent_again_after_thirty_seconds_doubling() -> None:
    alice = member(config=EXACT)
    (sent,) = opened(alice.send("x", now_ms=NOW))
    accept(alice, id_of(sent))
    bloom = BloomFilter(capacity=16, fixed=False)
    bloom.add(id_of(sent))
    alice.handle(sync(BOB, bloom=bytes(bloom)), now_ms=NOW)
    times = [0, *resent_at(alice, after(3 * HOUR))]
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == [30_000, 60_000, 120_000, 240_000, 480_000, 960_000, *[1_800_000] * 4]


def test_jitter_stays_within_a_fifth() -> None:
    firsts = set()
    for seed in range(30):
        alice = member(seed=seed)
        alice.send("x", now_ms=NOW)
        firsts.add(resent_at(alice, after(13_000))[0])
    assert min(firsts) >= 8_000
    assert max(firsts) <= 12_000
    assert len(firsts) > 20


def test_a_retransmission_carries_identical_bytes() -> None:
    alice = member()
    (first,) = opened(alice.send("x", now_ms=NOW))
    again = [opened([item])[0] for _, item in run_until(alice, after(MINUTE))]
    again = [item for item in again if not item.message.is_sync]
    assert again
    assert all(item.raw == first.raw for item in again)


def test_offline_time_is_no_attempt_and_what_is_due_goes_at_once_afterwards() -> None:
    alice = member(config=EXACT)
    alice.send("x", now_ms=NOW)
    alice.set_online(False, now_ms=after(1_000))
    assert run_until(alice, after(DAY)) == []
    assert alice.channel.snapshot().outgoing[0].attempts == 1
    alice.set_online(True, now_ms=after(DAY))
    times = resent_at(alice, after(DAY + 5_000))
    assert len(times) == 1
    assert times[0] - DAY <= EXACT.online_jitter_ms


def test_a_backlog_goes_out_in_bounded_slices() -> None:
    alice = member()
    alice.set_online(False, now_ms=NOW)
    for number in range(100):
        alice.send(str(number), now_ms=after(number))
    alice.set_online(True, now_ms=after(1_000))
    per_call: dict[UnixMs, int] = {}
    for at_ms, item in run_until(alice, after(5_000)):
        if not opened([item])[0].message.is_sync:
            per_call[at_ms] = per_call.get(at_ms, 0) + 1
    assert sum(per_call.values()) == 100
    assert max(per_call.values()) == SMALL.sweep_batch


def test_given_up_only_if_nobody_ever_took_a_copy_and_resent_on_request() -> None:
    alice = member(config=EXACT)
    (sent,) = opened(alice.send("x", now_ms=NOW))
    assert len(resent_at(alice, after(DAY))) == EXACT.fail_after_attempts - 1
    assert alice.channel.snapshot().outgoing[0].state == "failed"
    again = alice.handle(ResendRequested(message_id=id_of(sent)), now_ms=after(DAY))
    assert opened(again)[0].raw == sent.raw
    (event,) = said(alice, OutgoingChanged)
    assert isinstance(event, OutgoingChanged)
    assert event.attempts == 0
    assert event.state == "unacknowledged"


def test_an_accepted_message_is_never_given_up() -> None:
    alice = member(config=EXACT)
    (sent,) = opened(alice.send("x", now_ms=NOW))
    accept(alice, id_of(sent))
    resent_at(alice, after(DAY))
    assert alice.channel.snapshot().outgoing[0].state == "unacknowledged"


def test_a_given_up_message_that_somebody_holds_after_all_is_acknowledged() -> None:
    alice = member(config=EXACT)
    (sent,) = opened(alice.send("x", now_ms=NOW))
    resent_at(alice, after(DAY))
    alice.handle(sync(BOB, history=dep(sent), lamport=after(DAY)), now_ms=after(DAY))
    assert alice.channel.snapshot().outgoing == ()


def test_resending_what_is_acknowledged_repairs_and_foreign_ones_are_our_mistake() -> None:
    alice = member()
    (sent,) = opened(alice.send("x", now_ms=NOW))
    alice.handle(sync(BOB, history=dep(sent)), now_ms=NOW)
    (again,) = opened(alice.handle(ResendRequested(message_id=id_of(sent)), now_ms=NOW))
    assert (again.raw, again.repaired_by) == (sent.raw, ALICE)
    foreign = content(BOB, "b")
    alice.handle(foreign, now_ms=NOW)
    with pytest.raises(LocalProtocolError):
        alice.handle(ResendRequested(message_id=id_of(foreign)), now_ms=NOW)


def test_after_a_minute_a_waiting_message_is_shown_once_and_still_not_logged() -> None:
    alice = member()
    waiting = content(BOB, "w", history=entries("missing"))
    alice.handle(waiting, now_ms=NOW)
    shown = []
    while (deadline := alice.next_deadline()) is not None and deadline <= after(3 * MINUTE):
        alice.advance(now_ms=deadline)
        shown += [deadline - NOW for _ in said(alice, MessageShownWaiting)]
    assert shown == [MINUTE]
    assert log_of(alice) == []
    assert alice.channel.snapshot().incoming[0].shown


def test_lost_after_a_day_online_then_delivered_and_inserted_if_it_turns_up() -> None:
    alice = member()
    missing = content(BOB, "missing", lamport=NOW - 5)
    waiting = content(BOB, "w", history=dep(missing))
    alice.handle(waiting, now_ms=NOW)
    lost_at = run_to_loss(alice)
    assert lost_at == after(DAY)
    assert [type(e) for e in alice.events if isinstance(e, (DependencyLost, MessageDelivered))] == [
        DependencyLost,
        MessageDelivered,
    ]
    assert alice.channel.snapshot().incoming == alice.store.state().incoming == ()
    alice.handle(missing, now_ms=after(DAY + 1))
    (event,) = said(alice, MessageDelivered)
    assert isinstance(event, MessageDelivered)
    assert event.late
    assert log_of(alice) == [id_of(missing), id_of(waiting)]
    assert alice.channel.snapshot().missing == ()


def run_to_loss(alice: ChannelParticipant, now_ms: UnixMs = NOW) -> UnixMs:
    """From now on, call it at its deadlines until a dependency is lost; when that was."""
    while not said(alice, DependencyLost):
        deadline = alice.next_deadline()
        assert deadline is not None
        now_ms = max(now_ms, deadline)
        alice.advance(now_ms=now_ms)
    return now_ms


def test_time_offline_and_asleep_does_not_count_towards_lost() -> None:
    alice = member()
    alice.handle(content(BOB, "w", history=entries("missing")), now_ms=NOW)
    alice.set_online(False, now_ms=after(HOUR))
    alice.set_online(True, now_ms=after(HOUR + 5 * DAY))
    alice.advance(now_ms=after(HOUR + 8 * DAY))  # Three days asleep count as a quarter of an hour.
    assert said(alice, DependencyLost) == []
    assert log_of(alice) == []
    assert run_to_loss(alice, after(HOUR + 8 * DAY)) > after(9 * DAY - HOUR)
    assert len(log_of(alice)) == 1
