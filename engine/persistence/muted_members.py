"""Muted members: their rows are in no page and no count, until they are not muted any more.

A row's ``hidden`` says why it is: the user deleted it on this device, or its sender is muted in
this conversation.  Muting goes through all rows of the conversation and counts them anew; that is
rare, and cheaper than to take thousands of rows out one by one.
"""

import sqlite3
from typing import Final

from engine.core.ids import ParticipantId
from engine.persistence.ordinals import count_all

DELETED: Final = 1
OF_MUTED: Final = 2

_HIDE: Final = """
UPDATE message SET hidden = ? WHERE conversation_key = ? AND sender_id = ? AND hidden = ?
"""
_COUNT: Final = """
UPDATE timeline SET
  placed = (SELECT count(*) FROM message
            WHERE conversation_key = :conversation AND hidden = 0 AND waiting = 0),
  waiting = (SELECT count(*) FROM message
             WHERE conversation_key = :conversation AND hidden = 0 AND waiting = 1),
  unread = (SELECT count(*) FROM message
            WHERE conversation_key = :conversation AND hidden = 0 AND is_own = 0 AND kind = 'text'
              AND (read_lamport IS NULL
                   OR (lamport_timestamp, message_id) > (read_lamport, read_message_id)))
WHERE conversation_key = :conversation
"""


def read_muted_members(
    connection: sqlite3.Connection, conversation: int
) -> frozenset[ParticipantId]:
    cursor = connection.execute(
        "SELECT participant_id FROM muted_member WHERE conversation_key = ?", (conversation,)
    )
    return frozenset(ParticipantId(participant_id) for (participant_id,) in cursor)


def save_member_muted(
    connection: sqlite3.Connection,
    conversation: int,
    participant_id: ParticipantId,
    *,
    muted: bool,
) -> None:
    if muted:
        statement, before, after = "INSERT OR IGNORE INTO muted_member VALUES (?, ?)", 0, OF_MUTED
    else:
        statement = "DELETE FROM muted_member WHERE conversation_key = ? AND participant_id = ?"
        before, after = OF_MUTED, 0
    connection.execute(statement, (conversation, participant_id))
    connection.execute(_HIDE, (after, conversation, participant_id, before))
    connection.execute(_COUNT, {"conversation": conversation})
    count_all(connection, conversation)
