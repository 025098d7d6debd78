"""Our own clock is far ahead: what we write is not stamped with it once others told the time."""

from dataclasses import replace

from engine.core.types import ParticipantId, UnixMs
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import ALICE, BOB, CAROL, NOW, content, member, opened

DAVE = ParticipantId("dave")
EVERYBODY = frozenset({ALICE, BOB, CAROL, DAVE})
YEAR = 31_536_000_000
FAST = UnixMs(NOW + YEAR)


def _hears(alice: ChannelParticipant, *others: ParticipantId) -> None:
    for number, other in enumerate(others):
        received = content(other, "now", lamport=NOW + number)
        received = replace(received, sent_ms=UnixMs(NOW + number))
        alice.handle(received, now_ms=FAST)


def _lamport(alice: ChannelParticipant) -> int:
    (sent,) = opened(alice.send("mine", now_ms=FAST))
    return sent.message.lamport_timestamp or 0


def test_a_year_ahead_of_three_others_we_write_by_their_clocks() -> None:
    alice = member(members=EVERYBODY)
    _hears(alice, BOB, CAROL, DAVE)
    first = _lamport(alice)
    assert NOW < first <= NOW + 10
    assert _lamport(alice) == first + 1
    bob = member(BOB, members=EVERYBODY)
    for other in (CAROL, DAVE):
        bob.handle(content(other, "now", lamport=NOW + 1), now_ms=NOW)
    (sent,) = opened(alice.send("heard", now_ms=FAST))
    bob.handle(sent, now_ms=NOW)
    assert bob.counters["sds.held_ahead"] == 0


def test_two_others_may_be_the_ones_who_are_wrong() -> None:
    alice = member(members=EVERYBODY)
    _hears(alice, BOB, CAROL)
    assert _lamport(alice) == FAST


def test_a_little_ahead_is_no_reason() -> None:
    alice = member(members=EVERYBODY)
    for other in (BOB, CAROL, DAVE):
        received = content(other, "now", lamport=NOW)
        received = replace(received, sent_ms=UnixMs(FAST - 60_000))
        alice.handle(received, now_ms=FAST)
    assert _lamport(alice) == FAST
