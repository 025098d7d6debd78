"""Sequence sets and the log index against plain models."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import (
    AuthorSequence,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.sds.holders import HoldersTable
from engine.core.sds.log import LogIndex
from engine.core.sds.sequences import SequenceSet
from engine.core.sds.vocabulary import LogEntry, SequenceRange

NUMBERS = st.integers(1, 40)
RANGES = st.lists(st.tuples(NUMBERS, st.integers(0, 5)), max_size=12)


def _build(ranges: list[tuple[int, int]]) -> tuple[SequenceSet, set[int]]:
    numbers, model = SequenceSet(), set[int]()
    for first, length in ranges:
        numbers.add_range(first, first + length)
        model.update(range(first, first + length + 1))
    return numbers, model


def _numbers(ranges: list[SequenceRange] | tuple[SequenceRange, ...]) -> list[int]:
    return [number for item in ranges for number in range(item.first, item.last + 1)]


@given(RANGES, RANGES)
def test_sequence_sets_are_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    mine, my_model = _build(left)
    theirs, their_model = _build(right)
    assert _numbers(mine.ranges()) == sorted(my_model)
    assert all((number in mine) == (number in my_model) for number in range(50))
    assert _numbers(mine.holes(theirs)) == sorted(their_model - my_model)
    assert mine.covers(theirs) == (their_model <= my_model)
    assert (mine == theirs) == (my_model == their_model)


@given(RANGES)
def test_ranges_are_ascending_and_never_touch(ranges: list[tuple[int, int]]) -> None:
    found = _build(ranges)[0].ranges()
    assert all(a.last + 1 < b.first for a, b in pairwise(found))


@given(st.lists(NUMBERS, max_size=30))
def test_adding_one_by_one_is_adding_ranges(numbers: list[int]) -> None:
    one_by_one = SequenceSet()
    for number in numbers:
        one_by_one.add(number)
    assert one_by_one == _build([(number, 0) for number in numbers])[0]


@given(st.lists(st.tuples(st.integers(0, 5), st.text(max_size=3)), unique=True, max_size=30))
def test_the_log_is_ordered_by_lamport_then_id_by_byte(pairs: list[tuple[int, str]]) -> None:
    pairs = list({message_id: (lamport, message_id) for lamport, message_id in pairs}.values())
    log = LogIndex()
    order: list[tuple[int, bytes]] = []
    for lamport, message_id in pairs:
        key = lamport, message_id.encode("utf-8", "surrogatepass")
        position = Position(lamport_timestamp=lamport, message_id=MessageId(message_id))
        late = log.insert(LogEntry(position=position, sender_id=ParticipantId("a")))
        assert late == bool(order and max(order) > key)
        order.append(key)
    found = [
        (entry.position.lamport_timestamp, entry.position.message_id.encode())
        for entry in log.entries()
    ]
    assert found == sorted(order)
    history = log.causal_history(3)
    assert [entry.message_id.encode() for entry in history] == [
        key[1] for key in sorted(order)[-3:]
    ]


def test_a_number_used_again_after_its_message_was_held_is_found_once() -> None:
    me, other = ParticipantId("me"), ParticipantId("other")
    author = AuthorSequence(InstanceId(b"i" * 16), 1)
    table = HoldersTable(me, members=frozenset({me, other}))
    for name in ("first", "second"):
        message_id = MessageId(name)
        table.track(message_id, 1, author)
        item = SequenceRange(first=1, last=9)
        assert table.within(author.instance_id, item) == [message_id]
        table.note(message_id, other, HolderSource.CAUSAL, UnixMs(1))
        assert len(table.take_events([message_id])) == 1
        assert table.within(author.instance_id, item) == []
    assert len(table) == 0
