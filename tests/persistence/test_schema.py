"""The first tables, what may follow them, and databases that are not of this schema."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.core.ports import PutGroup
from engine.persistence import schema
from engine.persistence.database import open_database, open_readonly
from engine.persistence.errors import DatabaseFromBeforeError, DatabaseTooNewError
from engine.persistence.schema import APPLICATION_ID, SCHEMA_VERSION
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.sqlite_utils_alone import Database, Migrations
from tests.persistence.old_profile import make_old_database
from tests.persistence.store_examples import group, own_message_sent


def header(db: Database) -> tuple[int, int]:
    """Version and owner."""
    version, application_id = (
        db.conn.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("user_version", "application_id")
    )
    return version, application_id


def all_rows(db: Database) -> dict[str, list[tuple[object, ...]]]:
    return {
        table: [tuple(found.values()) for found in db.table(table).rows]
        for table in db.table_names()
        if table != "_sqlite_migrations"
    }


def with_steps(
    monkeypatch: pytest.MonkeyPatch, steps: Iterable[Callable[[Database], None]]
) -> None:
    """What a program with these migrations would do."""
    migrations = Migrations("causerie")
    for step in (schema.create_first_tables, schema.carry_over_version_1, *steps):
        migrations()(step)
    migrations(transactional=False)(schema.give_back_room)
    monkeypatch.setattr(schema, "migrations", migrations)


def add_a_column(db: Database) -> None:
    db.conn.execute("ALTER TABLE channel ADD COLUMN later INTEGER")
    db.conn.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def test_a_new_database_is_ours_and_of_the_newest_version(database_path: Path, key: bytes) -> None:
    db = open_database(database_path, key)
    assert header(db) == (SCHEMA_VERSION, APPLICATION_ID) == (2, 0x43617573)
    assert [row["name"] for row in db.table("_sqlite_migrations").rows] == [
        "create_first_tables", "carry_over_version_1", "give_back_room",
    ]  # fmt: skip
    db.close()
    open_readonly(database_path, key).close()


def test_first_tables_that_break_off_leave_nothing(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        broken = (*schema._HISTORY_TABLES, "CREATE TABLE channel (again TEXT) STRICT")
        then.setattr(schema, "_HISTORY_TABLES", broken)
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
    db = open_database(database_path, key)
    assert header(db) == (SCHEMA_VERSION + 1, APPLICATION_ID)
    rows["channel"] = [(*row, None) for row in rows["channel"]]
    assert all_rows(db) == rows
    db.close()


def test_a_migration_that_breaks_off_leaves_the_version_before(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(db: Database) -> None:
        add_a_column(db)
        db.conn.execute("CREATE TABLE channel (again TEXT) STRICT")

    rows = some_rows(database_path, key)
    with monkeypatch.context() as then:
        with_steps(then, [breaks_off])
        with pytest.raises(StorageError):
            open_database(database_path, key)
    db = open_database(database_path, key)
    assert header(db) == (SCHEMA_VERSION, APPLICATION_ID)
    assert all_rows(db) == rows
    db.close()


@pytest.mark.parametrize("opened", [open_database, open_readonly])
@pytest.mark.parametrize("version", [1, SCHEMA_VERSION + 1, 9, 2**31 - 1])
def test_a_database_from_before_is_not_taken_for_ours(
    database_path: Path, key: bytes, opened: Callable[[Path, bytes], Database], version: int
) -> None:
    make_old_database(database_path, key, version=version)
    before = database_path.read_bytes()
    with pytest.raises(DatabaseFromBeforeError, match="not used any more"):
        opened(database_path, key)
    assert database_path.read_bytes() == before


@pytest.mark.parametrize("opened", [open_database, open_readonly])
def test_a_newer_database_of_ours_is_not_from_before(
    database_path: Path, key: bytes, opened: Callable[[Path, bytes], Database]
) -> None:
    make_old_database(database_path, key, version=9, application_id=APPLICATION_ID)
    before = database_path.read_bytes()
    with pytest.raises(DatabaseTooNewError, match="version 9, this program knows 2"):
        opened(database_path, key)
    assert database_path.read_bytes() == before


def some_rows(database_path: Path, key: bytes) -> dict[str, list[tuple[object, ...]]]:
    store = SqliteProfileStore.open(database_path, key)
    store.apply([PutGroup(group=group()), *own_message_sent(1)])
    store.close()
    db = open_database(database_path, key)
    rows = all_rows(db)
    db.close()
    return rows
