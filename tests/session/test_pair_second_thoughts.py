"""Who declines and thinks again while the other is away: the last word counts for both."""

from engine.core.contacts import ContactState
from engine.session.inputs import AcceptContact, DeclineContact
from tests.session.pair_stage import PairPerson, exchange, friends, live


def states(one: PairPerson, other: PairPerson) -> tuple[ContactState, ContactState]:
    return one.session.record.state, other.session.record.state


def test_a_decline_that_comes_after_the_second_thoughts_does_not_count() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    exchange(alice, bob, alice.ask(bob.link()))
    declined = bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    exchange(bob, alice, bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms)))
    assert states(alice, bob) == (ContactState.ACCEPTED, ContactState.ACCEPTED)
    exchange(bob, alice, declined)
    live(alice, bob, 20)
    assert states(alice, bob) == (ContactState.ACCEPTED, ContactState.ACCEPTED)


def test_a_request_does_not_wait_for_what_cannot_be_said_before_it_is_answered() -> None:
    alice, bob = friends()
    bob.say("lost with the rest")
    bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms))
    asked = bob.perform(bob.session.handle(AcceptContact(), now_ms=bob.now_ms))
    exchange(bob, alice, asked)
    assert states(alice, bob) == (ContactState.ACCEPTED, ContactState.ACCEPTED)
    live(alice, bob, 60)
    assert alice.texts() == ["lost with the rest"]
    assert states(alice, bob) == (ContactState.ACCEPTED, ContactState.ACCEPTED)


def test_a_request_of_before_a_decline_opens_nothing_again() -> None:
    alice, bob = PairPerson("Alice"), PairPerson("Bob")
    lost = bob.ask(alice.link())
    exchange(alice, bob, alice.ask(bob.link()))
    assert states(alice, bob) == (ContactState.ACCEPTED, ContactState.ACCEPTED)
    exchange(bob, alice, bob.perform(bob.session.handle(DeclineContact(), now_ms=bob.now_ms)))
    assert states(alice, bob) == (ContactState.DECLINED, ContactState.DECLINED)
    exchange(bob, alice, lost)
    assert states(alice, bob) == (ContactState.DECLINED, ContactState.DECLINED)


def test_the_answer_comes_before_anything_that_needs_it() -> None:
    alice, bob = friends()
    carol, dave = PairPerson("Carol"), PairPerson("Dave")
    asked = dave.ask(carol.link())
    exchange(carol, dave, carol.ask(dave.link()))
    exchange(dave, carol, asked)
    for person in (alice, bob, carol, dave):
        assert "pair.not_accepted" not in person.counters.snapshot()
