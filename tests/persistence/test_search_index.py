"""The index of the search in SQLite: in any order, after a kill, damaged, in an old profile."""

import itertools
import random
import signal
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from engine.core.errors import StorageError
from engine.core.ids import MessageId
from engine.core.ports import PutGroup, PutMessage, RemoveGroup
from engine.core.sds.vocabulary import RemoveFromLog
from engine.core.search import Indexed, SearchQuery
from engine.core.search_text import MAX_WORDS, wanted
from engine.persistence import schema, search_index, search_tables
from engine.persistence.database import open_database
from engine.persistence.errors import DatabaseUnreadableError
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import GROUP, channel, edit, group, logged, row

REPOSITORY = Path(__file__).parents[2]
ROWS = 60


def all_indexed(store: SqliteProfileStore) -> list[Indexed]:
    steps: list[Indexed] = []
    while not steps or steps[-1].is_more or steps[-1].old_left:
        steps.append(store.searching.index_some(old=True))
    return steps


def found(store: SqliteProfileStore, words: str, *, limit: int = 200) -> list[str]:
    query = SearchQuery(wanted=wanted(words))
    answer = store.searching.find(query, limit=limit, stop=Event())
    return [one.position.message_id for one in answer]


def texts(lamports: Sequence[int]) -> list[PutMessage]:
    return [row(at_, f"m{at_:04}", text=f"word number {at_}") for at_ in lamports]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "BUCKET_ROWS", 8)
    monkeypatch.setattr(search_index, "SLICE_ROWS", 5)


def buckets(connection: sqlite3.Connection) -> list[tuple[int, int, int, int]]:
    return connection.execute(
        "SELECT first_lamport, least_lamport, most_lamport, rows FROM search_bucket "
        "WHERE rows > 0 ORDER BY first_lamport"
    ).fetchall()


ORDERS = {
    "forwards": range(ROWS),
    "backwards": range(ROWS - 1, -1, -1),
    "history after the newest": [ROWS, *range(ROWS)],
    "two histories": [*range(0, ROWS, 2), *range(1, ROWS, 2)],
    "in any order": random.Random(5).sample(range(ROWS), ROWS),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.usefixtures("small")
def test_in_whichever_order_messages_come(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection, order: Sequence[int]
) -> None:
    sqlite_store.apply([PutGroup(group=group())])
    for one in texts(order):
        sqlite_store.apply([one])
        all_indexed(sqlite_store)
    expected = [f"m{n:04}" for n in sorted(order, reverse=True)]
    assert found(sqlite_store, "word") == expected
    assert found(sqlite_store, "word", limit=7) == expected[:7]
    assert found(sqlite_store, "31 number") == ["m0031"]
    there = buckets(connection)
    assert all(rows <= 8 for *_, rows in there)
    assert sum(rows for *_, rows in there) == len(order)
    for (first, least, most, _), (following, *_) in itertools.pairwise(there):
        assert first <= least <= most < following
    if order in (ORDERS["forwards"], ORDERS["backwards"]):
        assert sorted(rows for *_, rows in there)[1:] == [8] * (len(there) - 1), "none was divided"


@pytest.mark.usefixtures("small")
def test_many_messages_of_one_timestamp_stay_together(sqlite_store: SqliteProfileStore) -> None:
    sqlite_store.apply([PutGroup(group=group())])
    sqlite_store.apply([row(3, f"m{n:02}", text="word") for n in range(30)])
    sqlite_store.apply([row(n, f"n{n}", text="word") for n in (1, 5)])
    all_indexed(sqlite_store)
    assert found(sqlite_store, "word") == ["n5", *(f"m{n:02}" for n in range(29, -1, -1)), "n1"]


@pytest.mark.usefixtures("small")
def test_a_message_that_moved_does_not_divide_a_bucket_at_its_new_place(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    sqlite_store.apply([PutGroup(group=group())])
    all_indexed(sqlite_store)
    sqlite_store.apply(texts(range(16)))
    all_indexed(sqlite_store)
    sqlite_store.apply([row(12, "m0003", text="word"), row(7, "new", text="word")])
    all_indexed(sqlite_store)
    assert found(sqlite_store, "word") == [
        "m0015", "m0014", "m0013", "m0012", "m0003", "m0011", "m0010", "m0009", "m0008",
        "new", "m0007", "m0006", "m0005", "m0004", "m0002", "m0001", "m0000",
    ]  # fmt: skip
    for (first, least, most, _), (following, *_) in itertools.pairwise(buckets(connection)):
        assert first <= least <= most < following


def test_every_letter_is_found(sqlite_store: SqliteProfileStore) -> None:
    """FTS5 knows other letters than Python; what we cut as one word it must not cut again."""
    letters = [
        chr(number)
        for number in range(0x80, 0x20000)
        if unicodedata.category(chr(number))[0] in "LN" and wanted(chr(number)).words
    ]
    pieces = [
        " ".join(letters[first : first + MAX_WORDS]) for first in range(0, len(letters), MAX_WORDS)
    ]
    sqlite_store.apply([PutGroup(group=group())])
    sqlite_store.apply([row(number, f"m{number}", text=text) for number, text in enumerate(pieces)])
    all_indexed(sqlite_store)
    assert len(pieces) > 500
    for number, text in enumerate(pieces):
        assert f"m{number}" in found(sqlite_store, text), text


@pytest.mark.usefixtures("small")
def test_a_key_that_is_given_again_is_a_new_message(sqlite_store: SqliteProfileStore) -> None:
    sqlite_store.apply([PutGroup(group=group()), row(1, "a", text="old"), channel(logged(1, "a"))])
    all_indexed(sqlite_store)
    sqlite_store.apply([channel(RemoveFromLog(message_id=MessageId("a")))])
    sqlite_store.apply([row(2, "b", text="fresh")])
    all_indexed(sqlite_store)
    assert (found(sqlite_store, "old"), found(sqlite_store, "fresh")) == ([], ["b"])


@pytest.mark.usefixtures("small")
def test_what_is_behind_is_on_disk(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    all_indexed(store)
    store.apply([PutGroup(group=group()), *texts(range(12))])
    store.searching.index_some(old=False)
    store.apply([edit(90, "e", "m0000", "changed")])
    store.close()
    store = SqliteProfileStore.open(database_path, key)
    assert store.searching.index_some(old=False).is_more
    all_indexed(store)
    assert found(store, "changed") == ["m0000"]
    assert found(store, "word") == [f"m{n:04}" for n in range(11, 0, -1)]
    store.close()


@pytest.mark.usefixtures("small")
def test_an_old_profile_is_indexed_bit_by_bit_the_newest_first(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:-1])
        connection = open_database(database_path, key)
        store = SqliteProfileStore(connection)
        store.apply([PutGroup(group=group()), *texts(range(ROWS))])
        store.close()
    store = SqliteProfileStore.open(database_path, key)
    first = store.searching.index_some(old=True)
    assert (first.is_more, first.old_left, first.old_total) == (False, ROWS - 5, ROWS)
    assert found(store, "word") == [f"m{n:04}" for n in range(ROWS - 1, ROWS - 6, -1)]
    store.apply([row(500, "new", text="word"), edit(501, "e", "m0000", "changed")])
    assert store.searching.index_some(old=False).old_left == ROWS - 5
    store.searching.index_some(old=False)
    assert found(store, "word")[0] == "new"
    assert found(store, "changed") == [], "its turn comes"
    store.close()
    connection = open_database(database_path, key)
    store = SqliteProfileStore(connection)
    left = [one.old_left for one in all_indexed(store)]
    slices = [rows for *_, rows in buckets(connection)]
    assert slices == [5] * (ROWS // 5 - 1) + [6], "whole slices: nothing was divided"
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert found(store, "word") == ["new", *(f"m{n:04}" for n in range(ROWS - 1, 0, -1))]
    assert found(store, "changed") == ["m0000"]
    store.close()


@pytest.mark.usefixtures("small")
def test_of_very_many_new_messages_the_newest_come_first(
    sqlite_store: SqliteProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "MOST_BEHIND", 20)
    sqlite_store.apply([PutGroup(group=group()), *texts(range(ROWS))])
    sqlite_store.searching.index_some(old=True)
    assert found(sqlite_store, "word")[0] == f"m{ROWS - 1:04}"
    all_indexed(sqlite_store)
    assert len(found(sqlite_store, "word")) == ROWS


def test_an_index_of_another_form_is_made_anew(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    sqlite_store.apply([PutGroup(group=group()), *texts(range(9))])
    all_indexed(sqlite_store)
    connection.execute("UPDATE search_state SET form = 'another'")
    assert found(sqlite_store, "word") == []
    all_indexed(sqlite_store)
    assert len(found(sqlite_store, "word")) == 9
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'search_1%'")
    assert tables.fetchall() == []


def test_a_damaged_index_is_noticed_and_made_anew(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    sqlite_store.apply([PutGroup(group=group()), *texts(range(9))])
    all_indexed(sqlite_store)
    connection.execute("UPDATE search_1_data SET block = x'00' WHERE id > 10")
    with pytest.raises(DatabaseUnreadableError):
        found(sqlite_store, "word")
    sqlite_store.searching.rebuild()
    all_indexed(sqlite_store)
    assert len(found(sqlite_store, "word")) == 9


def damage(path: Path, connection: sqlite3.Connection, table: str) -> None:
    """Change a bit in a table's first page, as a disk does."""
    sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
    (page,) = connection.execute(sql, (table,)).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * int(size) + 100)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


def change_and_look(store: SqliteProfileStore) -> None:
    store.apply([edit(20, "e", "m0003", "changed")])
    found(store, "word")
    all_indexed(store)


@pytest.mark.parametrize("table", ["search_1_data", "search_1_idx", "search_1_docsize"])
def test_a_page_that_cannot_be_read_costs_the_index_and_nothing_else(
    database_path: Path, key: bytes, table: str
) -> None:
    connection = open_database(database_path, key)
    store = SqliteProfileStore(connection)
    store.apply([PutGroup(group=group()), *texts(range(9))])
    all_indexed(store)
    damage(database_path, connection, table)
    store = SqliteProfileStore.open(database_path, key)
    with pytest.raises(StorageError):
        change_and_look(store)
    store.apply([row(30, "n", text="word and more")])
    store.searching.rebuild()
    all_indexed(store)
    assert found(store, "word") == ["n", *(f"m{n:04}" for n in range(8, -1, -1) if n != 3)]
    assert found(store, "changed") == ["m0003"]
    store.close()


@pytest.mark.parametrize("table", ["search_state", "search_due"])
def test_without_its_notes_messages_still_come_and_go(
    database_path: Path, key: bytes, table: str
) -> None:
    connection = open_database(database_path, key)
    store = SqliteProfileStore(connection)
    store.apply([PutGroup(group=group()), *texts(range(9)), channel(logged(3, "m0003"))])
    all_indexed(store)
    damage(database_path, connection, table)
    store = SqliteProfileStore.open(database_path, key)
    with pytest.raises(DatabaseUnreadableError):
        all_indexed(store)
    with pytest.raises(DatabaseUnreadableError):
        store.searching.rebuild()
    store.apply([edit(20, "e", "m0003", "changed"), row(30, "n")])
    store.apply([channel(RemoveFromLog(message_id=MessageId("m0003")))])
    assert store.latest_page(GROUP, limit=99).total == 9
    store.close()


@pytest.mark.usefixtures("small")
def test_a_reader_reads_beside_the_writer_and_stops(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group()), *texts(range(20))])
    all_indexed(store)
    reader = store.searching.reader()
    assert reader is not None
    query, stop = SearchQuery(wanted=wanted("word")), Event()
    assert len(reader.find(query, limit=99, stop=stop)) == 20
    store.apply([row(99, "new", text="word")])
    all_indexed(store)
    assert len(reader.find(query, limit=99, stop=stop)) == 21
    stop.set()
    assert reader.find(query, limit=99, stop=stop) == ()
    reader.close()
    store.close()
    assert SqliteProfileStore.in_memory().searching.reader() is None


@pytest.mark.usefixtures("small")
def test_a_removed_conversation_leaves_the_index(
    sqlite_store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    sqlite_store.apply([PutGroup(group=group()), *texts(range(20))])
    all_indexed(sqlite_store)
    sqlite_store.apply([RemoveGroup(conversation_id=GROUP)])
    while sqlite_store.clear_removed():
        pass
    all_indexed(sqlite_store)
    assert connection.execute("SELECT count(*) FROM search_1_docsize").fetchone() == (0,)


INDEXING = """
import itertools, sys
from pathlib import Path
from engine.persistence import search_index
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import row
search_index.SLICE_ROWS, search_index.BUCKET_ROWS = 3, 8
store = SqliteProfileStore.open(Path(sys.argv[1]), bytes.fromhex(sys.argv[2]))
for number in itertools.count(int(sys.argv[3])):
    store.apply([row(number, f"m{number:05}", text=f"word {number}")])
    print(number, flush=True)
    if number % 2:
        store.searching.index_some(old=True)
"""


def test_killed_while_it_indexes_nothing_is_missing(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group())])
    store.close()
    kept, moments = 0, random.Random(20261124)
    for _ in range(4):
        arguments = [sys.executable, "-c", INDEXING, str(database_path), key.hex(), str(kept)]
        with subprocess.Popen(arguments, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(moments.randint(5, 40)):
                process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        store = SqliteProfileStore.open(database_path, key)
        kept = store.latest_page(GROUP, limit=1).total
        all_indexed(store)
        newest = store.searching.find(SearchQuery(wanted=wanted("word")), limit=200, stop=Event())
        assert [one.position.lamport_timestamp for one in newest] == [
            *range(kept - 1, max(kept - 201, -1), -1)
        ]
        store.close()
    assert kept >= 20


def test_words_are_not_taken_for_codes() -> None:
    codes = [search_tables.code_of(number) for number in (0, 35, 36, 36**3, 36**4 - 1)]
    assert codes == ["0000", "000z", "0010", "1000", "zzzz"]


def test_long_texts_make_short_slices(
    sqlite_store: SqliteProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice is one transaction, which whatever is sent or received meanwhile waits for."""
    monkeypatch.setattr(search_index, "SLICE_CHARACTERS", 100)
    sqlite_store.apply([PutGroup(group=group())])
    all_indexed(sqlite_store)
    long = [row(at_, f"m{at_}", text=f"word {'x' * 60}") for at_ in range(6)]
    sqlite_store.apply(long)
    steps = all_indexed(sqlite_store)
    assert [one.is_more for one in steps] == [True, True, False]
    assert len(found(sqlite_store, "word")) == 6
    changed = [edit(90 + at_, f"e{at_}", f"m{at_}", f"other {'x' * 60}") for at_ in range(6)]
    sqlite_store.apply(changed)
    assert [one.is_more for one in all_indexed(sqlite_store)] == [True, True, False]
    assert (len(found(sqlite_store, "other")), found(sqlite_store, "word")) == (6, [])
    sqlite_store.searching.rebuild()
    assert [one.old_left for one in all_indexed(sqlite_store)] == [4, 2, 0]
    assert len(found(sqlite_store, "other")) == 6


def test_a_search_stops_between_two_rows(sqlite_store: SqliteProfileStore) -> None:
    """Comparing a long text takes a while, and nobody may wait for the end of all of them."""

    class StopLater:
        def __init__(self) -> None:
            self._left = 5

        def is_set(self) -> bool:
            self._left -= 1
            return self._left < 0

    sqlite_store.apply([PutGroup(group=group()), *texts(range(ROWS))])
    all_indexed(sqlite_store)
    query = SearchQuery(wanted=wanted("word"))
    assert len(sqlite_store.searching.find(query, limit=ROWS, stop=StopLater())) < 6
