"""Muted members of a conversation, and why a timeline row is in no page and no count.

A row's ``hidden`` is set if the user deleted it on this device, or if its sender is muted in this
conversation.  ``muting`` hides rows and brings them back.
"""

import sqlite3
from typing import Final

from engine.core.ids import ParticipantId

DELETED: Final = 1
OF_MUTED: Final = 2


def read_muted_members(
    connection: sqlite3.Connection, conversation: int
) -> frozenset[ParticipantId]:
    cursor = connection.execute(
        "SELECT participant_id FROM muted_member WHERE conversation_key = ?", (conversation,)
    )
    return frozenset(ParticipantId(participant_id) for (participant_id,) in cursor)
