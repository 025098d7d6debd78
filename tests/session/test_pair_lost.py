"""What was given up in a pair is stated where it belongs, and closes when it comes months later."""

from engine.core.content import ContactAnswer
from engine.core.ids import InstanceId, MessageId, UnixMs
from engine.core.sds.inputs import RetrieveLostRequested
from engine.events import GapView
from engine.history_views import LostView
from engine.session.inputs import SetLocalName
from engine.session.pair.gaps import lost_before
from engine.session.pair.lost import MAX_RANGES, MAX_RANGES_TOLD
from engine.session.pair.order import LOST_AFTER_MS, MAX_WAITING, SHOW_AFTER_MS
from engine.session.transitions import GapNoted
from tests.session.pair_stage import PairPerson, friends
from tests.session.test_pair_order import NOW, ONE, TWO, Stage, said

DAY_MS = 24 * 3_600_000
MONTHS_MS = 90 * DAY_MS


def lost_of(stage: Stage) -> list[tuple[int, int]]:
    gap = stage.order.gap()
    return sorted(each.numbers or (0, 0) for each in gap.lost) if gap else []


def after_a_day(*sequences: int) -> Stage:
    """What was heard besides the first, and given up before each."""
    stage = Stage()
    for sequence in (1, *sequences):
        stage.hear(said(sequence))
    stage.advance(SHOW_AFTER_MS)
    stage.advance(LOST_AFTER_MS)
    return stage


def test_what_is_given_up_is_stated_with_all_that_is_known() -> None:
    stage = Stage()
    stage.hear(said(1))
    stage.hear(said(5))
    stage.advance(SHOW_AFTER_MS)
    gap = stage.order.gap()
    assert gap is not None
    assert (gap.missing, gap.lost) == (3, ()), "it may still come"
    stage.advance(LOST_AFTER_MS)
    gap = stage.order.gap()
    assert gap is not None
    assert (gap.missing, gap.waiting, gap.places, gap.lost_total) == (0, 0, (), 3)
    assert gap.lost == (
        LostView(
            message_id=None,
            sender_id=None,
            sender_name="",
            before=stage.placed[-1].position,
            since_ms=NOW,
            count=3,
            numbers=(2, 4),
            given_up_ms=UnixMs(NOW + SHOW_AFTER_MS + LOST_AFTER_MS),
        ),
    )
    stage.restart()
    assert stage.order.gap() == gap
    assert stage.order.next_deadline() is None, "nothing is due for what is lost"


def test_a_late_one_shrinks_or_parts_what_is_lost_and_the_last_one_closes_it() -> None:
    stage = after_a_day(9)
    stage.advance(MONTHS_MS)
    for sequence, left in (
        (5, [(2, 4), (6, 8)]),
        (2, [(3, 4), (6, 8)]),
        (8, [(3, 4), (6, 7)]),
        (4, [(3, 3), (6, 7)]),
        (3, [(6, 7)]),
        (7, [(6, 6)]),
    ):
        stage.hear(said(sequence))
        assert lost_of(stage) == left
        stage.restart()
        assert lost_of(stage) == left
    stage.hear(said(6))
    assert stage.order.gap() is None
    assert all(placed.late for placed in stage.placed[2:])
    assert stage.sequences() == [1, 9, 5, 2, 8, 4, 3, 7, 6]


def test_what_is_left_before_a_late_one_stands_before_that() -> None:
    stage = after_a_day(9)
    stage.hear(said(5))
    gap = stage.order.gap()
    assert gap is not None
    before = {each.numbers: each.before for each in gap.lost}
    assert before == {(2, 4): stage.placed[-1].position, (6, 8): stage.placed[-2].position}
    stage.hear(said(4, lamport=NOW + 1_000))
    gap = stage.order.gap()
    assert gap is not None
    assert {each.numbers: each.before for each in gap.lost} == {
        (2, 3): stage.placed[-2].position,
        (6, 8): before[6, 8],
    }, "a clock that is ahead moves nothing down"


def test_requests_and_answers_count_as_what_they_are_numbered() -> None:
    stage = after_a_day(4)
    stage.hear(said(2, body=ContactAnswer(accepted=False, round=1)))
    assert lost_of(stage) == [(3, 3)]
    stage.hear(said(7, body=ContactAnswer(accepted=False, round=2)))
    stage.advance(SHOW_AFTER_MS)
    stage.advance(LOST_AFTER_MS)
    assert lost_of(stage) == [(3, 3), (5, 6)]
    gap = stage.order.gap()
    assert gap is not None
    assert gap.lost[0].before == stage.placed[-1].position, "it had its place when it came"


def test_numbers_of_one_instance_are_no_others() -> None:
    stage = after_a_day(3)
    stage.hear(said(2, by=TWO))
    stage.advance(SHOW_AFTER_MS)
    assert stage.sequences(TWO) == [2]
    assert lost_of(stage) == [(2, 2)]


def test_before_the_start_of_an_instance_nothing_is_lost() -> None:
    stage = Stage()
    stage.hear(said(7))
    stage.advance(SHOW_AFTER_MS)
    stage.hear(said(3))
    assert stage.sequences() == [7, 3]
    for sequence in range(11, MAX_WAITING + 12):
        stage.hear(said(sequence, by=TWO))
    assert stage.counters["pair.waiting_full"] == 1
    assert len(stage.sequences(TWO)) == MAX_WAITING + 1
    assert stage.order.gap() is None


def test_what_is_given_up_for_want_of_room_is_lost_too() -> None:
    stage = Stage()
    stage.hear(said(1))
    for sequence in range(4, MAX_WAITING + 5):
        stage.hear(said(sequence))
    assert stage.counters["pair.waiting_full"] == 1
    assert lost_of(stage) == [(2, 3)]
    stage.hear(said(3))
    stage.hear(said(2))
    assert stage.order.gap() is None


def test_of_very_many_those_given_up_longest_ago_are_forgotten() -> None:
    stage = after_a_day(3)
    many = range(5, 5 + 2 * MAX_RANGES, 2)
    for sequence in many:
        stage.hear(said(sequence))
    stage.advance(SHOW_AFTER_MS)
    stage.advance(LOST_AFTER_MS)
    assert len(stage.lost) == MAX_RANGES
    assert (ONE, 2) not in stage.lost
    assert stage.counters["pair.lost_forgotten"] == 1
    gap = stage.order.gap()
    assert gap is not None
    assert (len(gap.lost), gap.lost_total) == (MAX_RANGES_TOLD, MAX_RANGES)
    stage.hear(said(2))
    assert stage.sequences()[-1] == 2, "what is forgotten takes its place all the same"
    assert len(stage.lost) == MAX_RANGES


def test_parting_keeps_the_bounds_too() -> None:
    stage = Stage()
    stage.hear(said(1))
    for number in range(1, MAX_RANGES + 1):
        stage.hear(said(1 + 4 * number))
    stage.advance(SHOW_AFTER_MS)
    stage.advance(LOST_AFTER_MS)
    assert len(stage.lost) == MAX_RANGES
    stage.hear(said(4 * MAX_RANGES - 1))
    assert len(stage.lost) == MAX_RANGES
    assert stage.counters["pair.lost_forgotten"] == 1
    assert (ONE, 2) not in stage.lost


def test_a_number_far_away_is_no_astronomic_loss() -> None:
    stage = after_a_day()
    stage.hear(said(2**53 - 1, lamport=NOW + 2))
    stage.advance(SHOW_AFTER_MS)
    stage.advance(LOST_AFTER_MS)
    gap = stage.order.gap()
    assert gap is not None
    (lost,) = gap.lost
    assert (gap.lost_total, lost.count, lost.numbers) == (1_000_000, 1_000_000, (2, 2**53 - 2))


def test_instances_beyond_those_remembered_lose_nothing_twice() -> None:
    stage = after_a_day(3)
    for number in range(300):
        stage.hear(said(1, by=InstanceId(number.to_bytes(16, "big"))))
    assert lost_of(stage) == [(2, 2)]


# --- of two people ------------------------------------------------------------------------------


def gap_of(person: PairPerson) -> GapView:
    gap = person.session.gap()
    assert gap is not None
    return gap


def test_two_people_and_a_message_that_comes_months_later() -> None:
    alice, bob = friends()
    alice.say("first")
    first = alice.say("heard at once")
    alice.now_ms = bob.now_ms = UnixMs(NOW + 60_000)
    late = alice.say("late")
    alice.now_ms = bob.now_ms = UnixMs(NOW + 120_000)
    bob.hear(*first, *alice.say("after"))
    bob.advance(by_ms=SHOW_AFTER_MS)
    bob.notes.clear()
    bob.advance(by_ms=LOST_AFTER_MS)
    assert GapNoted() in bob.notes
    gap = gap_of(bob)
    assert gap.lost_total == 2
    assert {each.sender_id for each in gap.lost} == {alice.identity.participant_id}
    assert {each.sender_name for each in gap.lost} == {"Alice"}
    bob.restart()
    assert gap_of(bob) == gap
    bob.notes.clear()
    bob.perform(bob.session.handle(SetLocalName("Ally"), now_ms=bob.now_ms))
    assert GapNoted() in bob.notes
    assert {each.sender_name for each in gap_of(bob).lost} == {"Ally"}
    bob.now_ms = UnixMs(bob.now_ms + MONTHS_MS)
    bob.notes.clear()
    bob.hear(*late)
    assert GapNoted() in bob.notes
    assert gap_of(bob).lost_total == 1
    assert bob.texts() == ["heard at once", "late", "after"]


def test_who_wants_it_asked_for_again_is_told_when_it_was() -> None:
    alice, bob = friends()
    assert bob.session.handle(RetrieveLostRequested(message_ids=()), now_ms=bob.now_ms).notes == ()
    alice.say("lost")
    bob.hear(*alice.say("heard"))
    bob.advance(by_ms=SHOW_AFTER_MS)
    bob.advance(by_ms=LOST_AFTER_MS)
    transition = bob.session.handle(RetrieveLostRequested(message_ids=()), now_ms=bob.now_ms)
    assert GapNoted() in transition.notes
    (lost,) = gap_of(bob).lost
    assert lost.asked_again_ms == bob.now_ms


def test_what_is_asked_for_again_at_one_gap_is_only_what_lacks_there() -> None:
    stage = after_a_day(5, 9)

    def asked_again() -> dict[tuple[int, int] | None, UnixMs | None]:
        gap = stage.order.gap()
        assert gap is not None
        return {each.numbers: each.asked_again_ms for each in gap.lost}

    first, second = (placed.message_id for placed in stage.placed[1:])
    at_ms = UnixMs(NOW + MONTHS_MS)
    assert not stage.order.lost.ask_again([MessageId("elsewhere")], at_ms)
    assert stage.order.lost.ask_again([second], at_ms)
    assert asked_again() == {(2, 4): None, (6, 8): at_ms}
    gap = stage.order.gap()
    assert [each.numbers for each in lost_before(gap, [second])] == [(6, 8)]
    assert [each.numbers for each in lost_before(gap, [first])] == [(2, 4)]
    assert {each.numbers for each in lost_before(gap, [])} == {(2, 4), (6, 8)}
    assert lost_before(None, [second]) == ()
    stage.hear(said(7))
    assert asked_again() == {(2, 4): None, (6, 6): at_ms, (8, 8): at_ms}
    stage.hear(said(6))
    stage.hear(said(8))
    assert asked_again() == {(2, 4): None}
    later_ms = UnixMs(at_ms + 1)
    assert stage.order.lost.ask_again([], later_ms)
    assert asked_again() == {(2, 4): later_ms}
