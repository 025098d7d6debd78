"""Reads a piece of a log for the view of its delivery: places, rows, bytes, and what is missing.

A page is found by its place and bounded, so that it costs the same in a log of a million messages.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final, TypeAlias

from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.core.inspection import PlacedMessage
from engine.core.sds.vocabulary import HolderEntry, MissingEntry
from engine.persistence.channel_reads import MISSING_COLUMNS, missing_of_rows, read_holders
from engine.persistence.many_rows import MANY, by_the_dozen, with_ids
from engine.persistence.raw_blocks import read_raws
from engine.persistence.stored_ids import (
    StoredId,
    message_id_of,
    position_of,
    stored_ids,
    stored_place,
)
from engine.persistence.timeline_reads import AFTER_ALL

_PlacedRow: TypeAlias = tuple[
    int, StoredId, ParticipantId, ParticipantId | None, int | None, int | None, UnixMs | None,
    UnixMs | None, str | None, UnixMs | None,
]  # fmt: skip

PLACED: Final = """
SELECT l.lamport_timestamp, l.message_id, p.participant_id,
  (SELECT participant_id FROM participant
   WHERE participant_key = m.sender_key AND m.sender_key <> l.sender_key),
  m.hidden, m.late, m.sent_ms, m.received_ms, d.state,
  (SELECT came_ms FROM waited WHERE conversation_key = l.conversation_key
   AND message_id = l.message_id)
FROM log_entry AS l CROSS JOIN participant AS p ON p.participant_key = l.sender_key
LEFT JOIN message AS m
  ON m.conversation_key = l.conversation_key AND m.message_id = l.message_id
LEFT JOIN delivery AS d
  ON coalesce(m.is_own, 1) = 1 AND d.conversation_key = l.conversation_key
    AND d.message_id = l.message_id
WHERE l.conversation_key = ? AND (l.lamport_timestamp, l.message_id) < (?, ?)
ORDER BY l.lamport_timestamp DESC, l.message_id DESC LIMIT ?
"""
_KEYS: Final = {
    count: f"WITH asked (message_id) AS (VALUES {', '.join(['(?)'] * count)})"  # noqa: S608 - marks only
    " SELECT l.message_id, l.raw_key FROM asked CROSS JOIN log_entry AS l"
    " ON l.conversation_key = ? AND l.message_id = asked.message_id"
    for count in (1, MANY)
}
"""By the number of ids.  Each is looked up: asked for many with IN, SQLite reads the whole log."""
_CAME: Final = with_ids(
    "SELECT message_id, came_ms FROM waited WHERE conversation_key = ? AND message_id IN"
)
_BETWEEN: Final = f"""
{MISSING_COLUMNS} AND (before_lamport IS NULL OR (before_lamport, before_message_id) >= (?, ?))
ORDER BY missing_key LIMIT ?
"""
_BETWEEN_PLACES: Final = f"""
{MISSING_COLUMNS} AND (before_lamport, before_message_id) >= (?, ?)
AND (before_lamport, before_message_id) < (?, ?)
ORDER BY missing_key LIMIT ?
"""


def read_placed(
    connection: sqlite3.Connection, conversation: int, before: Position | None, limit: int
) -> list[PlacedMessage]:
    place = AFTER_ALL if before is None else stored_place(before)
    rows: list[_PlacedRow] = connection.execute(PLACED, (conversation, *place, limit)).fetchall()
    return [
        PlacedMessage(
            position=position_of(lamport, stored),
            sender_id=sender_id,
            row_sender_id=row_sender_id,
            is_shown=hidden == 0,
            late=bool(late),
            sent_ms=sent_ms,
            received_ms=received_ms,
            delivery=state,
            came_ms=came_ms,
        )
        for (
            lamport, stored, sender_id, row_sender_id, hidden, late, sent_ms, received_ms, state,
            came_ms,
        ) in reversed(rows)
    ]  # fmt: skip


def read_came(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> dict[MessageId, UnixMs]:
    found: dict[StoredId, UnixMs] = {}
    for asked in by_the_dozen(stored_ids(message_ids)):
        found |= connection.execute(_CAME[len(asked)], (conversation, *asked)).fetchall()
    return {message_id_of(stored): came_ms for stored, came_ms in found.items()}


def read_raws_of(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> dict[MessageId, bytes]:
    keys: dict[StoredId, int] = {}
    for asked in by_the_dozen(stored_ids(message_ids)):
        keys |= connection.execute(_KEYS[len(asked)], (*asked, conversation)).fetchall()
    raws = read_raws(connection, conversation, [*keys.values()])
    return {message_id_of(stored): raws[key] for stored, key in keys.items()}


def read_holders_of(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> dict[MessageId, list[HolderEntry]]:
    found = read_holders(connection, conversation, stored_ids(message_ids))
    return {message_id_of(stored): entries for stored, entries in found.items()}


def read_missing_between(
    connection: sqlite3.Connection,
    conversation: int,
    first: Position | None,
    before: Position | None,
    limit: int,
) -> list[MissingEntry]:
    """Places of this table hold ids as texts."""
    begin = (-1, "") if first is None else (first.lamport_timestamp, first.message_id)
    if before is None:
        cursor = connection.execute(_BETWEEN, (conversation, *begin, limit))
    else:
        end = before.lamport_timestamp, before.message_id
        cursor = connection.execute(_BETWEEN_PLACES, (conversation, *begin, *end, limit))
    return [*missing_of_rows(cursor)]
