"""The rows of history: the user's Stores, and each conversation's progress with them.

Runs inside the store's transaction; small tables, read whole.
"""

import sqlite3
from typing import Final, assert_never

from engine.core.history.progress import (
    DropProgress,
    HistoryKept,
    KeptWrite,
    Progress,
    Purpose,
    SaveCovered,
    SaveProgress,
    SaveReach,
    StoreRecord,
    StoreRef,
)
from engine.core.ids import ConversationId, UnixMs
from engine.persistence.rules import MAX_COVERED_STORES

_SAVE_REACH: Final = """
INSERT INTO history_reach VALUES (?, ?, ?)
ON CONFLICT (conversation_key) DO UPDATE SET
  since_ms = coalesce(excluded.since_ms, since_ms),
  through_ms = coalesce(excluded.through_ms, through_ms)
"""
_FORGET_COVERED: Final = """
DELETE FROM store_covered WHERE conversation_key = ? AND store NOT IN (
  SELECT store FROM store_covered WHERE conversation_key = ?
  ORDER BY through_ms DESC, store LIMIT ?
)
"""


def put_store(connection: sqlite3.Connection, record: StoreRecord) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO store VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.store,
            record.place,
            record.enabled,
            record.queries,
            record.complete,
            record.messages,
            record.new,
            record.omitted,
            record.asked_ms,
        ),
    )


def remove_store(connection: sqlite3.Connection, store: StoreRef) -> None:
    connection.execute("DELETE FROM store WHERE multiaddr = ?", (store,))


def read_stores(connection: sqlite3.Connection) -> list[StoreRecord]:
    cursor = connection.execute(
        "SELECT multiaddr, place, enabled, queries, complete, messages, new, omitted, asked_ms "
        "FROM store ORDER BY place, multiaddr"
    )
    return [
        StoreRecord(
            store=StoreRef(multiaddr),
            place=place,
            enabled=bool(enabled),
            queries=queries,
            complete=complete,
            messages=messages,
            new=new,
            omitted=omitted,
            asked_ms=asked_ms,
        )
        for multiaddr, place, enabled, queries, complete, messages, new, omitted, asked_ms in cursor
    ]


def apply_kept(connection: sqlite3.Connection, key: int, write: KeptWrite) -> None:
    match write:
        case SaveProgress(progress=progress):
            connection.execute(
                "INSERT OR REPLACE INTO history_progress VALUES (?, ?, ?, ?, ?, ?)",
                (
                    key,
                    progress.purpose,
                    progress.start_ns,
                    progress.end_ns,
                    progress.through_ns,
                    progress.reached_ns,
                ),
            )
        case DropProgress(purpose=purpose):
            connection.execute(
                "DELETE FROM history_progress WHERE conversation_key = ? AND purpose = ?",
                (key, purpose),
            )
        case SaveReach(since_ms=since_ms, through_ms=through_ms):
            connection.execute(_SAVE_REACH, (key, since_ms, through_ms))
        case SaveCovered(store=store, through_ms=through_ms):
            connection.execute(
                "INSERT OR REPLACE INTO store_covered VALUES (?, ?, ?)", (key, store, through_ms)
            )
            connection.execute(_FORGET_COVERED, (key, key, MAX_COVERED_STORES))
        case _:
            assert_never(write)


def read_kept(
    connection: sqlite3.Connection, key: int, conversation_id: ConversationId
) -> HistoryKept:
    reach: tuple[UnixMs | None, UnixMs | None] | None = connection.execute(
        "SELECT since_ms, through_ms FROM history_reach WHERE conversation_key = ?", (key,)
    ).fetchone()
    progress = connection.execute(
        "SELECT purpose, start_ns, end_ns, through_ns, reached_ns FROM history_progress "
        "WHERE conversation_key = ? ORDER BY purpose",
        (key,),
    )
    covered = connection.execute(
        "SELECT store, through_ms FROM store_covered WHERE conversation_key = ? ORDER BY store",
        (key,),
    )
    since_ms, through_ms = reach or (None, None)
    return HistoryKept(
        progress=tuple(
            Progress(
                conversation_id=conversation_id,
                purpose=Purpose(purpose),
                start_ns=start_ns,
                end_ns=end_ns,
                through_ns=through_ns,
                reached_ns=reached_ns,
            )
            for purpose, start_ns, end_ns, through_ns, reached_ns in progress
        ),
        since_ms=since_ms,
        through_ms=through_ms,
        covered={StoreRef(store): UnixMs(at_ms) for store, at_ms in covered},
    )
