"""The corrected clock, and messages held aside by it: durable, visible, never adopted."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.core.sds.config import SdsConfig
from engine.core.sds.corrected_clock import CorrectedClock
from engine.core.sds.held import HeldAside
from engine.core.sds.types import GapChanged, HeldAsideChanged, IncomingEntry
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
CROWDED = replace(SMALL, max_held_ahead_per_sender=2, max_held_ahead=6)
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


def _saved(alice: ChannelParticipant) -> set[MessageId]:
    return {entry.message.message_id for entry in alice.store.state().incoming}


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
    repaired = content(BOB, "old", repaired_by=DAVE)
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


def test_one_wrong_clock_leaves_the_others_their_room() -> None:
    alice = member()
    for number in range(300):
        alice.handle(content(BOB, str(number), lamport=NOW + 10**9), now_ms=NOW)
    held = _saved(alice)
    assert len(held) == 32
    gave_way = alice.counters["sds.held_ahead_gave_way"]
    assert alice.counters["sds.held_ahead"] - gave_way == 32
    assert alice.counters["sds.held_ahead"] + alice.counters["sds.held_ahead_overflow"] == 300
    carols = content(CAROL, "hers", lamport=NOW + 10**9)
    alice.handle(carols, now_ms=NOW)
    assert _saved(alice) == {*held, id_of(carols)} == {*_held(alice)}


def test_the_one_furthest_ahead_gives_way_and_nothing_to_it() -> None:
    alice = member(config=CROWDED)
    far, farther, near = (
        content(BOB, name, lamport=NOW + ahead * HOUR)
        for name, ahead in (("far", 5), ("farther", 9), ("near", 1))
    )
    for message in (far, farther, near, farther):
        alice.handle(message, now_ms=NOW)
    assert _saved(alice) == {id_of(near), id_of(far)}
    assert alice.counters["sds.held_ahead_gave_way"] == 1
    assert alice.counters["sds.held_ahead_overflow"] == 1
    alice.advance(now_ms=after(9 * HOUR))
    assert log_of(alice) == [id_of(near), id_of(far)]


def test_what_gave_way_is_asked_for_if_somebody_waits_for_it() -> None:
    alice = member(members=EVERYBODY, config=CROWDED)
    named = content(BOB, "named", lamport=NOW + 9 * HOUR)
    alice.handle(named, now_ms=NOW)
    alice.handle(content(CAROL, "answer", lamport=NOW, history=dep(named)), now_ms=NOW)
    assert alice.store.state().missing == ()
    for number in range(2):
        alice.handle(content(BOB, str(number), lamport=NOW + HOUR), now_ms=NOW)
    (missing,) = alice.store.state().missing
    assert missing.entry.message_id == id_of(named)
    assert alice.channel.snapshot() == alice.store.state()


ARRIVALS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 30)), max_size=60, unique=True)


@given(ARRIVALS, st.integers(0, 40 * HOUR))
def test_the_room_is_a_bound_for_each_and_for_all_whoever_comes(
    arrivals: list[tuple[int, int]], later_ms: int
) -> None:
    held, model = HeldAside(CROWDED), dict[MessageId, tuple[int, int]]()
    for sender, ahead in arrivals:
        entry = _entry(sender, ahead)
        mine = sorted((theirs, name) for name, (who, theirs) in model.items() if who == sender)
        leaving = held.make_room(entry)
        full = len(mine) == 2 or len(model) == 6
        victims = mine[-1:] if full else []
        if full and not [place for place in victims if place > (ahead, _name(entry))]:
            assert leaving is None
            continue
        assert leaving is not None
        assert [_name(victim) for victim in leaving] == [name for _, name in victims]
        for victim in leaving:
            held.remove(victim)
            del model[_name(victim)]
        held.add(entry)
        model[_name(entry)] = sender, ahead
    assert {_name(entry) for entry in held.entries()} == model.keys()
    in_time = [name for name, (_, ahead) in model.items() if ahead * HOUR <= later_ms + 300_000]
    due = held.take_due(after(later_ms))
    assert {_name(entry) for entry in due} == {*in_time}
    assert len(held) == len(model) - len(in_time)
    assert held.event(0).held_total == len(held)


def _entry(sender: int, ahead: int) -> IncomingEntry:
    received = content(ParticipantId(str(sender)), f"{ahead}", lamport=NOW + ahead * HOUR)
    return IncomingEntry(received.message, received.raw, received.author, None, NOW)


def _name(entry: IncomingEntry) -> MessageId:
    return entry.message.message_id


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
