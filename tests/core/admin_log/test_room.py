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
    Entry,
    EntryId,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    Role,
)
from engine.core.admin_log.ancestry import MAX_WAITING
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminLog
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ParticipantId, UnixMs
from tests.core.admin_log.admin_log_writing import ANNA, BEN, CEM, DORA, FIRST, OWNER, begun

SIZE = 40


def taken(entries: list[Entry], size: int = SIZE) -> AdminLog:
    """As a member takes them: what is refused comes again once others name it."""
    log = AdminLog(FIRST, size=size)
    by_id = {entry.entry_id: entry for entry in entries}
    for entry in entries:
        _take(log, entry)
    while wanted := [by_id[name] for name in log.missing]:
        for entry in wanted:
            _take(log, entry)
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


@st.composite
def floods(draw: st.DrawFn) -> list[Entry]:
    """Ben and Cem write what they like, on any branch; Anna and the owner know what they saw."""
    writing = begun()
    told: st.SearchStrategy[Act] = st.sampled_from(
        (Rename(name="x"), Add(member=DORA), Remove(member=ANNA), Promote(member=CEM))
    )
    meant: st.SearchStrategy[Act] = st.sampled_from(
        (Add(member=DORA), Remove(member=BEN), Promote(member=BEN), Remove(member=CEM))
    )
    for number in range(draw(st.integers(8, 40))):
        if number % 7 == 6:
            seen = AdminLog(FIRST, writing.entries[: draw(st.integers(4, len(writing.entries)))])
            writing.by(draw(st.sampled_from((OWNER, ANNA))), draw(meant), after=seen.heads)
            continue
        recent = st.sampled_from([entry.entry_id for entry in writing.entries[3:]][-9:])
        heads = tuple(draw(st.lists(recent, min_size=1, max_size=3, unique=True)))
        named = [one.lamport_timestamp for one in writing.entries if one.entry_id in heads]
        lamport = max(named) + draw(st.integers(1, 5))
        writing.by(draw(st.sampled_from((BEN, CEM))), draw(told), after=heads, lamport=lamport)
    return writing.entries


@settings(max_examples=60)
@given(floods(), st.integers(12, 24), st.randoms(use_true_random=False))
def test_any_order_leaves_room_for_the_same_entries(
    entries: list[Entry], size: int, random: Random
) -> None:
    expected = taken(entries, size).state
    shuffled = [*entries, *entries[::2]]
    random.shuffle(shuffled)
    log = taken(shuffled, size)
    assert log.state == expected
    assert len(expected.verdicts) <= size
    honest = [entry.entry_id for entry in entries if entry.author == OWNER]
    assert set(honest) <= expected.verdicts.keys()


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
