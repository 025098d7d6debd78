"""Carries a database of version 1 over into the tables of version 2, whole or not at all.

Version 1 kept ids and senders as texts in every row, and the signed bytes of each message as they
are.  The tables that change are set aside, made anew, filled and dropped, in one transaction.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from sqlcipher3 import dbapi2

from engine.persistence.many_rows import insert
from engine.persistence.raw_blocks import (
    INSERT_RAW,
    Keyed,
    add_block,
    in_blocks,
    is_complete,
)
from engine.persistence.stored_ids import stored_id

MOST_TO_REWRITE: Final = 256 * 1024 * 1024
"""Bytes.  VACUUM keeps its copy in memory, because nothing decrypted is written elsewhere."""

# The last first: its rows refer to those of the one before.
_CHANGED: Final = (
    "log_raw", "log_entry", "holder", "message", "delivery", "ordinal_block",
)  # fmt: skip
_INDEXES: Final = ("timeline_order", "unread_order", "muted_order", "delivery_unsettled")
"""Those whose names are needed again."""
_COPIES: Final = (
    """
    INSERT INTO participant (conversation_key, participant_id)
    SELECT conversation_key, sender_id FROM before_log_entry
    UNION SELECT conversation_key, sender_id FROM before_message
    UNION SELECT conversation_key, participant_id FROM before_holder
    """,
    """
    INSERT INTO instance (conversation_key, instance_id)
    SELECT DISTINCT conversation_key, instance_id FROM before_log_entry
    WHERE instance_id IS NOT NULL
    """,
    """
    INSERT INTO log_entry (conversation_key, lamport_timestamp, message_id, sender_key,
                           retrieval_hint, instance_key, sequence, previous_id, size, raw_key)
    SELECT l.conversation_key, l.lamport_timestamp, stored_id(l.message_id), p.participant_key,
           l.retrieval_hint, i.instance_key, l.sequence, l.previous_id, l.size, l.log_key
    FROM before_log_entry AS l
      JOIN participant AS p
        ON p.conversation_key = l.conversation_key AND p.participant_id = l.sender_id
      LEFT JOIN instance AS i
        ON i.conversation_key = l.conversation_key AND i.instance_id = l.instance_id
    ORDER BY l.conversation_key, l.lamport_timestamp, l.message_id
    """,
    """
    INSERT INTO message (message_key, conversation_key, message_id, lamport_timestamp, waiting,
                         hidden, is_own, late, kind, sender_key, sent_ms, received_ms, text, spans)
    SELECT m.message_key, m.conversation_key, stored_id(m.message_id), m.lamport_timestamp,
           m.waiting, m.hidden, m.is_own, m.late, m.kind, p.participant_key, m.sent_ms,
           m.received_ms, m.text, m.spans
    FROM before_message AS m
      JOIN participant AS p
        ON p.conversation_key = m.conversation_key AND p.participant_id = m.sender_id
    ORDER BY m.message_key
    """,
    """
    INSERT INTO holder (conversation_key, message_id, participant_key, place, source, since_ms,
                        false_probability)
    SELECT h.conversation_key, stored_id(h.message_id), p.participant_key, h.holder_key, h.source,
           h.since_ms, h.false_probability
    FROM before_holder AS h
      JOIN participant AS p
        ON p.conversation_key = h.conversation_key AND p.participant_id = h.participant_id
    """,
    "ALTER TABLE channel ADD COLUMN holders_put INTEGER NOT NULL DEFAULT 0",
    """
    UPDATE channel SET holders_put = 1 + (
      SELECT coalesce(max(place), 0) FROM holder
      WHERE holder.conversation_key = channel.conversation_key
    )
    """,
    """
    INSERT INTO delivery (conversation_key, message_id, state, attempts, failure)
    SELECT conversation_key, stored_id(message_id), state, attempts, failure FROM before_delivery
    """,
    """
    INSERT INTO ordinal_block (conversation_key, first_lamport, first_message_id, visible)
    SELECT conversation_key, first_lamport, stored_id(first_message_id), visible
    FROM before_ordinal_block
    """,
)


def carry_over(connection: sqlite3.Connection, tables: Sequence[str]) -> None:
    """Copy everything into ``tables``, the statements that make the new ones."""
    connection.create_function("stored_id", 1, stored_id, deterministic=True)
    for index in _INDEXES:
        connection.execute(f"DROP INDEX {index}")
    for table in _CHANGED:
        connection.execute(f"ALTER TABLE {table} RENAME TO before_{table}")
    for statement in (*tables, *_COPIES):
        connection.execute(statement)
    for (conversation,) in connection.execute(
        "SELECT conversation_key FROM conversation"
    ).fetchall():
        _pack(connection, conversation)
    for table in _CHANGED:
        connection.execute(f"DROP TABLE before_{table}")


def give_back(connection: sqlite3.Connection) -> None:
    """Make the file as small as its content, unless it is very large; then rows will fill it."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])  # SQLCipher gives some as texts.
        for name in ("page_count", "freelist_count", "page_size")
    )
    if free and (pages - free) * size <= MOST_TO_REWRITE:
        with suppress(dbapi2.OperationalError):  # As for want of room: nothing depends on it.
            connection.execute("VACUUM")


def _pack(connection: sqlite3.Connection, conversation: int) -> None:
    for keyed in in_blocks(_raws(connection, conversation)):
        if is_complete(len(keyed), sum(len(raw) for _, raw in keyed)):
            add_block(connection, conversation, keyed)
        else:
            rows = [(key, conversation, len(raw), raw) for key, raw in keyed]
            insert(connection, INSERT_RAW, rows)


def _raws(connection: sqlite3.Connection, conversation: int) -> Iterator[Keyed]:
    """In the order of arrival.  Sorted by SQLite with their bytes, all would be in memory."""
    keys: list[tuple[int]] = connection.execute(
        "SELECT log_key FROM before_log_entry WHERE conversation_key = ? ORDER BY log_key",
        (conversation,),
    ).fetchall()
    for key in keys:
        yield connection.execute(
            "SELECT log_key, raw FROM before_log_raw WHERE log_key = ?", key
        ).fetchone()
