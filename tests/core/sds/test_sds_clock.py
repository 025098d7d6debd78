"""Messages from the future are held aside: durable, visible, told to their senders, not adopted."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.held import HeldAside
from engine.core.sds.vocabulary import GapChanged, HeldAsideChanged, IncomingEntry
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
    opened,
    run_until,
    said,
    sync,
    syncs,
)

DAVE = ParticipantId("dave")
EVERYBODY = frozenset({ALICE, BOB, CAROL, DAVE})
HOUR = 3_600_000
CROWDED = replace(SMALL, max_held_ahead_per_sender=2, max_held_ahead=6)
FUTURE = content(BOB, "future", lamport=NOW + HOUR)


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
    assert said(alice, GapChanged) == [GapChanged(waiting=0)]
    alice.advance(now_ms=after(3_000))
    assert said(alice, HeldAsideChanged) == []
    alice.advance(now_ms=after(HOUR))
    assert log_of(alice) == [id_of(FUTURE)]
    assert _held(alice) == []
    assert alice.store.state().incoming == ()


def test_what_is_held_aside_is_not_asked_for() -> None:
    alice = member(members=EVERYBODY)
    later = NOW + HOUR + 1
    alice.handle(content(CAROL, "answer", lamport=later, history=dep(FUTURE)), now_ms=NOW)
    alice.handle(FUTURE, now_ms=NOW)
    assert alice.store.state().missing == ()
    alice.advance(now_ms=after(2 * HOUR))
    assert len(log_of(alice)) == 2


def test_nobody_waits_an_hour_for_what_is_held_aside() -> None:
    """Who had delivered it would not go on from an earlier time."""
    alice = member(members=EVERYBODY)
    alice.handle(FUTURE, now_ms=NOW)
    answer = content(CAROL, "answer", lamport=NOW, history=dep(FUTURE))
    alice.handle(answer, now_ms=NOW)
    assert log_of(alice) == [id_of(answer)]


def test_the_sender_of_what_is_held_aside_is_told_and_not_made_to_send_it_again() -> None:
    alice, bob = member(), member(BOB, clock_offset_ms=HOUR)
    (sent,) = bob.send("from the future", now_ms=NOW)
    alice.receive(sent.payload, now_ms=NOW)
    (future,) = opened([sent])
    claims = [item for _, item in syncs(run_until(alice, after(2_000)))]
    assert [claim.held_aside for claim in claims] == [(id_of(future),)]
    bob.handle(claims[0], now_ms=after(2_000))
    run_until(bob, after(60_000))
    assert bob.sends.get("repair", 0) == 0


def test_its_sender_is_told_as_soon_as_of_what_is_delivered() -> None:
    alice = member(members=frozenset({ALICE, BOB}))
    alice.handle(sync(BOB, lamport=NOW, holdings=holds()), now_ms=NOW)
    run_until(alice, after(HOUR))
    assert alice.next_deadline() is None  # All is level.
    future = content(BOB, "future", lamport=NOW + 3 * HOUR)
    alice.handle(future, now_ms=after(HOUR))
    (at_ms, claim), *_ = syncs(run_until(alice, after(2 * HOUR)))
    assert claim.held_aside == (id_of(future),)
    assert at_ms <= after(HOUR) + 1_000


def test_when_our_own_clock_is_set_forward_what_was_held_aside_is_delivered() -> None:
    alice = member(members=EVERYBODY)
    alice.handle(FUTURE, now_ms=NOW)
    alice.set_clock(HOUR, now_ms=NOW)
    assert log_of(alice) == [id_of(FUTURE)]
    assert _held(alice) == []


@given(st.lists(st.integers(-(10**12), 10**12), max_size=8))
def test_nobody_elses_clock_moves_ours(ahead: list[int]) -> None:
    """Whatever the others' messages are dated, ours bears our own time or the next after theirs."""
    alice = member(members=EVERYBODY)
    for number, ahead_ms in enumerate(ahead):
        lamport = max(NOW + ahead_ms, 0)
        alice.handle(content(BOB, str(number), lamport=lamport), now_ms=NOW)
        alice.handle(sync(CAROL, lamport=lamport), now_ms=NOW)
    alice.send("mine", now_ms=NOW)
    assert NOW <= alice.store.state().lamport_timestamp <= NOW + 300_001


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


def test_what_waited_for_it_goes_on_when_it_turns_out_to_be_from_the_future() -> None:
    alice = member(members=EVERYBODY)
    answer = content(CAROL, "answer", lamport=NOW, history=dep(FUTURE))
    alice.handle(answer, now_ms=NOW)
    assert log_of(alice) == []
    alice.handle(FUTURE, now_ms=NOW)
    assert log_of(alice) == [id_of(answer)]
    assert alice.store.state().missing == ()
    assert alice.channel.snapshot() == alice.store.state()


ARRIVALS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 30)), max_size=60, unique=True)


@given(ARRIVALS, st.integers(0, 40 * HOUR))
def test_the_room_is_a_bound_for_each_and_for_all_whoever_comes(
    arrivals: list[tuple[int, int]], later_ms: int
) -> None:
    held, model = HeldAside(CROWDED), dict[MessageId, tuple[int, int]]()
    for sender, ahead in arrivals:
        entry = _entry(sender, ahead)
        leaving = held.make_room(entry)
        victims = _giving_way(model, sender, (ahead, _name(entry)))
        if victims is None:
            assert leaving is None
            continue
        assert leaving is not None
        assert [_name(victim) for victim in leaving] == victims
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


def _giving_way(
    model: dict[MessageId, tuple[int, int]], sender: int, place: tuple[int, MessageId]
) -> list[MessageId] | None:
    """The sender's own furthest; else the furthest of all; else that of who has two or more."""
    shares: dict[int, list[tuple[int, MessageId]]] = {}
    for name, (who, ahead) in model.items():
        shares.setdefault(who, []).append((ahead, name))
    mine = shares.get(sender, [])
    if len(mine) < 2 and len(model) < 6:
        return []
    furthest = max(mine if len(mine) == 2 else map(max, shares.values()))
    if furthest > place:
        return [furthest[1]]
    richest = max(shares.values(), key=lambda share: (len(share), max(share)))
    if len(richest) > len(mine) + 1:
        return [max(richest)[1]]
    return None


def test_strangers_who_came_first_and_are_many_leave_room_for_who_says_little() -> None:
    held = HeldAside(CROWDED)
    for sender in range(3):
        for ahead in (1, 2):
            held.add(_entry(sender, ahead))
    for entry in (_entry(7, 8_760), _entry(8, 1)):
        leaving = held.make_room(entry)
        assert leaving is not None
        for victim in leaving:
            held.remove(victim)
        held.add(entry)
    assert len(held) == 6
    assert _name(_entry(8, 1)) in held


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


def test_who_lives_in_the_past_is_not_sent_the_present_again_and_again() -> None:
    """Of a hundred messages a year ahead of Alice's clock she can keep a few, and names those."""
    alice = member(clock_offset_ms=-365 * 24 * HOUR)
    carol = member(CAROL)
    for number in range(100):
        (sent,) = carol.send(str(number), now_ms=after(number))
        alice.receive(sent.payload, now_ms=after(number))
    claims = [claim for _, claim in syncs(run_until(alice, after(2 * HOUR)))]
    assert len(claims[-1].held_aside) == 32
    for number, claim in enumerate(claims):
        carol.handle(claim, now_ms=after(2 * HOUR + 1_000 * number))
        carol.advance(now_ms=after(2 * HOUR + 1_000 * number))
    assert carol.sends.get("repair", 0) <= SMALL.push_per_claim
    # Once her clock is right she gets all of it.
    alice.set_clock(0, now_ms=after(3 * HOUR))
    for _, claim in syncs(run_until(alice, after(3 * HOUR + 60_000))):
        carol.handle(claim, now_ms=after(3 * HOUR + 60_000))
    for _, repair in run_until(carol, after(4 * HOUR)):
        alice.receive(repair.payload, now_ms=after(4 * HOUR))
    assert len(log_of(alice)) > 32
