"""Tables of a channel by themselves: what is held, set aside, and planned to be sent again."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.authors import Author
from engine.core.sds.config import FloodLimits
from engine.core.sds.flooding import Account, SetAsideTable
from engine.core.sds.held import HeldAside
from engine.core.sds.incoming import IncomingBuffer, waiting_entry
from engine.core.sds.inputs import RetrieveLostRequested
from engine.core.sds.missing import MissingTable, OnlineClock
from engine.core.sds.newest_claims import NewestClaims
from engine.core.sds.repair import RepairAnswers, RepairTimes
from engine.core.sds.step import Step
from engine.core.sds.vocabulary import (
    HistoryEntry,
    IncomingEntry,
    MissingEntry,
    MissingState,
)
from engine.sim.channel_participant import hash64
from tests.core.sds.sds_bench import ALICE, BOB, CAROL, NOW, SMALL, after, content

HOUR = 3_600_000


def ahead(number: int) -> IncomingEntry:
    return waiting_entry(content(BOB, f"{number}", lamport=NOW + HOUR + number), NOW)


@given(st.lists(st.integers(0, 30), unique=True, min_size=2), st.data())
def test_what_is_held_aside_is_due_in_order_whatever_gave_way(
    numbers: list[int], data: st.DataObject
) -> None:
    held = HeldAside(SMALL)
    entries = {number: ahead(number) for number in numbers}
    for entry in entries.values():
        held.add(entry)
    for number in data.draw(st.lists(st.sampled_from(numbers), unique=True)):
        held.remove(entries.pop(number))
    left = [entries[number] for number in sorted(entries)]
    due_ms = [held.due_ms(entry) for entry in left]
    assert held.next_deadline() == (due_ms[0] if left else None)
    taken = []
    for at_ms in due_ms:
        assert held.take_due(UnixMs(at_ms - 1)) == []
        taken += held.take_due(at_ms)
    assert taken == left
    assert len(held) == 0


def waiting(number: int, size: int = 0, sender: ParticipantId = BOB) -> IncomingEntry:
    return waiting_entry(content(sender, f"{number}" + "x" * size, lamport=NOW + number), NOW)


def test_as_many_give_way_to_an_older_message_as_it_takes_and_no_more() -> None:
    later = [waiting(number) for number in range(1, 5)]
    older = waiting(0, size=len(later[0].raw) // 2)
    sizes = [len(entry.raw) for entry in later]
    room = sum(sizes) + len(older.raw) - 1
    for taken in range(4):
        config = replace(SMALL, max_waiting_bytes_per_sender=room - sum(sizes[:taken]))
        buffer = IncomingBuffer(config)
        for entry in later:
            buffer.add(entry, [MessageId("missing")])
        leaving = buffer.make_room(older)
        assert leaving == [*reversed(later)][: taken + 1]
        assert buffer.make_room(waiting(9, size=len(older.raw))) is None


def missing(name: str, state: MissingState, request_at_ms: UnixMs) -> MissingEntry:
    return MissingEntry(
        entry=HistoryEntry(MessageId(name)),
        state=state,
        since_ms=NOW,
        online_ms=0,
        request_at_ms=request_at_ms,
        requests=0,
    )


def test_what_the_user_wants_of_members_does_not_wait_for_what_is_due_later() -> None:
    table = MissingTable(
        [
            missing("lost", MissingState.LOST, NOW),
            missing("wanted", MissingState.WANTED, after(50_000)),
        ],
        config=SMALL,
        times=RepairTimes(ALICE, config=SMALL, hash64=hash64),
        clock=OnlineClock(online=True, now_ms=NOW, longest_tick_ms=SMALL.longest_tick_ms),
    )
    assert table.next_request() == after(50_000)
    wish = RetrieveLostRequested(message_ids=(MessageId("lost"),))
    table.ask_for_lost(wish, Step(NOW))
    assert table.next_request() == NOW
    assert [entry.message_id for entry in table.take_due(3, Step(NOW))] == ["lost"]
    assert table.next_request() == after(50_000)


def test_a_claim_from_ahead_counts_as_two_seconds_ahead_and_once() -> None:
    claims = NewestClaims(())

    def is_news(lamport: int) -> bool:
        return claims.is_news(BOB, lamport, clock_ms=NOW, now_ms=NOW)

    assert is_news(NOW + HOUR)
    assert not is_news(NOW + HOUR)
    assert not is_news(NOW + 2_000)
    assert is_news(NOW + 2_001)


def put_aside(table: SetAsideTable, sender: ParticipantId, number: int) -> None:
    table.add(content(sender, f"{number}"), sender, Step(NOW))


def test_of_several_authors_whoever_has_most_gives_way_and_the_newest_goes() -> None:
    table = SetAsideTable(FloodLimits(waiting_messages=6), ())
    for number in range(4):
        put_aside(table, BOB, number)
    put_aside(table, CAROL, 0)
    put_aside(table, CAROL, 1)
    put_aside(table, ALICE, 0)
    told = {each.sender_id: (each.waiting, each.bare) for each in table.tell()}
    assert told == {ALICE: (1, 0), BOB: (3, 1), CAROL: (2, 0)}
    (bare,) = [each for each in table.entries() if not table.keeps(each.message_id)]
    assert bare.message_id == content(BOB, "3").message.message_id


def test_bytes_are_kept_up_to_the_last_one() -> None:
    sizes = [len(content(BOB, f"{number}").raw) for number in range(2)]
    for room, kept in ((sum(sizes), 2), (sum(sizes) - 1, 1)):
        table = SetAsideTable(FloodLimits(waiting_bytes=room), ())
        for number in range(2):
            put_aside(table, BOB, number)
        assert table.waiting(BOB) == kept


def test_bare_ids_are_counted_with_their_authors_and_the_oldest_forgotten() -> None:
    table = SetAsideTable(FloodLimits(waiting_messages=0, bare_ids=3), ())
    for number in range(3):
        put_aside(table, BOB, number)
    put_aside(table, CAROL, 0)
    assert {each.sender_id: each.bare for each in table.tell()} == {BOB: 2, CAROL: 1}
    put_aside(table, CAROL, 1)
    put_aside(table, CAROL, 2)
    assert not table.is_flooding(BOB)
    assert {each.sender_id: each.bare for each in table.tell()} == {CAROL: 3}
    table.forget_bare(CAROL, Step(NOW))
    assert table.tell() == ()
    put_aside(table, BOB, 7)
    table.remove(content(BOB, "7").message.message_id, Step(NOW))
    assert table.tell() == ()


def test_a_number_that_left_the_log_is_not_held_because_its_next_one_is() -> None:
    author = Author(BOB)
    assert author.note(1, 10)
    assert author.note(2, 11)
    author.forget(2)
    assert author.note(3, 12)
    assert [(each.first, each.last) for each in author.held.ranges()] == [(1, 1), (3, 3)]
    assert [author.row_of(number) for number in range(5)] == [None, 10, None, 12, None]
    assert not author.note(3, 13)


def test_an_account_is_saved_with_each_sixteenth_of_its_messages_or_bytes() -> None:
    for max_messages, max_bytes in ((32, 10**9), (10**9, 3_200)):
        account = Account(
            sender_id=BOB, day=1, fetched=False, max_messages=max_messages, max_bytes=max_bytes
        )
        saved = []
        for number in range(1, 33):
            step = Step(NOW)
            account.spend(100, step)
            if step.writes:
                saved.append(number)
        assert saved == list(range(2, 33, 2))
        assert not account.has_room(100)


def test_an_answer_goes_when_the_first_who_needs_it_is_due() -> None:
    answers, message_id = RepairAnswers(SMALL), MessageId("x")
    assert answers.plan(message_id, after(1_000), BOB, now_ms=NOW)
    assert answers.plan(message_id, after(500), CAROL, now_ms=NOW)
    assert answers.plan(message_id, after(2_000), ALICE, now_ms=NOW)
    assert answers.next_deadline() == after(500)
    assert list(answers.take_due(after(499))) == []
    ((taken, lacking),) = answers.take_due(after(500))
    assert (taken, list(lacking)) == (message_id, [BOB, CAROL, ALICE])
    assert answers.next_deadline() is None


def test_what_was_sent_takes_no_room_any_more() -> None:
    answers = RepairAnswers(replace(SMALL, repair_buffer=32, repair_answers_per_sweep=9))
    for number in range(12):
        assert answers.plan(MessageId(f"{number}"), NOW, BOB, now_ms=NOW)
        if number % 4 == 3:
            assert not answers.plan(MessageId("too many"), NOW, BOB, now_ms=NOW)
            assert len(list(answers.take_due(after(number * SMALL.sweep_spacing_ms)))) == 4


def test_what_was_just_sent_is_not_sent_again_until_its_time_is_over() -> None:
    again_ms = SMALL.push_again_ms
    answers = RepairAnswers(SMALL)
    answers.heard(MessageId("x"), NOW)
    assert answers.is_too_soon(MessageId("x"), BOB, after(again_ms - 1))
    assert not answers.is_too_soon(MessageId("x"), BOB, after(again_ms))
    answers.answered(MessageId("y"), [BOB], NOW)
    answers.answered(MessageId("y"), [BOB], NOW)
    assert answers.is_too_soon(MessageId("y"), BOB, after(2 * again_ms - 1))
    assert not answers.is_too_soon(MessageId("y"), BOB, after(2 * again_ms))
    assert not answers.is_too_soon(MessageId("y"), CAROL, after(again_ms))


def test_after_as_many_as_go_at_once_the_next_wait_for_their_slice() -> None:
    at_once = SMALL.repair_answers_per_sweep
    answers = RepairAnswers(SMALL)
    for number in range(at_once + 1):
        assert answers.plan(MessageId(f"{number}"), NOW, BOB, now_ms=NOW)
    assert len(list(answers.take_due(NOW))) == at_once
    assert answers.next_deadline() == after(SMALL.sweep_spacing_ms)
    assert list(answers.take_due(after(SMALL.sweep_spacing_ms - 1))) == []
    assert len(list(answers.take_due(after(SMALL.sweep_spacing_ms)))) == 1


def test_each_member_has_an_eighth_of_the_room_and_less_once_half_is_taken() -> None:
    answers = RepairAnswers(replace(SMALL, repair_buffer=32))

    def planned_for(name: str, wish: int = 40) -> int:
        who = ParticipantId(name)
        return sum(
            answers.plan(MessageId(f"{name} {each}"), after(1_000), who, now_ms=NOW)
            for each in range(wish)
        )

    assert [planned_for(f"member {number}") for number in range(3)] == [4] * 3
    assert [planned_for("third", 3), planned_for("fourth", 1)] == [3, 1]  # Half of the room.
    assert [planned_for(f"late {number}") for number in range(20)] == [1] * 16 + [0] * 4


def test_at_half_of_the_room_nobody_gets_a_second_place() -> None:
    answers = RepairAnswers(replace(SMALL, repair_buffer=8 * 4))
    for number in range(15):
        who = ParticipantId(f"member {number // 3}")
        assert answers.plan(MessageId(f"{number}"), after(1_000), who, now_ms=NOW)
    assert answers.plan(MessageId("bob's first"), after(1_000), BOB, now_ms=NOW)
    assert not answers.plan(MessageId("bob's second"), after(1_000), BOB, now_ms=NOW)
