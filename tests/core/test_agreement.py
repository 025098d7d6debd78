"""Whether two want to talk, as each knows it: in whatever order they hear, they stand alike."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.agreement import Agreement, Statement, heard
from engine.core.contacts import ContactState
from engine.core.content import MAX_SAFE_INTEGER, NOBODY, ContactAnswer, ContactRequest
from engine.core.errors import LocalProtocolError
from engine.core.ids import InstanceId, UnixMs

OWN, EARLIER, THEIRS, THEIRS_BEFORE = (
    InstanceId(letter * 16) for letter in (b"O", b"E", b"T", b"B")
)
STATES = [
    ContactState.ASKED,
    ContactState.ASKING,
    ContactState.ACCEPTED,
    ContactState.DECLINED,
]
COMPATIBLE = {
    (ContactState.ACCEPTED, ContactState.ACCEPTED),
    (ContactState.DECLINED, ContactState.DECLINED),
    (ContactState.ASKED, ContactState.ASKING),
    (ContactState.ASKING, ContactState.ASKED),
}
rounds = st.integers(1, 9)
statements: st.SearchStrategy[Statement] = st.one_of(
    st.builds(ContactRequest, name=st.just("T"), round=rounds),
    st.builds(
        ContactAnswer,
        accepted=st.booleans(),
        round=rounds,
        answered_instance=st.sampled_from([OWN, EARLIER, NOBODY]),
        withdrawn=st.booleans(),
    ),
)
agreements = st.builds(Agreement, state=st.sampled_from(STATES), round=rounds)


def hear(agreement: Agreement, *said: Statement) -> Agreement:
    for one in said:
        agreement = heard(agreement, one, author=THEIRS, own=OWN).agreement
    return agreement


def accepts(round_: int, of: InstanceId = OWN) -> ContactAnswer:
    return ContactAnswer(accepted=True, round=round_, answered_instance=of)


def declines(round_: int, of: InstanceId = OWN) -> ContactAnswer:
    return ContactAnswer(accepted=False, round=round_, answered_instance=of)


def asks(round_: int) -> ContactRequest:
    return ContactRequest(name="T", round=round_)


def standing(state: ContactState, round_: int) -> Agreement:
    return Agreement(state=state, round=round_, peer_instance=THEIRS)


@given(agreements, st.lists(statements, max_size=6))
def test_rounds_never_go_back_and_a_decline_ends_its_round(
    before: Agreement, said: list[Statement]
) -> None:
    for one in said:
        after = hear(before, one)
        assert after.round >= before.round
        if after.round == before.round and before.state is ContactState.DECLINED:
            assert after.state is ContactState.DECLINED
        before = after


@given(agreements, st.lists(statements, max_size=6))
@example(standing(ContactState.ASKED, 1), [declines(2, EARLIER), asks(2)])
@example(standing(ContactState.ACCEPTED, 1), [declines(2, NOBODY), asks(2)])
@example(standing(ContactState.DECLINED, 1), [declines(3, EARLIER), asks(2)])
def test_what_was_heard_before_changes_nothing_more(
    before: Agreement, said: list[Statement]
) -> None:
    once = hear(before, *said)
    for one in said:
        assert hear(once, one) == replace(once, peer_instance=THEIRS)


@given(agreements, st.lists(statements, max_size=6))
def test_nobody_agrees_in_our_place(before: Agreement, said: list[Statement]) -> None:
    if before.state in {ContactState.ASKING, ContactState.DECLINED}:
        assert hear(before, *said).state in {ContactState.ASKING, ContactState.DECLINED}


def test_an_acceptance_of_an_earlier_stay_counts_for_nothing() -> None:
    for round_ in (3, 7, 9):
        assert hear(standing(ContactState.ASKED, 7), accepts(round_, EARLIER)) == standing(
            ContactState.ASKED, 7
        )


def test_whose_clock_is_behind_is_brought_up_by_the_answer() -> None:
    asked = standing(ContactState.ASKED, 3)
    assert hear(asked, accepts(8)) == standing(ContactState.ACCEPTED, 8)
    assert hear(asked, declines(8)) == standing(ContactState.DECLINED, 8)
    assert hear(asked, asks(8)) == standing(ContactState.ACCEPTED, 8)


def test_an_old_decline_undoes_nothing() -> None:
    for state in (ContactState.ASKED, ContactState.ACCEPTED):
        assert hear(standing(state, 5), declines(4)) == standing(state, 5)
        assert hear(standing(state, 5), declines(9, EARLIER)) == replace(
            standing(state, 5), passed_over=9
        )


def test_rounds_come_to_an_end() -> None:
    last = standing(ContactState.DECLINED, MAX_SAFE_INTEGER)
    with pytest.raises(LocalProtocolError, match="cannot be asked again"):
        last.opened(now_ms=UnixMs(5))
    assert Agreement(state=ContactState.ASKED).opened(now_ms=UnixMs(0)).round == 1


# --- heard again ----------------------------------------------------------------------------------


def opens(agreement: Agreement) -> Agreement:
    ended = agreement.state is ContactState.DECLINED
    return agreement.opened(now_ms=UnixMs(0)) if ended else agreement


def agrees(agreement: Agreement) -> Agreement:
    asked = agreement.state is ContactState.ASKING
    return replace(agreement, state=ContactState.ACCEPTED) if asked else agreement


def ends(agreement: Agreement) -> Agreement:
    return replace(agreement, state=ContactState.DECLINED)


WISHES = {"open": opens, "agree": agrees, "end": ends}
Said: TypeAlias = tuple[InstanceId, Statement]
Again: TypeAlias = int
"""Which of what was heard is heard again; the first is 0, and it starts anew after the last."""
Step: TypeAlias = Said | Again | str
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.sampled_from([THEIRS, THEIRS_BEFORE]), statements),
    st.integers(0, 11),
    st.sampled_from(sorted(WISHES)),
)


def standings(before: Agreement, history: list[Step], *, deaf: bool) -> Iterator[Agreement]:
    """After each step, except for whom we would answer; ``deaf`` to what was heard before."""
    heard_once: list[Said] = []
    for step in history:
        if isinstance(step, str):
            before = WISHES[step](before)
        elif not isinstance(step, int):
            author, said = step
            if not (deaf and said in [one for _, one in heard_once]):
                before = heard(before, said, author=author, own=OWN).agreement
            heard_once.append(step)
        elif heard_once and not deaf:
            author, said = heard_once[step % len(heard_once)]
            before = heard(before, said, author=author, own=OWN).agreement
        yield replace(before, peer_instance=NOBODY)


@given(agreements, st.lists(steps, max_size=12))
@example(standing(ContactState.ASKED, 1), [(THEIRS, declines(2, EARLIER)), (THEIRS, asks(2)), 0])
@example(
    standing(ContactState.ASKED, 1),
    [(THEIRS, declines(3, EARLIER)), "end", (THEIRS, asks(2)), 0, "agree", 0],
)
def test_who_hears_twice_stands_as_who_hears_once(before: Agreement, history: list[Step]) -> None:
    """Requests, yes, no and withdrawals, of two stays, and whatever we do ourselves in between."""
    assert list(standings(before, history, deaf=False)) == list(
        standings(before, history, deaf=True)
    )


FEW_ROUNDS = (1, 2, 3)
FEW: list[Statement] = [
    *(asks(round_) for round_ in FEW_ROUNDS),
    *(accepts(round_, of) for round_ in FEW_ROUNDS for of in (OWN, EARLIER)),
    *(declines(round_, of) for round_ in FEW_ROUNDS for of in (OWN, EARLIER)),
]


def all_after(before: Agreement) -> set[Agreement]:
    """Wherever one can stand some day; we open rounds while they could still know them."""
    reached, looked_at = deque([before]), set[Agreement]()
    while reached:
        now = reached.popleft()
        if now in looked_at:
            continue
        looked_at.add(now)
        reached.extend(hear(now, said) for said in FEW)
        reached.extend(
            wish(now)
            for wish in WISHES.values()
            if wish is not opens or now.round < max(FEW_ROUNDS)
        )
    return looked_at


@pytest.mark.parametrize("said", FEW, ids=repr)
def test_nothing_changes_anything_again_however_long_ago_it_was(said: Statement) -> None:
    """Not by chance: every state that any history of three rounds can lead to."""
    first = [standing(state, round_) for state in STATES for round_ in FEW_ROUNDS]
    for now in set[Agreement]().union(*(all_after(hear(before, said)) for before in first)):
        assert hear(now, said) == now


# --- two of them ----------------------------------------------------------------------------------


@dataclass
class Side:
    name: bytes
    random: Random
    clock: int
    agreement: Agreement | None = None
    stays: int = 0
    inbox: list[tuple[InstanceId, Statement]] = field(default_factory=list)
    heard: list[tuple[InstanceId, Statement]] = field(default_factory=list)
    """In this stay."""

    @property
    def instance(self) -> InstanceId:
        return InstanceId((self.name + bytes([self.stays])).ljust(16))

    def say(self, other: "Side") -> None:
        now = self.agreement
        if now is None or now.state is ContactState.ASKING:
            return
        said: Statement = ContactRequest(name="x", round=now.round)
        if now.state is not ContactState.ASKED:
            accepted = now.state is ContactState.ACCEPTED
            said = ContactAnswer(
                accepted=accepted, round=now.round, answered_instance=now.peer_instance
            )
        other.inbox.append((self.instance, said))

    def act(self, other: "Side", *, forgets: bool) -> None:
        self.clock += self.random.randrange(3)
        now = self.agreement
        if now is None or now.state is ContactState.DECLINED:
            self.stays += now is None
            now = now or Agreement(state=ContactState.ASKED)
            self.agreement = now.opened(now_ms=UnixMs(self.clock))
        elif forgets and self.random.random() < 0.1:
            self.agreement = None
            self.heard.clear()
            return
        elif now.state is ContactState.ASKING and now.peer_instance != NOBODY:
            yes = self.random.random() < 0.6
            state = ContactState.ACCEPTED if yes else ContactState.DECLINED
            self.agreement = replace(now, state=state)
        else:
            self.agreement = replace(now, state=ContactState.DECLINED)
        self.say(other)

    def hear(self, other: "Side") -> None:
        author, said = self.inbox.pop(self.random.randrange(len(self.inbox)))
        if self.agreement is None:
            if not isinstance(said, ContactRequest):
                self.inbox.append((author, said))
                return  # A stranger, not acknowledged.
            self.stays += 1
            self.agreement = Agreement(state=ContactState.ASKING)
        after = heard(self.agreement, said, author=author, own=self.instance)
        self.agreement = after.agreement
        self.heard.append((author, said))
        if after.tell:
            self.say(other)


def bad_time(seed: int, *, forgets: bool) -> tuple[Side, Side]:
    random = Random(seed)
    one, other = (Side(name, random, random.randrange(30)) for name in (b"1", b"2"))
    one.act(other, forgets=False)
    for _ in range(random.randrange(30)):
        who, peer = random.sample((one, other), 2)
        if who.inbox and random.random() < 0.6:
            who.hear(peer)
        elif who.agreement is not None or random.random() < 0.3:
            who.act(peer, forgets=forgets)
        if who.heard and random.random() < 0.2:
            who.inbox.append(random.choice(who.heard))
    hear_all(one, other)
    return one, other


def hear_all(one: Side, other: Side) -> None:
    for _ in range(200):
        for who, peer in ((one, other), (other, one)):
            if who.inbox:
                who.hear(peer)


def write(who: Side, peer: Side) -> None:
    """What is written before both agree is not taken in, and answered with where one stands."""
    if states(who, peer)[0] is ContactState.ACCEPTED is not states(who, peer)[1]:
        peer.say(who)
        hear_all(who, peer)


def assert_nothing_new(one: Side, other: Side, seed: int) -> None:
    """All is heard again, in another order; what they tell each other of it arrives, too."""
    before = where(one), where(other)
    for who in (one, other):
        who.inbox += who.random.sample(who.heard, len(who.heard))
    hear_all(one, other)
    assert (where(one), where(other)) == before, seed


def where(side: Side) -> Agreement:
    """And not for whom we would answer."""
    assert side.agreement is not None
    return replace(side.agreement, peer_instance=NOBODY)


def states(one: Side, other: Side) -> tuple[ContactState | None, ContactState | None]:
    first, second = (side.agreement.state if side.agreement else None for side in (one, other))
    return first, second


@pytest.mark.slow
def test_two_who_heard_all_of_each_other_stand_alike() -> None:
    for seed in range(3_000):
        one, other = bad_time(seed, forgets=False)
        if other.agreement is not None:
            assert not one.inbox, seed
            assert not other.inbox, seed
            assert states(one, other) in COMPATIBLE, seed
            assert_nothing_new(one, other, seed)


@pytest.mark.slow
def test_who_forgot_is_asked_and_the_answer_settles_it() -> None:
    """Whoever removed the other may hear a request of before, whose author forgot it, too."""
    settled = 0
    for seed in range(3_000):
        one, other = bad_time(seed, forgets=True)
        if None in states(one, other):
            continue
        for who, peer in ((one, other), (other, one)):
            write(who, peer)
        for who, peer in ((one, other), (other, one)):
            assert who.agreement is not None
            lonely = states(one, other) not in COMPATIBLE
            if lonely and who.agreement.state is ContactState.ASKING:
                settled += 1
                who.agreement = replace(who.agreement, state=ContactState.ACCEPTED)
                who.say(peer)
                hear_all(one, other)
        assert not one.inbox, seed
        assert not other.inbox, seed
        assert states(one, other) in COMPATIBLE, seed
        assert_nothing_new(one, other, seed)
    assert settled > 5
