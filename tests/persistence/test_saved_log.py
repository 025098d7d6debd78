"""What is kept of a log's index yields the log that its rows are, whatever happened meanwhile."""

import itertools
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import AuthorSequence, InstanceId, MessageId, ParticipantId, Position
from engine.core.ports import ProfileStore, PutGroup, RemoveGroup
from engine.core.sds.log import LogIndex
from engine.core.sds.log_table import LogTable
from engine.core.sds.vocabulary import AppendToLog, LogEntry, RemoveFromLog
from engine.persistence import saved_log
from engine.persistence.database import open_database
from engine.persistence.removal import GROWING, SMALL_TABLES
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import ALICE, BOB, GROUP, ME, OTHER_GROUP, channel, group, row
from tests.persistence.version_1 import sealed_id

KEY = bytes(32)
PAGE = 4
TOGETHER = 3
LATE = 6
TABLES = ("log_index", "log_pages", "log_buckets", "log_author", "log_late")
AUTHORS = [(who, InstanceId(bytes([number] * 16))) for number, who in enumerate((ME, ALICE, BOB))]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_log, "TOGETHER", TOGETHER)
    monkeypatch.setattr(saved_log, "MOST_LATE", LATE)
    monkeypatch.setattr(saved_log, "BUCKETS_TOGETHER", 2)


class Store(SqliteProfileStore):
    """The real one, which shows its tables."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.connection = connection


def entry(number: int, lamport: int, *, previous: bool = False) -> AppendToLog:
    who, instance = AUTHORS[number % len(AUTHORS)]
    logged = LogEntry(
        position=Position(lamport, sealed_id(number)),
        sender_id=who,
        retrieval_hint=None,
        author=AuthorSequence(instance, number // len(AUTHORS) + 1) if number % 7 else None,
        previous_id=MessageId(f"unknown {number}") if previous and number % 7 else None,
        size=number % 300,
    )
    return AppendToLog(logged, b"raw")


def loaded(store: ProfileStore, *, limit: int = 5) -> LogTable:
    log = LogTable(page_rows=PAGE, bucket_rows=3)
    while store.read_log(GROUP, log, limit=limit):
        pass
    return log


def rows(store: ProfileStore) -> Sequence[LogEntry]:
    return [*store.channel_state(GROUP).log]


def kept(store: Store) -> int:
    row = store.connection.execute("SELECT rows FROM log_index").fetchone()
    return row[0] if row else 0


def check(store: ProfileStore, log: LogTable) -> None:
    """Whatever anybody asks the index has the same answer as one that was made from the rows."""
    index, plain = LogIndex(log), LogIndex(rows(store))
    assert [each.position for each in index.entries()] == [
        each.position for each in plain.entries()
    ]
    for each in plain.entries():
        found = index.get(each.position.message_id)
        assert found is not None
        assert (found.sender_id, found.author, found.previous_id, found.size) == (
            each.sender_id, each.author, each.previous_id, each.size,
        )  # fmt: skip
    assert not any(sealed_id(number) in index for number in range(10_000, 10_020))
    claims = [one.holdings(max_instances=9, max_ranges=99) for one in (index, plain)]
    assert claims[0] == claims[1]
    assert index.expected == plain.expected
    assert index.newest_ids(20) == plain.newest_ids(20)


class Starts(RuleBasedStateMachine):
    """A log that grows, also late, and loses messages, and starts in between."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.store = Store(open_database(Path(self.directory.name) / "causerie.db", KEY))
        self.store.apply([PutGroup(group=group(GROUP))])
        self.here: dict[MessageId, int] = {}
        self.number = 0
        self.damaged = False

    def _append(self, lamports: Iterator[int]) -> None:
        writes = []
        for lamport in lamports:
            self.number += 1
            writes.append(entry(self.number, lamport, previous=self.number % 5 == 0))
            self.here[sealed_id(self.number)] = lamport
        self.store.apply([channel(*writes)])

    @rule(count=st.integers(1, 30))
    def append(self, count: int) -> None:
        last = max(self.here.values(), default=0)
        self._append(iter(range(last + 1, last + 1 + count)))

    @rule(lamports=st.lists(st.integers(0, 60), min_size=1, max_size=5))
    def come_late(self, lamports: list[int]) -> None:
        self._append(iter(lamports))

    @rule(place=st.integers(0, 1_000))
    def leave(self, place: int) -> None:
        if self.here:
            message_id = [*self.here][place % len(self.here)]
            self.store.apply([channel(RemoveFromLog(message_id=message_id))])
            del self.here[message_id]

    @rule(
        change=st.sampled_from(
            [
                "UPDATE log_pages SET data = CAST(substr(data, 1, length(data) - 1) AS BLOB)",
                "UPDATE log_pages SET checksum = checksum + 1 WHERE number = 1",
                "DELETE FROM log_pages WHERE number = 1",
                "UPDATE log_pages SET number = -number - 1",
                "UPDATE log_buckets SET data = x'90'",
                "DELETE FROM log_buckets WHERE number = 0",
                "DELETE FROM log_author WHERE number = 0",
                "UPDATE log_index SET form = form + 1",
                "UPDATE log_index SET last_message_id = x'00'",
                "UPDATE log_index SET hash_key = zeroblob(16)",
                "UPDATE OR IGNORE log_late SET message_id = x'00'",
            ]
        )
    )
    def damage(self, change: str) -> None:
        self.store.connection.execute(change)

    @rule(limit=st.sampled_from([1, 5, 17, 1_000]))
    def start(self, limit: int) -> None:
        check(self.store, loaded(self.store, limit=limit))

    @invariant()
    def the_rows_are_what_was_written(self) -> None:
        found = {each.position.message_id for each in rows(self.store)}
        assert found == self.here.keys()

    def teardown(self) -> None:
        try:
            check(self.store, loaded(self.store))
        finally:
            self.store.close()
            self.directory.cleanup()


def test_every_start_loads_the_log_as_its_rows_are() -> None:
    run_state_machine_as_test(
        Starts, settings=settings(max_examples=40, stateful_step_count=25, deadline=None)
    )


@pytest.fixture
def empty(connection: sqlite3.Connection) -> Store:
    store = Store(connection)
    store.apply([PutGroup(group=group(GROUP)), PutGroup(group=group(OTHER_GROUP))])
    return store


@pytest.fixture
def store(empty: Store) -> Store:
    """A log of a hundred messages, loaded once."""
    empty.apply([channel(*(entry(number, 10 * number) for number in range(1, 101)))])
    assert not loaded(empty).distrusted
    return empty


def test_a_start_reads_as_rows_only_what_is_new(store: Store) -> None:
    assert kept(store) >= 100 - 2 * PAGE
    log = loaded(store)
    assert log.rows_saved == kept(store)
    assert log.pages_found == len(log.pages) or log.pages_found >= len(log.pages) * 7 // 8
    # Rows that a start does not read may as well be wrong.
    store.connection.execute("UPDATE log_entry SET size = 7777 WHERE lamport_timestamp < 900")
    assert 7777 not in {each.size for each in loaded(store)[: kept(store)]}
    assert not log.distrusted


def test_few_that_came_late_leave_what_is_kept(store: Store) -> None:
    before = kept(store)
    store.apply([channel(*(entry(200 + number, 5 + 10 * number) for number in range(LATE)))])
    log = loaded(store)
    assert (log.rows_saved, kept(store), log.distrusted) == (before, before, False)
    check(store, log)


def test_many_that_came_late_are_taken_in(store: Store) -> None:
    before = kept(store)
    store.apply([channel(*(entry(200 + number, 501 + number) for number in range(LATE + 1)))])
    log = loaded(store)
    assert 0 < log.rows_saved <= 50
    assert log.rows_saved % (TOGETHER * PAGE) == 0, "pages before them are still used"
    check(store, log)
    assert kept(store) > before
    assert store.connection.execute("SELECT count(*) FROM log_late").fetchone() == (0,)


def test_what_another_version_kept_is_made_again_and_needs_no_telling(store: Store) -> None:
    before = kept(store)
    store.connection.execute("UPDATE log_index SET form = form + 1")
    store.connection.execute("UPDATE log_pages SET data = x'93'")
    log = loaded(store)
    assert (log.rows_saved, log.distrusted, kept(store)) == (0, False, before)
    check(store, log)
    assert loaded(store).rows_saved == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log_pages SET data = x'93' WHERE number = 2",
        "UPDATE log_author SET number = 99 WHERE number = 2",
        "UPDATE log_pages SET last_lamport = last_lamport + 1 WHERE number = 2",
        """
        UPDATE log_pages SET (last_lamport, last_message_id, checksum, data) = (
          SELECT p.last_lamport, p.last_message_id, p.checksum, p.data FROM log_pages AS p
          WHERE p.number = 1) WHERE number = 2
        """,
        "UPDATE log_index SET rows = 12",
        """
        UPDATE log_index SET (last_lamport, last_message_id) = (
          SELECT lamport_timestamp, message_id FROM log_entry WHERE lamport_timestamp = 1000)
        """,
        "UPDATE log_author SET sender_key = 3 - sender_key WHERE sender_key IN (1, 2)",
        "UPDATE log_author SET instance_key = NULL WHERE number = 1",
        "UPDATE log_buckets SET checksum = 1",
        "UPDATE log_buckets SET number = 99 WHERE number = 1",
        "UPDATE log_index SET hash_key = zeroblob(16)",
        "UPDATE log_index SET rows = -4",
        "UPDATE log_index SET rows = 13",
        "UPDATE log_index SET rows_found = -4",
        "UPDATE log_index SET rows_found = 9999",
        "INSERT INTO log_late VALUES (1, 50, x'00')",
        "INSERT INTO log_late VALUES (1, -5, x'00')",
        """
        INSERT INTO log_late SELECT conversation_key, lamport_timestamp, message_id FROM log_entry
        WHERE lamport_timestamp = 500
        """,
        """
        INSERT INTO log_late SELECT conversation_key, lamport_timestamp, message_id FROM log_entry
        WHERE lamport_timestamp = 1000
        """,
    ],
)
def test_what_is_damaged_is_made_again_and_that_is_told(store: Store, change: str) -> None:
    before = kept(store)
    store.connection.execute(change)
    log = loaded(store)
    assert log.distrusted
    check(store, log)
    again = loaded(store)
    assert (again.distrusted, again.rows_saved, kept(store)) == (False, before, before)
    check(store, again)


def test_what_does_not_fit_the_rows_is_made_again_and_that_is_told(
    store: Store,
) -> None:
    """As if somebody had changed the log without what notes it."""
    store.connection.execute("DROP TRIGGER log_entry_left")
    last = store.connection.execute("SELECT last_lamport FROM log_index").fetchone()
    store.connection.execute("DELETE FROM log_entry WHERE lamport_timestamp = ?", last)
    log = loaded(store)
    assert log.distrusted
    check(store, log)


def damage(path: Path, table: str) -> None:
    """Overwrite the first page of a table in the file."""
    connection = open_database(path, KEY)
    size, page = (
        int(connection.execute(sql).fetchone()[0])
        for sql in (
            "PRAGMA page_size",
            f"SELECT rootpage FROM sqlite_schema WHERE name = '{table}'",  # noqa: S608
        )
    )
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(64))


def a_hundred_kept(path: Path) -> None:
    store = SqliteProfileStore.open(path, KEY)
    store.apply([PutGroup(group=group(GROUP)), PutGroup(group=group(OTHER_GROUP))])
    store.apply([channel(*(entry(number, 10 * number) for number in range(1, 101)))])
    assert not loaded(store).distrusted
    store.close()


@pytest.mark.parametrize("table", TABLES)
def test_an_index_that_cannot_be_read_leaves_the_log_readable(tmp_path: Path, table: str) -> None:
    path = tmp_path / "causerie.db"
    a_hundred_kept(path)
    damage(path, table)
    store = SqliteProfileStore.open(path, KEY)
    for _ in range(2):
        log = loaded(store)
        assert (log.distrusted, log.rows_saved, len(log)) == (True, 0, 100)
        check(store, log)
    store.apply([channel(entry(101, 2_000))])
    store.apply([channel(entry(102, 15), RemoveFromLog(message_id=sealed_id(50)))])
    check(store, loaded(store))
    store.close()
    again = SqliteProfileStore.open(path, KEY)
    check(again, loaded(again))
    again.close()


def test_a_log_that_cannot_be_read_leaves_everything_else_readable(tmp_path: Path) -> None:
    """SQLCipher's connection is of no use after a damaged page: another one takes its place."""
    path = tmp_path / "causerie.db"
    a_hundred_kept(path)
    damage(path, "log_entry")
    store = SqliteProfileStore.open(path, KEY)
    with pytest.raises(StorageError) as refused:
        loaded(store)
    assert refused.value.fault is StorageFault.DAMAGED
    store.apply([row(1, "m", conversation_id=OTHER_GROUP)])
    assert store.message(OTHER_GROUP, MessageId("m")) is not None
    assert [each.conversation_id for each in store.groups()] == [GROUP, OTHER_GROUP]
    store.close()


def test_an_index_that_finds_no_room_leaves_the_log_readable(empty: Store) -> None:
    empty.apply([channel(*(entry(number, 10 * number) for number in range(1, 101)))])
    (pages,) = empty.connection.execute("PRAGMA page_count").fetchone()
    empty.connection.execute(f"PRAGMA max_page_count = {pages}")
    large = b"".join(bytes([number % 251]) for number in range(4_000))
    with pytest.raises(StorageError):
        empty.apply([channel(AppendToLog(entry(200, 9_000).entry, large))])
    check(empty, loaded(empty))


def test_ids_of_another_shape_are_read_as_rows(empty: Store) -> None:
    named = (
        AppendToLog(
            LogEntry(Position(number, MessageId(f"m{number}")), ALICE, None, None, None, 1), b"raw"
        )
        for number in range(100, 200)
    )
    empty.apply([channel(*named)])
    for _ in range(2):
        log = loaded(empty)
        assert (log.rows_saved, kept(empty)) == (0, 0)
        check(empty, log)


def test_a_group_that_is_removed_takes_what_is_kept_with_it(store: Store) -> None:
    assert {*TABLES} <= {*(each.table for each in GROWING), *SMALL_TABLES}
    store.apply([RemoveGroup(conversation_id=GROUP)])
    while store.clear_removed():
        pass
    for table in TABLES:
        count = store.connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        assert count == (0,), table


def test_authors_that_appear_later_are_known(store: Store) -> None:
    newcomers = [ParticipantId(letter * 32) for letter in "cdefgh"]
    for number, (who, start) in enumerate(itertools.product(newcomers, range(2)), 300):
        author = AuthorSequence(InstanceId(bytes([number % 256] * 16)), start + 1)
        position = Position(10 * number, sealed_id(number))
        logged = LogEntry(position, who, None, author, None, 1)
        store.apply([channel(AppendToLog(logged, b"raw"))])
        check(store, loaded(store))


def test_a_start_takes_many_kept_pages_in_one_go(store: Store) -> None:
    loaded(store)
    log = LogTable(page_rows=PAGE, bucket_rows=3)
    in_a_row = PAGE * TOGETHER
    assert kept(store) >= 3 * in_a_row
    store.read_log(GROUP, log, limit=in_a_row)
    assert len(log) == kept(store)
    check(store, loaded(store))
