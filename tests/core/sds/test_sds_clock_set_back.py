"""A clock that is set back: nothing that was due soon waits until it has caught up."""

import pytest
from msgspec.structs import replace

from engine.core.ids import UnixMs
from engine.core.sds.vocabulary import (
    BroadcastRepair,
    Event,
    MessageShownWaiting,
    RepairRequested,
)
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    SMALL,
    after,
    content,
    dep,
    entries,
    holds,
    member,
    run_until,
    said,
    sync,
)

HOUR = 3_600_000
DAY = 24 * HOUR
BACK = UnixMs(NOW - DAY)
BOTH = frozenset({ALICE, BOB})


def _set_back(alice: ChannelParticipant, how: str) -> None:
    """Noticed while it runs, or only at the next start."""
    if how == "restarted":
        alice.restart(now_ms=BACK)
    else:
        alice.advance(now_ms=BACK)


def _run(alice: ChannelParticipant, end_ms: int) -> None:
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= end_ms:
        alice.advance(now_ms=max(deadline_ms, BACK))


@pytest.fixture(params=["running", "restarted"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_unacknowledged_message_is_sent_again_in_its_period(how: str) -> None:
    alice = member(config=replace(SMALL, resend_jitter=0.0))
    alice.send("mine", now_ms=NOW)
    back = UnixMs(NOW - 240_000)  # Less than makes it a message from the future.
    if how == "restarted":
        alice.restart(now_ms=back)
    else:
        alice.advance(now_ms=back)
    assert alice.sends.get("retransmission", 0) == 0
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= back + 10_000:
        alice.advance(now_ms=max(deadline_ms, back))
    assert alice.sends["retransmission"] == 1


def test_the_period_is_that_of_the_attempts_already_made() -> None:
    alice = member(config=replace(SMALL, resend_jitter=0.0))
    alice.send("mine", now_ms=NOW)
    run_until(alice, NOW + 30_000)  # At 10 s and 30 s; the next would be 40 s later.
    before, back = alice.sends["retransmission"], UnixMs(NOW - 240_000)
    alice.advance(now_ms=back)
    due = [entry.next_send_ms for entry in alice.channel.snapshot().outgoing]
    assert due == [back + 40_000]
    alice.advance(now_ms=due[0])
    assert alice.sends["retransmission"] == before + 1


def test_what_is_missing_is_asked_for_and_what_waits_is_shown(how: str) -> None:
    alice = member()
    alice.handle(content(BOB, "waits", lamport=BACK, history=entries("x")), now_ms=NOW)
    _set_back(alice, how)
    asked: list[Event] = []
    shown: list[Event] = []
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= BACK + 61_000:
        alice.advance(now_ms=max(deadline_ms, BACK))
        asked += said(alice, RepairRequested)
        shown += said(alice, MessageShownWaiting)
    assert asked
    assert len(shown) == 1


def test_answers_that_were_planned_are_given() -> None:
    alice = member()
    message = content(BOB, "his", lamport=NOW - HOUR, sequence=1)
    alice.handle(message, now_ms=NOW)
    alice.handle(sync(CAROL, requests=dep(message)), now_ms=NOW)
    _set_back(alice, "running")
    _run(alice, BACK + SMALL.repair_t_max_ms)
    assert alice.sends["repair"] == 1


def test_a_sync_is_due_within_the_interval_and_questions_are_answered() -> None:
    alice = member(members=BOTH)
    run_until(alice, NOW + 60_000)
    alice.handle(content(BOB, "news", lamport=BACK), now_ms=after(60_000))
    _set_back(alice, "running")
    before = alice.sends["sync"]
    _run(alice, BACK + SMALL.sync_interval_ms)
    assert alice.sends["sync"] > before


def test_what_another_lacks_is_sent_though_its_time_is_still_to_come() -> None:
    alice = member(members=BOTH)
    alice.send("mine", now_ms=NOW)
    _set_back(alice, "running")
    transition = alice.channel.handle(
        sync(BOB, lamport=BACK, holdings=holds((BOB, 1, 1))), now_ms=UnixMs(BACK + 60_000)
    )
    assert [type(send) for send in transition.sends].count(BroadcastRepair) == 1


def test_a_clock_that_is_kept_right_by_a_little_changes_nothing() -> None:
    alice = member(config=replace(SMALL, resend_jitter=0.0))
    alice.send("mine", now_ms=NOW)
    due_ms = alice.channel.snapshot().outgoing[0].next_send_ms
    alice.advance(now_ms=after(-900))
    assert alice.channel.snapshot().outgoing[0].next_send_ms == due_ms


def test_what_became_due_by_coming_online_goes_out() -> None:
    alice = member(config=replace(SMALL, resend_jitter=0.0))
    alice.set_online(False, now_ms=NOW)
    alice.send("mine", now_ms=NOW)
    alice.set_online(True, now_ms=NOW)
    _set_back(alice, "running")
    _run(alice, BACK + 10_500)
    assert alice.sends["content"] == 1


def test_an_author_who_repeats_itself_is_answered() -> None:
    alice = member(members=BOTH)
    theirs = content(BOB, "x", lamport=BACK, sequence=1)
    alice.handle(theirs, now_ms=NOW)
    alice.handle(sync(BOB, lamport=NOW, holdings=holds((BOB, 1, 1))), now_ms=NOW)
    run_until(alice, NOW + HOUR)
    before = alice.sends["sync"]
    _set_back(alice, "running")
    alice.handle(theirs, now_ms=UnixMs(BACK + HOUR))
    _run(alice, BACK + HOUR + 2_000)
    assert alice.sends["sync"] == before + 1


def test_what_was_answered_before_is_answered_again() -> None:
    alice = member()
    theirs = content(BOB, "x", lamport=BACK, sequence=1)
    alice.handle(theirs, now_ms=NOW)
    for now_ms in (NOW, BACK):
        alice.advance(now_ms=now_ms)
        alice.handle(sync(CAROL, lamport=now_ms, requests=dep(theirs)), now_ms=now_ms)
        alice.advance(now_ms=UnixMs(now_ms + SMALL.repair_t_max_ms))
    assert alice.sends["repair"] == 2
