"""The database as a file: private, encrypted, durable, and clear about what is wrong with it."""

import itertools
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import MessageId
from engine.core.ports import PutGroup, SaveProfile, SaveValue
from engine.persistence import database, list_reads, mvds_tables, timeline_reads
from engine.persistence.connection import connect
from engine.persistence.database import damaged_pages, open_database, open_readonly
from engine.persistence.errors import (
    DatabaseTooNewError,
    DatabaseUnreadableError,
    DiskFullError,
)
from engine.persistence.schema import SCHEMA_VERSION
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import (
    GROUP,
    PROFILE,
    at,
    group,
    own_message_sent,
    row,
)

PAGE_BYTES = 4096
PLAINTEXT = "nobody may find this sentence"


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.fixture
def saved(database_path: Path, key: bytes) -> Path:
    """A closed database with some hundred messages in it."""
    store = SqliteProfileStore.open(database_path, key)
    store.apply([SaveProfile(profile=PROFILE), PutGroup(group=group())])
    store.apply([write for n in range(300) for write in own_message_sent(n, PLAINTEXT)])
    store.close()
    return database_path


def flip_a_bit(path: Path, page_number: int) -> None:
    data = bytearray(path.read_bytes())
    data[(page_number - 1) * PAGE_BYTES + 1000] ^= 1
    path.write_bytes(data)


def test_settings_are_those_of_a_durable_database(database_path: Path, key: bytes) -> None:
    db = open_database(database_path, key)
    assert pragma(db, "journal_mode") == "wal"
    assert pragma(db, "synchronous") == 2, "FULL: a commit is on disk when it returns"
    assert pragma(db, "foreign_keys") == 1
    assert pragma(db, "temp_store") == 2, "MEMORY"
    assert pragma(db, "busy_timeout") == 5000
    assert pragma(db, "cipher_use_hmac") == "1"
    db.close()


def test_every_table_is_strict(database_path: Path, key: bytes) -> None:
    db = open_database(database_path, key)
    lax: list[tuple[str]] = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
        "AND strict = 0 AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    ).fetchall()
    db.close()
    assert lax == [("_sqlite_migrations",)], "which sqlite-utils makes itself"


def test_all_files_are_private_under_any_umask(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([SaveValue(key="port", value="1")])
    files = sorted(database_path.parent.iterdir())
    assert [file.name for file in files] == ["causerie.db", "causerie.db-shm", "causerie.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    store.close()


def test_a_database_that_others_could_read_is_made_private(saved: Path, key: bytes) -> None:
    saved.chmod(0o644)
    open_database(saved, key).close()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_no_text_and_no_key_can_be_found_in_the_files(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([SaveProfile(profile=PROFILE), PutGroup(group=group())])
    for n in range(20):
        store.apply(own_message_sent(n, PLAINTEXT))
    in_the_log = database_path.with_name("causerie.db-wal").read_bytes()
    in_shared_memory = database_path.with_name("causerie.db-shm").read_bytes()
    store.close()
    everything = in_the_log + in_shared_memory + database_path.read_bytes()
    assert len(in_the_log) > 20 * PAGE_BYTES
    needles = (PLAINTEXT.encode(), b"SQLite format 3", b"CREATE TABLE", PROFILE.signing_key, key)
    assert [needle for needle in needles if needle in everything] == []


def test_what_was_saved_is_there_after_reopening(saved: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(saved, key)
    assert store.profile() == PROFILE
    assert store.latest_page(GROUP, limit=1).total == 300
    store.close()


# --- what is wrong with it ----------------------------------------------------------------------


@pytest.mark.parametrize("opened", [open_database, open_readonly])
def test_another_key_is_refused_and_neither_key_is_named(
    saved: Path, key: bytes, opened: Callable[[Path, bytes], sqlite3.Connection]
) -> None:
    before = saved.read_bytes()
    other = bytes(32)
    with pytest.raises(DatabaseUnreadableError, match="cannot be decrypted") as caught:
        opened(saved, other)
    for told in (str(caught.value), str(caught.value.__cause__)):
        assert other.hex() not in told
        assert key.hex() not in told
    assert saved.read_bytes() == before


def test_a_key_of_the_wrong_length_is_refused(database_path: Path) -> None:
    with pytest.raises(StorageError, match="32 bytes, not 16"):
        open_database(database_path, bytes(16))


@pytest.mark.parametrize(
    "content",
    [b"hello " * 5000, b"SQLite format 3\x00" + bytes(8176), b"short"],
    ids=["text", "plain SQLite", "short"],
)
def test_a_foreign_file_is_refused_and_left_alone(
    database_path: Path, key: bytes, content: bytes
) -> None:
    database_path.write_bytes(content)
    with pytest.raises(DatabaseUnreadableError):
        open_database(database_path, key)
    assert database_path.read_bytes() == content


def test_a_damaged_first_page_is_told_on_opening(saved: Path, key: bytes) -> None:
    flip_a_bit(saved, page_number=1)
    with pytest.raises(DatabaseUnreadableError):
        open_database(saved, key)


def test_one_flipped_bit_is_found_wherever_it_is(
    saved: Path, key: bytes, subtests: pytest.Subtests
) -> None:
    whole = saved.read_bytes()
    pages = len(whole) // PAGE_BYTES
    told_on_opening = 0
    for page_number in itertools.islice(range(2, pages + 1), 0, None, max(1, pages // 12)):
        saved.write_bytes(whole)
        flip_a_bit(saved, page_number)
        with subtests.test(page=page_number):
            try:
                db = open_readonly(saved, key)
            except DatabaseUnreadableError:  # The list of tables takes several pages.
                told_on_opening += 1
                continue
            assert damaged_pages(db) == [f"HMAC verification failed for page {page_number}"]
            db.close()
    assert told_on_opening <= 2
    saved.write_bytes(whole)
    db = open_readonly(saved, key)
    assert damaged_pages(db) == []
    db.close()


def damage_last_quarter(saved: Path) -> None:
    """The schema lies before it."""
    data = bytearray(saved.read_bytes())
    middle = len(data) // PAGE_BYTES * 3 // 4
    for offset in range(middle * PAGE_BYTES, len(data), PAGE_BYTES):
        data[offset + 100] ^= 0xFF
    saved.write_bytes(data)


def test_a_damaged_page_read_before_a_commit_undoes_it_and_the_store_goes_on(
    saved: Path, key: bytes
) -> None:
    damage_last_quarter(saved)
    store = SqliteProfileStore.open(saved, key)
    with pytest.raises(DatabaseUnreadableError, match="damaged"):
        store.apply([SaveValue(key="port", value="1")], lambda: store.channel_state(GROUP))
    assert store.value("port") is None
    store.apply([SaveValue(key="port", value="2")])
    assert store.value("port") == "2"
    store.close()


def test_reading_a_damaged_page_is_a_storage_error(saved: Path, key: bytes) -> None:
    damage_last_quarter(saved)
    store = SqliteProfileStore.open(saved, key)
    with pytest.raises(DatabaseUnreadableError, match="damaged"):
        store.channel_state(GROUP)
    store.close()


def test_a_truncated_file_is_a_storage_error(saved: Path, key: bytes) -> None:
    saved.write_bytes(saved.read_bytes()[: 3 * PAGE_BYTES + 17])
    with pytest.raises(DatabaseUnreadableError):
        SqliteProfileStore.open(saved, key).channel_state(GROUP)


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path, key: bytes) -> None:
    (tmp_path / "causerie.db").mkdir()
    with pytest.raises(StorageError, match="causerie"):
        open_database(tmp_path / "causerie.db", key)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, key: bytes) -> None:
    with pytest.raises(StorageError, match="No such file"):
        open_database(tmp_path / "gone" / "causerie.db", key)


def save_until_full(store: SqliteProfileStore) -> int:
    for n in range(1000):
        try:
            store.apply(own_message_sent(n, "x" * 2000))
        except DiskFullError:
            return n - 1
    pytest.fail("the disk never became full")


def test_a_full_disk_saves_nothing_and_resumes_when_there_is_room(
    database_path: Path, key: bytes
) -> None:
    db = open_database(database_path, key)
    store = SqliteProfileStore(db)
    store.apply([PutGroup(group=group())])
    db.execute(f"PRAGMA max_page_count = {pragma(db, 'page_count')}")
    saved_last = save_until_full(store)
    assert store.latest_page(GROUP, limit=1).total == saved_last + 1
    assert len(store.channel_state(GROUP).log) == saved_last + 1
    db.execute("PRAGMA max_page_count = 1000000")
    store.apply(own_message_sent(saved_last + 1, "x" * 2000))
    assert store.latest_page(GROUP, limit=1).total == saved_last + 2
    store.close()


@pytest.mark.parametrize("text", ["\ud800", "ok"])
def test_a_value_that_does_not_fit_is_a_storage_error(
    sqlite_store: SqliteProfileStore, text: str
) -> None:
    sqlite_store.apply([PutGroup(group=group())])
    too_large = 2**63 if text == "ok" else 1
    with pytest.raises(StorageError, match="does not fit"):
        sqlite_store.apply([row(too_large, "a", text=text)])
    assert sqlite_store.latest_page(GROUP, limit=1).total == 0


# --- versions -----------------------------------------------------------------------------------


def test_a_database_of_a_newer_version_is_left_untouched(saved: Path, key: bytes) -> None:
    db = open_database(saved, key)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = saved.read_bytes()
    for opened in (open_database, open_readonly):
        with pytest.raises(DatabaseTooNewError, match="newer version"):
            opened(saved, key)
    assert saved.read_bytes() == before


def test_opening_twice_migrates_once(database_path: Path, key: bytes) -> None:
    applied = []
    for _ in range(2):
        db = open_database(database_path, key)
        assert pragma(db, "user_version") == SCHEMA_VERSION
        applied.append(db.execute("SELECT * FROM _sqlite_migrations").fetchall())
        db.close()
    assert applied[0] == applied[1] != []


def test_a_first_start_that_broke_off_begins_again(database_path: Path, key: bytes) -> None:
    database_path.touch(mode=0o600)
    store = SqliteProfileStore.open(database_path, key)
    assert store.profile() is None
    store.close()


# --- looking at it while the application runs ---------------------------------------------------


def test_a_second_reader_sees_what_was_saved_and_cannot_write(
    database_path: Path, key: bytes
) -> None:
    writer = SqliteProfileStore.open(database_path, key)
    writer.apply([PutGroup(group=group()), row(1, "a")])
    db = open_readonly(database_path, key)
    reader = SqliteProfileStore(db)
    assert reader.latest_page(GROUP, limit=5).total == 1
    with pytest.raises(StorageError, match="only be read"):
        reader.apply([row(2, "b")])
    writer.apply([row(2, "b")])
    assert reader.latest_page(GROUP, limit=5).total == 2
    reader.close()
    writer.close()


def test_looking_at_a_profile_that_is_not_there_makes_nothing(
    database_path: Path, key: bytes
) -> None:
    with pytest.raises(StorageError, match="no database"):
        open_readonly(database_path, key)
    assert not database_path.exists()


def test_an_empty_database_cannot_be_looked_at(database_path: Path, key: bytes) -> None:
    database_path.touch()
    with pytest.raises(StorageError, match="start the application once"):
        open_readonly(database_path, key)


def test_a_closed_store_says_so(sqlite_store: SqliteProfileStore) -> None:
    sqlite_store.close()
    with pytest.raises(StorageError):
        sqlite_store.profile()


# --- nothing may scan a million rows -------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "parameters", "index"),
    [
        (timeline_reads.LATEST_ROWS, (1, 100), "timeline_order"),
        (timeline_reads.ROWS_BEFORE, (1, 0, 5, "m", 100), "timeline_order"),
        (timeline_reads.ROWS_AFTER, (1, 0, 5, "m", 100), "timeline_order"),
        (list_reads.FIRST_UNREAD, (1, 0, 5, "m"), "unread_order"),
        (mvds_tables.RECORDS_FROM, (1, 0, 257), "PRIMARY KEY"),
        (mvds_tables.RECORDS_OF_EPOCH, (1, 7), "PRIMARY KEY"),
        (mvds_tables.NEXT_EPOCH, (1, 7), "PRIMARY KEY"),
        (mvds_tables.ONE_RECORD, (1, b"m", "peer"), "mvds_record_of_message"),
    ],
)
def test_rows_are_read_along_an_index(
    connection: sqlite3.Connection, sql: str, parameters: tuple[object, ...], index: str
) -> None:
    plan = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert index in plan[0]
    assert not [step for step in plan if "SCAN" in step or "TEMP B-TREE" in step]


def test_ordinals_stay_exact_across_many_blocks(sqlite_store: SqliteProfileStore) -> None:
    sqlite_store.apply([PutGroup(group=group())])
    numbers = [(n * 2654435761) % 5003 for n in range(5003)]  # each once, in a mixed order
    sqlite_store.apply([row(n, f"m{n}") for n in numbers])
    assert sqlite_store.latest_page(GROUP, limit=1).total == 5003
    for n in (0, 1, 511, 1024, 1025, 2500, 5002):
        page = sqlite_store.page_after(GROUP, at(n, ""), limit=1)
        assert page.older_count == n
        assert page.messages[0].record.position.message_id == MessageId(f"m{n}")


def test_where_no_side_file_can_be_made_it_is_read_all_the_same(
    saved: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that may only be read SQLite refuses so; whoever runs tests may write anywhere."""

    def refusing(address: str, key: bytes, *, uri: bool) -> sqlite3.Connection:
        if "mode=ro" in address:
            raise StorageError("x", StorageFault.NOT_OPENED)
        return connect(address, key, uri=uri)

    monkeypatch.setattr(database, "connect", refusing)
    db = open_readonly(saved, key)
    assert damaged_pages(db) == []
    db.close()
    saved.with_name(f"{saved.name}-wal").write_bytes(b"not all is in the file")
    with pytest.raises(StorageError):
        open_readonly(saved, key)
