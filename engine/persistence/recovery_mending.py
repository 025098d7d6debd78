"""Makes the rows that came out of a damaged database agree with each other again.

Rows whose conversation is gone are left out; counts, ordinals and clocks are made again, and the
numbering of own messages begins anew, since some of it may be lost.  What the groups' logs lost is
noted as missing, as if a message had named it: members and Stores are asked for it in the ordinary
way.  A message that is lost from the timeline leaves the log, too, or it would never come again.
"""

import secrets
import sqlite3
from collections.abc import Iterator
from typing import Final

from engine.core.errors import StorageError
from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.core.sds.vocabulary import (
    HistoryEntry,
    MissingEntry,
    MissingState,
    PutMissing,
    RemoveFromLog,
)
from engine.core.stand_in_key import STAND_IN_SEED_BYTES, stand_in_key
from engine.persistence.channel_tables import apply_channel_write
from engine.persistence.many_rows import Value
from engine.persistence.ordinals import BLOCK_ROWS
from engine.persistence.raw_blocks import unpacked
from engine.persistence.reaction_counts import count_all
from engine.persistence.stored_ids import message_id_of, position_of, stored_id

_INSTANCE_BYTES: Final = 16
LOST_MESSAGES: Final = """
CREATE TEMP TABLE lost_message (
  conversation_key INTEGER NOT NULL, message_id ANY NOT NULL, lamport_timestamp INTEGER NOT NULL,
  PRIMARY KEY (conversation_key, message_id)
) STRICT, WITHOUT ROWID
"""
"""Rows of the timeline that an index still names."""
LOST_ENTRIES: Final = """
CREATE TEMP TABLE lost_entry (
  conversation_key INTEGER NOT NULL, message_id ANY NOT NULL, lamport_timestamp INTEGER,
  retrieval_hint BLOB, sender_id TEXT, PRIMARY KEY (conversation_key, message_id)
) STRICT, WITHOUT ROWID
"""
"""Entries of a log that an index still names, or whose signed bytes are gone."""


def leave_out_orphans(target: sqlite3.Connection) -> None:
    """As foreign keys would have it; deleting a parent may leave further ones."""
    while True:
        # It names each row, of which there may be a million, and a statement takes them all.
        broken: set[tuple[str, str, int]] = {
            (child, parent, number)
            for child, _, parent, number in target.execute("PRAGMA foreign_key_check")
        }
        if not broken:
            return
        for child, parent, number in broken:
            foreign = target.execute(f"PRAGMA foreign_key_list({child})").fetchall()
            column = next(key[3] for key in foreign if key[0] == number)
            target.execute(
                f"DELETE FROM {child} WHERE {column} NOT IN (SELECT {_key_of(target, parent)} "  # noqa: S608
                f"FROM {parent})"
            )


def _key_of(target: sqlite3.Connection, table: str) -> str:
    columns = target.execute(f"PRAGMA table_info({table})").fetchall()
    name: str = next(column for _, column, _, _, _, place in columns if place == 1)
    return name


def leave_out_nameless(target: sqlite3.Connection) -> None:
    """Note what names a sender or an instance that is gone as lost, and leave it out."""
    for statement in _NAMELESS:
        target.execute(statement)


def note_lost_bytes(target: sqlite3.Connection) -> None:
    """Take entries whose signed bytes are gone from the log, and note them as lost."""
    target.execute("CREATE TEMP TABLE packed_raw (raw_key INTEGER PRIMARY KEY)")
    for (block_key,) in target.execute("SELECT block_key FROM raw_block").fetchall():
        (data,) = target.execute(
            "SELECT data FROM raw_block WHERE block_key = ?", (block_key,)
        ).fetchone()
        try:
            keys = [(key,) for key in unpacked(block_key, data)]
        except StorageError:
            target.execute("DELETE FROM raw_block WHERE block_key = ?", (block_key,))
        else:
            target.executemany("INSERT OR IGNORE INTO packed_raw VALUES (?)", keys)
    target.execute(f"INSERT OR IGNORE INTO lost_entry {_WITHOUT_BYTES}")
    target.execute(
        "DELETE FROM log_entry WHERE raw_key NOT IN (SELECT raw_key FROM log_raw) "
        "AND raw_key NOT IN (SELECT raw_key FROM packed_raw)"
    )


def want_again(target: sqlite3.Connection, now_ms: UnixMs) -> None:
    """Note what the logs of groups and open channels lost as missing, and ask Stores from anew."""
    for conversation, stored in _lost_from_timeline(target):
        target.execute(_LEAVES, (conversation, stored))
        apply_channel_write(target, conversation, RemoveFromLog(message_id=message_id_of(stored)))
    lost: list[tuple[int, bytes | str, int | None, bytes | None, str | None]] = target.execute(
        f"SELECT * FROM lost_entry WHERE conversation_key IN ({_CHANNELS}) "  # noqa: S608 - our own
        "ORDER BY lamport_timestamp, message_id"
    ).fetchall()
    for conversation, stored, lamport, hint, sender in lost:
        before = None if lamport is None else _first_after(target, conversation, lamport, stored)
        entry = MissingEntry(
            entry=_named(stored, hint, sender),
            state=MissingState.WANTED,
            since_ms=now_ms,
            online_ms=0,
            request_at_ms=now_ms,
            requests=0,
            before=before,
        )
        apply_channel_write(target, conversation, PutMissing(entry=entry))
    for conversation in {row[0] for row in lost}:
        for table in ("history_progress", "history_reach", "store_covered"):
            target.execute(f"DELETE FROM {table} WHERE conversation_key = ?", (conversation,))  # noqa: S608
        target.execute(
            "UPDATE channel SET store_queried_ms = NULL WHERE conversation_key = ?", (conversation,)
        )


def _lost_from_timeline(target: sqlite3.Connection) -> Iterator[tuple[int, bytes | str]]:
    yield from target.execute(
        "SELECT conversation_key, message_id FROM lost_message AS l "
        "WHERE EXISTS (SELECT 1 FROM log_entry AS e WHERE e.conversation_key = l.conversation_key "
        "AND e.message_id = l.message_id)"
    ).fetchall()


def _named(stored: bytes | str, hint: bytes | None, sender: str | None) -> HistoryEntry:
    return HistoryEntry(
        message_id_of(stored), hint, None if sender is None else ParticipantId(sender)
    )


def _first_after(
    target: sqlite3.Connection, conversation: int, lamport: int, stored: bytes | str
) -> Position | None:
    after: tuple[int, bytes | str] | None = target.execute(
        "SELECT lamport_timestamp, message_id FROM log_entry WHERE conversation_key = ? "
        "AND (lamport_timestamp, message_id) > (?, ?) ORDER BY lamport_timestamp, message_id "
        "LIMIT 1",
        (conversation, lamport, stored),
    ).fetchone()
    return None if after is None else position_of(*after)


_CHANNELS: Final = """
SELECT c.conversation_key FROM conversation AS c JOIN channel AS h USING (conversation_key)
WHERE c.kind <> 'pair'
"""
_WITHOUT_BYTES: Final = """
SELECT conversation_key, message_id, lamport_timestamp, retrieval_hint,
       (SELECT participant_id FROM participant AS p WHERE p.participant_key = e.sender_key)
FROM log_entry AS e
WHERE raw_key NOT IN (SELECT raw_key FROM log_raw)
  AND raw_key NOT IN (SELECT raw_key FROM packed_raw)
"""
_NO_SENDER: Final = "sender_key NOT IN (SELECT participant_key FROM participant)"
_NO_INSTANCE: Final = "instance_key NOT IN (SELECT instance_key FROM instance)"
_NAMELESS: Final = (
    f"""
    INSERT OR IGNORE INTO lost_message
    SELECT conversation_key, message_id, lamport_timestamp FROM message WHERE {_NO_SENDER}
    """,  # noqa: S608 - our own literals, as below
    f"""
    INSERT OR IGNORE INTO lost_entry
    SELECT conversation_key, message_id, lamport_timestamp, retrieval_hint, NULL
    FROM log_entry WHERE {_NO_SENDER} OR {_NO_INSTANCE}
    """,  # noqa: S608
    f"DELETE FROM message WHERE {_NO_SENDER}",  # noqa: S608
    f"DELETE FROM log_entry WHERE {_NO_SENDER} OR {_NO_INSTANCE}",  # noqa: S608
    f"DELETE FROM reaction WHERE {_NO_SENDER}",  # noqa: S608
    f"DELETE FROM version WHERE {_NO_SENDER}",  # noqa: S608
    "DELETE FROM holder WHERE participant_key NOT IN (SELECT participant_key FROM participant)",
)
_LEAVES: Final = """
INSERT OR IGNORE INTO lost_entry
SELECT conversation_key, message_id, lamport_timestamp, retrieval_hint,
       (SELECT participant_id FROM participant AS p WHERE p.participant_key = e.sender_key)
FROM log_entry AS e WHERE conversation_key = ? AND message_id = ?
"""


def replace_lost_keys(target: sqlite3.Connection) -> int:
    """Give groups whose epochs are gone a key that nobody else has (``stand_in_key``).

    Returns how many.

    What was said there can be read then; nothing comes or goes until they are joined anew.
    """
    keyless = target.execute(_KEYLESS).fetchall()
    target.executemany(
        "INSERT INTO epoch (conversation_key, place, epoch_key) VALUES (?, 0, ?)",
        [
            (conversation, stand_in_key(secrets.token_bytes(STAND_IN_SEED_BYTES)))
            for (conversation,) in keyless
        ],
    )
    return len(keyless)


_KEYLESS: Final = """
SELECT conversation_key FROM conversation WHERE kind = 'group'
  AND conversation_key NOT IN (SELECT conversation_key FROM epoch)
  AND conversation_key NOT IN (SELECT conversation_key FROM open_channel)
  AND conversation_key NOT IN (SELECT conversation_key FROM removed_conversation)
"""


def make_again(target: sqlite3.Connection) -> None:
    for statement in _MADE_FROM_ROWS:
        target.execute(statement)
    count_all(target)
    target.execute("UPDATE profile SET instance_id = ?", (secrets.token_bytes(_INSTANCE_BYTES),))
    conversations: list[tuple[int]] = target.execute(
        "SELECT conversation_key FROM conversation"
    ).fetchall()
    for (conversation,) in conversations:
        _count_unread(target, conversation)
        _make_ordinals(target, conversation)


_MADE_FROM_ROWS: Final = (
    "INSERT OR IGNORE INTO timeline SELECT conversation_key, NULL, NULL, 0, 0, 0 FROM conversation",
    """
    INSERT OR IGNORE INTO channel (conversation_key, lamport_timestamp)
    SELECT conversation_key, 0 FROM conversation WHERE kind = 'group'
    """,
    """
    UPDATE channel SET lamport_timestamp = max(lamport_timestamp, coalesce((
      SELECT max(lamport_timestamp) FROM log_entry AS l
      WHERE l.conversation_key = channel.conversation_key), 0), coalesce((
      SELECT max(lamport_timestamp) FROM lost_entry AS l
      WHERE l.conversation_key = channel.conversation_key), 0))
    """,
    """
    INSERT OR IGNORE INTO pair_clock
    SELECT conversation_key, 0 FROM conversation WHERE kind = 'pair'
    """,
    """
    UPDATE pair_clock SET lamport_timestamp = max(lamport_timestamp, coalesce((
      SELECT max(lamport_timestamp) FROM message AS m
      WHERE m.conversation_key = pair_clock.conversation_key), 0), coalesce((
      SELECT max(lamport_timestamp) FROM lost_message AS m
      WHERE m.conversation_key = pair_clock.conversation_key), 0))
    """,
    """
    UPDATE timeline SET
      placed = (SELECT count(*) FROM message AS m WHERE hidden = 0 AND m.waiting = 0
                AND m.conversation_key = timeline.conversation_key),
      waiting = (SELECT count(*) FROM message AS m WHERE hidden = 0 AND m.waiting = 1
                 AND m.conversation_key = timeline.conversation_key)
    """,
)


def _count_unread(target: sqlite3.Connection, conversation: int) -> None:
    lamport, message_id = target.execute(
        "SELECT read_lamport, read_message_id FROM timeline WHERE conversation_key = ?",
        (conversation,),
    ).fetchone()
    mark = (-1, "") if lamport is None else (lamport, stored_id(MessageId(message_id)))
    target.execute(
        "UPDATE timeline SET unread = (SELECT count(*) FROM message WHERE conversation_key = ?1 "
        "AND hidden = 0 AND is_own = 0 AND kind IN ('text', 'file') "
        "AND (lamport_timestamp, message_id) > (?2, ?3)) WHERE conversation_key = ?1",
        (conversation, *mark),
    )


def _make_ordinals(target: sqlite3.Connection, conversation: int) -> None:
    """Full blocks; the first begins before all rows."""
    places = target.execute(
        "SELECT lamport_timestamp, message_id FROM message "
        "WHERE conversation_key = ? AND waiting = 0 AND hidden = 0 "
        "ORDER BY waiting, lamport_timestamp, message_id",
        (conversation,),
    )
    first: tuple[Value, Value] = (-1, "")
    number, blocks = 0, list[tuple[Value, ...]]()
    for place in places:
        if number == BLOCK_ROWS:
            blocks.append((conversation, *first, number))
            first, number = place, 0
        number += 1
    if number:
        blocks.append((conversation, *first, number))
    target.executemany("INSERT INTO ordinal_block VALUES (?, ?, ?, ?)", blocks)
