"""The first tables, what may follow them, and databases that are not of this schema."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlite_utils import Database

from engine.core.errors import StorageError
from engine.core.ids import DeliveryState, MessageId
from engine.core.ports import PutGroup
from engine.core.sds.vocabulary import RemoveOutgoing
from engine.persistence import database, schema
from engine.persistence.database import memory_database, open_database, open_readonly
from engine.persistence.errors import DatabaseFromBeforeError, DatabaseTooNewError
from engine.persistence.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    SCHEMA_VERSION,
    Migration,
    settle_what_came_back,
)
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.old_profile import make_old_database
from tests.persistence.store_examples import (
    GROUP,
    channel,
    delivery,
    group,
    logged,
    own_message_sent,
    row,
)


def header(connection: sqlite3.Connection) -> tuple[int, int]:
    """Version and owner."""
    version, application_id = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("user_version", "application_id")
    )
    return version, application_id


def all_rows(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    db = Database(connection)
    return {
        table: [tuple(found.values()) for found in db.table(table).rows]
        for table in db.table_names()
        if table != "_sqlite_migrations"
    }


def with_steps(
    monkeypatch: pytest.MonkeyPatch, steps: Iterable[Callable[[sqlite3.Connection], None]]
) -> None:
    """What a program with these migrations as well would do."""
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, *map(Migration, steps)))


def add_a_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE channel ADD COLUMN later INTEGER")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def test_a_new_database_is_ours_and_of_the_newest_version(database_path: Path, key: bytes) -> None:
    connection = open_database(database_path, key)
    assert header(connection) == (SCHEMA_VERSION, APPLICATION_ID) == (18, 0x43617573)
    assert [row["name"] for row in Database(connection).table("_sqlite_migrations").rows] == [
        "create_first_tables", "add_annotations", "add_open_channels", "keep_indexes", "add_files",
        "add_transfers", "add_file_holders", "add_search", "count_reactions",
        "settle_what_came_back", "let_files_go", "add_shared_keys", "note_what_waited",
        "add_governed_groups", "add_ratchets", "add_joining", "place_deeds", "let_links_end",
    ]  # fmt: skip
    connection.close()
    open_readonly(database_path, key).close()


def test_a_database_in_memory_is_like_a_file_and_has_nothing_of_another(
    database_path: Path, key: bytes
) -> None:
    schema_of = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    file, first = open_database(database_path, key), memory_database()
    SqliteProfileStore(first).apply([PutGroup(group=group())])
    with ThreadPoolExecutor(max_workers=1) as elsewhere:
        there = elsewhere.submit(lambda: all_rows(memory_database())).result()
    second = memory_database()
    assert there == all_rows(second) == all_rows(file) != all_rows(first)
    assert header(second) == header(file)
    assert second.execute(schema_of).fetchall() == file.execute(schema_of).fetchall()
    assert second.execute("PRAGMA foreign_keys").fetchone() == (1,)
    for each in (file, first, second):
        each.close()


def test_a_database_in_memory_that_could_not_be_made_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: sqlite3.Connection) -> None:
        raise MemoryError

    def twice() -> list[tuple[int]]:
        with monkeypatch.context() as patched:
            patched.setattr(database, "migrate", fails)
            with pytest.raises(MemoryError):
                memory_database()
        made: list[tuple[int]] = memory_database().execute("PRAGMA user_version").fetchall()
        return made

    with ThreadPoolExecutor(max_workers=1) as elsewhere:
        assert elsewhere.submit(twice).result() == [(SCHEMA_VERSION,)]


OPEN = """
import sys
from pathlib import Path
from engine.persistence.database import open_database
open_database(Path(sys.argv[1]), bytes.fromhex(sys.argv[2])).close()
print("sqlite_utils" in sys.modules)
"""


def test_sqlite_utils_is_loaded_only_if_there_is_something_to_migrate(
    database_path: Path, key: bytes
) -> None:
    def loads_it() -> str:
        arguments = [sys.executable, "-c", OPEN, str(database_path), key.hex()]
        return subprocess.run(arguments, check=True, text=True, stdout=subprocess.PIPE).stdout

    assert [loads_it(), loads_it()] == ["True\n", "False\n"]


def test_first_tables_that_break_off_leave_nothing(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(connection: sqlite3.Connection) -> None:
        schema.create_first_tables(connection)
        connection.execute("CREATE TABLE channel (again TEXT) STRICT")

    with monkeypatch.context() as then:
        then.setattr(schema, "MIGRATIONS", (Migration(breaks_off),))
        with pytest.raises(StorageError):
            open_database(database_path, key)
        with pytest.raises(StorageError, match="start the application once"):
            open_readonly(database_path, key)
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group())])
    assert store.groups() == [group()]
    store.close()


def test_a_later_migration_keeps_every_row(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = some_rows(database_path, key)
    with_steps(monkeypatch, [add_a_column])
    monkeypatch.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    before = database_path.read_bytes()
    with pytest.raises(StorageError, match="start the application once"):
        open_readonly(database_path, key)
    assert database_path.read_bytes() == before
    connection = open_database(database_path, key)
    assert header(connection) == (SCHEMA_VERSION + 1, APPLICATION_ID)
    rows["channel"] = [(*row, None) for row in rows["channel"]]
    assert all_rows(connection) == rows
    connection.close()


def test_a_migration_that_breaks_off_leaves_the_version_before(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(connection: sqlite3.Connection) -> None:
        add_a_column(connection)
        connection.execute("CREATE TABLE channel (again TEXT) STRICT")

    rows = some_rows(database_path, key)
    with monkeypatch.context() as then:
        with_steps(then, [breaks_off])
        with pytest.raises(StorageError):
            open_database(database_path, key)
    connection = open_database(database_path, key)
    assert header(connection) == (SCHEMA_VERSION, APPLICATION_ID)
    assert all_rows(connection) == rows
    connection.close()


def test_own_messages_that_came_back_once_no_longer_wait_to_be_sent(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, came_back, failed = (f"message-{each:014d}" for each in range(1, 4))
    packed = "0f" * 16
    with monkeypatch.context() as then:
        before = [each for each in MIGRATIONS if each.function is not settle_what_came_back]
        then.setattr(schema, "MIGRATIONS", before)
        store = SqliteProfileStore.open(database_path, key)
        store.apply([PutGroup(group=group())])
        for sequence in (1, 2, 3):
            store.apply(own_message_sent(sequence))
        store.apply(
            [
                channel(RemoveOutgoing(MessageId(came_back)), RemoveOutgoing(MessageId(failed))),
                delivery(failed, DeliveryState.FAILED),
                channel(logged(4, packed)),
                row(4, packed, is_own=True),
                delivery(packed, DeliveryState.SAVED),
            ]
        )
        assert store.summary(GROUP).waiting_to_send == 3
        store.close()
    for _start in range(2):
        store = SqliteProfileStore.open(database_path, key)
        assert store.summary(GROUP).waiting_to_send == 1
        found = [store.message(GROUP, MessageId(each)) for each in (waits, came_back, packed)]
        assert [each and each.delivery and each.delivery.state for each in found] == [
            DeliveryState.SAVED, DeliveryState.SENT, DeliveryState.SENT,
        ]  # fmt: skip
        assert store.summary(GROUP).failed == 1
        store.close()


@pytest.mark.parametrize("opened", [open_database, open_readonly])
@pytest.mark.parametrize("version", [1, SCHEMA_VERSION + 1, 9, 2**31 - 1])
def test_a_database_from_before_is_not_taken_for_ours(
    database_path: Path,
    key: bytes,
    opened: Callable[[Path, bytes], sqlite3.Connection],
    version: int,
) -> None:
    make_old_database(database_path, key, version=version)
    before = database_path.read_bytes()
    with pytest.raises(DatabaseFromBeforeError, match="not used any more"):
        opened(database_path, key)
    assert database_path.read_bytes() == before


@pytest.mark.parametrize("opened", [open_database, open_readonly])
def test_a_newer_database_of_ours_is_not_from_before(
    database_path: Path, key: bytes, opened: Callable[[Path, bytes], sqlite3.Connection]
) -> None:
    make_old_database(database_path, key, version=99, application_id=APPLICATION_ID)
    before = database_path.read_bytes()
    with pytest.raises(
        DatabaseTooNewError, match=f"version 99, this program knows {SCHEMA_VERSION}"
    ):
        opened(database_path, key)
    assert database_path.read_bytes() == before


def some_rows(database_path: Path, key: bytes) -> dict[str, list[tuple[object, ...]]]:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group()), *own_message_sent(1)])
    store.close()
    connection = open_database(database_path, key)
    rows = all_rows(connection)
    connection.close()
    return rows
