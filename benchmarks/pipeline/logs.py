"""Participants' delivery logs of a made-up group, as files: what ingesting is measured with.

Each message is received or sent, delivered and acknowledged by whoever sees it next, sometimes
twice; every so often somebody syncs.  All tables of a log are filled, so the files have the mixture
of columns, nulls and lists that real ones have, if not their faults.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

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
from engine.delivery.rows import EventRow, MembershipRow, MessageRow, SnapshotRow
from engine.delivery.sqlite_log import SUFFIX, LogHeader, create_tables

START_MS: Final = 1_700_000_000_000
CHANNEL: Final = "c" * 16
APART_MS: Final = 4_000
SYNC_EVERY: Final = 8


def write_logs(place: Path, participants: int, messages: int) -> int:
    """One log for each; how many rows all tables of all logs have together."""
    place.mkdir(parents=True, exist_ok=True)
    people = [_name(f"participant {at}") for at in range(participants)]
    known = [_message(at, people) for at in range(messages)]
    snapshot = [
        SnapshotRow(CHANNEL, "sds", START_MS, at, row.message_id, row.mid, row.lamport)
        for at, row in enumerate(known)
    ]
    members = [MembershipRow(CHANNEL, "sds", name, 0, None) for name in people]
    rows = 0
    for name in people:
        events = [(seq, *row) for seq, row in enumerate(_events(name, people, known), start=1)]
        tables: dict[Table, Sequence[tuple[object, ...]]] = {
            DELIVERY_EVENT: events,
            LOG_SNAPSHOT: snapshot,
            MESSAGE: known,
            MEMBERSHIP: members,
        }
        _write(place / f"{name}-1{SUFFIX}", name, tables)
        rows += sum(len(table) for table in tables.values())
    return rows


def _name(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()[:16]


def _message(at: int, people: list[str]) -> MessageRow:
    def message_id(number: int) -> str:
        return hashlib.sha256(f"message {number}".encode()).hexdigest()

    parents = [message_id(parent) for parent in range(max(0, at - 2), at)]
    lamport = START_MS + at * APART_MS
    return MessageRow(
        CHANNEL,
        "sds",
        message_id(at),
        mid_of(MessageId(message_id(at))),
        lamport,
        people[at * 7 % len(people)],
        lamport,
        json.dumps(parents, separators=(",", ":")),
        json.dumps([mid_of(MessageId(parent)) for parent in parents], separators=(",", ":")),
    )


def _events(name: str, people: list[str], known: list[MessageRow]) -> Iterator[EventRow]:
    """In the order in which they happen; all share what ``common`` says."""
    yield EventRow(kind="started", at_ms=START_MS, mono_ns=0)
    for at, row in enumerate(known):
        at_ms = row.lamport + 40
        common = EventRow(
            CHANNEL, "sds", "", row.message_id, row.mid, None, row.lamport, None, at_ms, at * 10**6
        )
        delivered = common._replace(kind="delivered", position=at, peer=row.sender)
        copy = common._replace(waku_hash=_hash(at), wire_bytes=700 + at % 90, via="relay")
        if row.sender == name:
            yield common._replace(kind="sent")
            yield delivered
            yield copy._replace(kind="published", attempt=1, amount=4)
            for peer in people:
                if peer != name:
                    yield common._replace(
                        kind="possibly_acked",
                        peer=peer,
                        ack_source="bloom",
                        bloom_m=10_000,
                        bloom_k=7,
                        bloom_n=at % 500,
                    )
                    yield common._replace(kind="acked", peer=peer, ack_source="causal")
        else:
            yield copy._replace(kind="received", peer=row.sender)
            yield delivered
            yield copy._replace(kind="duplicate", peer=row.sender, attempt=None)
        if at % SYNC_EVERY == 0:
            peer = people[at % len(people)]
            yield EventRow(CHANNEL, "sds", "sync_received", at_ms=at_ms, mono_ns=at, peer=peer)
    yield EventRow(CHANNEL, "sds", "snapshot", at_ms=START_MS, amount=len(known))
    yield EventRow(kind="stopped", at_ms=START_MS)


def _hash(at: int) -> bytes:
    return hashlib.sha256(b"%d" % at).digest()


def _write(path: Path, name: str, tables: Mapping[Table, Sequence[tuple[object, ...]]]) -> None:
    header = LogHeader(
        schema_version=SCHEMA_VERSION,
        log_id=_name(f"log of {name}"),
        participant=name,
        key_id="e" * 16,
        app_version="0.1.0",
        network="bench",
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        create_tables(connection, header)
        for table, rows in tables.items():
            marks = ", ".join("?" * len(table.row_columns))
            connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)  # noqa: S608 - names of the contract
        connection.execute("COMMIT")
