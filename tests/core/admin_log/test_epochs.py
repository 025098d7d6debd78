"""Epochs: nobody who was removed has a key that others write with, and there always is one."""

from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.admin_log.acts import (
    ANYONE,
    Act,
    Add,
    EndLink,
    Entry,
    EntryId,
    MakeEpoch,
    Promote,
    Remove,
    Role,
    SetInviters,
)
from engine.core.admin_log.epochs import MAX_EPOCHS, Epoch
from engine.core.admin_log.log import AdminLog
from engine.core.epochs import (
    FRESH_AFTER_MS,
    FRESH_SPREAD_MS,
    YIELD_MS,
    GiveThenSend,
    MakeThenSend,
    MayNot,
    SendIn,
    Step,
    fresh_due_ms,
    keys_to_ask_for,
    may_wrap_for,
    step_to_send,
    wait_before_making_ms,
)
from engine.core.ids import ParticipantId, UnixMs
from tests.core.admin_log.admin_log_oracle import Guess, Oracle
from tests.core.admin_log.admin_log_writing import (
    ANNA,
    BEN,
    CEM,
    DORA,
    FIRST,
    LINK,
    OWNER,
    PEOPLE,
    Writing,
    begun,
    link_end,
)

EVE = ParticipantId("E")
ALL = frozenset({OWNER, ANNA, BEN, CEM})
OLD, NEW = b"old key!" * 4, b"new key!" * 4


@pytest.fixture
def writing() -> Writing:
    """Owner, Anna, Ben and Cem, and an epoch that all of them were given."""
    begun_ = begun()
    begun_.by(OWNER, MakeEpoch(commitment=OLD, recipients=ALL))
    return begun_


def epoch(writing: Writing, commitment: bytes = OLD) -> Epoch:
    return next(one for one in writing.log.state.epochs if one.commitment == commitment)


def step(writing: Writing, who: ParticipantId = ANNA, held: Collection[bytes] = (OLD, NEW)) -> Step:
    state = writing.log.state
    return step_to_send(state.epochs, members=state.roles.keys(), own_id=who, held=held)


# --- the table ------------------------------------------------------------------------------------


def test_an_epoch_that_all_members_and_nobody_else_were_given_is_sent_in(writing: Writing) -> None:
    assert step(writing) == SendIn(epoch=epoch(writing))
    assert step(writing, held=()) == MakeThenSend(recipients=ALL)
    assert step(writing, DORA) == MayNot()


@pytest.mark.parametrize("leaves", [True, False])
def test_after_a_removal_or_a_leave_a_fresh_one_is_made(writing: Writing, leaves: bool) -> None:
    writing.by(CEM if leaves else OWNER, Remove(member=CEM))
    assert step(writing) == MakeThenSend(recipients=ALL - {CEM})
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=ALL - {CEM}))
    assert step(writing) == SendIn(epoch=epoch(writing, NEW))
    assert step(writing, CEM) == MayNot()


def test_two_removals_on_two_branches_leave_no_epoch_that_either_has_a_key_of(
    writing: Writing,
) -> None:
    start = writing.log.heads
    first = writing.by(ANNA, Remove(member=CEM), after=start)
    second = writing.by(OWNER, Remove(member=BEN), after=start)
    for after, gone, key in ((first, CEM, b"1" * 32), (second, BEN, b"2" * 32)):
        fresh = MakeEpoch(commitment=key, recipients=ALL - {gone})
        writing.by(ANNA, fresh, after=(after,))
    state = writing.log.state
    assert [one.is_good for one in state.epochs] == [False] * 3
    assert step(writing, held=(OLD, b"1" * 32, b"2" * 32)) == MakeThenSend(
        recipients=frozenset({OWNER, ANNA})
    )


def test_who_was_let_read_the_epoch_afterwards_spoils_it_when_removed(writing: Writing) -> None:
    """Nobody was removed whom the entry that made it names."""
    writing.by(OWNER, Add(member=DORA, reads_from=1))
    assert step(writing) == SendIn(epoch=epoch(writing))
    assert DORA in epoch(writing).given
    writing.by(OWNER, Remove(member=DORA))
    assert step(writing) == MakeThenSend(recipients=ALL)


def test_who_was_given_it_by_an_entry_that_is_void_spoils_it_too(writing: Writing) -> None:
    """Somebody may have wrapped the key for Dora before they heard that Ben was removed."""
    start = writing.log.heads
    writing.by(BEN, Add(member=DORA, reads_from=1), after=start)
    assert step(writing) == SendIn(epoch=epoch(writing))
    writing.by(OWNER, Remove(member=BEN), after=start)
    writing.by(OWNER, Add(member=BEN))
    assert epoch(writing).given == ALL | {DORA}
    assert step(writing) == MakeThenSend(recipients=ALL)


@pytest.mark.parametrize(
    ("reads_from", "readable"),
    [(None, []), (1, [OLD, NEW]), (6, [NEW])],
    ids=["nothing", "all", "since the newer one"],
)
def test_a_newcomer_reads_back_as_far_as_the_inviter_chose(
    writing: Writing, reads_from: int | None, readable: list[bytes]
) -> None:
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=ALL), lamport=6)
    writing.by(ANNA, Add(member=DORA, reads_from=reads_from))
    state = writing.log.state
    assert [one.commitment for one in state.epochs if DORA in one.readers] == readable[::-1]
    wanted = keys_to_ask_for(state.epochs, own_id=DORA, held=())
    assert wanted == tuple(readable[::-1])
    if readable:
        assert step(writing) == SendIn(epoch=epoch(writing, NEW))
    else:
        assert step(writing) == MakeThenSend(recipients=ALL | {DORA})


def test_an_epoch_made_beside_an_admission_is_given_to_the_newcomer(writing: Writing) -> None:
    start = writing.log.heads
    writing.by(OWNER, Add(member=DORA), after=start)
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=ALL), after=start)
    assert step(writing) == GiveThenSend(epoch=epoch(writing, NEW), to=frozenset({DORA}))
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=frozenset({DORA})))
    state = writing.log.state
    assert step(writing) == SendIn(epoch=epoch(writing, NEW))
    assert not may_wrap_for(epoch(writing), DORA, members=state.roles.keys())
    assert may_wrap_for(epoch(writing, NEW), DORA, members=state.roles.keys())


@pytest.mark.parametrize(
    ("least", "lie"),
    [
        (Role.ADMIN, MakeEpoch(commitment=OLD, recipients=frozenset({DORA, EVE}))),
        (Role.ADMIN, Add(member=DORA, reads_from=1)),
        (Role.MEMBER, Add(member=DORA, reads_from=1)),
        (Role.MEMBER, Add(member=EVE, reads_from=1)),
    ],
    ids=["names herself", "has no right to", "admits herself", "admits somebody else"],
)
def test_a_newcomer_gives_nobody_the_key_that_the_inviter_kept_from_them(
    writing: Writing, least: Role, lie: Act
) -> None:
    writing.by(OWNER, SetInviters(least=least))
    writing.by(OWNER, Add(member=DORA))
    writing.by(DORA, lie)
    members = writing.log.state.roles.keys()
    assert OLD not in keys_to_ask_for(writing.log.state.epochs, own_id=DORA, held=())
    for who in (DORA, EVE):
        assert not may_wrap_for(epoch(writing), who, members=members)
    assert not isinstance(step(writing), SendIn)
    writing.by(OWNER, Add(member=DORA, reads_from=1))
    assert may_wrap_for(epoch(writing), DORA, members=members)


@pytest.mark.parametrize("pretends", [False, True])
def test_who_comes_back_gives_themselves_no_key_that_was_made_meanwhile(
    writing: Writing, *, pretends: bool
) -> None:
    """Also if they pretend to have made it, before they left."""
    before = writing.log.heads
    writing.by(CEM, Remove(member=CEM))
    writing.by(OWNER, MakeEpoch(commitment=NEW, recipients=ALL - {CEM}))
    lie = MakeEpoch(commitment=NEW, recipients=frozenset({CEM}))
    if pretends:
        writing.by(CEM, lie, after=before)
    writing.by(OWNER, Add(member=CEM))
    if not pretends:
        writing.by(CEM, lie)
    members = writing.log.state.roles.keys()
    assert CEM in epoch(writing, NEW).given
    assert not may_wrap_for(epoch(writing, NEW), CEM, members=members)
    assert may_wrap_for(epoch(writing), CEM, members=members)


def test_an_old_key_that_is_named_again_is_no_newer_for_who_may_read_the_new(
    writing: Writing,
) -> None:
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=ALL), lamport=50)
    writing.by(BEN, MakeEpoch(commitment=OLD, recipients=ALL))
    writing.by(ANNA, Add(member=DORA, reads_from=50))
    members = writing.log.state.roles.keys()
    assert may_wrap_for(epoch(writing, NEW), DORA, members=members)
    assert not may_wrap_for(epoch(writing), DORA, members=members)


def test_an_older_epoch_that_all_can_read_comes_before_a_newer_that_some_cannot(
    writing: Writing,
) -> None:
    start = writing.log.heads
    writing.by(OWNER, Add(member=DORA, reads_from=1), after=start)
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=ALL), after=start)
    assert step(writing) == SendIn(epoch=epoch(writing))


def test_who_left_and_came_back_gets_what_they_had_and_not_what_was_made_meanwhile(
    writing: Writing,
) -> None:
    writing.by(OWNER, Remove(member=CEM))
    writing.by(OWNER, MakeEpoch(commitment=NEW, recipients=ALL - {CEM}))
    assert keys_to_ask_for(writing.log.state.epochs, own_id=CEM, held=()) == (OLD,)
    assert not may_wrap_for(epoch(writing), CEM, members=writing.log.state.roles.keys())
    writing.by(OWNER, Add(member=CEM))
    assert may_wrap_for(epoch(writing), CEM, members=writing.log.state.roles.keys())
    assert keys_to_ask_for(writing.log.state.epochs, own_id=CEM, held=()) == (OLD,)


def test_two_keys_with_one_epoch_id_are_both_no_good(writing: Writing) -> None:
    """With 2^32 work a member makes two; messages would fit either by their headers."""
    twin = OLD[:8] + bytes(24)
    writing.by(BEN, MakeEpoch(commitment=twin, recipients=ALL))
    assert not any(one.is_good for one in writing.log.state.epochs)
    assert step(writing, held=(OLD, twin)) == MakeThenSend(recipients=ALL)


def test_somebody_who_is_no_member_makes_no_epoch(writing: Writing) -> None:
    start = writing.log.heads
    writing.by(OWNER, Remove(member=CEM), after=start)
    writing.by(CEM, MakeEpoch(commitment=NEW, recipients=ALL - {CEM}), after=start)
    assert [one.commitment for one in writing.log.state.epochs] == [OLD]


def test_somebody_who_makes_epochs_without_end_costs_only_so_much(writing: Writing) -> None:
    """The newest count: whoever wants to write makes a newer one, and reads it."""
    (before,) = writing.log.heads
    flood = [
        Entry(
            entry_id=EntryId(f"f{number:04}"),
            author=CEM,
            lamport_timestamp=10 + number,
            sent_ms=UnixMs(0),
            heads=(before,),
            act=MakeEpoch(commitment=number.to_bytes(32, "little"), recipients=ALL),
        )
        for number in range(MAX_EPOCHS)
    ]
    state = AdminLog(FIRST, (*writing.entries, *flood)).state
    assert len(state.epochs) == MAX_EPOCHS
    assert all(one.made_by == CEM for one in state.epochs)
    found = step_to_send(state.epochs, members=ALL, own_id=ANNA, held={OLD})
    assert found == MakeThenSend(recipients=ALL)
    writing.entries += flood
    writing.by(ANNA, MakeEpoch(commitment=NEW, recipients=ALL))
    assert step(writing, held={NEW}) == SendIn(epoch=writing.log.state.epochs[0])


def test_a_fresh_one_is_due_by_our_clock_and_not_by_all_at_once() -> None:
    seen = UnixMs(1_000)
    assert fresh_due_ms(seen, 0.0) == seen + FRESH_AFTER_MS
    assert fresh_due_ms(seen, 0.5) == seen + FRESH_AFTER_MS + FRESH_SPREAD_MS // 2
    waits = [
        wait_before_making_ms(is_ours=ours, member_count=count, random_unit=0.5)
        for ours, count in ((True, 1_000), (False, 16), (False, 1_000))
    ]
    assert waits == [0, 0, YIELD_MS * 3 // 4]


# --- any log at all, against the definitions read out as sets -------------------------------------


def epoch_told(act: Act) -> tuple[bytes, frozenset[ParticipantId]] | None:
    """Commitment and people: a link's key was given to its members, and to anyone."""
    if isinstance(act, EndLink) and act.members:
        return act.key_commitment, frozenset({*act.members, ANYONE})
    return (act.commitment, act.recipients) if isinstance(act, MakeEpoch) else None


def by_definition(oracle: Oracle, guess: Guess) -> set[Epoch]:
    everything = set(oracle.known)
    members = frozenset(oracle.roles(guess))
    dated = {
        name: entry
        for name, entry in oracle.known.items()
        if all(oracle.known[h].lamport_timestamp < entry.lamport_timestamp for h in entry.heads)
    }
    makings: dict[bytes, list[Entry]] = {}
    for entry in dated.values():
        told = epoch_told(entry.act)
        if told is not None:
            makings.setdefault(told[0], []).append(entry)
    ids = Counter(commitment[:8] for commitment in makings)
    found = set()
    for commitment, entries in makings.items():
        counting = [entry for entry in entries if guess[entry.entry_id] is not None]
        if not counting:
            continue
        first = min(counting, key=lambda one: (one.lamport_timestamp, one.entry_id))
        people = {entry.author for entry in entries}
        for entry in entries:
            told = epoch_told(entry.act)
            people |= told[1] if told else set()
        for name, entry in dated.items():
            if isinstance(entry.act, Add) and entry.act.reads_from is not None:
                since = entry.act.reads_from
                if any(
                    one.entry_id in oracle.past[name] and one.lamport_timestamp >= since
                    for one in entries
                ):
                    people.add(entry.act.member)
        is_good = people <= members and ids[commitment[:8]] == 1
        readers = readers_by_definition(oracle, guess, counting)
        lacking = members - readers if is_good else frozenset()
        unaware = {
            term.who
            for term in oracle.terms()
            if oracle.held(term, everything, guess)
            and not oracle.past[term.by] & {entry.entry_id for entry in entries}
        }
        found.add(
            Epoch(
                commitment=commitment,
                entry_id=first.entry_id,
                lamport_timestamp=first.lamport_timestamp,
                made_by=first.author,
                made_ms=first.sent_ms,
                given=frozenset(people),
                readers=readers,
                is_good=is_good,
                is_complete=is_good and not lacking,
                is_withheld=not lacking <= unaware,
            )
        )
    return found


def readers_by_definition(
    oracle: Oracle, guess: Guess, counting: list[Entry]
) -> frozenset[ParticipantId]:
    """``counting``: the entries with the commitment that count."""
    named = {
        entry.entry_id: {entry.author, *told[1]}
        for entry in counting
        if (told := epoch_told(entry.act)) is not None
    }
    first = [names for name, names in named.items() if not oracle.past[name] & named.keys()]
    readers = set.intersection(*first)
    for term in oracle.terms():
        is_held = oracle.held(term, set(oracle.known), guess)
        if is_held and not oracle.past[term.by] & named.keys():
            readers |= {term.who} & set().union(*named.values())
    since = min(entry.lamport_timestamp for entry in counting)
    for entry in sorted(
        oracle.known.values(), key=lambda one: (one.lamport_timestamp, one.entry_id)
    ):
        act = entry.act
        if not isinstance(act, Add) or act.reads_from is None or act.reads_from > since:
            continue
        counts = guess[entry.entry_id] is not None and oracle.let_in(entry.entry_id, guess)
        if counts and entry.author in readers and oracle.past[entry.entry_id] & named.keys():
            readers.add(act.member)
    return frozenset(readers)


people = st.sampled_from(PEOPLE)
commitments = st.sampled_from([OLD, NEW, OLD[:8] + NEW[8:], LINK])
acts = st.one_of(
    st.lists(people, max_size=3).map(lambda members: link_end(*members)),
    st.builds(Add, member=people, reads_from=st.none() | st.integers(1, 9)),
    st.builds(Remove, member=people),
    st.builds(Promote, member=people),
    st.builds(SetInviters, least=st.just(Role.MEMBER)),
    st.builds(
        MakeEpoch,
        commitment=commitments,
        recipients=st.frozensets(people, min_size=3) | st.just(ALL),
    ),
    st.builds(
        MakeEpoch, commitment=commitments, recipients=st.frozensets(people, min_size=1, max_size=2)
    ),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Of liars: any author does anything, naming whichever entries it likes."""
    writing = begun()
    for _ in range(draw(st.integers(3, 14))):
        names = [entry.entry_id for entry in writing.entries]
        recent = st.sampled_from(names[3:][-4:])
        heads = draw(st.lists(recent, min_size=1, max_size=2, unique=True))
        newest = max(one.lamport_timestamp for one in writing.entries if one.entry_id in heads)
        lamport = newest + draw(st.sampled_from([1] * 12 + [2, 0]))
        author = draw(st.sampled_from((OWNER, ANNA, ANNA, BEN, BEN, CEM, DORA)))
        writing.by(author, draw(acts), after=tuple(heads), lamport=lamport)
    return writing.entries


@given(logs())
def test_epochs_of_any_log_are_those_of_the_definitions(entries: list[Entry]) -> None:
    oracle = Oracle(FIRST, entries)
    guess = oracle.settle(dict.fromkeys(oracle.known))
    epochs = AdminLog(FIRST, entries).state.epochs
    assert set(epochs) == by_definition(oracle, guess)
    order = [(one.lamport_timestamp, one.entry_id) for one in epochs]
    assert order == sorted(order, reverse=True)
    assert AdminLog(FIRST, entries[::-1]).state.epochs == epochs
