"""Reads a whole conversation in order, a page at a time: for audits, never for display.

Rows that the user hid are included, because the log keeps them. Waiting rows have no place yet and
are not.
"""

import sqlite3
from typing import Final

from engine.core.ids import ParticipantId, Position, UnixMs
from engine.core.records import LoggedMessage
from engine.persistence.stored_ids import position_of, stored_place

MAX_PAGE: Final = 20_000

_GROUP: Final = """
SELECT l.lamport_timestamp, l.message_id, p.participant_id, coalesce(m.sent_ms, l.lamport_timestamp)
FROM log_entry AS l CROSS JOIN participant AS p ON p.participant_key = l.sender_key
LEFT JOIN message AS m
  ON m.conversation_key = l.conversation_key AND m.message_id = l.message_id
WHERE l.conversation_key = ? AND (l.lamport_timestamp, l.message_id) > (?, ?)
ORDER BY l.lamport_timestamp, l.message_id LIMIT ?
"""
_PAIR: Final = """
SELECT lamport_timestamp, message_id, participant_id, sent_ms
FROM message AS m CROSS JOIN participant ON participant_key = sender_key
WHERE m.conversation_key = ? AND waiting = 0 AND (lamport_timestamp, message_id) > (?, ?)
ORDER BY lamport_timestamp, message_id LIMIT ?
"""


def read_logged(
    connection: sqlite3.Connection,
    conversation: int,
    after: Position | None,
    *,
    is_pair: bool,
    limit: int,
) -> list[LoggedMessage]:
    place = (-1, "") if after is None else stored_place(after)
    cursor = connection.execute(
        _PAIR if is_pair else _GROUP, (conversation, *place, min(limit, MAX_PAGE))
    )
    return [
        LoggedMessage(
            position=position_of(lamport, stored),
            sender_id=ParticipantId(sender_id),
            sent_ms=UnixMs(sent_ms),
        )
        for lamport, stored, sender_id, sent_ms in cursor
    ]
