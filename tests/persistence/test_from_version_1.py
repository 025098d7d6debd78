"""A profile of version 1 is carried over whole, and a broken attempt leaves it as it was."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import HolderSource, MessageId, ParticipantId
from engine.core.mvds.vocabulary import Epoch
from engine.core.ports import ProfileStore, StoreWrite
from engine.core.sds.vocabulary import RemoveFromLog
from engine.persistence import carry_over, from_version_1, schema
from engine.persistence.carry_over import SLICE
from engine.persistence.connection import connect
from engine.persistence.database import open_database
from engine.persistence.errors import CarryOverStoppedError, DiskFullError
from engine.persistence.schema import SCHEMA_VERSION
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
    channel,
    held,
    logged,
    mvds_id,
    row,
)
from tests.persistence.version_1 import (
    IDS,
    REMOVED,
    STORY,
    make_long_version_1,
    make_version_1,
    sealed_id,
)

REPOSITORY = Path(__file__).parents[2]

NEW = {
    "participant", "instance", "raw_block", "reaction", "version", "open_channel", "file",
    "transfer", "file_holder", "log_index", "log_pages", "log_buckets", "log_author", "log_late",
    "search_bucket", "search_due", "search_state", "reaction_count", "waited",
    "pair_ratchet", "pair_session", "governed", "admin_entry", "own_prekey", "prekey",
    "own_invitation", "asking", "pending_join", "deed",
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
            store.listed((conversation,)), store.history(conversation),
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


def test_everything_is_carried_over(database_path: Path, key: bytes) -> None:
    make_version_1(database_path, key)
    old = connect(str(database_path), key)
    before = counts(old)
    named = columns(old)
    reads = [
        f"SELECT {', '.join(sorted(str(name) for name, *_ in named[table]))} FROM {table}"  # noqa: S608
        for table in sorted(before.keys() - CHANGED)
    ]
    rows = [old.execute(read).fetchall() for read in reads]
    old.close()
    assert all(before.values()), "no table is empty"
    connection = open_database(database_path, key)
    store = SqliteProfileStore(connection)
    assert rows == [connection.execute(read).fetchall() for read in reads]
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


@pytest.fixture
def version_2(database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_version_1(database_path, key)
    with monkeypatch.context() as then:
        then.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        then.setattr(schema, "SCHEMA_VERSION", 2)
        open_database(database_path, key).close()
    return database_path


def test_a_database_of_version_2_only_gains(version_2: Path, key: bytes) -> None:
    old = connect(str(version_2), key)
    before = {table: old.execute(f"SELECT * FROM {table}").fetchall() for table in counts(old)}  # noqa: S608
    assert old.execute("PRAGMA user_version").fetchone() == (2,)
    old.close()
    connection = open_database(version_2, key)
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


# A start that dies at one of the moments at which something is told or done.
DYING = """
import os, signal, sys
from pathlib import Path
from engine.persistence import carry_over
from engine.persistence.database import open_database
path, key, step, when = sys.argv[1:]
def dies():
    os.kill(os.getpid(), signal.SIGKILL)
def dying(name):
    real = getattr(carry_over, name)
    def call(*given):
        if when == "after":
            real(*given)
        dies()
    return call
told = []
def progress(share):
    told.append(share)
    if step == "slice" and len(told) == int(when):
        dies()
    return True
if step == "slice":
    carry_over.SLICE = 16
else:
    setattr(carry_over, step, dying(step))
open_database(Path(path), bytes.fromhex(key), progress)
"""
MOMENTS = [
    *(("slice", str(number)) for number in (1, 2, 9, 20)),
    ("migrate", "before"), ("migrate", "after"),
    ("sync_directory", "before"), ("sync_directory", "after"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "when"), MOMENTS)
def test_killed_at_any_moment_it_is_the_old_one_or_the_new_one_whole(
    database_path: Path, key: bytes, step: str, when: str
) -> None:
    make_version_1(database_path, key)
    arguments = [sys.executable, "-c", DYING, str(database_path), key.hex(), step, when]
    killed = subprocess.run(arguments, cwd=REPOSITORY, check=False)
    assert killed.returncode == -signal.SIGKILL
    found = connect(str(database_path), key)
    version = found.execute("PRAGMA user_version").fetchone()
    found.close()
    assert version == ((SCHEMA_VERSION if step == "sync_directory" else 1),)
    store = SqliteProfileStore.open(database_path, key)
    assert [each.name for each in database_path.parent.glob("*.unfinished*")] == []
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()


def test_a_profile_of_version_2_that_is_killed_meanwhile_is_carried_over_at_the_next_start(
    version_2: Path, key: bytes
) -> None:
    arguments = [sys.executable, "-c", DYING, str(version_2), key.hex(), "slice", "9"]
    assert subprocess.run(arguments, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    store = SqliteProfileStore.open(version_2, key)
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()


def test_its_share_grows_to_one_and_the_file_is_as_large_as_its_content(
    database_path: Path, key: bytes
) -> None:
    make_long_version_1(database_path, key, texts=3 * SLICE)
    shares: list[float] = []

    def follow(share: float) -> bool:
        shares.append(share)
        return True

    connection = open_database(database_path, key, follow)
    assert shares == sorted(shares)
    assert (shares[0], round(shares[-1], 3)) == (0.0, 1.0)
    assert max(after - before for before, after in pairwise(shares)) < 0.1
    assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert counts(connection)["message"] > 3 * SLICE
    connection.close()


def assert_untouched(path: Path, key: bytes) -> None:
    old = connect(str(path), key)
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
    assert not NEW & counts(old).keys()
    old.close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_whoever_follows_it_may_stop_it(database_path: Path, key: bytes) -> None:
    make_version_1(database_path, key)
    before = database_path.read_bytes()
    with pytest.raises(CarryOverStoppedError):
        open_database(database_path, key, lambda share: share < 0.5)
    assert database_path.read_bytes() == before
    assert_untouched(database_path, key)
    open_database(database_path, key).close()


@pytest.mark.parametrize("pages", [60, 90])
def test_a_disk_that_gets_full_changes_nothing_and_is_said(
    database_path: Path, key: bytes, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_little_room(address: str, key: bytes) -> sqlite3.Connection:
        connection = connect(address, key)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    make_long_version_1(database_path, key, texts=500)
    with monkeypatch.context() as then:
        then.setattr(carry_over, "connect", with_little_room)
        with pytest.raises(DiskFullError, match=r"up to 2 MB more .* nothing was changed") as full:
            open_database(database_path, key)
    assert (full.value.fault, full.value.detail) == (StorageFault.NO_ROOM_TO_CARRY_OVER, "2")
    assert_untouched(database_path, key)
    open_database(database_path, key).close()


def test_a_disk_that_is_full_when_the_file_is_synced_changes_nothing_and_is_said(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), descriptor)

    make_version_1(database_path, key)
    with monkeypatch.context() as then:
        then.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError, match="nothing was changed"):
            open_database(database_path, key)
    assert_untouched(database_path, key)


WITHOUT_ONE = "FROM (SELECT * FROM old.message WHERE message_key <> 7) AS o"


def test_rows_that_do_not_come_across_are_not_lost(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(database_path, key)
    *before, last = from_version_1.REFILLED["message"]
    less = last.replace("FROM old.message AS o", WITHOUT_ONE)
    fewer = {**from_version_1.REFILLED, "message": [*before, less]}
    with monkeypatch.context() as then:
        then.setattr(carry_over, "REFILLED", fewer)
        with pytest.raises(StorageError, match="rows in message"):
            open_database(database_path, key)
    assert_untouched(database_path, key)


def test_with_many_conversations_at_once_blocks_are_smaller_and_nothing_is_lost(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(database_path, key)
    monkeypatch.setattr(from_version_1, "MOST_UNPACKED", 100)
    store = SqliteProfileStore.open(database_path, key)
    finish(store)
    assert everything(store) == everything(as_it_was())
    store.close()
