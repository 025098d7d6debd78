"""Writes a timeline: message rows, delivery states, the read mark, and the counts.

Counts that every list row shows (visible rows, waiting rows, unread) are kept in ``timeline`` and
updated in the transaction that changes a row, so that reading them is cheap.  Unread means visible
texts and files of others after the read mark, by position: a message that arrives late, before the
mark, counts as read.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.ids import MessageId, Position
from engine.core.ports import PutMessage
from engine.core.records import DeliveryRecord, MessageRecord
from engine.persistence.annotation_tables import row_goes, rows_came
from engine.persistence.file_tables import forget_file, put_file
from engine.persistence.many_rows import Value, by_the_dozen, insert, with_ids, with_rows
from engine.persistence.muted_members import DELETED, OF_MUTED, read_muted_members
from engine.persistence.ordinals import count_in, count_out
from engine.persistence.rules import FILE_KIND, SAID_KINDS
from engine.persistence.short_keys import participant_keys
from engine.persistence.stored_ids import (
    StoredId,
    mark_of,
    position_of,
    stored_id,
    stored_ids,
    stored_order,
    stored_place,
)
from engine.persistence.stored_spans import spans_text

ARRIVALS: Final = ("written_here", "live", "store", "repair")
"""What the column ``arrival`` stands for; NULL: it is not known."""

_PUT_MESSAGE: Final = with_rows(
    """
INSERT INTO message (conversation_key, message_id, lamport_timestamp, waiting, hidden, is_own, late,
                     kind, sender_key, sent_ms, received_ms, text, spans, reply_to, forwarded,
                     mentions_me, arrival, repaired_by)
    """,
    columns=18,
    conflict="""
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  lamport_timestamp = excluded.lamport_timestamp, waiting = excluded.waiting,
  is_own = excluded.is_own, late = excluded.late, kind = excluded.kind,
  sender_key = excluded.sender_key, sent_ms = excluded.sent_ms, received_ms = excluded.received_ms,
  text = excluded.text, spans = excluded.spans, reply_to = excluded.reply_to,
  forwarded = excluded.forwarded, mentions_me = excluded.mentions_me, arrival = excluded.arrival,
  repaired_by = excluded.repaired_by, shown_id = NULL, edited_ms = NULL, retracted = 0,
  hidden = CASE message.hidden WHEN 1 THEN 1 ELSE excluded.hidden END
    """,
)
_COUNTED: Final = with_ids(
    "SELECT message_id, lamport_timestamp, waiting, hidden, is_own, kind FROM message "
    "WHERE conversation_key = ? AND message_id IN"
)
_ADD_TO_COUNTS: Final = """
UPDATE timeline SET placed = placed + ?, waiting = waiting + ?, unread = unread + ?
WHERE conversation_key = ?
"""
_UNREAD_UP_TO: Final = """
SELECT count(*) FROM message
WHERE conversation_key = ? AND waiting = ? AND hidden = 0 AND is_own = 0
  AND kind IN ('text', 'file')
  AND (lamport_timestamp, message_id) > (?, ?) AND (lamport_timestamp, message_id) <= (?, ?)
"""
_PUT_DELIVERY: Final = """
INSERT INTO delivery VALUES (?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  state = excluded.state, attempts = excluded.attempts, failure = excluded.failure
"""


# Few messages wait, and a column would make SQLite check the row of each one that did not.
WAITED: Final = """
CREATE TABLE waited (
  conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
  message_id ANY NOT NULL, came_ms INTEGER NOT NULL, PRIMARY KEY (conversation_key, message_id)
) STRICT, WITHOUT ROWID
"""
_PUT_WAITED: Final = "INSERT OR REPLACE INTO waited VALUES (?, ?, ?)"
_FORGET_WAITED: Final = "DELETE FROM waited WHERE conversation_key = ? AND message_id = ?"


class CountedRow(Struct, frozen=True):
    """What the counts depend on."""

    position: Position
    waiting: bool
    hidden: int
    is_own: bool
    kind: str

    def is_unread(self, mark: Position | None) -> bool:
        return (
            not self.hidden
            and not self.is_own
            and self.kind in SAID_KINDS
            and (mark is None or stored_order(self.position) > stored_order(mark))
        )


Change: TypeAlias = tuple[CountedRow | None, CountedRow | None]
"""One row, before and after."""


def put_messages(
    connection: sqlite3.Connection, conversation: int, writes: Sequence[PutMessage]
) -> dict[MessageId, MessageRecord]:
    """Write the rows in order; an existing one is replaced, and what speaks of it applied.

    Returns those that are now read as they were written: new, visible, and with nothing in other
    tables, as nearly all that a backfill brings.
    """
    records = [write.message for write in writes]
    before = _counted_rows(connection, conversation, [one.position.message_id for one in records])
    muted = read_muted_members(connection, conversation)
    senders = participant_keys(connection, conversation, [one.sender_id for one in records])
    hidden_as = {one.sender_id: OF_MUTED if one.sender_id in muted else 0 for one in records}
    insert(
        connection,
        _PUT_MESSAGE,
        [
            _columns(conversation, record, senders[record.sender_id], hidden_as[record.sender_id])
            for record in records
        ],
    )
    after: dict[MessageId, CountedRow] = {}
    for record in records:
        position = record.position
        old = before.get(position.message_id)
        was_deleted = old is not None and old.hidden == DELETED
        hidden = DELETED if was_deleted else hidden_as[record.sender_id]
        after[position.message_id] = CountedRow(
            position, record.waiting, hidden, record.is_own, record.kind
        )
    _put_waited(connection, conversation, before, writes)
    _put_files(connection, conversation, before, writes)
    spoken_of = rows_came(connection, conversation, list(after))
    changes = [(before.get(message_id), row) for message_id, row in after.items()]
    recount(connection, conversation, [change for change in changes if change[0] != change[1]])
    has_more = {*before, *spoken_of}
    last = {record.position.message_id: record for record in records}
    return {
        message_id: record
        for message_id, record in last.items()
        if message_id not in has_more and not after[message_id].hidden and _is_all(record)
    }


def _is_all(record: MessageRecord) -> bool:
    """Whether no other table has anything to show with a new row."""
    return not record.is_own and record.reply_to is None and record.kind != FILE_KIND


def _put_waited(
    connection: sqlite3.Connection,
    conversation: int,
    before: Mapping[MessageId, CountedRow],
    writes: Sequence[PutMessage],
) -> None:
    for write in writes:
        message_id = write.message.position.message_id
        if write.came_ms is not None:
            key = stored_id(message_id)
            connection.execute(_PUT_WAITED, (conversation, key, write.came_ms))
        elif message_id in before:
            connection.execute(_FORGET_WAITED, (conversation, stored_id(message_id)))


def _put_files(
    connection: sqlite3.Connection,
    conversation: int,
    before: Mapping[MessageId, CountedRow],
    writes: Sequence[PutMessage],
) -> None:
    """Of several writes of one message the last counts."""
    last = {write.message.position.message_id: write for write in writes}
    for message_id, write in last.items():
        if write.message.file is not None:
            put_file(
                connection, conversation, stored_id(message_id), write.message.file, write.data
            )
        elif message_id in before and before[message_id].kind == FILE_KIND:
            forget_file(connection, conversation, stored_id(message_id))


def _columns(
    conversation: int, record: MessageRecord, sender_key: int, hidden: int
) -> tuple[Value, ...]:
    lamport, message_id = stored_place(record.position)
    return (
        conversation,
        message_id,
        lamport,
        record.waiting,
        hidden,  # A deleted row stays deleted.
        record.is_own,
        record.late,
        record.kind,
        sender_key,
        record.sent_ms,
        record.received_ms,
        record.text,
        spans_text(record.spans),
        None if record.reply_to is None else stored_id(record.reply_to),
        record.forwarded,
        record.mentions_me,
        ARRIVALS.index(record.arrival) if record.arrival in ARRIVALS else None,
        record.repaired_by,
    )


def hide_message(connection: sqlite3.Connection, conversation: int, message_id: MessageId) -> None:
    """Also hides a row whose sender is muted, so that it does not come back later."""
    old = _counted_rows(connection, conversation, [message_id]).get(message_id)
    if old is None or old.hidden == DELETED:
        return
    connection.execute(
        "UPDATE message SET hidden = ? WHERE conversation_key = ? AND message_id = ?",
        (DELETED, conversation, stored_id(message_id)),
    )
    recount(connection, conversation, [(old, None)])


def remove_message(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId
) -> None:
    """Remove the row and its delivery state, hidden or not; nothing if it does not exist."""
    old = _counted_rows(connection, conversation, [message_id]).get(message_id)
    for table in ("message", "delivery"):
        connection.execute(
            f"DELETE FROM {table} WHERE conversation_key = ? AND message_id = ?",  # noqa: S608
            (conversation, stored_id(message_id)),
        )
    if old is not None:
        row_goes(connection, conversation, message_id)
        if old.kind == FILE_KIND:
            forget_file(connection, conversation, stored_id(message_id))
        recount(connection, conversation, [(old, None)])


def put_delivery(
    connection: sqlite3.Connection,
    conversation: int,
    message_id: MessageId,
    delivery: DeliveryRecord,
) -> None:
    connection.execute(
        _PUT_DELIVERY,
        (conversation, stored_id(message_id), delivery.state, delivery.attempts, delivery.failure),
    )


def save_read_mark(connection: sqlite3.Connection, conversation: int, up_to: Position) -> None:
    old = read_mark(connection, conversation)
    if old is not None and stored_order(old) >= stored_order(up_to):
        return
    after = (-1, "") if old is None else stored_place(old)
    passed = 0
    for waiting in (0, 1):
        row: tuple[int] = connection.execute(
            _UNREAD_UP_TO,
            (conversation, waiting, *after, *stored_place(up_to)),
        ).fetchone()
        passed += row[0]
    connection.execute(
        "UPDATE timeline SET read_lamport = ?, read_message_id = ?, unread = unread - ? "
        "WHERE conversation_key = ?",
        (up_to.lamport_timestamp, up_to.message_id, passed, conversation),
    )


def read_mark(connection: sqlite3.Connection, conversation: int) -> Position | None:
    mark: tuple[int | None, MessageId | None] = connection.execute(
        "SELECT read_lamport, read_message_id FROM timeline WHERE conversation_key = ?",
        (conversation,),
    ).fetchone()
    return mark_of(*mark)


def _counted_rows(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> dict[MessageId, CountedRow]:
    found: dict[MessageId, CountedRow] = {}
    rows: list[tuple[StoredId, int, int, int, int, str]]
    for asked in by_the_dozen(stored_ids(message_ids)):
        rows = connection.execute(_COUNTED[len(asked)], (conversation, *asked)).fetchall()
        for stored, lamport, waiting, hidden, is_own, kind in rows:
            position = position_of(lamport, stored)
            counted = CountedRow(position, bool(waiting), hidden, bool(is_own), kind)
            found[position.message_id] = counted
    return found


def recount(connection: sqlite3.Connection, conversation: int, changes: Sequence[Change]) -> None:
    """Remove each old row from the counts and add each new one; either may be absent or hidden."""
    if not changes:
        return
    mark = read_mark(connection, conversation)
    placed = waiting = unread = 0
    comes: list[Position] = []
    goes: list[Position] = []
    for change in changes:
        for row, sign in zip(change, (-1, +1), strict=True):
            if row is None or row.hidden:
                continue
            waiting += sign * row.waiting
            placed += sign * (not row.waiting)
            unread += sign * row.is_unread(mark)
            if not row.waiting:
                (comes if sign > 0 else goes).append(row.position)
    count_out(connection, conversation, goes)
    count_in(connection, conversation, comes)
    if placed or waiting or unread:
        connection.execute(_ADD_TO_COUNTS, (placed, waiting, unread, conversation))
