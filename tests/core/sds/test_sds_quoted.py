"""A quoted message that is not here: looked for like a dependency, bounded, and lost like one."""

from engine.core.ids import MessageId, ParticipantId, Position
from engine.core.sds.inputs import MembersChanged, RetrieveQuoted
from engine.core.sds.missing import MAX_QUOTED
from engine.core.sds.vocabulary import MissingState, RepairRequested
from engine.sim.channel_participant import ChannelParticipant
from tests.core.sds.sds_bench import ALICE, BOB, CAROL, NOW, after, content, log_of, member, said

HOUR_MS = 3_600_000
QUOTED = content(BOB, "quoted", lamport=NOW - 9)
ANSWER = content(BOB, "answer", lamport=NOW)
DAVE = ParticipantId("dave")
PLACE = Position(NOW, ANSWER.message.message_id)


def _wants_it() -> ChannelParticipant:
    alice = member()
    alice.handle(ANSWER, now_ms=NOW)
    _retrieve(alice, QUOTED.message.message_id, 0)
    return alice


def _retrieve(alice: ChannelParticipant, message_id: MessageId, later_ms: int) -> None:
    wanted = RetrieveQuoted(message_id=message_id, before=PLACE)
    alice.handle(wanted, now_ms=after(later_ms))


def _requested(alice: ChannelParticipant, until_ms: int) -> list[MessageId]:
    """What is requested until then; time passes."""
    found: list[MessageId] = []
    while (deadline_ms := alice.next_deadline()) is not None and deadline_ms <= after(until_ms):
        alice.advance(now_ms=deadline_ms)
        for event in said(alice, RepairRequested):
            assert isinstance(event, RepairRequested)
            found += event.message_ids
    return found


def test_members_are_asked_for_it_at_once_and_the_gap_is_told() -> None:
    alice = _wants_it()
    (gap,) = alice.channel.gaps()
    assert (gap.before, gap.missing, gap.waiting) == (PLACE, 1, 0)
    assert set(_requested(alice, 5_000)) == {QUOTED.message.message_id}


def test_it_takes_its_place_when_it_comes() -> None:
    alice = _wants_it()
    alice.handle(QUOTED, now_ms=after(1_000))
    assert alice.channel.gaps() == ()
    assert log_of(alice) == [QUOTED.message.message_id, ANSWER.message.message_id]
    _retrieve(alice, QUOTED.message.message_id, 2_000)
    assert alice.channel.gaps() == ()


def test_what_nobody_has_is_lost_within_hours_and_asked_for_again_by_wish() -> None:
    alice = _wants_it()
    asked = _requested(alice, 2 * HOUR_MS)
    assert set(asked) == {QUOTED.message.message_id}
    assert len(asked) < 50
    (entry,) = alice.channel.snapshot().missing
    assert (entry.state, entry.before) == (MissingState.LOST, PLACE)
    _retrieve(alice, QUOTED.message.message_id, 2 * HOUR_MS + 1)
    assert _requested(alice, 2 * HOUR_MS + 60_000) == [QUOTED.message.message_id]


def test_it_is_asked_for_again_when_somebody_new_comes() -> None:
    alice = _wants_it()
    _requested(alice, 2 * HOUR_MS)
    newcomer = frozenset([ALICE, BOB, CAROL, DAVE])
    alice.handle(MembersChanged(members=newcomer), now_ms=after(2 * HOUR_MS + 1))
    assert _requested(alice, 2 * HOUR_MS + 60_000) == [QUOTED.message.message_id]
    alice.handle(MembersChanged(members=newcomer - {DAVE}), now_ms=after(3 * HOUR_MS))
    assert _requested(alice, 3 * HOUR_MS + 60_000) == []


def test_invented_ids_are_bounded() -> None:
    alice = member()
    alice.handle(ANSWER, now_ms=NOW)
    for number in range(MAX_QUOTED + 9):
        _retrieve(alice, MessageId(f"invented-{number}"), number)
    states = [entry.state for entry in alice.channel.snapshot().missing]
    assert states.count(MissingState.WANTED) == MAX_QUOTED
    assert states.count(MissingState.LOST) == 9
