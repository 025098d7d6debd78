"""Small groups whose true story is known, and the delivery logs that they hand in.

Written from docs/delivery-contract.md alone: a ``Story`` says what really happened, in true time,
and ``logs_of`` writes down what each participant's recorder would have seen of it, by that
participant's own clock.  Cases spoil these logs on purpose.  A log goes to disk as the recorder
writes it (SQLite), or as an export does (Parquet, JSON lines).
"""

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from engine.core.ids import MessageId
from engine.delivery.contract import (
    DELIVERY_EVENT,
    LOG_SNAPSHOT,
    LOG_TABLES,
    MEMBERSHIP,
    MESSAGE,
    SCHEMA_VERSION,
    Table,
)
from engine.delivery.pseudonym import mid_of
from engine.delivery.sqlite_log import LogHeader, create_tables
from pipeline.parquet_table import ParquetTable
from tests.pipeline.log_files import insert, name_of

START_MS: Final = 1_700_000_000_000
STEP_MS: Final = 10_000
DELAY_MS: Final = 50
KEY, OTHER_KEY = "e" * 16, "f" * 16
ALWAYS: Final = ((-60_000, None),)
Row = dict[str, object]
Stay = tuple[int, int | None]
"""Joined and left, in true milliseconds after the start; None: is still there."""


@dataclass(frozen=True)
class Sent:
    """A message as it is; ``at`` is true time after the start."""

    number: int
    id: str
    sender: str
    at: int
    lamport: int
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Story:
    """``lacks`` and ``late`` are numbers of messages: never there, or there 25 seconds later."""

    name: str
    people: tuple[str, ...] = ("ada", "bob", "cyd", "dan", "eve")
    count: int = 30
    clocks: Mapping[str, int] = field(default_factory=dict)
    stays: Mapping[str, tuple[Stay, ...]] = field(default_factory=dict)
    lacks: Mapping[str, frozenset[int]] = field(default_factory=dict)
    late: Mapping[str, frozenset[int]] = field(default_factory=dict)
    until: int | None = None
    """When recording ends; None: a while after the last message."""

    def stays_of(self, person: str) -> tuple[Stay, ...]:
        return self.stays.get(person, ALWAYS)

    def is_there(self, person: str, at: int) -> bool:
        return any(a <= at and (b is None or at < b) for a, b in self.stays_of(person))

    def offset(self, person: str) -> int:
        return self.clocks.get(person, 0)

    def pseudonym(self, person: str) -> str:
        return name_of(f"{self.name}/{person}")

    @property
    def channel(self) -> str:
        return name_of(f"channel {self.name}")

    def id_of(self, number: int) -> str:
        return f"{self.name}-{number:04}"

    @property
    def end(self) -> int:
        return self.count * STEP_MS + 60_000 if self.until is None else self.until


def messages_of(story: Story) -> list[Sent]:
    """One every ten seconds, by those who are there in turn, each naming the one before it.

    Nobody names what somebody got late, or that one would have held back what names it.
    """
    sent: list[Sent] = []
    lamport = 0
    late = frozenset().union(*story.late.values())
    for number in range(story.count):
        at = number * STEP_MS
        there = [person for person in story.people if story.is_there(person, at)]
        sender = there[number % len(there)]
        lamport = max(START_MS + at + story.offset(sender), lamport + 1)
        known = [each.id for each in sent if each.number not in late]
        parents = tuple(known[-1:])
        sent.append(Sent(number, story.id_of(number), sender, at, lamport, parents))
    return sent


@dataclass(frozen=True)
class Log:
    """What one recorder wrote, without the columns that are the same in all of its rows."""

    person: str
    header: LogHeader
    rows: Mapping[Table, Sequence[Row]]

    def but(self, table: Table, change: Callable[[Row], Row | None]) -> "Log":
        """Each row of the table through ``change``, which may take it away."""
        changed = [new for row in self.rows[table] if (new := change(dict(row))) is not None]
        return replace(self, rows={**self.rows, table: changed})

    def headed(self, **values: object) -> "Log":
        known = {name: getattr(self.header, name) for name in self.header.__struct_fields__}
        return replace(self, header=LogHeader(**{**known, **values}))

    def until_seq(self, seq: int) -> "Log":
        """As a reader would have found the file after that event."""
        return self.but(DELIVERY_EVENT, lambda row: row if int(str(row["seq"])) <= seq else None)


class _Happened(NamedTuple):
    at: int
    kind: str
    message: Sent | None


def logs_of(story: Story, sent: Sequence[Sent] | None = None) -> dict[str, Log]:
    """Everybody's log."""
    messages = messages_of(story) if sent is None else sent
    return {person: log_of(story, person, messages) for person in story.people}


def held_by(story: Story, person: str, messages: Iterable[Sent]) -> list[Sent]:
    """In the final order."""
    lacks = story.lacks.get(person, frozenset())
    held = [
        each
        for each in messages
        if story.is_there(person, each.at) and each.number not in lacks and each.at < story.end
    ]
    return sorted(held, key=lambda each: (each.lamport, each.id))


def log_of(story: Story, person: str, messages: Sequence[Sent]) -> Log:
    held = held_by(story, person, messages)
    header = LogHeader(
        schema_version=SCHEMA_VERSION,
        log_id=name_of(f"log {story.name}/{person}"),
        participant=story.pseudonym(person),
        key_id=KEY,
        app_version="1",
        network="sim",
    )
    tables = {
        DELIVERY_EVENT: _events(story, person, held),
        LOG_SNAPSHOT: snapshot_rows(story, person, held),
        MESSAGE: [message_row(story, each) for each in held],
        MEMBERSHIP: membership_rows(story),
    }
    return Log(person, header, tables)


def _events(story: Story, person: str, held: Sequence[Sent]) -> list[Row]:
    late = story.late.get(person, frozenset())
    happened = [_Happened(-1_000, "started", None)]
    for each in held:
        if each.sender == person:
            happened += [_Happened(each.at, kind, each) for kind in ("sent", "delivered")]
        else:
            at = each.at + (25_000 if each.number in late else DELAY_MS)
            happened += [_Happened(at, kind, each) for kind in ("received", "delivered")]
    happened.sort(key=lambda one: one.at)
    happened += [_Happened(story.end, kind, None) for kind in ("snapshot", "stopped")]
    rows: list[Row] = []
    order: list[tuple[int, str]] = []
    for seq, (at, kind, message) in enumerate(happened, start=1):
        row = event_row(story, person, seq, kind, at)
        if message is not None:
            row |= names(story, message) | {"lamport": message.lamport}
            row["peer"] = story.pseudonym(message.sender)
        if kind == "received":
            row |= {"via": "relay", "wire_bytes": 300}
        if kind == "delivered" and message is not None:
            place = (message.lamport, message.id)
            row["position"] = bisect_left(order, place)
            order.insert(bisect_left(order, place), place)
        if kind == "snapshot":
            row |= {"channel": story.channel, "protocol": "sds", "amount": len(held)}
        rows.append(row)
    return rows


def event_row(story: Story, person: str, seq: int, kind: str, at: int) -> Row:
    own_ms = START_MS + at + story.offset(person)
    return {"seq": seq, "kind": kind, "at_ms": own_ms, "mono_ns": (at + 1_000) * 1_000_000}


def names(story: Story, each: Sent) -> Row:
    return {
        "channel": story.channel,
        "protocol": "sds",
        "message_id": each.id,
        "mid": mid_of(MessageId(each.id)),
    }


def snapshot_rows(
    story: Story, person: str, held: Iterable[Sent], *, at: int | None = None
) -> list[Row]:
    taken = START_MS + (story.end if at is None else at) + story.offset(person)
    return [
        names(story, each) | {"lamport": each.lamport, "position": place, "snapshot_ms": taken}
        for place, each in enumerate(held)
    ]


def message_row(story: Story, each: Sent) -> Row:
    return names(story, each) | {
        "lamport": each.lamport,
        "sender": story.pseudonym(each.sender),
        "sent_ms": START_MS + each.at + story.offset(each.sender),
        "parents": list(each.parents),
        "parent_mids": [mid_of(MessageId(parent)) for parent in each.parents],
        "content": digest(each.id),
    }


def digest(text: str) -> str:
    """Stands for the recorder's keyed digest: the pipeline only compares them."""
    return name_of(f"content {text}")


def membership_rows(story: Story) -> list[Row]:
    """Every stay, as the member's own statements say: by the member's clock."""
    return [
        {
            "channel": story.channel,
            "protocol": "sds",
            "member": story.pseudonym(person),
            "joined_ms": START_MS + joined + story.offset(person),
            "left_ms": None if left is None else START_MS + left + story.offset(person),
        }
        for person in story.people
        for joined, left in story.stays_of(person)
    ]


# --- files ----------------------------------------------------------------------------------------


def write_sqlite(log: Log, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # No test cuts the power.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        create_tables(connection, log.header)
        connection.execute(f"PRAGMA user_version = {log.header.schema_version}")
        for table, rows in log.rows.items():
            insert(connection, table, rows)
        connection.execute("COMMIT")
    return path


def write_parquet(logs: Iterable[Log], place: Path) -> Path:
    """As ``causerie export-log --format parquet`` does: a file for each table."""
    place.mkdir(parents=True, exist_ok=True)
    for table in LOG_TABLES:
        file = ParquetTable(place / f"{table.name}.parquet", table)
        for log in logs:
            file.write([[row.get(name) for name in table.names] for row in whole_rows(log, table)])
        file.close()
    return place


def write_jsonl(logs: Iterable[Log], place: Path) -> Path:
    """As ``causerie export-log --format jsonl`` does."""
    place.mkdir(parents=True, exist_ok=True)
    for table in LOG_TABLES:
        lines = [json.dumps(row) for log in logs for row in whole_rows(log, table)]
        text = "".join(f"{line}\n" for line in lines)
        (place / f"{table.name}.jsonl").write_text(text, encoding="utf-8")
    return place


def whole_rows(log: Log, table: Table) -> list[Row]:
    """With the columns that are the same in all rows."""
    per_log = {
        column.name: getattr(log.header, column.name) for column in table.columns if column.per_log
    }
    return [
        {name: ({**row, **per_log}).get(name) for name in table.names} for row in log.rows[table]
    ]
