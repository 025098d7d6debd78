"""What becomes of the tables of version 1 that have another form since version 2.

Version 1 kept ids and senders as texts in every row, and the signed bytes of each message as they
are.  The old tables are in the attached database ``old``; each statement here ends where the
condition of a slice follows, in which ``o`` is the old table (``carry_over``).
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.persistence.many_rows import insert
from engine.persistence.raw_blocks import INSERT_RAW, Keyed, add_block, is_complete
from engine.persistence.stored_ids import stored_id

PACKED: Final = "log_raw"
"""The table that ``pack`` carries over."""
MOST_UNPACKED: Final = 16 * 1024 * 1024
"""Bytes of unfinished blocks.  With very many conversations at once, blocks get smaller."""
_TOLD: Final = 1_024

_SENDERS: Final = """
INSERT OR IGNORE INTO participant (conversation_key, participant_id)
SELECT DISTINCT o.conversation_key, o.sender_id FROM old.{table} AS o
"""
_SENDER: Final = """
CROSS JOIN participant AS p
  ON p.conversation_key = o.conversation_key AND p.participant_id = o.sender_id
"""
REFILLED: Final[Mapping[str, Sequence[str]]] = {
    "log_entry": (
        _SENDERS.format(table="log_entry"),
        """
        INSERT OR IGNORE INTO instance (conversation_key, instance_id)
        SELECT DISTINCT o.conversation_key, o.instance_id
        FROM (SELECT * FROM old.log_entry WHERE instance_id IS NOT NULL) AS o
        """,
        f"""
        INSERT INTO log_entry (conversation_key, lamport_timestamp, message_id, sender_key,
                               retrieval_hint, instance_key, sequence, previous_id, size, raw_key)
        SELECT o.conversation_key, o.lamport_timestamp, stored_id(o.message_id), p.participant_key,
               o.retrieval_hint, i.instance_key, o.sequence, o.previous_id, o.size, o.log_key
        FROM old.log_entry AS o {_SENDER}
          LEFT JOIN instance AS i
            ON i.conversation_key = o.conversation_key AND i.instance_id = o.instance_id
        """,  # noqa: S608 - of nothing but literals
    ),
    "message": (
        _SENDERS.format(table="message"),
        f"""
        INSERT INTO message (message_key, conversation_key, message_id, lamport_timestamp, waiting,
                             hidden, is_own, late, kind, sender_key, sent_ms, received_ms, text,
                             spans)
        SELECT o.message_key, o.conversation_key, stored_id(o.message_id), o.lamport_timestamp,
               o.waiting, o.hidden, o.is_own, o.late, o.kind, p.participant_key, o.sent_ms,
               o.received_ms, o.text, o.spans
        FROM old.message AS o {_SENDER}
        """,  # noqa: S608 - as above
    ),
    "holder": (
        """
        INSERT OR IGNORE INTO participant (conversation_key, participant_id)
        SELECT DISTINCT o.conversation_key, o.participant_id FROM old.holder AS o
        """,
        """
        INSERT INTO holder (conversation_key, message_id, participant_key, place, source, since_ms,
                            false_probability)
        SELECT o.conversation_key, stored_id(o.message_id), p.participant_key, o.holder_key,
               o.source, o.since_ms, o.false_probability
        FROM old.holder AS o CROSS JOIN participant AS p
          ON p.conversation_key = o.conversation_key AND p.participant_id = o.participant_id
        """,
    ),
    "delivery": (
        """
        INSERT INTO delivery (conversation_key, message_id, state, attempts, failure)
        SELECT o.conversation_key, stored_id(o.message_id), o.state, o.attempts, o.failure
        FROM old.delivery AS o
        """,
    ),
    "ordinal_block": (
        """
        INSERT INTO ordinal_block (conversation_key, first_lamport, first_message_id, visible)
        SELECT o.conversation_key, o.first_lamport, stored_id(o.first_message_id), o.visible
        FROM old.ordinal_block AS o
        """,
    ),
}
"""By the old table's name: what to execute for each slice; the last carries the rows over."""

AFTERWARDS: Final = (
    """
    UPDATE channel SET holders_put = 1 + (
      SELECT coalesce(max(o.holder_key), 0) FROM old.holder AS o
      WHERE o.conversation_key = channel.conversation_key
    )
    """,
)
_RAWS: Final = """
SELECT e.log_key, e.conversation_key, r.raw
FROM old.log_entry AS e CROSS JOIN old.log_raw AS r ON r.log_key = e.log_key
ORDER BY e.log_key
"""


def stored_id_in_sql(connection: sqlite3.Connection) -> None:
    connection.create_function("stored_id", 1, stored_id, deterministic=True)


def pack(connection: sqlite3.Connection, advance: Callable[[int], None]) -> int:
    """Carry the signed bytes over, in the order of arrival.  Returns how many messages' they are.

    ``advance`` is told of rows now and then.
    """
    unpacked: dict[int, list[Keyed]] = {}
    sizes: dict[int, int] = {}
    rows = 0
    for key, conversation, raw in connection.execute(_RAWS):
        some = unpacked.setdefault(conversation, [])
        some.append((key, raw))
        sizes[conversation] = sizes.get(conversation, 0) + len(raw)
        if is_complete(len(some), sizes[conversation]):
            add_block(connection, conversation, some)
            del unpacked[conversation], sizes[conversation]
        elif sum(sizes.values()) > MOST_UNPACKED:
            largest = max(sizes, key=lambda one: sizes[one])
            add_block(connection, largest, unpacked.pop(largest))
            del sizes[largest]
        rows += 1
        if not rows % _TOLD:
            advance(_TOLD)
    for conversation, some in unpacked.items():
        insert(connection, INSERT_RAW, [(key, conversation, len(raw), raw) for key, raw in some])
    advance(rows % _TOLD)
    return rows
