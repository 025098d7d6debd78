"""How often somebody's reactions to one message ring."""

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.runtime.event_publisher import MAX_RUNG, RING_AGAIN_MS, RecentRings

ALICE, BOB = ParticipantId("a" * 32), ParticipantId("b" * 32)
ONE, OTHER = MessageId("1"), MessageId("2")


def test_each_person_rings_once_for_a_message_until_time_has_passed() -> None:
    rings = RecentRings()
    assert rings.ring(ALICE, ONE, UnixMs(5))
    assert rings.ring(BOB, ONE, UnixMs(6))
    assert rings.ring(ALICE, OTHER, UnixMs(7))
    assert not rings.ring(ALICE, ONE, UnixMs(5 + RING_AGAIN_MS - 1))
    assert rings.ring(ALICE, ONE, UnixMs(5 + RING_AGAIN_MS))
    assert not rings.ring(ALICE, ONE, UnixMs(6 + RING_AGAIN_MS))


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    rings = RecentRings()
    for number in range(MAX_RUNG + 1):
        assert rings.ring(ALICE, MessageId(f"m{number}"), UnixMs(number))
    assert not rings.ring(ALICE, MessageId("m1"), UnixMs(MAX_RUNG))
    assert rings.ring(ALICE, MessageId("m0"), UnixMs(MAX_RUNG))
