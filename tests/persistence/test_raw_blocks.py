"""Signed bytes packed in blocks: exact, whatever leaves, and nothing stays that was to leave."""

import random
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine.core.errors import StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId, WakuHash
from engine.core.ports import ApplyChannel, PutGroup
from engine.core.sds.vocabulary import RemoveFromLog, ReplaceRaw, SaveRetrievalHint
from engine.persistence import raw_blocks
from engine.persistence.database import open_database
from engine.persistence.raw_blocks import BLOCK_BYTES, BLOCK_ROWS, packed, unpacked
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.new_database import new_database
from tests.persistence.store_examples import GROUP, OTHER_GROUP, channel, group, logged, row
from tests.persistence.version_1 import sealed_id

GROUPS = (GROUP, OTHER_GROUP)
KEY = bytes(32)


@pytest.fixture
def store(sqlite_store: SqliteProfileStore) -> SqliteProfileStore:
    sqlite_store.apply([PutGroup(group=group(each)) for each in GROUPS])
    return sqlite_store


def count(connection: sqlite3.Connection, table: str) -> int:
    row: tuple[int] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    return row[0]


def removal(*ids: MessageId, conversation_id: ConversationId = GROUP) -> ApplyChannel:
    writes = (RemoveFromLog(message_id=id_) for id_ in ids)
    return channel(*writes, conversation_id=conversation_id)


def on_disk(connection: sqlite3.Connection) -> bytes:
    """All signed bytes that the tables hold, as they are and unpacked."""
    plain = [raw for (raw,) in connection.execute("SELECT raw FROM log_raw")]
    for block_key, data in connection.execute("SELECT block_key, data FROM raw_block"):
        plain += unpacked(block_key, data).values()
    return b"".join(plain)


class Blocks(RuleBasedStateMachine):
    """Two logs in one database, and their messages in two dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.path = new_database(Path(self.directory.name) / "causerie.db", KEY)
        self.open()
        self.store.apply([PutGroup(group=group(each)) for each in GROUPS])
        self.raws: tuple[dict[MessageId, bytes], ...] = ({}, {})
        self.number = 0

    def open(self) -> None:
        self.connection = open_database(self.path, KEY)
        self.store = SqliteProfileStore(self.connection)

    @rule(which=st.integers(0, 1), raws=st.lists(st.binary(max_size=40), min_size=1, max_size=12))
    def append(self, which: int, raws: list[bytes]) -> None:
        writes = []
        for raw in raws:
            self.number += 1
            id_ = sealed_id(self.number)
            writes.append(logged(self.number % 7, id_, raw))
            self.raws[which][id_] = raw
        self.store.apply([channel(*writes, conversation_id=GROUPS[which])])

    @rule(which=st.integers(0, 1), places=st.lists(st.integers(0, 1_000), min_size=1, max_size=5))
    def remove(self, which: int, places: list[int]) -> None:
        here = [*self.raws[which]]
        gone = {here[place % len(here)] for place in places if here}
        self.store.apply([removal(*sorted(gone), conversation_id=GROUPS[which])])
        for id_ in gone:
            del self.raws[which][id_]

    @rule(which=st.integers(0, 1), place=st.integers(0, 1_000))
    def hint(self, which: int, place: int) -> None:
        if here := [*self.raws[which]]:
            hint = WakuHash(place.to_bytes(32))
            write = SaveRetrievalHint(message_id=here[place % len(here)], retrieval_hint=hint)
            self.store.apply([channel(write, conversation_id=GROUPS[which])])

    @rule(which=st.integers(0, 1), place=st.integers(0, 1_000), raw=st.binary(max_size=40))
    def replace(self, which: int, place: int, raw: bytes) -> None:
        if here := [*self.raws[which]]:
            id_ = here[place % len(here)]
            self.store.apply([channel(ReplaceRaw(id_, raw), conversation_id=GROUPS[which])])
            self.raws[which][id_] = raw

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def every_raw_is_exact(self) -> None:
        for which, conversation in enumerate(GROUPS):
            for id_, raw in self.raws[which].items():
                assert self.store.raw(conversation, id_) == raw
            log = self.store.channel_state(conversation).log
            assert {one.position.message_id for one in log} == self.raws[which].keys()

    @invariant()
    def nothing_else_is_kept(self) -> None:
        kept = sum(len(raw) for raws in self.raws for raw in raws.values())
        assert len(on_disk(self.connection)) == kept
        assert count(self.connection, "log_raw") < 2 * 5

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()


def test_every_message_is_exact_whatever_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_blocks, "BLOCK_ROWS", 5)
    monkeypatch.setattr(raw_blocks, "BLOCK_BYTES", 90)
    run_state_machine_as_test(
        Blocks, settings=settings(max_examples=60, stateful_step_count=25, deadline=None)
    )


@pytest.mark.parametrize("raws", [[b""], [b"", b"a", b"", bytes(100_000)], [b"x"] * 300])
def test_a_block_holds_messages_of_any_length(raws: list[bytes]) -> None:
    keyed = [(5 + 3 * number, raw) for number, raw in enumerate(raws)]
    assert unpacked(keyed[-1][0], packed(keyed[-1][0], keyed)) == dict(keyed)


def test_messages_are_packed_when_there_are_enough(
    store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    for number in range(BLOCK_ROWS):
        assert (count(connection, "log_raw"), count(connection, "raw_block")) == (number, 0)
        store.apply([channel(logged(number, sealed_id(number), b"raw"))])
    assert (count(connection, "log_raw"), count(connection, "raw_block")) == (0, 1)


def test_large_messages_make_a_block_sooner(
    store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    noise = random.Random(1).randbytes(BLOCK_BYTES // 2)
    store.apply([channel(logged(1, sealed_id(1), noise))])
    assert count(connection, "raw_block") == 0
    store.apply([channel(logged(2, sealed_id(2), noise[::-1]))])
    assert (count(connection, "log_raw"), count(connection, "raw_block")) == (0, 1)
    assert store.raw(GROUP, sealed_id(1)) == noise
    many = [logged(3 + number, sealed_id(3 + number), noise) for number in range(9)]
    store.apply([channel(*many)])
    assert (count(connection, "log_raw"), count(connection, "raw_block")) == (1, 5), (
        "two make a block"
    )


def test_each_conversation_has_blocks_of_its_own(
    store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    for number in range(2 * BLOCK_ROWS - 2):
        conversation = GROUPS[number % 2]
        raw = f"raw {number}".encode()
        store.apply([channel(logged(number, sealed_id(number), raw), conversation_id=conversation)])
    assert count(connection, "raw_block") == 0
    store.apply([channel(logged(0, sealed_id(999), b"last"), conversation_id=OTHER_GROUP)])
    assert (count(connection, "log_raw"), count(connection, "raw_block")) == (BLOCK_ROWS - 1, 1)
    for number in range(2 * BLOCK_ROWS - 2):
        found = store.raw(GROUPS[number % 2], sealed_id(number))
        assert found == f"raw {number}".encode()


def test_a_block_without_messages_goes(
    store: SqliteProfileStore, connection: sqlite3.Connection
) -> None:
    ids = [sealed_id(number) for number in range(BLOCK_ROWS)]
    store.apply([channel(*(logged(1, id_) for id_ in ids))])
    store.apply([removal(*ids[1:])])
    assert count(connection, "raw_block") == 1
    assert on_disk(connection) == b"raw"
    store.apply([removal(ids[0])])
    assert count(connection, "raw_block") == 0
    store.apply([channel(*(logged(1, id_, b"again") for id_ in ids))])
    assert store.raw(GROUP, ids[7]) == b"again"


@pytest.mark.parametrize("gone", [0, 30, BLOCK_ROWS - 1])
def test_what_left_the_log_is_in_no_page_of_the_file(tmp_path: Path, gone: int) -> None:
    """In a plain database with our setting, because in ours every page looks like noise."""
    path = tmp_path / "plain.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA secure_delete = ON;"
        "CREATE TABLE log_raw (raw_key INTEGER PRIMARY KEY, conversation_key, size, raw);"
        "CREATE TABLE raw_block (block_key INTEGER PRIMARY KEY, conversation_key, data);"
    )
    noise = random.Random(2)
    raws = [noise.randbytes(400) for _ in range(BLOCK_ROWS)]
    raw_blocks.put_raw(connection, 1, [*enumerate(raws[:-1], 1)])
    plain = path.read_bytes()
    assert all(raw[:40] in plain for raw in raws[:-1])
    raw_blocks.put_raw(connection, 1, [(BLOCK_ROWS, raws[-1])])
    (data,) = connection.execute("SELECT data FROM raw_block").fetchone()
    raw_blocks.remove_raw(connection, 1, gone + 1)
    (again,) = connection.execute("SELECT data FROM raw_block").fetchone()
    connection.close()
    after = path.read_bytes()
    windows = [data[place : place + 40] for place in range(0, len(data) - 40, 40)]
    left = [each for each in windows if each in after and each not in again]
    assert left == []
    assert raws[gone][:40] not in after
    assert raws[gone] not in unpacked(BLOCK_ROWS, again).values()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[:-1],
        lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:],
        lambda _: packed(64, [(64, b"only one")]),
        lambda _: zlib.compress(b"\0\0\0\1\0\0"),
        lambda _: zlib.compress(b"\0\0\0\1\0\0\0\0\0\0\0\7short"),
        lambda _: None,
    ],
)
def test_a_damaged_block_is_said_and_costs_nothing_else(
    store: SqliteProfileStore,
    connection: sqlite3.Connection,
    damage: Callable[[bytes], bytes | None],
) -> None:
    ids = [sealed_id(number) for number in range(2 * BLOCK_ROWS + 1)]
    for first in range(0, len(ids), BLOCK_ROWS):
        some = ids[first : first + BLOCK_ROWS]
        store.apply([channel(*(logged(first, id_, id_.encode()) for id_ in some))])
    (data,) = connection.execute("SELECT data FROM raw_block WHERE block_key = 64").fetchone()
    if (damaged := damage(data)) is None:
        connection.execute("DELETE FROM raw_block WHERE block_key = 64")
    else:
        connection.execute("UPDATE raw_block SET data = ? WHERE block_key = 64", (damaged,))
    for id_ in ids[:3]:
        with pytest.raises(StorageError, match=r"signed bytes .* unreadable") as caught:
            store.raw(GROUP, id_)
        assert caught.value.fault is StorageFault.DAMAGED
    assert all(store.raw(GROUP, id_) == id_.encode() for id_ in ids[BLOCK_ROWS:])
    assert len(store.channel_state(GROUP).log) == len(ids)
    store.apply([channel(logged(9, sealed_id(999), b"goes on"))])
    assert store.raw(GROUP, sealed_id(999)) == b"goes on"


def test_loading_the_log_reads_neither_texts_nor_signed_bytes(
    store: SqliteProfileStore, database_path: Path, key: bytes
) -> None:
    ids = [sealed_id(number) for number in range(BLOCK_ROWS + 1)]
    store.apply([channel(*(logged(1, id_) for id_ in ids)), *(row(1, id_) for id_ in ids)])
    connection = open_database(database_path, key)
    again = SqliteProfileStore(connection)
    read: set[str] = set()

    def noted(action: int, table: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and table is not None:
            read.add(table)
        return sqlite3.SQLITE_OK

    connection.set_authorizer(noted)
    assert len(again.channel_state(GROUP).log) == len(ids)
    assert "log_entry" in read
    assert read.isdisjoint({"message", "log_raw", "raw_block"})
    again.close()
