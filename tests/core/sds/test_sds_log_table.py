"""The log as columns reads like the entries that went in, however they went in."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.sds.authors import Author
from engine.core.sds.log import LogIndex
from engine.core.sds.log_table import LogTable, Row
from engine.core.sds.sequences import SequenceSet
from engine.core.sds.vocabulary import LogEntry
from tests.core.sds.log_tables import table_of


def _id(number: int) -> MessageId:
    """As long as ours are."""
    return MessageId(sha256(bytes([number])).hexdigest()[:22])


PEOPLE = [ParticipantId("alice"), ParticipantId("bob")]
INSTANCES = [InstanceId(b"1" * 16), InstanceId(b"2" * 16)]
AUTHORS = st.none() | st.builds(
    AuthorSequence, instance_id=st.sampled_from(INSTANCES), sequence=st.integers(1, 12)
)
ENTRIES = st.lists(
    st.builds(
        LogEntry,
        position=st.builds(
            Position,
            lamport_timestamp=st.integers(0, 6),
            message_id=st.integers(0, 99).map(_id),
        ),
        sender_id=st.sampled_from(PEOPLE),
        retrieval_hint=st.none() | st.binary(max_size=3),
        author=AUTHORS,
        previous_id=st.none() | st.integers(0, 99).map(_id),
        size=st.integers(0, 150_000),
    ),
    max_size=20,
    unique_by=lambda entry: entry.position.message_id,
)


def _row(entry: LogEntry) -> Row:
    author = entry.author
    return (
        entry.position.lamport_timestamp,
        entry.position.message_id,
        entry.sender_id,
        entry.retrieval_hint,
        author.instance_id if author else None,
        author.sequence if author else None,
        entry.previous_id,
        entry.size,
    )


@given(ENTRIES)
def test_a_table_is_the_sequence_of_its_entries(entries: list[LogEntry]) -> None:
    by_rows = table_of(map(_row, entries))
    one_by_one = LogTable.of(entries)
    assert list(by_rows) == list(one_by_one) == entries
    assert by_rows == one_by_one == tuple(entries)
    assert by_rows[1:] == tuple(entries[1:])
    assert by_rows != [*entries, *entries, *PEOPLE]
    assert (by_rows == entries[1:]) == (not entries)


@given(ENTRIES, st.lists(st.integers(0, 9), max_size=6), st.integers(1, 4))
def test_rows_may_come_in_slices(
    entries: list[LogEntry], slices: list[int], page_rows: int
) -> None:
    table, rest = LogTable(page_rows=page_rows), [*map(_row, entries)]
    for size in [*slices, len(rest)]:
        table.add_rows(rest[:size])
        del rest[:size]
    without_hints = [replace(entry, retrieval_hint=None) for entry in entries]
    assert [replace(entry, retrieval_hint=None) for entry in table] == without_hints
    assert table.first_young + len(table.young_ids) == len(entries)
    assert len(table.young_ids) >= min(page_rows, len(entries))


@given(ENTRIES)
def test_a_copy_goes_its_own_way(entries: list[LogEntry]) -> None:
    table = table_of(map(_row, entries))
    copy = LogTable.of(table)
    copy.append(
        LogEntry(
            position=Position(lamport_timestamp=9, message_id=MessageId("new")), sender_id=PEOPLE[0]
        )
    )
    assert table == entries
    assert len(copy) == len(table) + 1


@given(ENTRIES, st.integers(1, 5))
def test_a_loaded_log_is_the_log_that_was_filled(entries: list[LogEntry], count: int) -> None:
    entries.sort(key=lambda entry: entry.position)
    filled, loaded = LogIndex(), LogIndex(table_of(map(_row, entries)))
    for entry in entries:
        filled.insert(entry)
    assert list(loaded.entries()) == list(filled.entries()) == entries
    assert loaded.causal_history(count) == filled.causal_history(count)
    for limit in (1, 9):
        mine = loaded.holdings(max_instances=limit, max_ranges=9)
        assert list(mine.items()) == list(
            filled.holdings(max_instances=limit, max_ranges=9).items()
        )
    for instance_id in INSTANCES:
        for sequence in range(14):
            assert loaded.id_of(instance_id, sequence) == filled.id_of(instance_id, sequence)


@given(ENTRIES, st.integers(1, 5), st.data())
def test_the_newest_are_the_newest_after_every_change(
    entries: list[LogEntry], count: int, data: st.DataObject
) -> None:
    log = LogIndex()
    for entry in entries:
        log.insert(entry)
        if data.draw(st.booleans()):
            log.set_hint(entry.position.message_id, b"hint")
        newest = list(log.entries())[-count:]
        history = log.causal_history(count)
        assert [item.message_id for item in history] == [e.position.message_id for e in newest]
        assert [item.retrieval_hint for item in history] == [e.retrieval_hint for e in newest]
        assert [item.sender_id for item in history] == [e.sender_id for e in newest]
        assert log.newest_ids(count) == [e.position.message_id for e in reversed(newest)]


@given(st.lists(st.integers(-3, 200) | st.integers(0, 2**53), max_size=40))
def test_an_author_knows_the_first_row_of_every_number(numbers: list[int]) -> None:
    author, model, held = Author(PEOPLE[0]), dict[int, int](), SequenceSet()
    for row, number in enumerate(numbers):
        author.note(number, row)
        model.setdefault(number, row)
        held.add(number)
    assert {number: author.row_of(number) for number in numbers} == model
    assert author.row_of(201) == model.get(201)
    assert author.held == held
