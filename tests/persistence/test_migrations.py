"""A profile that an older version wrote keeps every row, and can do what the current one can."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.core.errors import StorageError
from engine.core.ports import (
    ProfileRecord,
    PutContact,
    PutGroup,
    RemoveGroup,
    SaveOwnSequence,
    SaveReadMark,
)
from engine.core.sds.types import ChannelState, RemoveMissing
from engine.core.types import (
    ConversationId,
    DeliveryState,
    HolderSource,
    InstanceId,
    MessageId,
    UnixMs,
)
from engine.persistence import schema
from engine.persistence.database import open_database, open_readonly
from engine.persistence.schema import SCHEMA_VERSION
from engine.persistence.sqlite_store import SqliteProfileStore
from engine.persistence.sqlite_utils_alone import Database, Migrations
from tests.persistence.store_examples import (
    BOB,
    GROUP,
    OTHER_GROUP,
    PAIR,
    at,
    channel,
    contact,
    given_up,
    group,
    held,
    mvds,
    record,
    row,
)

STEPS: list[Callable[[Database], None]] = [
    schema.create_first_tables,
    schema.add_false_probability_of_holders,
    schema.add_one_to_one_conversations,
    schema.add_store_queries,
    schema.add_removal_waits_and_names,
    schema.add_service_nodes_of_groups,
    schema.add_history,
    schema.add_what_stores_said,
]
COLUMNS_ADDED_SINCE = {
    ("holder", 1): 1,
    ("conversation", 1): 2,
    ("conversation", 2): 2,
    **{("conversation", version): 1 for version in (3, 4, 5)},
    ("channel", 1): 1,
    ("channel", 2): 1,
    ("channel", 3): 1,
    ("mvds_record", 3): 1,
    ("mvds_record", 4): 1,
    **{("member", version): 1 for version in (1, 2, 3, 4)},
    **{("missing", version): 6 for version in (1, 2, 3, 4, 5, 6)},
}
"""By (table, version); always at the end."""

MEMBER_ROW = "INSERT INTO member VALUES (1, 4, :bob, x'08', x'09', 'Bob', 1, 6, NULL, x'ff')"
RECORD_ROW = "INSERT INTO mvds_record VALUES (11, 3, 2, :bob, x'01', 'message', 4, 1)"
# Every table of the first version, as its own code filled them.
ROWS = [
    "INSERT INTO profile VALUES (1, 'Mîra', x'01', x'02', x'03', x'0707', 5)",
    "INSERT INTO value VALUES ('port', '60000')",
    "INSERT INTO counter VALUES ('sds.late', 3)",
    "INSERT INTO node_address VALUES ('/ip4/192.0.2.1/tcp/1', 9)",
    MEMBER_ROW,
    "INSERT INTO channel (conversation_key, lamport_timestamp) VALUES (4, 7)",
    "INSERT INTO channel (conversation_key, lamport_timestamp) VALUES (9, 0)",
    "INSERT INTO log_entry VALUES (1, 4, 3, 'mine', :bob, NULL, x'0707', 1)",
    "INSERT INTO log_raw VALUES (1, x'00ff')",
    "INSERT INTO outgoing VALUES (1, 4, 'mine', x'00ff', 'unacknowledged', 2, 11, 0, 10)",
    """
    INSERT INTO incoming
    VALUES (1, 4, 'in', :bob, '0', 5, '[]', NULL, '[]', x'01', x'02', NULL, NULL, NULL, 12, 1)
    """,
    "INSERT INTO missing VALUES (1, 4, 'lacks', NULL, NULL, 'wanted', 1, 2, 3, 4)",
    "INSERT INTO own_sequence VALUES (4, x'0707', 1, 'mine')",
    "INSERT INTO timeline VALUES (4, 1, 'old', 2, 0, 1)",
    "INSERT INTO timeline VALUES (9, NULL, NULL, 0, 0, 0)",
    "INSERT INTO message VALUES (1, 4, 'mine', 3, 0, 0, 1, 0, 'text', :bob, 1, 1, 'hi', '')",
    "INSERT INTO message VALUES (2, 4, 'new', 4, 0, 0, 0, 0, 'text', :bob, 1, 1, 'yo', '')",
    "INSERT INTO ordinal_block VALUES (4, -1, '', 2)",
    "INSERT INTO delivery VALUES (4, 'mine', 'failed', 3, 'nobody took it')",
]
HOLDER_OF_VERSION = {
    1: "INSERT INTO holder VALUES (1, 4, 'mine', :bob, 'bloom', 5)",
    2: "INSERT INTO holder VALUES (1, 4, 'mine', :bob, 'bloom', 5, 0.25)",
    3: "INSERT INTO holder VALUES (1, 4, 'mine', :bob, 'bloom', 5, 0.25)",
    4: "INSERT INTO holder VALUES (1, 4, 'mine', :bob, 'bloom', 5, 0.25)",
    5: "INSERT INTO holder VALUES (1, 4, 'mine', :bob, 'bloom', 5, 0.25)",
    6: "INSERT INTO holder VALUES (1, 4, 'mine', :bob, 'bloom', 5, 0.25)",
}
GROUP_ROWS = [
    "INSERT INTO conversation VALUES (4, :group, 'Friends', x'04', x'05', x'06', 8, 1, 'so…')",
    "INSERT INTO conversation VALUES (9, :other, '', x'', x'', x'', 0, 0, '')",
]
# What the third version added.
PAIR_ROWS = [
    """
    INSERT INTO conversation
    VALUES (4, :group, 'Friends', x'04', x'05', x'06', 8, 1, 'so…', 'group')
    """,
    "INSERT INTO conversation VALUES (9, :other, '', x'', x'', x'', 0, 0, '', 'group')",
    "INSERT INTO conversation VALUES (11, :pair, 'Bob', x'', x'', x'', 3, 0, '', 'pair')",
    "INSERT INTO contact VALUES (11, :bob, x'08', x'09', 'accepted', 'Bobby', 77, x'cafe')",
    "INSERT INTO timeline VALUES (11, NULL, NULL, 0, 0, 0)",
    "INSERT INTO picture VALUES (1, x'beef')",
    "INSERT INTO pair_clock VALUES (11, 5)",
    "INSERT INTO pair_author VALUES (11, x'0808', 2)",
    "INSERT INTO pair_waiting VALUES (1, 11, 'later', :bob, x'0a', 6, 1)",
    RECORD_ROW,
    "INSERT INTO mvds_message VALUES (1, 11, x'01', x'02', 5, x'0b')",
    "INSERT INTO mvds_held VALUES (11, x'03')",
    "INSERT INTO mvds_pending_ack VALUES (1, 11, :bob, x'03')",
]
# What the fifth version added; two tables have a column more.
REMOVAL_ROWS = [
    "INSERT INTO conversation VALUES (13, 'gone', 'Gone', x'', x'', x'', 0, 0, '', 'group')",
    "INSERT INTO removed_conversation VALUES (13)",
]
OF_FIFTH_VERSION = {
    MEMBER_ROW: MEMBER_ROW.replace("x'ff')", "x'ff', 6)"),
    RECORD_ROW: RECORD_ROW.replace("4, 1)", "4, 1, 2)"),
}


def of_sixth_version(statement: str) -> str:
    """A conversation has a column more."""
    if "INTO conversation" not in statement:
        return statement
    return re.sub(r"'(group|pair)'\)", r"'\1', '')", statement)


OLDER_PAIR = ConversationId("older pair")
IDS = {"group": GROUP, "other": OTHER_GROUP, "bob": BOB, "pair": OLDER_PAIR}


def all_rows(db: Database) -> dict[str, list[tuple[object, ...]]]:
    return {
        table: [tuple(found.values()) for found in db.table(table).rows]
        for table in db.table_names()
        if table != "_sqlite_migrations"
    }


def older_database(
    path: Path, key: bytes, version: int, monkeypatch: pytest.MonkeyPatch
) -> Database:
    older = Migrations("causerie")
    for step in STEPS[:version]:
        older()(step)
    with monkeypatch.context() as then:
        then.setattr(schema, "migrations", older)
        return open_database(path, key)


@pytest.fixture(params=[1, 2, 3, 4, 5, 6])
def version(request: pytest.FixtureRequest) -> int:
    assert isinstance(request.param, int)
    return request.param


@pytest.fixture
def older_rows(
    database_path: Path, key: bytes, version: int, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[tuple[object, ...]]]:
    """Of a closed database of ``version`` at ``database_path``."""
    db = older_database(database_path, key, version, monkeypatch)
    assert db.conn.execute("PRAGMA user_version").fetchone() == (version,)
    conversations = PAIR_ROWS if version > 2 else GROUP_ROWS
    removal = REMOVAL_ROWS if version > 4 else []
    for statement in (*conversations, *ROWS, HOLDER_OF_VERSION[version], *removal):
        spelt = OF_FIFTH_VERSION.get(statement, statement) if version > 4 else statement
        db.conn.execute(of_sixth_version(spelt) if version > 5 else spelt, IDS)
    rows = all_rows(db)
    assert [table for table, found in rows.items() if not found] == [], "each table has some"
    db.close()
    return rows


def test_every_row_of_an_older_version_stays(
    database_path: Path,
    key: bytes,
    version: int,
    older_rows: dict[str, list[tuple[object, ...]]],
) -> None:
    db = open_database(database_path, key)
    assert db.conn.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert db.conn.execute("PRAGMA foreign_key_check").fetchall() == []
    rows = all_rows(db)
    db.close()
    for table, before in older_rows.items():
        added = COLUMNS_ADDED_SINCE.get((table, version), 0)
        kept = [found[: len(found) - added] for found in rows[table]]
        assert kept == before, table
    assert [rows[table] for table in set(rows) - set(older_rows)] == [[]] * (
        len(rows) - len(older_rows)
    )


@pytest.mark.usefixtures("older_rows")
def test_an_older_profile_reads_as_it_did(database_path: Path, key: bytes, version: int) -> None:
    chance = 0.25 if version > 1 else None
    store = SqliteProfileStore.open(database_path, key)
    instance = InstanceId(b"\x07\x07")
    assert store.profile() == ProfileRecord(
        name="Mîra",
        signing_key=b"\x01",
        encryption_key=b"\x02",
        network_key=b"\x03",
        instance_id=instance,
        created_ms=UnixMs(5),
    )
    first, second = store.groups()
    assert (first.conversation_id, first.name, first.epoch_key) == (GROUP, "Friends", b"\x05")
    assert (first.muted, first.draft, first.read_up_to) == (True, "so…", at(1, "old"))
    assert second.conversation_id == OTHER_GROUP
    assert [m.name for m in store.members(GROUP)] == ["Bob"]
    state = store.channel_state(GROUP)
    assert state.lamport_timestamp == 7
    assert [entry.position for entry in state.log] == [at(3, "mine")]
    assert [entry.message_id for entry in state.outgoing] == ["mine"]
    assert [entry.message.message_id for entry in state.incoming] == ["in"]
    assert [entry.entry.message_id for entry in state.missing] == ["lacks"]
    assert state.holders == (held("mine", BOB, HolderSource.BLOOM, 5, chance).entry,)
    own = store.own_sequence(GROUP, instance)
    assert own is not None
    assert (own.sequence, own.previous_id) == (1, "mine")
    summary = store.summary(GROUP)
    assert (summary.unread, summary.failed, summary.first_unread) == (1, 1, at(4, "new"))
    mine, new = store.latest_page(GROUP, limit=9).messages
    assert mine.delivery is not None
    assert (mine.delivery.state, new.record.text) == (DeliveryState.FAILED, "yo")
    assert (store.value("port"), store.counters()) == ("60000", {"sds.late": 3})
    assert store.node_addresses() == ["/ip4/192.0.2.1/tcp/1"]
    contacts = [(c.local_name, c.last_seen_ms, c.picture) for c in store.contacts()]
    older = ([("Bobby", 77, b"\xca\xfe")], b"\xbe\xef") if version > 2 else ([], b"")
    assert (contacts, store.picture()) == older
    store.close()


@pytest.mark.usefixtures("older_rows")
def test_an_older_profile_can_do_what_a_current_one_can(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    with pytest.raises(StorageError):
        store.apply([PutContact(contact=contact(GROUP))])
    sequence = store.own_sequence(GROUP, InstanceId(b"\x07\x07"))
    assert sequence is not None
    store.apply(
        [
            PutContact(contact=contact()),
            mvds(record("a")),
            row(1, "of the pair", conversation_id=PAIR),
            SaveOwnSequence(conversation_id=PAIR, own_sequence=sequence),
            row(9, "of the group"),
            channel(
                RemoveMissing(message_id=MessageId("lacks")),
                held("other", BOB, HolderSource.BLOOM, 5, 0.5),
            ),
            SaveReadMark(conversation_id=GROUP, up_to=at(9, "of the group")),
            PutGroup(group=group(name="Family")),
        ]
    )
    store.close()
    store = SqliteProfileStore.open(database_path, key)
    assert [g.name for g in store.groups()] == ["Family", ""]
    assert store.contacts()[-1] == contact()
    assert store.mvds_state(PAIR, limit=5).records == (record("a").record,)
    assert (store.summary(PAIR).unread, store.summary(GROUP).unread) == (1, 0)
    assert store.channel_state(GROUP).holders[-1].false_probability == 0.5
    store.apply([RemoveGroup(conversation_id=GROUP), PutGroup(group=group())])
    assert store.channel_state(GROUP) == ChannelState(lamport_timestamp=0)
    store.close()


def test_a_pair_of_the_eighth_version_has_given_nothing_up_yet_and_can(
    database_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = older_database(database_path, key, 8, monkeypatch)
    for statement in PAIR_ROWS:
        if "mvds_record" not in statement:
            db.conn.execute(of_sixth_version(statement), IDS)
    db.close()
    store = SqliteProfileStore.open(database_path, key)
    state = store.pair_state(OLDER_PAIR)
    assert (len(state.waiting), state.lost) == (1, ())
    lost = given_up(3, 4, conversation_id=OLDER_PAIR)
    store.apply([lost])
    store.close()
    store = SqliteProfileStore.open(database_path, key)
    assert store.pair_state(OLDER_PAIR).lost == (lost.lost,)
    store.close()


@pytest.mark.usefixtures("older_rows")
def test_an_older_profile_is_not_looked_at_before_it_is_current(
    database_path: Path, key: bytes
) -> None:
    before = database_path.read_bytes()
    with pytest.raises(StorageError, match="start the application once"):
        open_readonly(database_path, key)
    assert database_path.read_bytes() == before
    open_database(database_path, key).close()
    open_readonly(database_path, key).close()


def test_a_migration_that_breaks_off_leaves_the_older_version(
    database_path: Path,
    key: bytes,
    older_rows: dict[str, list[tuple[object, ...]]],
    version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks_off(db: Database) -> None:
        db.conn.execute("ALTER TABLE channel ADD COLUMN half_done INTEGER")
        db.conn.execute("PRAGMA user_version = 99")
        db.conn.execute("CREATE TABLE channel (again TEXT) STRICT")

    broken = Migrations("causerie")
    for step in (*STEPS[:version], breaks_off):
        broken()(step)
    with monkeypatch.context() as then:
        then.setattr(schema, "migrations", broken)
        with pytest.raises(StorageError):
            open_database(database_path, key)
    db = older_database(database_path, key, version, monkeypatch)
    assert db.conn.execute("PRAGMA user_version").fetchone() == (version,)
    assert all_rows(db) == older_rows
    db.close()
    store = SqliteProfileStore.open(database_path, key)
    assert len(store.groups()) == 2
    store.close()
