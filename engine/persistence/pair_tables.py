"""The rows of one-to-one conversations: the contact, and the state of their order.

A pair is a row of ``conversation`` with one of ``contact`` beside it.  Its timeline, delivery,
draft and mark are kept exactly as a group's; ``mvds_tables`` has its MVDS rows and
``ratchet_tables`` its Olm sessions.  Runs inside the store's transaction.
"""

import sqlite3
from typing import Final, assert_never

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, InstanceId, MessageId, ParticipantId, Position, UnixMs
from engine.core.ports import (
    ApplyMvds,
    PutLost,
    PutWaiting,
    RemoveLost,
    RemoveWaiting,
    SavePairAuthor,
    SavePairClock,
)
from engine.core.ratchet import SaveRatchet
from engine.core.records import ContactRecord, LostRange, PairState, WaitingContent
from engine.persistence.mvds_tables import apply_mvds_write
from engine.persistence.profile_tables import mute_end, put_conversation
from engine.persistence.ratchet_tables import put_ratchet, read_ratchet
from engine.persistence.rules import PairWrite, check_picture
from engine.persistence.stored_ids import mark_of

_PUT_CONTACT: Final = """
INSERT INTO contact VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key) DO UPDATE SET
  participant_id = excluded.participant_id, public_key = excluded.public_key,
  encryption_key = excluded.encryption_key, state = excluded.state,
  local_name = excluded.local_name, last_seen_ms = excluded.last_seen_ms,
  picture = excluded.picture
"""
_CONTACTS: Final = """
SELECT conversation_id, participant_id, public_key, encryption_key, name, state, created_ms,
       local_name, picture, last_seen_ms, muted, draft, read_lamport, read_message_id
FROM conversation JOIN contact USING (conversation_key) JOIN timeline USING (conversation_key)
ORDER BY conversation_key
"""
_PUT_WAITING: Final = """
INSERT INTO pair_waiting (conversation_key, message_id, sender_id, content, received_ms, shown)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, message_id) DO UPDATE SET
  sender_id = excluded.sender_id, content = excluded.content,
  received_ms = excluded.received_ms, shown = excluded.shown
"""


def put_contact(connection: sqlite3.Connection, contact: ContactRecord) -> None:
    check_picture(contact.picture)
    key, is_new = put_conversation(connection, contact)
    if is_new:
        connection.execute("INSERT INTO pair_clock VALUES (?, 0)", (key,))
    connection.execute(
        _PUT_CONTACT,
        (
            key,
            contact.participant_id,
            contact.public_key,
            contact.encryption_key,
            contact.state,
            contact.local_name,
            contact.last_seen_ms,
            contact.picture,
        ),
    )


def read_contacts(connection: sqlite3.Connection) -> list[ContactRecord]:
    return [
        ContactRecord(
            conversation_id=ConversationId(conversation_id),
            participant_id=ParticipantId(participant_id),
            public_key=public_key,
            encryption_key=encryption_key,
            name=name,
            state=ContactState(state),
            created_ms=UnixMs(created_ms),
            local_name=local_name,
            picture=picture,
            last_seen_ms=last_seen_ms,
            muted=bool(muted),
            muted_until_ms=mute_end(muted),
            draft=draft,
            read_up_to=mark_of(read_lamport, read_message_id),
        )
        for (
            conversation_id,
            participant_id,
            public_key,
            encryption_key,
            name,
            state,
            created_ms,
            local_name,
            picture,
            last_seen_ms,
            muted,
            draft,
            read_lamport,
            read_message_id,
        ) in connection.execute(_CONTACTS)
    ]


def apply_pair_write(connection: sqlite3.Connection, conversation: int, write: PairWrite) -> None:
    match write:
        case ApplyMvds(writes=mvds_writes):
            for mvds_write in mvds_writes:
                apply_mvds_write(connection, conversation, mvds_write)
        case SavePairClock(lamport_timestamp=lamport):
            connection.execute(
                "UPDATE pair_clock SET lamport_timestamp = max(lamport_timestamp, ?) "
                "WHERE conversation_key = ?",
                (lamport, conversation),
            )
        case SavePairAuthor(instance_id=instance_id, sequence=sequence):
            connection.execute(
                "INSERT OR REPLACE INTO pair_author VALUES (?, ?, ?)",
                (conversation, instance_id, sequence),
            )
        case PutWaiting(waiting=waiting):
            _put_waiting(connection, conversation, waiting)
        case RemoveWaiting(message_id=message_id):
            connection.execute(
                "DELETE FROM pair_waiting WHERE conversation_key = ? AND message_id = ?",
                (conversation, message_id),
            )
        case PutLost(lost=lost):
            _put_lost(connection, conversation, lost)
        case RemoveLost(instance_id=instance_id, first=first):
            connection.execute(
                "DELETE FROM pair_lost "
                "WHERE conversation_key = ? AND instance_id = ? AND first_sequence = ?",
                (conversation, instance_id, first),
            )
        case SaveRatchet(state=state):
            put_ratchet(connection, conversation, state)
        case _:
            assert_never(write)


def read_pair_state(connection: sqlite3.Connection, conversation: int) -> PairState:
    clock: tuple[int] | None = connection.execute(
        "SELECT lamport_timestamp FROM pair_clock WHERE conversation_key = ?", (conversation,)
    ).fetchone()
    authors: list[tuple[bytes, int]] = connection.execute(
        "SELECT instance_id, sequence FROM pair_author WHERE conversation_key = ?", (conversation,)
    ).fetchall()
    return PairState(
        lamport_timestamp=clock[0] if clock else 0,
        authors={InstanceId(instance_id): sequence for instance_id, sequence in authors},
        waiting=_read_waiting(connection, conversation),
        lost=_read_lost(connection, conversation),
        ratchet=read_ratchet(connection, conversation),
    )


def _put_waiting(
    connection: sqlite3.Connection, conversation: int, waiting: WaitingContent
) -> None:
    connection.execute(
        _PUT_WAITING,
        (
            conversation,
            waiting.message_id,
            waiting.sender_id,
            waiting.content,
            waiting.received_ms,
            waiting.shown,
        ),
    )


def _read_waiting(connection: sqlite3.Connection, conversation: int) -> tuple[WaitingContent, ...]:
    cursor = connection.execute(
        "SELECT message_id, sender_id, content, received_ms, shown FROM pair_waiting "
        "WHERE conversation_key = ? ORDER BY waiting_key",
        (conversation,),
    )
    return tuple(
        WaitingContent(
            message_id=MessageId(message_id),
            sender_id=ParticipantId(sender_id),
            content=content,
            received_ms=UnixMs(received_ms),
            shown=bool(shown),
        )
        for message_id, sender_id, content, received_ms, shown in cursor
    )


def _put_lost(connection: sqlite3.Connection, conversation: int, lost: LostRange) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO pair_lost VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation,
            lost.instance_id,
            lost.first,
            lost.last,
            lost.before.lamport_timestamp,
            lost.before.message_id,
            lost.since_ms,
            lost.given_up_ms,
        ),
    )


def _read_lost(connection: sqlite3.Connection, conversation: int) -> tuple[LostRange, ...]:
    cursor = connection.execute(
        "SELECT instance_id, first_sequence, last_sequence, before_lamport, before_message_id, "
        "since_ms, given_up_ms FROM pair_lost WHERE conversation_key = ? "
        "ORDER BY instance_id, first_sequence",
        (conversation,),
    )
    return tuple(
        LostRange(
            instance_id=InstanceId(instance_id),
            first=first,
            last=last,
            before=Position(lamport_timestamp=lamport, message_id=MessageId(message_id)),
            since_ms=UnixMs(since_ms),
            given_up_ms=UnixMs(given_up_ms),
        )
        for instance_id, first, last, lamport, message_id, since_ms, given_up_ms in cursor
    )
