"""Logs that somebody wrote so that judging them takes long: twice the log is twice the work."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from engine.core.admin_log.acts import (
    MAX_ENTRIES,
    Act,
    Add,
    DeleteMessage,
    Entry,
    EntryId,
    Invite,
    MakeEpoch,
    Promote,
    Remove,
    Rename,
    Revoke,
    Role,
    SetInviters,
)
from engine.core.admin_log.log import AdminLog
from engine.core.ids import MessageId, ParticipantId, UnixMs
from tests.core.admin_log.admin_log_writing import ANNA, BEN, CEM, DORA, FIRST, OWNER, Writing

if TYPE_CHECKING:
    from _typeshed import TraceFunction

SIZE = 96
HIDE = DeleteMessage(message_id=MessageId("m"), author=OWNER)


class Planting(Writing):
    """Each entry knows the one before it, unless it is said ``beside`` others."""

    @property
    def end(self) -> tuple[EntryId, ...]:
        return (self.entries[-1].entry_id,)

    def row(self, authors: Sequence[ParticipantId], act: Act) -> None:
        for author in authors:
            self.by(author, act, after=self.end)

    def beside(self, authors: Sequence[ParticipantId], act: Act) -> list[EntryId]:
        start = self.end
        return [self.by(author, act, after=start) for author in authors]

    def join(self, names: Sequence[EntryId]) -> None:
        """The owner has heard of all of these."""
        while len(names) > 1:
            parts = [names[start : start + 31] for start in range(0, len(names), 31)]
            names = [self.by(OWNER, Rename(name="Hikes"), after=tuple(part)) for part in parts]

    def admins(self, count: int) -> list[ParticipantId]:
        people = [ParticipantId(f"p{number}") for number in range(count)]
        for who in people:
            self.by(OWNER, Promote(member=who), after=self.end)
        return people


def added_by_many(log: Planting, size: int) -> None:
    log.by(OWNER, SetInviters(least=Role.MEMBER), after=log.end)
    people = [ParticipantId(f"p{number}") for number in range(size)]
    for who in people:
        log.by(OWNER, Add(member=who), after=log.end)
    log.join(log.beside(people, Add(member=CEM)))
    log.row([CEM] * size, Rename(name="Mine"))


def promoted_by_many(log: Planting, size: int) -> None:
    log.join(log.beside(log.admins(size), Promote(member=CEM)))
    log.row([CEM] * size, HIDE)


def removed_on_many_branches(log: Planting, size: int) -> None:
    admins = log.admins(size // 16) * 16
    start = log.end
    log.beside(admins, Remove(member=CEM))
    log.join([log.by(who, Add(member=CEM), after=start) for who in admins])
    log.row([CEM] * size, Rename(name="Mine"))


def void_and_about_many_terms(log: Planting, size: int) -> None:
    """Each entry under each term of its author is about somebody else's each."""
    admins = log.admins(size // 16) * 16
    start = log.end
    for who in admins:
        log.by(who, Promote(member=BEN), after=start)
    promotions = [log.by(who, Promote(member=ANNA), after=start) for who in admins]
    log.by(OWNER, Remove(member=ANNA), after=start)
    log.join(promotions)
    end = log.by(ANNA, Rename(name="Mine"), after=(promotions[-1],))
    for _ in range(size):
        hide = DeleteMessage(message_id=MessageId("m"), author=BEN)
        end = log.by(ANNA, hide, after=(end,))


def left_as_often_as_let_in(log: Planting, size: int) -> None:
    log.join(log.beside(log.admins(size // 16) * 16, Add(member=CEM)))
    log.join(log.beside([CEM] * size, Remove(member=CEM)))
    log.row([CEM] * size, Rename(name="Mine"))


def revoked_as_often_as_used(log: Planting, size: int) -> None:
    invitation = log.by(
        OWNER, Invite(token_hash=b"t", uses=999, expires_ms=UnixMs(9)), after=(FIRST,)
    )
    for number in range(size):
        added = Add(member=ParticipantId(f"p{number}"), invitation=invitation)
        log.by(OWNER, added, after=log.end)
    log.beside([OWNER] * size, Revoke(invitation=invitation))


def one_key_given_again_and_again(log: Planting, size: int) -> None:
    log.row([OWNER] * size, MakeEpoch(commitment=b"k" * 32, recipients=frozenset({OWNER})))
    for number in range(size):
        added = Add(member=ParticipantId(f"p{number}"), reads_from=1)
        log.by(OWNER, added, after=log.end)


def many_keys_for_few_of_many(log: Planting, size: int) -> None:
    for number in range(size):
        log.by(OWNER, Add(member=ParticipantId(f"p{number}")), after=log.end)
    for number in range(size):
        made = MakeEpoch(commitment=number.to_bytes(32, "little"), recipients=frozenset({OWNER}))
        log.by(OWNER, made, after=log.end)


def named_by_many_and_knows_the_last(log: Planting, size: int) -> None:
    *_, last = log.beside(log.admins(size), Add(member=CEM))
    for _ in range(size):
        log.by(CEM, Rename(name="Mine"), after=(last,))


PLANTED = [
    added_by_many,
    promoted_by_many,
    removed_on_many_branches,
    void_and_about_many_terms,
    left_as_often_as_let_in,
    revoked_as_often_as_used,
    one_key_given_again_and_again,
    many_keys_for_few_of_many,
    named_by_many_and_knows_the_last,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_twice_the_log_takes_about_twice_the_steps(
    plant: Callable[[Planting, int], None],
) -> None:
    taken = []
    for size in (SIZE, 2 * SIZE):
        log = Planting()
        plant(log, size)
        taken.append(steps(log.entries) / len(log.entries))
    assert taken[1] < 1.1 * taken[0]


def test_a_chain_without_room_that_knows_more_and_more_takes_as_many_steps() -> None:
    """Each entry of the chain, by a stranger, also names another one of those with room."""
    taken = []
    for size in (SIZE, 2 * SIZE):
        log = Planting()
        wide = log.beside([OWNER] * size, Rename(name="Hikes"))
        log.row([DORA], Rename(name="Mine"))
        for name in wide:
            log.by(DORA, Rename(name="Mine"), after=(*log.end, name))
        log.by(OWNER, Rename(name="Walks"), after=log.end)
        taken.append(steps(log.entries[::-1], room=size + 2) / len(log.entries))
    assert taken[1] < 1.1 * taken[0]


def steps(entries: list[Entry], *, room: int = MAX_ENTRIES) -> int:
    """Lines that run until it is known what is in force."""
    count = 0

    def trace(_frame: FrameType, event: str, _value: object) -> "TraceFunction":
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert AdminLog(FIRST, entries, size=room).state.roles
    finally:
        sys.settrace(before)
    return count
