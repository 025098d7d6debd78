"""The corrected clock, and messages held aside by it: durable, visible, never adopted."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.core.sds.config import SdsConfig
from engine.core.sds.corrected_clock import CorrectedClock
from engine.core.sds.types import GapChanged, HeldAsideChanged, MessageReceived
from engine.core.types import MessageId, ParticipantId, UnixMs
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
    id_of,
    log_of,
    member,
    said,
    sync,
)

DAVE = ParticipantId("dave")
EVERYBODY = frozenset({ALICE, BOB, CAROL, DAVE})
HOUR = 3_600_000
FUTURE = content(BOB, "future", lamport=NOW + HOUR)


def _tell_time(
    alice: ChannelParticipant, offset_ms: int, *speakers: ParticipantId, at_ms: UnixMs = NOW
) -> None:
    """These members' clocks are this far ahead of alice's."""
    for speaker in speakers:
        spoken = replace(sync(speaker, lamport=at_ms), sent_ms=UnixMs(at_ms + offset_ms))
        alice.handle(spoken, now_ms=at_ms)


def _held(alice: ChannelParticipant) -> list[MessageId]:
    (event,) = said(alice, HeldAsideChanged)
    assert isinstance(event, HeldAsideChanged)
    assert event.held_total == len(event.held)
    return [held.message_id for held in event.held]


def test_what_is_held_aside_is_told_and_saved_and_not_adopted() -> None:
    alice = member(members=EVERYBODY)
    alice.handle(FUTURE, now_ms=NOW)
    (event,) = said(alice, HeldAsideChanged)
    assert isinstance(event, HeldAsideChanged)
    (held,) = event.held
    assert (held.message_id, held.sender_id, held.ahead_ms) == (id_of(FUTURE), BOB, HOUR)
    assert held.due_ms == after(HOUR - 300_000)
    assert [e.message.message_id for e in alice.store.state().incoming] == [id_of(FUTURE)]
    assert alice.store.state().lamport_timestamp < NOW + HOUR
    assert log_of(alice) == []
    alice.set_online(False, now_ms=NOW)  # Nothing else is due then.
    assert alice.next_deadline() == held.due_ms


def test_a_restarted_member_still_holds_it_tells_so_and_receives_it_in_time() -> None:
    alice = member(members=EVERYBODY)
    alice.handle(FUTURE, now_ms=NOW)
    alice.restart(now_ms=after(1_000))
    assert alice.channel.snapshot() == alice.store.state()
    alice.advance(now_ms=after(2_000))
    assert _held(alice) == [id_of(FUTURE)]
    (gap,) = said(alice, GapChanged)
    assert gap == GapChanged(missing=(), waiting=0, missing_total=0)
    alice.advance(now_ms=after(3_000))
    assert said(alice, HeldAsideChanged) == []
    alice.advance(now_ms=after(HOUR))
    assert log_of(alice) == [id_of(FUTURE)]
    assert _held(alice) == []
    assert alice.store.state().incoming == ()


def test_a_wrong_own_clock_is_corrected_by_three_others_and_holds_nothing() -> None:
    alice = member(members=EVERYBODY)
    _tell_time(alice, HOUR, BOB, CAROL)
    alice.handle(FUTURE, now_ms=NOW)
    assert _held(alice) == [id_of(FUTURE)]
    _tell_time(alice, HOUR, DAVE)
    assert alice.next_deadline() is not None
    alice.advance(now_ms=NOW)
    assert log_of(alice) == [id_of(FUTURE)]


def test_a_clock_that_is_fast_does_not_let_the_future_in() -> None:
    alice = member(members=EVERYBODY)
    _tell_time(alice, -HOUR, BOB, CAROL, DAVE)
    present = content(BOB, "an hour ahead of everybody but alice", lamport=NOW)
    alice.handle(present, now_ms=NOW)
    assert _held(alice) == [id_of(present)]
    # After a restart nobody has told the time yet: our own clock sees nothing wrong with it.
    alice.restart(now_ms=NOW)
    alice.advance(now_ms=NOW)
    assert log_of(alice) == [id_of(present)]


def test_the_unverified_and_the_absent_tell_no_time() -> None:
    alice = member(members=EVERYBODY)
    for speaker in (BOB, CAROL, DAVE):
        spoken = replace(sync(speaker, verified=False), sent_ms=after(HOUR))
        alice.handle(spoken, now_ms=NOW)
    alice.handle(FUTURE, now_ms=NOW)
    assert _held(alice) == [id_of(FUTURE)]
    _tell_time(alice, HOUR, BOB, CAROL, DAVE)
    alice.set_members(EVERYBODY - {DAVE}, now_ms=NOW)
    alice.advance(now_ms=NOW)
    assert log_of(alice) == []


def test_a_repaired_copy_tells_the_time_of_whoever_sent_it() -> None:
    alice = member(members=EVERYBODY)
    _tell_time(alice, HOUR, BOB, CAROL)
    repaired: MessageReceived = content(BOB, "old", repaired_by=DAVE)
    alice.handle(replace(repaired, sent_ms=after(HOUR)), now_ms=NOW)
    alice.handle(FUTURE, now_ms=NOW)
    assert id_of(FUTURE) in log_of(alice)


def test_what_is_held_aside_is_not_asked_for() -> None:
    alice = member(members=EVERYBODY)
    alice.handle(content(CAROL, "answer", lamport=NOW, history=dep(FUTURE)), now_ms=NOW)
    assert len(alice.store.state().missing) == 1
    alice.handle(FUTURE, now_ms=NOW)
    alice.handle(content(DAVE, "another", lamport=NOW, history=dep(FUTURE)), now_ms=NOW)
    assert alice.store.state().missing == ()
    alice.advance(now_ms=after(HOUR))
    assert len(log_of(alice)) == 3


def test_what_is_released_may_still_have_to_wait() -> None:
    alice = member(members=EVERYBODY)
    future = content(BOB, "future", lamport=NOW + HOUR, history=entries("unknown"))
    alice.handle(future, now_ms=NOW)
    assert alice.store.state().missing == ()
    alice.advance(now_ms=after(HOUR))
    assert log_of(alice) == []
    assert len(alice.store.state().missing) == 1
    assert alice.channel.snapshot() == alice.store.state()


def test_a_claim_from_the_future_does_not_stand_for_good() -> None:
    alice = member(members=EVERYBODY)
    alice.send("mine", now_ms=NOW)
    alice.handle(sync(BOB, lamport=NOW + 1_000 * HOUR, holdings={}), now_ms=NOW)
    later = after(HOUR)
    claim = holds((ALICE, 1, 1))
    alice.handle(sync(BOB, lamport=later, holdings=claim), now_ms=later)
    # Had the first claim stood, alice would still send what bob lacks by it.
    assert not [at for at in range(60) if _pushed(alice, UnixMs(later + 1_000 * at))]


def _pushed(alice: ChannelParticipant, now_ms: UnixMs) -> int:
    before = alice.sends.get("repair", 0)
    alice.advance(now_ms=now_ms)
    return alice.sends.get("repair", 0) - before


OFFSETS = st.lists(st.integers(-10_000, 10_000), min_size=3, max_size=64)


@given(OFFSETS)
def test_the_correction_is_the_median(offsets: list[int]) -> None:
    clock = CorrectedClock(SdsConfig())
    for number, offset in enumerate(offsets):
        clock.hear(ParticipantId(str(number)), UnixMs(NOW + offset), NOW)
    assert clock.offset_ms(NOW) == sorted(offsets)[(len(offsets) - 1) // 2]
    assert clock.now(NOW) == NOW + clock.offset_ms(NOW)


@given(OFFSETS)
def test_a_minority_moves_the_correction_no_further_than_the_others_reach(
    honest: list[int],
) -> None:
    clock = CorrectedClock(SdsConfig())
    liars = min((len(honest) - 1) // 2, 64 - len(honest))
    for number, offset in enumerate([*honest, *[10**12] * max(liars, 0)]):
        clock.hear(ParticipantId(str(number)), UnixMs(NOW + offset), NOW)
    assert min(honest) <= clock.offset_ms(NOW) <= max(honest)


def test_old_news_and_a_clock_set_back_correct_nothing() -> None:
    clock = CorrectedClock(SdsConfig())
    for name in ("a", "b", "c"):
        clock.hear(ParticipantId(name), after(HOUR), NOW)
    assert clock.offset_ms(NOW) == clock.offset_ms(after(HOUR)) == HOUR
    assert clock.offset_ms(after(HOUR + 1)) == 0
    assert clock.offset_ms(after(-1)) == 0


def test_only_so_many_clocks_are_remembered() -> None:
    clock = CorrectedClock(replace(SMALL, clock_senders_max=3))
    for number in range(10):
        clock.hear(ParticipantId(str(number)), after(number), NOW)
    assert clock.offset_ms(NOW) == 8
