"""Requests, answers and withdrawals that cross, come late, are replayed, or are of another stay."""

import pytest

from engine.core.contacts import ContactState
from engine.core.content import Text
from engine.core.errors import CommandError
from engine.core.ids import UnixMs
from engine.session.inputs import (
    AcceptContact,
    AskToTalk,
    DeclineContact,
    Say,
    SetBlocked,
    WithdrawRequest,
)
from engine.session.pair.saved import OwnProfile
from engine.session.transitions import RowAdded
from tests.session.pair_stage import PairPerson, exchange, friends, live

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20_000)
ACCEPTED, DECLINED = ContactState.ACCEPTED, ContactState.DECLINED
ASKED, ASKING = ContactState.ASKED, ContactState.ASKING


def states(one: PairPerson, other: PairPerson) -> tuple[ContactState, ContactState]:
    return one.session.record.state, other.session.record.state


def asked() -> tuple[PairPerson, PairPerson]:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    return alice, bob


def later(by_ms: int, *people: PairPerson) -> None:
    for one in people:
        one.now_ms = UnixMs(one.now_ms + by_ms)


# --- what came to be apart ------------------------------------------------------------------------


def test_a_text_of_before_a_decline_accepts_nothing() -> None:
    """Seed 74: who declined and asked again took what was still on its way for the answer."""
    alice, bob = friends()
    text = alice.say("said while we talked")
    declined = bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    again = bob.perform(bob.session.handle(AskToTalk(), now_ms=bob.now_ms))
    bob.hear(*text)
    assert bob.session.record.state is ASKED
    assert bob.texts() == []
    exchange(bob, alice, [*declined, *again])
    assert states(alice, bob) == (ASKING, ASKED)
    exchange(alice, bob, alice.perform(alice.session.handle(AcceptContact(), now_ms=alice.now_ms)))
    live(alice, bob, 60)
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)
    assert bob.texts() == ["said while we talked"]


def test_both_decline_and_ask_again_over_an_old_text() -> None:
    """Seed 91: one ended with a decline, the other with an acceptance that nobody had said."""
    alice, bob = friends()
    text = alice.say("said while we talked")
    hers = alice.perform(alice.session.handle(DeclineContact(), now_ms=alice.now_ms))
    his = bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    his += bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms))
    bob.hear(*text, *hers)
    assert states(alice, bob) == (DECLINED, ASKED)
    exchange(bob, alice, his)
    live(alice, bob, 60)
    assert states(alice, bob) == (DECLINED, ASKED), "not heard for a day"
    later(DAY_MS, alice, bob)
    live(alice, bob, 2 * HOUR_MS // 1_000 // 10)
    for _ in range(12):
        later(600_000, alice, bob)
        live(alice, bob, 1)
    assert states(alice, bob) == (ASKING, ASKED)


def test_a_decline_that_comes_late_ends_its_round_all_the_same() -> None:
    """Seed 140: it came after a later message of its author, and was taken for an old one."""
    alice, bob = friends()
    bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    again = bob.perform(bob.session.handle(AskToTalk(), now_ms=bob.now_ms))
    exchange(bob, alice, again)
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)
    late = bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    alice.hear(*again, *late)
    assert states(alice, bob) == (DECLINED, DECLINED)


def test_an_answer_does_not_wait_for_what_was_lost_before_it() -> None:
    alice, bob = friends()
    bob.say("lost")
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    assert states(alice, bob) == (DECLINED, DECLINED)
    alice.restart()
    bob.restart()
    exchange(alice, bob, alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms)))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms)))
    live(alice, bob, 60)
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)
    assert alice.texts() == ["lost"]
    assert alice.session.gap() is None


# --- another stay ---------------------------------------------------------------------------------


@pytest.mark.parametrize("later_ms", [30 * DAY_MS, -HOUR_MS, -30 * DAY_MS])
def test_an_acceptance_of_an_earlier_stay_is_not_one_of_this(later_ms: int) -> None:
    """Whoever recorded it plays it back; also to a clock that is behind by now."""
    alice, bob = asked()
    kept = bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms))
    exchange(bob, alice, kept)
    kept += bob.say("yesterday's secret")
    alice.remove()
    later(later_ms, alice)
    alice.ask(bob.link())
    alice.hear(*kept)
    alice.advance(by_ms=61_000)
    assert alice.session.record.state is ASKED
    assert alice.texts() == []
    with pytest.raises(CommandError, match="not_answered"):
        alice.say("hello")


@pytest.mark.parametrize("later_ms", [HOUR_MS, -HOUR_MS])
def test_an_old_decline_played_back_ends_no_new_request(later_ms: int) -> None:
    alice, bob = asked()
    kept = bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    exchange(bob, alice, kept)
    alice.remove()
    later(later_ms, alice)
    alice.ask(bob.link())
    alice.hear(*kept)
    assert alice.session.record.state is ASKED


@pytest.mark.parametrize("restarts", [False, True])
def test_a_decline_that_was_passed_over_ends_nothing_when_it_is_said_again(restarts: bool) -> None:
    """Its round became ours in between, by a request that came even later.

    Without Olm: what went by it cannot be played back to another stay.
    """
    alice, bob = PairPerson("Alice", olm=False), PairPerson("Bob", olm=False)
    alice.ask(bob.link())
    request = bob.ask(alice.link())
    exchange(bob, alice, request)
    declines = bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    exchange(bob, alice, declines)
    alice.believe(friends()[0].session.agreement)
    again = bob.hear(*alice.say("we talk, do we?"))
    alice.remove()
    later(-HOUR_MS, alice)
    alice.ask(bob.link())
    alice.hear(*declines)
    passed_over = alice.session.agreement
    assert (passed_over.state, passed_over.passed_over) == (ASKED, bob.session.agreement.round)
    if restarts:
        alice.restart()
        assert alice.session.agreement == passed_over
    alice.hear(*request)
    assert alice.session.record.state is ACCEPTED
    told = alice.hear(*again)
    assert alice.session.record.state is ACCEPTED
    exchange(alice, bob, told)
    live(alice, bob, 60)
    assert states(alice, bob) == (DECLINED, DECLINED), "once it is said to her of today"


@pytest.mark.parametrize("behind_ms", [0, HOUR_MS, 400 * DAY_MS])
def test_who_removed_us_and_asks_again_is_answered_however_wrong_their_clock(
    behind_ms: int,
) -> None:
    alice, bob = friends()
    alice.remove()
    later(-behind_ms, alice)
    exchange(alice, bob, alice.ask(bob.link()))
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)
    exchange(alice, bob, alice.say("back"))
    live(alice, bob, 10)
    assert bob.texts() == ["back"]


def test_who_removed_us_after_a_decline_learns_of_it_and_can_ask_anew() -> None:
    alice, bob = asked()
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    alice.remove()
    later(-HOUR_MS, alice)
    exchange(alice, bob, alice.ask(bob.link()))
    assert states(alice, bob) == (DECLINED, DECLINED)
    later(2 * DAY_MS, alice, bob)
    exchange(alice, bob, alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms)))
    assert states(alice, bob) == (ASKED, ASKING)


# --- whom we declined -----------------------------------------------------------------------------


def test_whom_we_declined_is_heard_after_a_day_and_not_before() -> None:
    alice, bob = asked()
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    bob.notes.clear()
    exchange(alice, bob, alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms)))
    for hour in range(1, 29):
        later(HOUR_MS, alice, bob)
        live(alice, bob, 1)
        if hour < 24:
            assert states(alice, bob) == (ASKED, DECLINED)
            assert not [note for note in bob.notes if isinstance(note, RowAdded)]
    assert states(alice, bob) == (ASKED, ASKING)
    assert sum(isinstance(note, RowAdded) for note in bob.notes) == 1


def test_who_thinks_again_is_not_kept_waiting() -> None:
    alice, bob = asked()
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    sent = alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms))
    sent = [*alice.hear(*bob.perform(bob.session.handle(AskToTalk(), now_ms=bob.now_ms))), *sent]
    exchange(alice, bob, sent)
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)


# --- both at once ---------------------------------------------------------------------------------


def kinds(one: PairPerson) -> list[tuple[str, bool]]:
    """What each row is, and whether it is our own."""
    own_id = one.identity.participant_id
    return [(row.record.kind, row.record.sender_id == own_id) for row in one.rows()]


def test_who_both_ask_have_both_accepted_and_each_row_says_what_changed() -> None:
    """Who asked last need not be asked: the other's request is an answer to theirs."""
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    hers = alice.ask(bob.link())
    later(1, alice, bob)
    his = bob.ask(alice.link())
    told = [*bob.hear(*hers), *his]
    exchange(bob, alice, told)
    live(alice, bob, 60)
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)
    assert kinds(alice) == [("asked", True), ("asked", False), ("accepted", True)]
    assert kinds(bob) == [("asked", True), ("accepted", False)]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("answer", "expected"), [(AcceptContact(), ACCEPTED), (DeclineContact(), DECLINED)]
)
def test_an_answer_to_a_request_that_is_noted_and_not_yet_heard_counts(
    answer: AcceptContact | DeclineContact, expected: ContactState, restarts: bool
) -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    _keys, request = alice.ask(bob.link())
    bob.note(request)
    said = bob.perform(bob.session.handle(answer, now_ms=bob.now_ms))
    if restarts:
        bob.restart()
        said = []
    exchange(bob, alice, said)
    live(alice, bob, 60)
    assert states(alice, bob) == (expected, expected)


# --- withdrawing ----------------------------------------------------------------------------------


def test_a_withdrawn_request_is_gone_at_the_other_end_also_after_a_crash() -> None:
    alice, bob = asked()
    alice.perform(alice.session.handle(WithdrawRequest(), now_ms=alice.now_ms))
    alice.restart()
    live(alice, bob, 20)
    assert states(alice, bob) == (DECLINED, DECLINED)
    assert [row.record.kind for row in bob.rows()] == ["asked", "withdrawn"]
    exchange(alice, bob, alice.perform(alice.session.handle(AskToTalk(), now_ms=alice.now_ms)))
    assert states(alice, bob) == (ASKED, ASKING), "nobody was declined, so nobody has to wait"


def test_a_withdrawal_and_an_acceptance_that_cross_end_declined() -> None:
    alice, bob = asked()
    withdrawn = alice.perform(alice.session.handle(WithdrawRequest(), now_ms=alice.now_ms))
    accepted = bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms))
    bob.hear(*withdrawn)
    alice.hear(*accepted)
    live(alice, bob, 5)
    assert states(alice, bob) == (DECLINED, DECLINED)


def test_only_an_open_request_of_ours_can_be_withdrawn() -> None:
    alice, bob = asked()
    with pytest.raises(CommandError, match="nothing_to_withdraw"):
        bob.session.handle(WithdrawRequest(), now_ms=bob.now_ms)
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms)))
    with pytest.raises(CommandError, match="nothing_to_withdraw"):
        alice.session.handle(WithdrawRequest(), now_ms=alice.now_ms)


# --- how it is said -------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
def test_an_answer_with_a_picture_goes_whole_each_time_until_it_is_heard(restarts: bool) -> None:
    """Before they agree, nobody asks for what is only offered."""
    alice, bob = asked()
    bob.book.own = OwnProfile(name="Bob", picture=PICTURE)
    bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms))  # Lost.
    bob.say("and this comes after")
    if restarts:
        bob.restart()
    live(alice, bob, 60)
    assert states(alice, bob) == (ACCEPTED, ACCEPTED)
    assert alice.session.record.picture == PICTURE
    assert alice.texts() == ["and this comes after"]


def test_what_is_known_of_the_agreement_survives_a_restart() -> None:
    alice, bob = asked()
    for one in (alice, bob):
        before = one.session.agreement
        one.restart()
        assert one.session.agreement == before
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    bob.perform(bob.session.handle(SetBlocked(blocked=True), now_ms=bob.now_ms))
    before = bob.session.agreement
    bob.restart()
    assert (bob.session.agreement, bob.session.record.state) == (before, ContactState.BLOCKED)


def test_a_blocked_person_s_statement_leaves_no_trace() -> None:
    alice, bob = friends()
    bob.perform(bob.session.handle(SetBlocked(blocked=True), now_ms=bob.now_ms))
    before = (bob.session.agreement, bob.rows())
    sent = alice.perform(alice.session.handle(DeclineContact(), now_ms=alice.now_ms))
    assert bob.hear(*sent) == []
    assert (bob.session.agreement, bob.rows()) == before
    bob.perform(bob.session.handle(SetBlocked(blocked=False), now_ms=bob.now_ms))
    live(alice, bob, 60)
    assert states(alice, bob) == (DECLINED, DECLINED)


def test_who_writes_as_if_we_had_agreed_is_told() -> None:
    alice, bob = friends()
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    alice.believe(friends()[0].session.agreement)
    transition = alice.session.handle(Say(Text(text="we talk, do we?")), now_ms=alice.now_ms)
    exchange(alice, bob, alice.perform(transition))
    assert bob.texts() == []
    live(alice, bob, 5)
    assert states(alice, bob) == (DECLINED, DECLINED)
