"""A profile of version 1 is carried over whole, and a broken attempt leaves it as it was."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlcipher3 import dbapi2

from engine.core.errors import StorageError
from engine.core.ids import HolderSource, MessageId, ParticipantId
from engine.core.mvds.vocabulary import Epoch
from engine.core.ports import ProfileStore, StoreWrite
from engine.core.sds.vocabulary import RemoveFromLog
from engine.persistence import from_version_1, schema
from engine.persistence.database import open_database, open_readonly
from engine.persistence.schema import SCHEMA_VERSION, Migration
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.memory_store import MemoryProfileStore
from tests.persistence.store_examples import (
    ALICE,
    BOB,
    GROUP,
    INSTANCE,
    ME,
    OTHER_GROUP,
    PAIR,
    at,
    channel,
    held,
    logged,
    mvds_id,
    row,
)
from tests.persistence.version_1 import IDS, REMOVED, STORY, make_version_1, sealed_id

NEW = {
    "participant", "instance", "raw_block", "reaction", "version", "open_channel", "file",
    "log_index", "log_pages", "log_buckets", "log_author", "log_late",
}  # fmt: skip
CHANGED = {"log_entry", "log_raw", "message", "holder", "delivery", "ordinal_block", "channel"}


def everything(store: ProfileStore) -> list[object]:
    """All that can be read."""
    read: list[object] = [
        store.profile(), store.picture(), store.value("key"), store.counters(),
        store.node_addresses(), store.stores(), store.groups(), store.contacts(),
    ]  # fmt: skip
    for conversation in (GROUP, OTHER_GROUP, PAIR, REMOVED):
        page = store.latest_page(conversation, limit=100)
        ids = [*IDS, sealed_id(900), MessageId("bare"), MessageId("short")]
        read += [
            page,
            *(store.page_before(conversation, each.record.position, limit=3)
              for each in page.messages),
            store.summary(conversation), store.members(conversation),
            store.muted_members(conversation), store.history(conversation),
            store.own_sequence(conversation, INSTANCE),
            [store.set_aside(conversation, who, limit=9) for who in (ME, ALICE, BOB)],
            [store.raw(conversation, each) for each in ids],
            [store.holders(conversation, each) for each in ids],
            store.messages(conversation, ids),
        ]  # fmt: skip
    for conversation in (GROUP, OTHER_GROUP):
        read += [store.channel_state(conversation), store.logged(conversation, None, limit=999)]
    return [*read, store.logged(PAIR, None, limit=99), *of_the_pair(store)]


def of_the_pair(store: ProfileStore) -> list[object]:
    return [
        store.pair_state(PAIR),
        store.mvds_state(PAIR, limit=9),
        store.mvds_records(PAIR, Epoch(0), limit=9),
        store.mvds_message(PAIR, mvds_id("sent")),
    ]


def as_it_was() -> MemoryProfileStore:
    store = MemoryProfileStore()
    store.apply(STORY)
    return store


def finish(store: SqliteProfileStore) -> None:
    """What version 1 left unfinished."""
    while store.mark_muted():
        pass
    while store.clear_removed():
        pass


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%sqlite_%'"
    ).fetchall()
    return {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        for (table,) in tables
    }


def of_version_1(path: Path, key: bytes) -> sqlite3.Connection:
    connection: sqlite3.Connection = dbapi2.connect(str(path), isolation_level=None)
    connection.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
    return connection


def columns(connection: sqlite3.Connection) -> dict[str, set[tuple[object, ...]]]:
    """Of each table: name, type, whether it may be null, place in the primary key."""
    return {
        table: {
            (name, type_, notnull, key)
            for _, name, type_, notnull, _, key in connection.execute(f"PRAGMA table_info({table})")
        }
        for table in counts(connection)
    }


def indexes(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
        "AND name NOT LIKE '%sqlite_%'"
    )
    return {" ".join(sql.split()) for (sql,) in rows}


def carry_over_and(
    last: Callable[[sqlite3.Connection], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration does something more before it is committed."""

    def carry_over_version_1(connection: sqlite3.Connection) -> None:
        schema.carry_over_version_1(connection)
        last(connection)

    migrations = [
        Migration(carry_over_version_1) if one.name == "carry_over_version_1" else one
        for one in schema.MIGRATIONS
    ]
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)


def test_everything_is_carried_over(database_path: Path, key: bytes) -> None:
    make_version_1(database_path, key)
    old = of_version_1(database_path, key)
    before = counts(old)
    untouched = sorted(before.keys() - CHANGED)
    rows = [old.execute(f"SELECT * FROM {table}").fetchall() for table in untouched]  # noqa: S608
    old.close()
    assert all(before.values()), "no table is empty"
    connection = open_database(database_path, key)
    store = SqliteProfileStore(connection)
    assert rows == [
        connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
        for table in untouched
    ]
    after = counts(connection)
    assert after.keys() - before.keys() == NEW
    packed = before.pop("log_raw") - after.pop("log_raw")
    assert packed >= 64
    assert before == {table: after[table] for table in before}
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()
    again = SqliteProfileStore.open(database_path, key)
    assert everything(again) == everything(as_it_was())
    again.close()


def test_a_database_of_version_2_only_gains(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(database_path, key)
    with monkeypatch.context() as then:
        first, second, *_, last = schema.MIGRATIONS
        then.setattr(schema, "MIGRATIONS", (first, second, last))
        then.setattr(schema, "SCHEMA_VERSION", 2)
        old = open_database(database_path, key)
    before = {table: old.execute(f"SELECT * FROM {table}").fetchall() for table in counts(old)}  # noqa: S608
    assert old.execute("PRAGMA user_version").fetchone() == (2,)
    old.close()
    connection = open_database(database_path, key)
    for table, rows in before.items():
        found = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
        width = len(rows[0]) if rows else 0
        assert [row[:width] for row in found] == rows
    store = SqliteProfileStore(connection)
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()


def test_the_tables_are_those_of_a_new_database(
    database_path: Path, key: bytes, tmp_path: Path
) -> None:
    make_version_1(database_path, key)
    db, new = open_database(database_path, key), open_database(tmp_path / "new.db", key)
    assert columns(db) == columns(new)
    assert indexes(db) == indexes(new)
    db.close()
    new.close()


def test_it_goes_on_as_if_nothing_had_happened(database_path: Path, key: bytes) -> None:
    more: list[StoreWrite] = [
        channel(
            held(IDS[20], BOB, HolderSource.CAUSAL, 11),
            held(IDS[20], ParticipantId("c"), HolderSource.CAUSAL, 12),
            RemoveFromLog(message_id=IDS[2]),
            RemoveFromLog(message_id=IDS[69]),
        ),
        *(channel(logged(60 + n, sealed_id(1000 + n), b"new")) for n in range(80)),
        *(row(60 + n, sealed_id(1000 + n)) for n in range(80)),
        row(3, IDS[4], text="changed"),
    ]
    make_version_1(database_path, key)
    store, memory = SqliteProfileStore.open(database_path, key), as_it_was()
    finish(store)
    store.apply(more)
    memory.apply(more)
    assert everything(store) == everything(memory)
    store.close()


def test_killed_in_the_middle_it_is_the_old_one_still(
    database_path: Path, key: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are copied when all is written and nothing committed, as a kill leaves them."""
    make_version_1(database_path, key)
    copy = tmp_path / "killed.db"

    def copied(_: sqlite3.Connection) -> None:
        for end in ("", "-wal"):
            shutil.copy(f"{database_path}{end}", f"{copy}{end}")

    with monkeypatch.context() as then:
        carry_over_and(copied, then)
        open_database(database_path, key).close()
    with pytest.raises(StorageError, match="start the application once"):
        open_readonly(copy, key)
    store = SqliteProfileStore.open(copy, key)
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()


def make_roomy_version_1(path: Path, key: bytes) -> None:
    """One with pages that nothing uses, more than the new tables take."""
    make_version_1(path, key)
    old = of_version_1(path, key)
    old.execute("CREATE TABLE filler AS SELECT zeroblob(200000)")
    old.execute("DROP TABLE filler")
    old.close()


def test_killed_before_the_file_was_made_smaller_that_is_done_at_the_next_start(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    make_roomy_version_1(database_path, key)
    with monkeypatch.context() as then:
        then.setattr("engine.persistence.schema.give_back", killed)
        with pytest.raises(KeyboardInterrupt):
            open_database(database_path, key)
    large = database_path.stat().st_size
    connection = open_database(database_path, key)
    assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    store = SqliteProfileStore(connection)
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()
    assert database_path.stat().st_size < large


def test_an_attempt_that_fails_changes_nothing(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(database_path, key)
    with monkeypatch.context() as then:
        carry_over_and(lambda connection: connection.execute("SELECT no_such()"), then)
        with pytest.raises(StorageError):
            open_database(database_path, key)
    old = of_version_1(database_path, key)
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
    assert not NEW & counts(old).keys()
    old.close()
    db = open_database(database_path, key)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    db.close()


def test_without_room_to_make_the_file_smaller_it_opens_all_the_same(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_roomy_version_1(database_path, key)
    monkeypatch.setattr(from_version_1, "MOST_TO_REWRITE", 0)
    connection = open_database(database_path, key)
    assert connection.execute("PRAGMA freelist_count").fetchone()[0] > 0
    store = SqliteProfileStore(connection)
    finish(store)
    assert everything(store) == everything(as_it_was())
    assert [*store.latest_page(GROUP, limit=99).messages][-1].record.position == at(
        50, sealed_id(900)
    )
    store.close()
