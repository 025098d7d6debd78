"""What is kept about joining governed groups: our invitations, who asks, and where we asked.

An invitation and an asking are gone with their group.  A join that is pending is of no conversation
yet, or of one that we were removed from.  Writes run inside the store's transaction.
"""

import sqlite3
from collections.abc import Callable
from typing import Final, assert_never

from engine.core.admin_log.acts import EntryId
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.joining import (
    Asking,
    JoiningWrite,
    OwnInvitation,
    PendingJoin,
    PutAsking,
    PutInvitation,
    PutJoin,
    Reason,
    RemoveAsking,
    RemoveInvitation,
    RemoveJoin,
)
from engine.persistence.profile_tables import conversation_key
from engine.persistence.search_store import Doing

_OF_CONVERSATION: Final = (
    "conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE"
)
JOINING_TABLES: Final = (
    f"""
    CREATE TABLE own_invitation (
      invitation_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, token BLOB NOT NULL,
      needs_approval INTEGER NOT NULL, earlier TEXT NOT NULL, made_ms INTEGER NOT NULL,
      expires_ms INTEGER NOT NULL, uses INTEGER NOT NULL, invitation_id TEXT,
      UNIQUE (conversation_key, token)
    ) STRICT
    """,
    f"""
    CREATE TABLE asking (
      asking_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, participant_id TEXT NOT NULL,
      invitation_id TEXT NOT NULL, statement BLOB NOT NULL, answer_key BLOB NOT NULL,
      asked_ms INTEGER NOT NULL, is_refused INTEGER NOT NULL,
      UNIQUE (conversation_key, participant_id)
    ) STRICT
    """,
    """
    CREATE TABLE pending_join (
      join_key INTEGER PRIMARY KEY, conversation_id TEXT NOT NULL UNIQUE, link TEXT NOT NULL,
      answer_key BLOB NOT NULL, asked_ms INTEGER NOT NULL, reason TEXT
    ) STRICT
    """,
)
_PUT_INVITATION: Final = """
INSERT INTO own_invitation (conversation_key, token, needs_approval, earlier, made_ms, expires_ms,
                            uses, invitation_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, token) DO UPDATE SET invitation_id = excluded.invitation_id
"""
_PUT_ASKING: Final = """
INSERT INTO asking (conversation_key, participant_id, invitation_id, statement, answer_key,
                    asked_ms, is_refused) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, participant_id) DO UPDATE SET
  invitation_id = excluded.invitation_id, statement = excluded.statement,
  answer_key = excluded.answer_key, asked_ms = excluded.asked_ms, is_refused = excluded.is_refused
"""
_PUT_JOIN: Final = """
INSERT INTO pending_join (conversation_id, link, answer_key, asked_ms, reason)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (conversation_id) DO UPDATE SET link = excluded.link, answer_key = excluded.answer_key,
  asked_ms = excluded.asked_ms, reason = excluded.reason
"""
_INVITATIONS: Final = """
SELECT conversation_id, token, needs_approval, earlier, made_ms, expires_ms, uses, invitation_id
FROM own_invitation JOIN conversation USING (conversation_key) ORDER BY invitation_key
"""
_ASKING: Final = """
SELECT conversation_id, participant_id, invitation_id, statement, answer_key, asked_ms, is_refused
FROM asking JOIN conversation USING (conversation_key) ORDER BY asking_key
"""
_JOINS: Final = (
    "SELECT conversation_id, link, answer_key, asked_ms, reason FROM pending_join ORDER BY join_key"
)


def apply_write(connection: sqlite3.Connection, write: JoiningWrite) -> None:
    match write:
        case PutJoin(join=join):
            connection.execute(
                _PUT_JOIN,
                (
                    join.conversation_id,
                    join.link,
                    join.answer_key,
                    join.asked_ms,
                    join.reason,
                ),
            )
            return
        case RemoveJoin(conversation_id=conversation_id):
            connection.execute(
                "DELETE FROM pending_join WHERE conversation_id = ?", (conversation_id,)
            )
            return
        case PutInvitation(invitation=OwnInvitation(conversation_id=conversation_id)):
            pass
        case PutAsking(asking=Asking(conversation_id=conversation_id)):
            pass
        case RemoveInvitation(conversation_id=conversation_id):
            pass
        case RemoveAsking(conversation_id=conversation_id):
            pass
        case _:
            assert_never(write)
    key = conversation_key(connection, conversation_id)
    if key is not None:
        _apply_in_group(connection, key, write)


def _apply_in_group(
    connection: sqlite3.Connection,
    key: int,
    write: PutInvitation | RemoveInvitation | PutAsking | RemoveAsking,
) -> None:
    match write:
        case PutInvitation(invitation=one):
            row = one.token, one.needs_approval, one.earlier, one.made_ms, one.expires_ms, one.uses
            connection.execute(_PUT_INVITATION, (key, *row, one.invitation_id))
        case RemoveInvitation(token=token):
            connection.execute(
                "DELETE FROM own_invitation WHERE conversation_key = ? AND token = ?", (key, token)
            )
        case PutAsking(asking=asking):
            connection.execute(
                _PUT_ASKING,
                (
                    key,
                    asking.participant_id,
                    asking.invitation_id,
                    asking.statement,
                    asking.answer_key,
                    asking.asked_ms,
                    asking.is_refused,
                ),
            )
        case RemoveAsking(participant_id=who):
            connection.execute(
                "DELETE FROM asking WHERE conversation_key = ? AND participant_id = ?", (key, who)
            )


class SqliteJoining:
    """``engine.core.joining.JoiningStore``; uses the store's connection."""

    def __init__(self, connection: Callable[[], sqlite3.Connection], doing: Doing) -> None:
        self._connection = connection
        self._doing = doing

    def invitations(self) -> list[OwnInvitation]:
        with self._doing("read the invitations"):
            return [
                OwnInvitation(
                    conversation_id=ConversationId(conversation_id),
                    token=token,
                    needs_approval=bool(needs_approval),
                    earlier=earlier,
                    made_ms=UnixMs(made_ms),
                    expires_ms=UnixMs(expires_ms),
                    uses=uses,
                    invitation_id=None if invitation_id is None else EntryId(invitation_id),
                )
                for (
                    conversation_id, token, needs_approval, earlier, made_ms, expires_ms, uses,
                    invitation_id,
                ) in self._connection().execute(_INVITATIONS)
            ]  # fmt: skip

    def asking(self) -> list[Asking]:
        with self._doing("read who asks"):
            return [
                Asking(
                    conversation_id=ConversationId(conversation_id),
                    participant_id=ParticipantId(participant_id),
                    invitation_id=EntryId(invitation_id),
                    statement=statement,
                    answer_key=answer_key,
                    asked_ms=UnixMs(asked_ms),
                    is_refused=bool(is_refused),
                )
                for (
                    conversation_id, participant_id, invitation_id, statement, answer_key, asked_ms,
                    is_refused,
                ) in self._connection().execute(_ASKING)
            ]  # fmt: skip

    def joins(self) -> list[PendingJoin]:
        with self._doing("read where we asked"):
            return [
                PendingJoin(
                    conversation_id=ConversationId(conversation_id),
                    link=link,
                    answer_key=answer_key,
                    asked_ms=UnixMs(asked_ms),
                    reason=None if reason is None else Reason(reason),
                )
                for conversation_id, link, answer_key, asked_ms, reason in (
                    self._connection().execute(_JOINS)
                )
            ]
