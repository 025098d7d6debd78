"""The admin log: one result on every honest member, whatever came first and whoever lies."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.admin_log.acts import (
    MAX_HEADS,
    MAX_REPEATS,
    MAX_STEP,
    Act,
    Add,
    Create,
    DeleteMessage,
    Demote,
    Entry,
    EntryId,
    Invite,
    LastMessage,
    Left,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    Revoke,
    Role,
    SetInviters,
)
from engine.core.admin_log.cuts import Written, void_messages
from engine.core.admin_log.judging import Verdict
from engine.core.admin_log.log import AdminLog
from engine.core.errors import RemoteProtocolError
from engine.core.ids import InstanceId, MessageId, ParticipantId, UnixMs
from tests.core.admin_log.admin_log_oracle import Oracle
from tests.core.admin_log.admin_log_writing import (
    ANNA,
    BEN,
    CEM,
    DORA,
    FIRST,
    OWNER,
    PEOPLE,
    Writing,
    begun,
    link_end,
)


@pytest.fixture
def writing() -> Writing:
    return begun()


NEW = ParticipantId("N")
MADE = MakeEpoch(commitment=b"k" * 32, recipients=frozenset(PEOPLE))
FOR_ADMINS: tuple[Act, ...] = (
    Add(member=NEW),
    Promote(member=DORA),
    Rename(name="Hikes"),
    SetInviters(least=Role.MEMBER),
    Invite(token_hash=b"t", uses=1, expires_ms=UnixMs(9)),
    Revoke(invitation=FIRST),
)
FOR_MEMBERS: tuple[Act, ...] = (MakeEpoch(commitment=b"k", recipients=frozenset(PEOPLE)),)


def against(other: ParticipantId) -> tuple[Act, ...]:
    hidden = DeleteMessage(message_id=MessageId("m"), author=other)
    return Remove(member=other), Demote(member=other), hidden


@pytest.mark.parametrize("author", [OWNER, ANNA, BEN, CEM, NEW])
def test_the_whole_table_of_rights(writing: Writing, author: ParticipantId) -> None:
    """From the highest down: owner, Anna, Ben, Cem."""
    ranks = (OWNER, ANNA, BEN, CEM)
    is_admin = author in ranks[:3]
    rights: dict[Act, bool] = dict.fromkeys(FOR_ADMINS, is_admin)
    rights |= dict.fromkeys(FOR_MEMBERS, author in ranks)
    for other in ranks:
        outranks = is_admin and ranks.index(author) < ranks.index(other)
        removal, demotion, hidden = against(other)
        rights |= {removal: outranks or author == other, demotion: outranks or author == other}
        rights[hidden] = outranks or (is_admin and author == other)
    rights[link_end(DORA)] = author == OWNER
    for act, allowed in rights.items():
        verdict = writing.verdict(writing.by(author, act, after=writing.base))
        assert (verdict is Verdict.COUNTS) is allowed, act
        writing.entries.pop()


def test_whoever_a_link_let_in_is_a_member_and_who_had_left_was_one(writing: Writing) -> None:
    """Two such entries, since a profile was restored: both count, and no removal is undone."""
    last = LastMessage(InstanceId(b"i" * 16), 3, MessageId("m3"))
    ended = writing.by(OWNER, link_end(CEM, DORA, left=(Left(NEW, (last,)),)), after=(FIRST,))
    removed = writing.by(OWNER, Remove(member=DORA), after=(ended,))
    again = writing.by(OWNER, link_end(CEM, DORA), after=(FIRST,))
    by_cem = writing.by(CEM, link_end(CEM, NEW), after=(ended,))
    state = writing.log.state
    assert {state.verdicts[one] for one in (ended, removed, again)} == {Verdict.COUNTS}
    assert state.verdicts[by_cem] is Verdict.NOT_ALLOWED
    assert state.roles[CEM] is Role.MEMBER
    assert not {DORA, NEW} & state.roles.keys()
    assert NEW in state.ever
    assert state.last_messages[NEW] == {last.instance_id: last}
    assert state.topic_name == bytes(16)
    assert NEW in writing.log.people
    for order in permutations(writing.entries[-4:]):
        assert AdminLog(FIRST, [*writing.entries[:-4], *order]).state == state


def test_two_admins_who_remove_each_other_are_decided_by_rank(writing: Writing) -> None:
    start = writing.base
    by_ben = writing.by(BEN, Remove(member=ANNA), after=start)
    by_anna = writing.by(ANNA, Remove(member=BEN), after=start)
    assert writing.verdict(by_ben) is Verdict.OUTRANKED
    assert writing.verdict(by_anna) is Verdict.COUNTS
    assert writing.log.state.roles == {OWNER: Role.OWNER, ANNA: Role.ADMIN, CEM: Role.MEMBER}


def test_a_chain_of_removals_on_as_many_branches(writing: Writing) -> None:
    """Ben removes Cem, Anna removes Ben, the owner removes Anna, and nobody heard of another's."""
    start = writing.base
    acts = [(BEN, CEM), (ANNA, BEN), (OWNER, ANNA)]
    names = [writing.by(who, Remove(member=whom), after=start) for who, whom in acts]
    verdicts = [writing.verdict(name) for name in names]
    assert verdicts == [Verdict.COUNTS, Verdict.VOID, Verdict.COUNTS]
    assert set(writing.log.state.roles) == {OWNER, BEN}


def test_who_was_removed_gets_nothing_through_by_pretending_not_to_know(writing: Writing) -> None:
    start = writing.base
    writing.by(OWNER, Remove(member=BEN), after=start)
    pretended = [
        writing.by(BEN, Promote(member=DORA), after=start),
        writing.by(BEN, Add(member=NEW), after=(FIRST, start[0])),
        writing.by(BEN, Remove(member=CEM), after=start),
        writing.by(BEN, Rename(name="Mine"), after=start, lamport=900),
    ]
    hidden_behind_another = writing.by(DORA, Add(member=BEN), after=(pretended[0],))
    verdicts = {writing.verdict(name) for name in (*pretended, hidden_behind_another)}
    assert verdicts <= {Verdict.VOID, Verdict.NOT_ALLOWED}
    state = writing.log.state
    assert set(state.roles) == {OWNER, ANNA, CEM}
    assert state.name == "Walks"


def test_what_was_done_before_a_removal_stays(writing: Writing) -> None:
    added = writing.by(BEN, Add(member=DORA))
    writing.by(OWNER, Remove(member=BEN))
    assert writing.verdict(added) is Verdict.COUNTS
    assert set(writing.log.state.roles) == {OWNER, ANNA, CEM, DORA}


def test_a_removal_wins_over_an_admission_that_did_not_know_of_it(writing: Writing) -> None:
    start = writing.base
    writing.by(ANNA, Remove(member=CEM), after=start)
    writing.by(OWNER, Add(member=CEM), after=start)
    assert CEM not in writing.log.state.roles
    writing.by(OWNER, Add(member=CEM))
    assert writing.log.state.roles[CEM] is Role.MEMBER


def test_a_demoted_admin_may_still_make_an_epoch_and_nothing_more(writing: Writing) -> None:
    start = writing.base
    writing.by(OWNER, Demote(member=BEN), after=start)
    everybody = frozenset({OWNER, ANNA, BEN, CEM})
    epoch = writing.by(BEN, MakeEpoch(commitment=b"k", recipients=everybody), after=start)
    renamed = writing.by(BEN, Rename(name="Mine"), after=start)
    assert writing.verdict(epoch) is Verdict.COUNTS
    assert writing.verdict(renamed) is Verdict.VOID
    assert writing.log.state.roles[BEN] is Role.MEMBER


def test_who_leaves_keeps_what_they_did_and_takes_nobody_along(writing: Writing) -> None:
    start = writing.base
    added = writing.by(BEN, Add(member=DORA), after=start)
    writing.by(BEN, Remove(member=BEN), after=start)
    late = writing.by(BEN, Rename(name="Late"))
    assert writing.verdict(added) is Verdict.COUNTS
    assert writing.verdict(late) is Verdict.NOT_ALLOWED
    assert set(writing.log.state.roles) == {OWNER, ANNA, CEM, DORA}


@pytest.mark.parametrize(
    ("act", "role"), [(Remove(member=BEN), Role.NOBODY), (Demote(member=BEN), Role.MEMBER)]
)
def test_a_promotion_on_another_branch_does_not_bring_back_who_went(
    writing: Writing, act: Act, role: Role
) -> None:
    start = writing.base
    writing.by(OWNER, Promote(member=BEN), after=start)
    writing.by(BEN, act, after=start)
    assert writing.log.state.roles.get(BEN, Role.NOBODY) is role
    writing.by(OWNER, Promote(member=BEN))
    assert writing.log.state.roles[BEN] is Role.ADMIN


def test_an_admission_that_did_not_know_of_a_leave_stands(writing: Writing) -> None:
    """Who left asks to come back, perhaps before the inviter has heard that they left."""
    start = writing.base
    writing.by(CEM, Remove(member=CEM), after=start)
    writing.by(OWNER, Add(member=CEM), after=start)
    assert writing.log.state.roles[CEM] is Role.MEMBER


def test_one_use_of_an_invitation_on_two_branches_lets_one_in(writing: Writing) -> None:
    invited = writing.by(ANNA, Invite(token_hash=b"t", uses=1, expires_ms=UnixMs(10)))
    after = writing.log.heads
    first = writing.by(ANNA, Add(member=DORA, invitation=invited), after=after)
    second = writing.by(BEN, Add(member=NEW, invitation=invited), after=after)
    assert writing.verdict(first) is Verdict.COUNTS
    assert writing.verdict(second) is Verdict.SPENT
    assert not writing.log.state.invitations[invited].is_open


@pytest.mark.parametrize(
    ("least", "sent_ms", "revoked", "verdict"),
    [
        (Role.MEMBER, 10, False, Verdict.COUNTS),
        (Role.MEMBER, 11, False, Verdict.EXPIRED),
        (Role.MEMBER, 10, True, Verdict.REVOKED),
        (Role.ADMIN, 10, False, Verdict.NOT_ALLOWED),
    ],
)
def test_a_member_invites_where_the_group_lets_members(
    writing: Writing, least: Role, sent_ms: int, revoked: bool, verdict: Verdict
) -> None:
    writing.by(OWNER, SetInviters(least=least))
    invited = writing.by(CEM, Invite(token_hash=b"t", uses=2, expires_ms=UnixMs(10)))
    after = writing.log.heads
    if revoked:
        writing.by(CEM, Revoke(invitation=invited), after=after)
    added = writing.by(CEM, Add(member=DORA, invitation=invited), after=after, sent_ms=sent_ms)
    assert writing.verdict(added) is verdict


@pytest.mark.parametrize("lamport", [6, 30])
def test_a_member_revokes_no_invitation_of_theirs_that_the_revocation_did_not_know(
    writing: Writing, lamport: int
) -> None:
    """Whatever its timestamp; an id is a hash, so nobody honest writes such a one."""
    start = writing.by(OWNER, SetInviters(least=Role.MEMBER))
    invited = writing.by(CEM, Invite(token_hash=b"t", uses=2, expires_ms=UnixMs(10)), lamport=20)
    revoked = writing.by(CEM, Revoke(invitation=invited), after=(start,), lamport=lamport)
    assert writing.verdict(revoked) is Verdict.NOT_ALLOWED
    assert writing.log.state.invitations[invited].is_open


@pytest.mark.parametrize(("by", "verdict"), [(ANNA, Verdict.COUNTS), (CEM, Verdict.NOT_ALLOWED)])
def test_the_places_of_an_invitation_are_its_makers_and_the_admins(
    writing: Writing, by: ParticipantId, verdict: Verdict
) -> None:
    """Else a member could put out who came by an admin's, with an earlier timestamp."""
    writing.by(OWNER, SetInviters(least=Role.MEMBER))
    invited = writing.by(OWNER, Invite(token_hash=b"t", uses=1, expires_ms=UnixMs(10)))
    start = writing.log.heads
    writing.by(OWNER, Rename(name="Hikes"), after=start)
    came = writing.by(OWNER, Add(member=NEW, invitation=invited))
    taken = writing.by(by, Add(member=DORA, invitation=invited), after=start)
    assert writing.verdict(taken) is verdict
    assert writing.verdict(came) is (Verdict.SPENT if by is ANNA else Verdict.COUNTS)


def said(instance: int, sequence: int, branch: str = "") -> Written:
    """By Cem.  On a branch the message before belongs to it, too, from number 4 on."""
    before = f"{instance}.{sequence - 1}{branch if sequence > 4 else ''}"
    return Written(
        message_id=MessageId(f"{instance}.{sequence}{branch}"),
        author=CEM,
        instance_id=InstanceId(bytes([instance]) * 16),
        sequence=sequence,
        previous_id=MessageId(before) if sequence > 1 else None,
    )


def last(written: Written) -> LastMessage:
    return LastMessage(written.instance_id, written.sequence, written.message_id)


def test_what_the_removed_wrote_beyond_the_cut_is_void(writing: Writing) -> None:
    start = writing.base
    for number in (7, 5):
        cut = (last(said(0, number)),)
        writing.by(ANNA, Remove(member=CEM, last_messages=cut), after=start)
    messages = [said(0, number) for number in range(1, 9)] + [said(1, 1), said(2, 1)]

    def void() -> set[str]:
        state = writing.log.state
        return set(void_messages(state.last_messages, state.roles, messages))

    assert void() == {"0.6", "0.7", "0.8", "1.1", "2.1"}
    writing.by(OWNER, Add(member=CEM))
    assert void() == {"0.6", "0.7", "0.8"}


@settings(max_examples=30)
@given(st.permutations([said(0, n) for n in range(1, 7)] + [said(0, n, "x") for n in (4, 5, 6)]))
def test_what_was_told_otherwise_before_the_cut_is_void_too(messages: list[Written]) -> None:
    """Under numbers that the removal leaves; whatever comes first, everybody ends alike."""
    writing = begun()
    writing.by(ANNA, Remove(member=CEM, last_messages=(last(said(0, 5)),)))
    state = writing.log.state
    for count in range(len(messages)):
        here = messages[:count]
        void = void_messages(state.last_messages, state.roles, here)
        assert not void & {"0.1", "0.2", "0.3", "0.4", "0.5"}
    void = void_messages(state.last_messages, state.roles, messages)
    assert void == {"0.6", "0.4x", "0.5x", "0.6x"}


def test_a_cut_at_another_place_than_the_message_says_hides_nothing_more(writing: Writing) -> None:
    """Whoever removes may lie about the number of the last message."""
    named = LastMessage(said(0, 3).instance_id, 9, said(0, 3).message_id)
    writing.by(ANNA, Remove(member=CEM, last_messages=(named,)))
    state = writing.log.state
    messages = [said(0, number) for number in range(1, 5)]
    assert not void_messages(state.last_messages, state.roles, messages)


def test_an_admin_who_goes_on_and_on_about_one_person_is_stopped(writing: Writing) -> None:
    last = [
        writing.by(BEN, act)
        for _ in range(MAX_REPEATS + 1)
        for act in (Remove(member=CEM), Add(member=CEM))
    ][-2:]
    assert [writing.verdict(name) for name in last] == [Verdict.TOO_OFTEN] * 2
    removed = writing.by(ANNA, Remove(member=CEM))
    assert writing.verdict(removed) is Verdict.COUNTS
    assert CEM not in writing.log.state.roles


def test_only_the_first_entry_makes_the_owner(writing: Writing) -> None:
    again = writing.by(DORA, Create(name="Mine"), after=())
    backdated = writing.by(BEN, Rename(name="Mine"), lamport=1)
    assert writing.verdict(again) is Verdict.NOT_THE_FIRST
    assert writing.verdict(backdated) is Verdict.BACKDATED
    assert DORA not in writing.log.state.roles


def test_malformed_entries_are_refused() -> None:
    log = Writing().log
    many = tuple(EntryId(f"h{n}") for n in range(MAX_HEADS + 1))
    for act, heads in (
        (Rename(name="x"), ()),
        (Create(name="x"), (FIRST,)),
        (Rename(name="x"), (FIRST, FIRST)),
        (Rename(name="x"), many),
    ):
        entry = Entry(
            entry_id=EntryId("x"),
            author=OWNER,
            lamport_timestamp=5,
            sent_ms=UnixMs(0),
            heads=heads,
            act=act,
        )
        with pytest.raises(RemoteProtocolError, match="malformed_entry"):
            log.add(entry)


def test_no_entry_takes_the_last_number_from_all_that_come_after_it(writing: Writing) -> None:
    """Nor does one that waited, or one that names it."""
    start = writing.log.heads
    taken = writing.by(CEM, MADE, after=start, lamport=4 + MAX_STEP)
    ahead = writing.by(CEM, MADE, after=(taken,), lamport=2**53 - 1)
    beyond = writing.by(CEM, MADE, after=(ahead,), lamport=2**53)
    logs = [AdminLog(FIRST, entries) for entries in (writing.entries, writing.entries[::-1])]
    for log in logs:
        assert log.heads == (taken,)
        assert log.state.verdicts.keys() == {one.entry_id for one in writing.entries[:-2]}
    log = logs[0]
    with pytest.raises(RemoteProtocolError, match="entry_ahead"):
        log.add(writing.entries[-2])
    assert not log.add(writing.entries[-1])
    assert beyond not in log.state.verdicts
    removed = writing.by(ANNA, Remove(member=CEM), after=log.heads_for(ANNA))
    assert writing.verdict(removed) is Verdict.COUNTS


@pytest.mark.parametrize("act", [Rename(name="Hikes"), MADE], ids=["admin", "member"])
def test_entries_that_know_of_nothing_do_not_keep_others_from_what_they_may(
    writing: Writing, act: Act
) -> None:
    """Cem writes more than an entry can name before Dora came, with later timestamps."""
    start = writing.log.heads
    admitted = Promote(member=DORA) if isinstance(act, Rename) else Add(member=DORA)
    writing.by(OWNER, admitted)
    said = writing.by(BEN, Rename(name="Strolls"))
    for number in range(3 * MAX_HEADS):
        writing.by(CEM, MADE, after=start, lamport=100 + number)
    log = writing.log
    heads = log.heads_for(DORA)
    assert len(heads) == MAX_HEADS
    done = writing.by(DORA, act, after=heads)
    state = writing.log.state
    assert state.verdicts[done] is Verdict.COUNTS
    assert writing.entries[-1].lamport_timestamp > 100 + 3 * MAX_HEADS - 1
    assert writing.log.knew(done, said)
    removed = writing.by(DORA, Remove(member=CEM), after=writing.log.heads_for(DORA))
    assert (writing.verdict(removed) is Verdict.COUNTS) is isinstance(act, Rename)


def test_a_malformed_entry_that_others_name_is_not_looked_at_for_ever(writing: Writing) -> None:
    """A newcomer may be given one."""
    last = writing.entries[-1]
    malformed = replace(last, entry_id=EntryId("x"), heads=())
    naming = replace(last, entry_id=EntryId("y"), heads=(malformed.entry_id,))
    log = AdminLog(FIRST, [*writing.entries, naming, malformed])
    assert list(log.missing) == [malformed.entry_id]
    assert log.state == writing.log.state


def test_an_entry_waits_for_what_it_names(writing: Writing) -> None:
    writing.by(BEN, Add(member=DORA))
    *_, before, last = writing.entries
    log = AdminLog(FIRST, writing.entries[:-2])
    assert not log.add(last)
    assert list(log.missing) == [before.entry_id]
    assert DORA not in log.state.roles
    assert log.add(before)
    assert not log.missing
    assert log.state.roles[DORA] is Role.MEMBER


# --- any log at all -----------------------------------------------------------------------------

people = st.sampled_from(PEOPLE)
authors = st.sampled_from((OWNER, ANNA, ANNA, BEN, BEN, BEN, CEM, CEM, DORA))


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Logs of liars: any author does anything, naming whichever entries it likes."""
    writing = begun()
    acts = st.one_of(
        st.builds(Add, member=people),
        st.lists(people, max_size=3).map(lambda members: link_end(*members)),
        st.builds(Remove, member=people),
        st.builds(Promote, member=people),
        st.builds(Demote, member=people),
        st.builds(SetInviters, least=st.sampled_from([Role.MEMBER, Role.ADMIN])),
        st.builds(Rename, name=st.sampled_from(["x", "y"])),
        st.builds(Invite, token_hash=st.just(b"t"), uses=st.integers(1, 2), expires_ms=st.just(3)),
    )
    for _ in range(draw(st.integers(3, 16))):
        names = [entry.entry_id for entry in writing.entries]
        invited = [one.entry_id for one in writing.entries if isinstance(one.act, Invite)]
        act = draw(acts)
        is_about_one = draw(st.booleans())
        if invited and is_about_one:
            invitation = draw(st.sampled_from(invited))
            act = draw(
                st.one_of(
                    st.builds(Add, member=people, invitation=st.just(invitation)),
                    st.builds(Revoke, invitation=st.just(invitation)),
                )
            )
        recent = st.sampled_from(names[3:][-5:])
        heads = draw(st.lists(recent, min_size=1, max_size=2, unique=True))
        newest = max(one.lamport_timestamp for one in writing.entries if one.entry_id in heads)
        lamport = newest + draw(st.sampled_from([1] * 12 + [2, 5, 0]))
        author = draw(authors)
        sent_ms = draw(st.integers(2, 4))
        writing.by(author, act, after=tuple(heads), lamport=lamport, sent_ms=sent_ms)
    return writing.entries


@given(logs(), st.randoms(use_true_random=False))
def test_any_order_gives_one_state_and_it_is_the_rules(
    entries: list[Entry], random: Random
) -> None:
    oracle = Oracle(FIRST, entries)
    nothing = oracle.settle(dict.fromkeys(oracle.known))
    everything = oracle.settle({name: oracle.terms()[0] for name in oracle.known})
    assert nothing == everything
    state = AdminLog(FIRST, entries).state
    assert dict(state.roles) == oracle.roles(nothing)
    for name, verdict in state.verdicts.items():
        counts = nothing[name] is not None and oracle.let_in(name, nothing)
        assert (verdict is Verdict.COUNTS) is counts, name
    shuffled = [*entries, *entries[::2]]
    random.shuffle(shuffled)
    log = AdminLog(FIRST)
    for entry in shuffled:
        log.add(entry)
        assert log.state.roles.keys() <= set(PEOPLE)
    assert log.state == state


def test_every_order_of_a_small_quarrel_gives_one_state(writing: Writing) -> None:
    start = writing.base
    writing.by(ANNA, Demote(member=BEN), after=start)
    writing.by(BEN, Promote(member=CEM), after=start)
    writing.by(OWNER, Remove(member=ANNA), after=start)
    expected = writing.log.state
    assert expected.roles == {OWNER: Role.OWNER, BEN: Role.ADMIN, CEM: Role.ADMIN}
    for order in permutations(writing.entries):
        assert AdminLog(FIRST, order).state == expected


@settings(max_examples=150)
@given(logs(), st.data())
def test_what_would_become_of_the_next_entry_is_what_becomes_of_it(
    entries: list[Entry], data: st.DataObject
) -> None:
    """Of one that knows all others, whoever writes it."""
    log = AdminLog(FIRST, entries)
    invited = [one.entry_id for one in entries if isinstance(one.act, Invite)] or [FIRST]
    acts = st.one_of(
        st.builds(Add, member=people),
        st.builds(Add, member=people, invitation=st.sampled_from(invited)),
        st.builds(Revoke, invitation=st.sampled_from(invited)),
        st.builds(Remove, member=people),
        st.builds(Demote, member=people),
        st.builds(Promote, member=people),
        st.builds(DeleteMessage, message_id=st.just(MessageId("m")), author=people),
        st.builds(Rename, name=st.just("z")),
        st.builds(Invite, token_hash=st.just(b"t"), uses=st.just(1), expires_ms=st.just(3)),
        st.builds(MakeEpoch, commitment=st.just(bytes(32)), recipients=st.just(frozenset())),
    )
    entry = Entry(
        entry_id=EntryId("next"),
        author=data.draw(authors),
        lamport_timestamp=log.lamport_of(log.heads) + 1,
        sent_ms=UnixMs(data.draw(st.integers(2, 4))),
        heads=log.heads,
        act=data.draw(acts),
    )
    foreseen = log.verdict_on(entry)
    log.add(entry)
    assert foreseen is log.state.verdicts[entry.entry_id]


def test_an_invitation_for_two_lets_in_two(writing: Writing) -> None:
    """Who came by it before is no reason to foresee that it ended."""
    invited = writing.by(OWNER, Invite(token_hash=b"t", uses=2, expires_ms=UnixMs(10)))
    log, foreseen = writing.log, []
    for number, who in enumerate((DORA, ParticipantId("E"), ParticipantId("F"))):
        entry = Entry(
            entry_id=EntryId(f"next {number}"),
            author=OWNER,
            lamport_timestamp=log.lamport_of(log.heads) + 1,
            sent_ms=UnixMs(5),
            heads=log.heads,
            act=Add(member=who, invitation=invited),
        )
        foreseen.append(log.verdict_on(entry))
        log.add(entry)
    assert foreseen == [Verdict.COUNTS, Verdict.COUNTS, Verdict.SPENT]
    assert log.state.invitations[invited].came == (DORA, ParticipantId("E"))


def test_what_was_done_too_often_is_foreseen(writing: Writing) -> None:
    for _ in range(MAX_REPEATS):
        writing.by(ANNA, Promote(member=DORA))
        writing.by(ANNA, Demote(member=DORA))
    log = writing.log
    again = replace(
        writing.entries[-2],
        entry_id=EntryId("again"),
        lamport_timestamp=log.lamport_of(log.heads) + 1,
        heads=log.heads,
    )
    assert log.verdict_on(again) is Verdict.TOO_OFTEN
    assert log.verdict_on(replace(again, author=OWNER)) is Verdict.COUNTS
