"""A clock that was ahead is set back: what it put off does not wait until it has caught up."""

import pytest

from engine.core.ids import DeliveryState, UnixMs
from tests.session.pair_stage import PairPerson, exchange, friends, live

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
AHEAD_MS = pytest.mark.parametrize("ahead_ms", [HOUR_MS, YEAR_MS])


def shift(person: PairPerson, by_ms: int) -> None:
    person.now_ms = UnixMs(person.now_ms + by_ms)


@AHEAD_MS
def test_what_was_lost_is_sent_again_soon_after(ahead_ms: int) -> None:
    alice, bob = friends()
    shift(alice, ahead_ms)
    alice.say("lost while ahead")
    alice.advance(by_ms=1_000)
    shift(alice, -ahead_ms)
    alice.say("lost afterwards")
    live(alice, bob, 60)
    assert bob.texts() == ["lost while ahead", "lost afterwards"]
    assert alice.delivery("lost while ahead") is DeliveryState.HELD


@AHEAD_MS
def test_the_other_goes_on_hearing_that_we_are_there(ahead_ms: int) -> None:
    alice, bob = friends()
    shift(alice, ahead_ms)
    alice.advance()
    shift(alice, -ahead_ms)
    live(alice, bob, 130)
    last_seen_ms = bob.session.record.last_seen_ms
    assert last_seen_ms is not None
    assert bob.now_ms - last_seen_ms <= 61_000


@AHEAD_MS
def test_what_waits_for_something_earlier_does_not_wait_for_the_clock_too(ahead_ms: int) -> None:
    alice, bob = friends()
    alice.say("never arrives")
    shift(bob, ahead_ms)
    bob.hear(*alice.say("waits"))
    shift(bob, -ahead_ms)
    for _ in range(26):
        bob.advance(by_ms=HOUR_MS)
        bob.restart()
        bob.advance(by_ms=60_000)
    for _ in range(3):
        bob.advance(by_ms=HOUR_MS)
    assert bob.texts() == ["waits"]


def test_a_minute_of_correction_changes_nothing() -> None:
    alice, bob = friends()
    shift(alice, 50_000)
    exchange(alice, bob, alice.say("one"))
    shift(alice, -50_000)
    exchange(alice, bob, alice.say("two"))
    live(alice, bob, 5)
    assert bob.texts() == ["one", "two"]


@AHEAD_MS
def test_what_was_said_while_ahead_does_not_stay_below_what_is_said_afterwards(
    ahead_ms: int,
) -> None:
    alice, bob = friends()
    shift(alice, ahead_ms)
    exchange(alice, bob, alice.say("while ahead"))
    shift(alice, -ahead_ms)
    for number in range(3):
        exchange(bob, alice, bob.say(f"answer {number}"))
        exchange(alice, bob, alice.say(f"reply {number}"))
        alice.restart()
    said = [words for number in range(3) for words in (f"answer {number}", f"reply {number}")]
    assert alice.texts() == bob.texts() == ["while ahead", *said]
