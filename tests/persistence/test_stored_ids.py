"""Ids in columns: 16 bytes or a text, and what happens if one conversation had both."""

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import MessageId, Position
from engine.core.ports import PutGroup, SaveReadMark
from engine.persistence import ordinals
from engine.persistence.database import memory_database
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.stored_ids import message_id_of, stored_id, stored_order, stored_place
from tests.persistence.store_examples import GROUP, at, channel, group, logged, row
from tests.persistence.version_1 import sealed_id

texts = st.text(st.characters(exclude_categories=["Cs"]))
ids = st.one_of(texts, st.integers().map(sealed_id)).map(MessageId)


@given(ids)
def test_an_id_comes_back_as_it_was(id_: MessageId) -> None:
    assert message_id_of(stored_id(id_)) == id_


@given(st.lists(st.builds(at, st.integers(0, 2), ids), unique=True))
def test_positions_sort_as_their_columns_do(positions: list[Position]) -> None:
    connection = memory_database()
    connection.execute("CREATE TABLE place (lamport INTEGER, id ANY) STRICT")
    connection.executemany("INSERT INTO place VALUES (?, ?)", map(stored_place, positions))
    rows = connection.execute("SELECT * FROM place ORDER BY lamport, id").fetchall()
    assert rows == [stored_place(each) for each in sorted(positions, key=stored_order)]
    connection.close()


def test_ids_of_both_shapes_have_one_order_everywhere(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one Lamport timestamp texts come first, whatever the characters are."""
    monkeypatch.setattr(ordinals, "BLOCK_ROWS", 4)
    names = [*map(sealed_id, range(12)), *(MessageId(f"{c}{n}") for c in "-Mz" for n in range(4))]
    places = [at(lamport, name) for lamport, name in zip([1, 2] * 12, names, strict=True)]
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group())])
    for place in places:
        store.apply(
            [
                channel(logged(place.lamport_timestamp, place.message_id)),
                row(place.lamport_timestamp, place.message_id),
            ]
        )
    expected = sorted(places, key=stored_order)
    page = store.latest_page(GROUP, limit=100)
    assert [one.record.position for one in page.messages] == expected
    assert [one.position for one in store.channel_state(GROUP).log] == expected
    assert [one.position for one in store.logged(GROUP, None, limit=99)] == expected
    for number, place in enumerate(expected):
        assert store.page_before(GROUP, place, limit=3).older_count == max(0, number - 3)
        assert store.page_after(GROUP, place, limit=3).older_count == number + 1
    for mark in (expected[5], expected[3], expected[17], expected[12]):
        store.apply([SaveReadMark(conversation_id=GROUP, up_to=mark)])
        read_up_to = store.groups()[0].read_up_to
        assert read_up_to is not None
        read = bisect_right(expected, stored_order(read_up_to), key=stored_order)
        assert store.summary(GROUP).unread == len(expected) - read
        assert store.summary(GROUP).first_unread == expected[read]
    store.close()
