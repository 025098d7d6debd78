"""A removed conversation is gone at once, its rows a few at a time, whatever happens meanwhile."""

import json
import sqlite3
from pathlib import Path

from engine.core.ids import DeliveryState, HolderSource
from engine.core.mvds.vocabulary import KeepMessage, NoteHeld
from engine.core.ports import (
    ProfileStore,
    PutContact,
    PutGroup,
    RemoveGroup,
    SaveValue,
    StoreWrite,
)
from engine.core.sds.vocabulary import ChannelState
from engine.persistence import removal
from engine.persistence.database import open_database
from engine.persistence.schema import SCHEMA_VERSION
from engine.persistence.sqlite_store import SqliteProfileStore
from tests.persistence.store_examples import (
    ALICE,
    GROUP,
    OTHER_GROUP,
    OTHER_PAIR,
    PAIR,
    body,
    channel,
    contact,
    delivery,
    fork,
    given_up,
    group,
    held,
    logged,
    member,
    mvds,
    mvds_id,
    outgoing,
    record,
    replacement,
    row,
    waiting,
)

MANY = 4 * removal.SLICE_ROWS
FAR_FROM_ALL = 2


def of_group(count: int = MANY) -> list[StoreWrite]:
    names = [f"m{number}" for number in range(count)]
    return [
        PutGroup(group=group()),
        member(ALICE),
        channel(*(logged(number, name) for number, name in enumerate(names))),
        channel(outgoing("m0"), *(held(name, ALICE, HolderSource.CAUSAL) for name in names)),
        channel(replacement("m0"), fork()),
        *(row(number, name, is_own=True) for number, name in enumerate(names)),
        *(delivery(name, DeliveryState.HELD) for name in names),
    ]


def of_pair(count: int = MANY) -> list[StoreWrite]:
    ids = [f"m{number}" for number in range(count)]
    return [
        PutContact(contact=contact()),
        mvds(*(KeepMessage(mvds_id(name), body()) for name in ids), *map(record, ids)),
        mvds(*(NoteHeld(mvds_id(f"h{name}")) for name in ids)),
        waiting("later"),
        *(given_up(number, number) for number in range(3)),
        *(row(number, name, conversation_id=PAIR) for number, name in enumerate(ids)),
    ]


def rows_by_table(path: Path, key: bytes) -> dict[str, int]:
    """Of everything that belongs to a conversation, as another connection finds it on disk."""
    connection = open_database(path, key)
    counts = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        for table in (*tables_of_conversations(connection), "conversation", "log_raw")
    }
    connection.close()
    return {table: count for table, count in counts.items() if count}


def tables_of_conversations(connection: sqlite3.Connection) -> set[str]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        table
        for (table,) in tables
        if any(
            parent == "conversation"
            for _, _, parent, *_ in connection.execute(f"PRAGMA foreign_key_list({table})")
        )
    }


def clear(store: ProfileStore) -> int:
    """How many slices it took."""
    slices = 1
    while store.clear_removed():
        slices += 1
    return slices


def test_a_short_conversation_leaves_nothing_behind(
    sqlite_store: SqliteProfileStore, database_path: Path, key: bytes
) -> None:
    sqlite_store.apply([*of_group(3), *of_pair(3)])
    sqlite_store.apply([RemoveGroup(conversation_id=GROUP), RemoveGroup(conversation_id=PAIR)])
    assert rows_by_table(database_path, key) == {}
    assert not sqlite_store.clear_removed()


def test_a_long_one_is_found_no_more_though_its_rows_are_still_there(
    sqlite_store: SqliteProfileStore,
    connection: sqlite3.Connection,
    database_path: Path,
    key: bytes,
) -> None:
    sqlite_store.apply([*of_group(), *of_pair()])
    before = rows_by_table(database_path, key)
    sqlite_store.apply([RemoveGroup(conversation_id=GROUP), RemoveGroup(conversation_id=PAIR)])
    after = rows_by_table(database_path, key)
    gone = sum(before.values()) - sum(after.values())
    assert 0 < gone <= FAR_FROM_ALL * (2 * removal.SLICE_ROWS + 8), "one slice of each, no more"
    assert (sqlite_store.groups(), sqlite_store.contacts()) == ([], [])
    assert sqlite_store.members(GROUP) == []
    assert sqlite_store.latest_page(GROUP, limit=5).total == 0
    assert sqlite_store.mvds_state(PAIR, limit=5).held == frozenset()
    left = connection.execute("SELECT name, admin_public_key, draft FROM conversation").fetchall()
    assert left == [("", b"", "")] * 2
    assert "epoch" not in after, "no name and no key waits for its turn"


def test_what_is_left_goes_in_slices_and_others_save_between_them(
    sqlite_store: SqliteProfileStore,
    connection: sqlite3.Connection,
    database_path: Path,
    key: bytes,
) -> None:
    others: list[StoreWrite] = [
        PutGroup(group=group(OTHER_GROUP)),
        row(1, "stays", conversation_id=OTHER_GROUP),
        PutContact(contact=contact(OTHER_PAIR)),
        mvds(record("stays"), NoteHeld(mvds_id("kept")), conversation_id=OTHER_PAIR),
    ]
    sqlite_store.apply([*of_group(), *of_pair(), *others])
    sqlite_store.apply([RemoveGroup(conversation_id=GROUP), RemoveGroup(conversation_id=PAIR)])
    slices = 0
    while True:
        before = connection.total_changes
        more = sqlite_store.clear_removed()
        # A cascade is counted with the row that caused it; the last three are the notes.
        assert connection.total_changes - before <= 2 * removal.SLICE_ROWS + 3
        slices += 1
        sqlite_store.apply([SaveValue(key="saved", value=str(slices))])
        if not more:
            break
    assert slices > MANY // removal.SLICE_ROWS
    assert sqlite_store.value("saved") == str(slices)
    assert rows_by_table(database_path, key) == {
        "conversation": 2, "epoch": 2, "timeline": 2, "channel": 1, "message": 1,
        "ordinal_block": 1, "participant": 1, "contact": 1, "pair_clock": 1, "mvds_record": 1,
        "mvds_held": 1,
    }  # fmt: skip


def test_the_rest_goes_after_the_process_died(database_path: Path, key: bytes) -> None:
    store = SqliteProfileStore.open(database_path, key)
    store.apply(of_pair())
    store.apply([RemoveGroup(conversation_id=PAIR)])
    store.clear_removed()
    store.close()
    again = SqliteProfileStore.open(database_path, key)
    assert again.contacts() == []
    assert clear(again) > 1
    again.close()
    assert rows_by_table(database_path, key) == {}


def test_it_can_begin_anew_while_the_old_one_is_being_deleted(
    sqlite_store: SqliteProfileStore,
) -> None:
    sqlite_store.apply([*of_group(), *of_pair()])
    anew: list[StoreWrite] = [
        PutGroup(group=group()),
        PutContact(contact=contact()),
        row(1, "new"),
        member(ALICE),
    ]
    for _ in range(2):
        sqlite_store.apply(
            [RemoveGroup(conversation_id=GROUP), RemoveGroup(conversation_id=PAIR), *anew]
        )
        assert sqlite_store.channel_state(GROUP) == ChannelState(lamport_timestamp=0)
        assert sqlite_store.latest_page(GROUP, limit=5).total == 1
    clear(sqlite_store)
    assert sqlite_store.latest_page(GROUP, limit=5).total == 1
    assert len(sqlite_store.members(GROUP)) == 1
    assert sqlite_store.contacts() == [contact()]


def test_every_table_of_a_conversation_is_thought_of(connection: sqlite3.Connection) -> None:
    """One that is not would be deleted as a whole, at the end, with everybody waiting."""
    growing = {each.table for each in removal.GROWING}
    known = growing | set(removal.SMALL_TABLES) | {"removed_conversation"}
    found = tables_of_conversations(connection)
    assert found == known, (json.dumps(sorted(found ^ known)), SCHEMA_VERSION)


def test_no_slice_looks_at_more_rows_than_it_deletes(connection: sqlite3.Connection) -> None:
    """By an index, or a slice would cost what there is and not what it takes."""
    for growing in removal.GROWING:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {growing.delete}", (1, 1))
        details = [detail for *_, detail in plan]
        assert not any(detail.startswith("SCAN") for detail in details), (growing, details)
        assert not any("TEMP B-TREE" in detail for detail in details), (growing, details)
