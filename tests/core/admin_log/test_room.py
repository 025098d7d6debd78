"""Who floods an admin log: the others' entries find room, and all members judge the same ones."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.admin_log.acts import (
    Act,
    Add,
    Create,
    Entry,
    EntryId,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    Role,
    SetInviters,
)
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminLog
from engine.core.admin_log.waiting import MAX_WAITING
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId, UnixMs
from tests.core.admin_log.admin_log_writing import (
    ANNA,
    BEN,
    CEM,
    DORA,
    FIRST,
    OWNER,
    Writing,
    begun,
    link_end,
)
from tests.core.admin_log.room_oracle import order_of_room

SIZE = 40


def taken(entries: list[Entry], size: int = SIZE) -> AdminLog:
    """As a member takes them: what is refused comes again once it is of use."""
    log = AdminLog(FIRST, size=size)
    for entry in entries:
        _take(log, entry)
    while log.wanted_again or log.wanted_of:
        log.take(entries)
    return log


def _take(log: AdminLog, entry: Entry) -> None:
    with suppress(RemoteProtocolError):
        log.add(entry)


def test_a_member_who_fills_the_log_takes_only_what_others_leave() -> None:
    writing = begun()
    start = writing.base
    noise = [writing.by(CEM, Rename(name="x"), after=start, lamport=10 + n) for n in range(200)]
    added = writing.by(ANNA, Add(member=DORA), after=(start[0], noise[150]), lamport=500)
    removed = writing.by(OWNER, Remove(member=CEM), after=(added,))
    for entries in (writing.entries, [*reversed(writing.entries)]):
        state = taken(entries).state
        assert len(state.verdicts) == SIZE
        assert state.verdicts[added] is state.verdicts[removed] is Verdict.COUNTS
        assert state.roles == {
            OWNER: Role.OWNER, ANNA: Role.ADMIN, BEN: Role.ADMIN, DORA: Role.MEMBER
        }  # fmt: skip


def test_who_named_an_entry_without_room_still_knew_what_it_knew() -> None:
    """Else a liar could make an admin seem not to know of a removal, and so void what they do."""
    writing = begun()
    removed = writing.by(OWNER, Remove(member=BEN))
    late = writing.by(CEM, Rename(name="x"), after=(removed,), lamport=1_000)
    back = writing.by(ANNA, Promote(member=BEN), after=(late,))
    for number in range(SIZE):
        writing.by(CEM, Rename(name="x"), after=writing.base, lamport=10 + number)
    state = taken(writing.entries).state
    assert late not in state.verdicts
    assert state.verdicts[back] is Verdict.COUNTS
    assert state.roles[BEN] is Role.ADMIN


def test_an_entry_without_room_is_no_head_and_makes_no_epoch() -> None:
    writing = begun()
    for number in range(100):
        commitment = number.to_bytes(32, "big")
        act = MakeEpoch(commitment=commitment, recipients=frozenset({CEM}))
        writing.by(CEM, act, after=writing.base, lamport=10 + number)
    log = taken(writing.entries)
    assert len(log.state.epochs) == SIZE - 4
    assert set(log.heads) <= set(log.state.verdicts)


def test_the_owner_has_room_before_anybody_else() -> None:
    """However many accomplices somebody admits."""
    writing = begun()
    crowd = [ParticipantId(f"X{number}") for number in range(SIZE)]
    names = [writing.by(who, Rename(name="x"), after=writing.base, lamport=5) for who in crowd]
    acts = [writing.by(OWNER, Remove(member=ANNA), after=(names[0],), lamport=99)]
    acts += [writing.by(OWNER, Rename(name="Hikes")) for _ in range(20)]
    state = taken(writing.entries).state
    assert {state.verdicts[one] for one in acts} == {Verdict.COUNTS}


def test_what_one_author_lets_wait_is_bounded_and_nobody_elses() -> None:
    log = AdminLog(FIRST, begun().entries)
    waiting = [
        Entry(
            entry_id=EntryId(f"w{number}"),
            author=CEM,
            lamport_timestamp=9,
            sent_ms=UnixMs(0),
            heads=(EntryId(f"nowhere{number}"),),
            act=Rename(name="x"),
        )
        for number in range(MAX_WAITING + 1)
    ]
    for entry in waiting[:-1]:
        assert not log.add(entry)
    with pytest.raises(RemoteProtocolError, match="too_many_entries"):
        log.add(waiting[-1])
    assert not log.add(replace(waiting[-1], author=BEN))


CROWD = tuple(ParticipantId(f"X{number}") for number in range(4))
WRITERS = (BEN, CEM, *CROWD)


@st.composite
def floods(draw: st.DrawFn) -> list[Entry]:
    """Ben, Cem and whom they admit write what they like; Anna and the owner know what they saw."""
    writing = begun()
    whom = st.sampled_from((*WRITERS, ANNA, DORA))
    told: st.SearchStrategy[Act] = st.one_of(
        st.builds(Add, member=whom),
        st.builds(Promote, member=whom),
        st.lists(whom, max_size=3).map(lambda members: link_end(*members)),
        st.sampled_from((Rename(name="x"), Remove(member=ANNA), SetInviters(least=Role.MEMBER))),
    )
    meant: st.SearchStrategy[Act] = st.sampled_from(
        (
            link_end(CEM, DORA),
            Add(member=DORA),
            Remove(member=BEN),
            Promote(member=CEM),
            Remove(member=CEM),
        )
    )
    for number in range(draw(st.integers(8, 40))):
        if number % 7 == 6:
            seen = AdminLog(FIRST, writing.entries[: draw(st.integers(4, len(writing.entries)))])
            writing.by(draw(st.sampled_from((OWNER, ANNA))), draw(meant), after=seen.heads)
            continue
        recent = st.sampled_from([entry.entry_id for entry in writing.entries][-9:])
        heads = tuple(draw(st.lists(recent, min_size=1, max_size=3, unique=True)))
        named = [one.lamport_timestamp for one in writing.entries if one.entry_id in heads]
        lamport = max(1, max(named) + draw(st.integers(-4, 5)))
        writing.by(draw(st.sampled_from(WRITERS)), draw(told), after=heads, lamport=lamport)
    return writing.entries


@settings(max_examples=25)
@given(floods(), st.integers(6, 24), st.randoms(use_true_random=False))
def test_any_order_leaves_room_for_the_same_entries(
    entries: list[Entry], size: int, random: Random
) -> None:
    """Those that the rules say; what has no room is forgotten, and asked for again."""
    expected = taken(entries, size)
    room = order_of_room(FIRST, entries)[:size]
    assert expected.state.verdicts.keys() == set(room)
    for _ in range(2):
        shuffled = [*entries, *entries[::2]]
        random.shuffle(shuffled)
        log = taken(shuffled, size)
        assert log.state == expected.state
        assert log.people == expected.people


@settings(max_examples=25)
@given(floods(), st.data())
def test_what_has_no_room_gets_none_when_more_comes(
    entries: list[Entry], data: st.DataObject
) -> None:
    """So it may be forgotten."""
    size = data.draw(st.integers(1, 24))
    some = [*entries[:1], *(one for one in entries[1:] if data.draw(st.booleans()))]
    before = order_of_room(FIRST, some)
    after = order_of_room(FIRST, entries)[:size]
    assert not set(before[size:]) & set(after)


def crowded(writing: Writing, liar: ParticipantId) -> None:
    """They admit more people than there is room for, these one another, and each writes."""
    before = writing.base
    for number in range(SIZE):
        who = ParticipantId(f"X{number}")
        before = (writing.by(liar, Add(member=who), after=before),)
        writing.by(who, Rename(name="x"), after=before)


@pytest.mark.parametrize("liar", [ANNA, BEN])
def test_accomplices_take_room_only_from_who_named_them(liar: ParticipantId) -> None:
    """Whatever comes first, the admissions or what the admitted write."""
    writing = begun()
    other = BEN if liar == ANNA else ANNA
    crowded(writing, liar)
    acts = [writing.by(other, Rename(name="Hikes"), after=writing.base)]
    acts += [writing.by(other, Rename(name="Hikes"), after=(acts[-1],)) for _ in range(9)]
    acts.append(writing.by(CEM, Remove(member=CEM), after=writing.base))
    expected = taken(writing.entries)
    assert {expected.state.verdicts.get(one) for one in acts} == {Verdict.COUNTS}
    by_author = sorted(writing.entries, key=lambda one: one.author)
    for entries in (writing.entries[::-1], by_author, by_author[::-1]):
        log = taken(entries)
        assert log.state == expected.state
        assert log.people == expected.people


def test_a_second_create_lets_nobody_write_as_many_people() -> None:
    writing = begun()
    false = writing.by(CEM, Create(name="mine"), after=())
    crowded_after = (false, *writing.base)
    for number in range(SIZE):
        who = ParticipantId(f"X{number}")
        added = writing.by(CEM, Add(member=who), after=crowded_after)
        writing.by(who, Rename(name="x"), after=(added,))
    log = taken(writing.entries)
    assert log.people == {OWNER, ANNA, BEN, CEM}


def test_whoever_the_owner_names_has_a_share_of_their_own_from_then_on() -> None:
    writing = begun()
    named = writing.by(BEN, Add(member=DORA), after=writing.base)
    for number in range(SIZE):
        writing.by(BEN, Rename(name="x"), after=writing.base, lamport=5 + number)
    before = [writing.by(DORA, Rename(name="x"), after=(named,), lamport=9) for _ in range(SIZE)]
    again = writing.by(OWNER, Add(member=DORA), after=(named,), lamport=99)
    after = [writing.by(DORA, Rename(name="x"), after=(again,), lamport=100) for _ in range(9)]
    verdicts = taken(writing.entries).state.verdicts
    assert set(after) <= verdicts.keys()
    assert len(verdicts.keys() & set(before)) == (SIZE - 5 - 9) // 2


def test_a_long_chain_is_taken_from_its_end_and_from_its_beginning() -> None:
    """More of one author than may wait; what others wait for always may."""
    writing = begun()
    before = writing.base
    last = before[0]
    for number in range(MAX_WAITING + 18):
        last = writing.by(BEN, Rename(name="x"), after=before)
        before = (last,) if number > 9 else before
    expected = taken(writing.entries, 1_000).state
    assert taken(writing.entries[::-1], 1_000).state == expected
    assert last in expected.verdicts
    log = AdminLog(FIRST, size=1_000)
    strays = [replace(one, heads=writing.base) for one in writing.entries[-MAX_WAITING - 9 :]]
    for entry in strays:
        _take(log, entry)
    early = log.wanted_of
    for entry in writing.entries[:4]:
        log.add(entry)
    assert (early, log.wanted_of) == (frozenset(), frozenset({BEN}))
    log.take(strays)
    assert len(log.state.verdicts) == MAX_WAITING + 9 + 4


def test_a_newcomer_is_given_what_has_room_and_what_it_names() -> None:
    writing = begun()
    start = writing.base
    noise = [writing.by(CEM, Rename(name="x"), after=start, lamport=10 + n) for n in range(200)]
    named = writing.by(CEM, Rename(name="x"), after=(noise[190],), lamport=900)
    added = writing.by(ANNA, Add(member=DORA), after=(named,))
    log = taken(writing.entries)
    needed = log.needed()
    assert set(needed) == {*log.state.verdicts, noise[190], named}
    assert needed.index(noise[190]) < needed.index(named) < needed.index(added)
    by_id = {entry.entry_id: entry for entry in writing.entries}
    assert AdminLog(FIRST, [by_id[one] for one in needed], size=SIZE).state == log.state


def test_people_whom_nobody_named_who_may_take_no_room_from_others() -> None:
    """Else one member could write as many people: each would have a first entry."""
    writing = begun()
    crowd = [ParticipantId(f"X{number}") for number in range(SIZE)]
    for who in crowd:
        writing.by(CEM, Add(member=who))
        writing.by(who, Rename(name="x"))
    acts = [writing.by(ANNA, Rename(name="Hikes")) for _ in range(SIZE // 3)]
    state = taken(writing.entries).state
    assert {state.verdicts.get(one) for one in acts} == {Verdict.COUNTS}
    assert not set(crowd) & state.ever
