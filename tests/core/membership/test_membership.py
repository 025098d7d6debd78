"""Membership: real signed joins, every order of arrival, and those who should not get in."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.content import Join
from engine.core.errors import CryptoError, RemoteProtocolError
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.membership.members import MAX_MEMBERS, Membership
from engine.core.records import MemberRecord
from engine.crypto.identity import Identity
from engine.crypto.join import build_join, verify_join

GROUP, OTHER_GROUP = bytes(range(32)), bytes(32)
CONVERSATION = ConversationId("conversation")
JOINED = ("first", "second")
HEARD, LATER = UnixMs(1_000), UnixMs(2_000)
ALICE, BOB, CAROL = (
    Identity(signing_key=bytes([seed] * 32), encryption_key=bytes([seed + 100] * 32))
    for seed in (1, 2, 3)
)


def join(who: Identity, at_ms: int, name: str = "Somebody", group_id: bytes = GROUP) -> Join:
    return build_join(who, group_id=group_id, name=name, joined_ms=UnixMs(at_ms))


def membership(*records: MemberRecord) -> Membership:
    return Membership(
        CONVERSATION,
        verify_join=lambda statement: verify_join(statement, group_id=GROUP),
        records=records,
    )


def reason_of_refusing(members: Membership, sender: Identity, statement: Join) -> str:
    with pytest.raises(RemoteProtocolError) as refusal:
        members.join(sender.participant_id, statement, now_ms=HEARD)
    return refusal.value.reason


def test_the_admin_is_known_from_the_invite_and_completed_by_the_admins_own_join() -> None:
    members = membership()
    admitted = members.admit_admin(
        ALICE.participant_id, ALICE.public_key, name="Alice", now_ms=HEARD
    )
    assert admitted is not None
    assert (admitted.is_admin, admitted.encryption_key, admitted.join_statement) == (True, b"", b"")
    assert members.admit_admin(ALICE.participant_id, ALICE.public_key, now_ms=HEARD) is None
    statement = join(ALICE, 5, "Alice A.")
    record = members.join(ALICE.participant_id, statement, now_ms=HEARD)
    assert record == MemberRecord(
        conversation_id=CONVERSATION,
        participant_id=ALICE.participant_id,
        public_key=ALICE.public_key,
        encryption_key=ALICE.encryption_public_key,
        name="Alice A.",
        is_admin=True,
        joined_ms=UnixMs(5),
        join_statement=statement.statement,
        known_ms=HEARD,
    )
    assert members.n == 1


def test_an_admin_whose_join_came_first_becomes_admin() -> None:
    members = membership()
    members.join(ALICE.participant_id, join(ALICE, 5), now_ms=HEARD)
    record = members.admit_admin(ALICE.participant_id, ALICE.public_key, now_ms=HEARD)
    assert record is not None
    assert record.is_admin
    assert record.encryption_key == ALICE.encryption_public_key


def test_members_are_listed_by_time_of_joining_and_counted() -> None:
    members = membership()
    members.join(CAROL.participant_id, join(CAROL, 3), now_ms=HEARD)
    members.join(BOB.participant_id, join(BOB, 2), now_ms=HEARD)
    members.join(ALICE.participant_id, join(ALICE, 1), now_ms=HEARD)
    assert [m.participant_id for m in members.members()] == [
        ALICE.participant_id,
        BOB.participant_id,
        CAROL.participant_id,
    ]
    members.leave(BOB.participant_id, UnixMs(9))
    assert members.n == 2
    assert members.member_ids() == {ALICE.participant_id, CAROL.participant_id}
    assert not members.is_member(BOB.participant_id)
    assert len(members.everyone()) == 3
    record = members.record(BOB.participant_id)
    assert record is not None
    assert record.left_ms == 9


def test_somebody_elses_or_forged_joins_change_nothing() -> None:
    members = membership()
    with pytest.raises(RemoteProtocolError, match="foreign_join"):
        members.join(BOB.participant_id, join(CAROL, 1), now_ms=HEARD)
    with pytest.raises(CryptoError):
        members.join(BOB.participant_id, join(BOB, 1, group_id=OTHER_GROUP), now_ms=HEARD)
    assert members.everyone() == ()


def test_leaving_and_joining_again() -> None:
    members = membership()
    members.join(BOB.participant_id, join(BOB, 10), now_ms=HEARD)
    members.leave(BOB.participant_id, UnixMs(20))
    assert members.n == 0
    assert members.record(BOB.participant_id) is not None, "what was written before may come after"
    assert (
        members.join(BOB.participant_id, join(BOB, 10), now_ms=HEARD) is None
    )  # an old join lets nobody back
    assert not members.is_member(BOB.participant_id)
    back = members.join(BOB.participant_id, join(BOB, 30, "Bob again"), now_ms=HEARD)
    assert back is not None
    assert (back.name, back.left_ms) == ("Bob again", None)
    assert members.is_member(BOB.participant_id)
    assert members.leave(BOB.participant_id, UnixMs(20)) is None  # a late copy of the old leave
    assert members.is_member(BOB.participant_id)


def test_a_stranger_cannot_leave() -> None:
    members = membership()
    assert members.leave(BOB.participant_id, UnixMs(5)) is None
    assert members.everyone() == ()


def test_a_repeated_message_writes_nothing() -> None:
    members = membership()
    assert members.join(BOB.participant_id, join(BOB, 10), now_ms=HEARD) is not None
    assert members.join(BOB.participant_id, join(BOB, 10), now_ms=HEARD) is None
    assert members.leave(BOB.participant_id, UnixMs(20)) is not None
    assert members.leave(BOB.participant_id, UnixMs(20)) is None
    assert members.leave(BOB.participant_id, UnixMs(15)) is None


STORY: list[Join | int] = [
    join(BOB, 10, "first"),
    20,
    join(BOB, 20, "at the same moment"),
    join(BOB, 30, "second"),
    join(BOB, 30, "second, told differently"),
]


def outcome(story: list[Join | int]) -> tuple[MemberRecord, ...]:
    members = membership()
    members.admit_admin(BOB.participant_id, BOB.public_key, now_ms=HEARD)
    for step in story:
        if isinstance(step, Join):
            members.join(BOB.participant_id, step, now_ms=HEARD)
        else:
            members.leave(BOB.participant_id, UnixMs(step))
    return members.everyone()


def test_every_order_of_arrival_has_the_same_outcome() -> None:
    outcomes = {outcome(list(order)) for order in permutations(STORY)}
    assert len(outcomes) == 1
    assert outcomes.pop()[0].left_ms is None
    outcomes = {outcome([*order]) for order in permutations([*STORY[:3], 40, 35])}
    assert len(outcomes) == 1
    assert outcomes.pop()[0].left_ms == 40


JOINS = {at: join(BOB, at) for at in range(1, 7)}
steps = st.sampled_from(list(JOINS.values())) | st.integers(0, 7)


@given(st.lists(steps, max_size=8).flatmap(lambda s: st.tuples(st.just(s), st.permutations(s))))
def test_any_story_in_any_order_with_repeats_has_one_outcome(
    stories: tuple[list[Join | int], list[Join | int]],
) -> None:
    story, shuffled = stories
    assert outcome(story) == outcome(shuffled) == outcome(shuffled + story)


@given(st.lists(steps, max_size=8))
def test_written_records_bring_everything_back(story: list[Join | int]) -> None:
    written: dict[ParticipantId, MemberRecord] = {}
    members = membership()
    for step in story:
        record = (
            members.join(BOB.participant_id, step, now_ms=HEARD)
            if isinstance(step, Join)
            else members.leave(BOB.participant_id, UnixMs(step))
        )
        if record is not None:
            assert written.get(record.participant_id) != record
            written[record.participant_id] = record
    assert membership(*written.values()).everyone() == members.everyone()


def test_a_full_group_takes_nobody_in_but_keeps_working() -> None:
    def filler(number: int) -> MemberRecord:
        return MemberRecord(
            conversation_id=CONVERSATION,
            participant_id=ParticipantId(f"{number:032x}"),
            public_key=bytes(32),
            encryption_key=bytes(32),
            name="x",
            is_admin=False,
            joined_ms=UnixMs(1),
        )

    members = membership(*(filler(number) for number in range(MAX_MEMBERS - 1)))
    members.join(BOB.participant_id, join(BOB, 10), now_ms=HEARD)
    assert reason_of_refusing(members, CAROL, join(CAROL, 11)) == "too_many_members"
    with pytest.raises(RemoteProtocolError, match="too_many_members"):
        members.join(CAROL.participant_id, join(CAROL, 11), now_ms=HEARD)
    members.leave(BOB.participant_id, UnixMs(20))
    assert members.join(BOB.participant_id, join(BOB, 30), now_ms=HEARD) is not None
    assert members.admit_admin(ALICE.participant_id, ALICE.public_key, now_ms=HEARD) is not None


@given(st.permutations(range(5)), st.lists(st.integers(1, 4), min_size=5, max_size=5))
def test_the_latest_name_counts_in_whatever_order_joins_and_names_come(
    order: list[int], times: list[int]
) -> None:
    """Two joins and three names; a name that came before every join is not listened to."""

    def told(which: list[int]) -> str:
        members = membership()
        members.admit_admin(BOB.participant_id, BOB.public_key, now_ms=HEARD)
        for index in which:
            if index < len(JOINED):
                statement = join(BOB, 10 * times[index], JOINED[index])
                members.join(BOB.participant_id, statement, now_ms=HEARD)
            else:
                named_ms = UnixMs(10 * times[index] + 1)
                members.rename(BOB.participant_id, f"name {index}", named_ms)
        (bob,) = members.everyone()
        return bob.name

    latest = max(
        [(10 * times[index], 0) for index in range(len(JOINED))]
        + [(10 * times[index] + 1, index) for index in range(len(JOINED), 5)]
    )
    assert told(order) == told(sorted(order))
    if latest[1]:
        assert told(order) == f"name {latest[1]}"
    else:
        assert told(order) in JOINED


def test_nobody_unknown_has_a_name_and_who_left_keeps_theirs() -> None:
    members = membership()
    assert members.rename(BOB.participant_id, "Bobby", UnixMs(5)) is None
    members.join(BOB.participant_id, join(BOB, 1, "Bob"), now_ms=HEARD)
    assert members.rename(BOB.participant_id, "earlier", UnixMs(1)) is None
    named = members.rename(BOB.participant_id, "Bobby", UnixMs(5))
    assert named is not None
    assert (named.name, named.named_ms) == ("Bobby", 5)
    assert members.rename(BOB.participant_id, "Bobby", UnixMs(5)) is None
    left = members.leave(BOB.participant_id, UnixMs(9))
    assert left is not None
    assert left.name == "Bobby"


def test_since_when_somebody_is_known_is_when_we_first_heard_of_them() -> None:
    """Not what they wrote down: who joins with a clock a year behind is as new as anybody."""
    members = membership()
    bob, alice = BOB.participant_id, ALICE.participant_id
    told = [
        members.join(bob, join(BOB, 10), now_ms=HEARD),
        members.join(bob, join(BOB, 30), now_ms=LATER),
        members.rename(bob, "Bobby", UnixMs(40)),
        members.leave(bob, UnixMs(50)),
        members.join(bob, join(BOB, 60), now_ms=LATER),
        members.admit_admin(bob, BOB.public_key, now_ms=LATER),
        members.admit_admin(alice, ALICE.public_key, now_ms=HEARD),
        members.join(alice, join(ALICE, 10), now_ms=LATER),
    ]
    assert [record.known_ms if record else None for record in told] == [HEARD] * len(told)
    loaded = membership(*members.everyone())
    again = loaded.join(bob, join(BOB, 70), now_ms=LATER)
    assert again is not None
    assert again.known_ms == HEARD
