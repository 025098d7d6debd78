"""Who is muted in a conversation, and why a row of a timeline is in no page and no count.

A row's ``hidden`` says it: the user deleted it on this device, or its sender is muted in this
conversation.  How rows are hidden and come back when somebody is muted is in ``muting``.
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
