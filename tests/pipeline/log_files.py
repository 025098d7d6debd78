"""Makes delivery logs as files, row by row, as the recorder's format has them."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from engine.core.ids import MessageId
from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    MEMBERSHIP,
    MESSAGE,
    SCHEMA_VERSION,
    Table,
)
from engine.delivery.pseudonym import mid_of
from engine.delivery.sqlite_log import SUFFIX, LogHeader, create_tables

Row = Mapping[str, object]
CHANNEL = "c" * 16
KEY_ID = "e" * 16


def name_of(word: str) -> str:
    """A pseudonym."""
    return hashlib.sha256(word.encode()).hexdigest()[:16]


def header(participant: str, log: str = "", key_id: str = KEY_ID) -> LogHeader:
    return LogHeader(
        schema_version=SCHEMA_VERSION,
        log_id=name_of(f"log of {participant} {log}"),
        participant=name_of(participant),
        key_id=key_id,
        app_version="1",
        network="sim",
    )


def insert(connection: sqlite3.Connection, table: Table, rows: Iterable[Row]) -> None:
    names = [column.name for column in table.row_columns]
    marks = ", ".join("?" * len(names))
    connection.executemany(
        f"INSERT OR REPLACE INTO {table.name} ({', '.join(names)}) VALUES ({marks})",  # noqa: S608
        ([_cell(row.get(name)) for name in names] for row in rows),
    )


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, list) else value


def write_log(path: Path, owner: LogHeader, tables: Mapping[Table, Iterable[Row]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert path.name.endswith(SUFFIX)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # No test cuts the power.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        create_tables(connection, owner)
        for table, rows in tables.items():
            insert(connection, table, rows)
        connection.execute("COMMIT")
    return path


def add_to(path: Path, table: Table, rows: Iterable[Row]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        insert(connection, table, rows)


def event(seq: int, kind: str, **more: object) -> Row:
    found = {"seq": seq, "kind": kind, "at_ms": 1_000 + seq, "mono_ns": seq, **more}
    if "message_id" in found:
        found["mid"] = mid_of(MessageId(str(found["message_id"])))
        found = {"channel": CHANNEL, "protocol": "sds", **found}
    return found


def snapshot(messages: Iterable[tuple[int, str]], *, taken_ms: int = 9_000) -> list[Row]:
    """Rows of (lamport, message id) in the order given."""
    return [
        {
            "channel": CHANNEL,
            "protocol": "sds",
            "snapshot_ms": taken_ms,
            "position": position,
            "message_id": message_id,
            "mid": mid_of(MessageId(message_id)),
            "lamport": lamport,
        }
        for position, (lamport, message_id) in enumerate(messages)
    ]


def message(
    lamport: int, message_id: str, sender: str, parents: Iterable[str] | None = ()
) -> dict[str, object]:
    ids = None if parents is None else list(parents)
    return {
        "channel": CHANNEL,
        "protocol": "sds",
        "message_id": message_id,
        "mid": mid_of(MessageId(message_id)),
        "lamport": lamport,
        "sender": name_of(sender),
        "sent_ms": lamport,
        "parents": ids,
        "parent_mids": None if ids is None else [mid_of(MessageId(parent)) for parent in ids],
    }


def membership(members: Iterable[str], *, joined_ms: int = 0) -> list[Row]:
    return [
        {"channel": CHANNEL, "protocol": "sds", "member": name_of(name), "joined_ms": joined_ms}
        for name in members
    ]


def conversation_log(
    path: Path,
    owner: str,
    log: Iterable[tuple[int, str]],
    messages: Iterable[Row],
    members: Iterable[str],
) -> Path:
    """A whole small log: what was delivered, the snapshot, messages and members."""
    entries = list(log)
    events = [
        event(seq, "delivered", message_id=message_id, lamport=lamport, position=seq - 1)
        for seq, (lamport, message_id) in enumerate(entries, start=1)
    ]
    events.append(event(len(entries) + 1, "snapshot", channel=CHANNEL, protocol="sds"))
    tables = {
        DELIVERY_EVENT: events,
        LOG_SNAPSHOT: snapshot(entries),
        MESSAGE: messages,
        MEMBERSHIP: membership(members),
    }
    return write_log(path, header(owner), tables)


def remove_entry(path: Path, position: int) -> str:
    """From the conversation as this participant has it in the end."""
    with closing(sqlite3.connect(path)) as log, log:
        where = "FROM log_snapshot WHERE position = ?"
        ((message_id,),) = log.execute(f"SELECT message_id {where}", [position]).fetchall()
        log.execute(f"DELETE {where}", [position])
    return str(message_id)


def swap_entries(path: Path, position: int) -> tuple[str, str]:
    """An entry and the one after it."""
    with closing(sqlite3.connect(path)) as log, log:
        asked = "SELECT message_id FROM log_snapshot WHERE position IN (?, ?) ORDER BY position"
        (first,), (second,) = log.execute(asked, [position, position + 1]).fetchall()
        for old, new in ((position, -1), (position + 1, position), (-1, position + 1)):
            log.execute("UPDATE log_snapshot SET position = ? WHERE position = ?", [new, old])
    return str(first), str(second)
