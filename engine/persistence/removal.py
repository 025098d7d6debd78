"""Removes a conversation: invisible immediately, its rows deleted in small slices afterwards.

A million rows lie in random order in some index, and each page of it is decrypted and encrypted
again: minutes in which nothing could be saved.  So one small transaction takes the conversation's
id, its keys and its place in the lists, and it may begin anew under the same id.  The rest is
recorded on disk and deleted a slice at a time, also after a crash.  A short conversation is one
slice and leaves nothing.  Runs inside the store's transaction.
"""

import sqlite3
from typing import Final

from msgspec import Struct

SLICE_ROWS: Final = 250
"""About 20 milliseconds when every row needs another page of a large index."""


class _Growing(Struct, frozen=True):
    """A table whose rows come with messages: its key, and which rows to delete first."""

    table: str
    key: str
    first: str = ""
    cost: int = 1
    """In ordinary rows: a block of raw bytes has several pages of its own."""

    @property
    def delete(self) -> str:
        return (
            f"DELETE FROM {self.table} WHERE ({self.key}) IN (SELECT {self.key} "  # noqa: S608
            f"FROM {self.table} WHERE conversation_key = ? {self.first} LIMIT ?)"
        )


_IN_ORDER: Final = "ORDER BY lamport_timestamp, message_id"
GROWING: Final = (
    # Neighbours in an index are deleted together; otherwise every row would need a page of its own.
    _Growing("message", "message_key", f"AND waiting = 0 AND hidden = 0 {_IN_ORDER}"),
    _Growing("message", "message_key"),
    _Growing("log_entry", "conversation_key, lamport_timestamp, message_id", _IN_ORDER),
    _Growing("log_raw", "raw_key"),
    _Growing("raw_block", "block_key", cost=5),
    _Growing("log_pages", "pages_key", cost=50),
    _Growing("log_buckets", "buckets_key", cost=125),
    _Growing("log_author", "conversation_key, number"),
    _Growing("log_late", "conversation_key, lamport_timestamp, message_id"),
    _Growing("holder", "conversation_key, message_id, participant_key"),
    _Growing("delivery", "conversation_key, message_id"),
    _Growing("waited", "conversation_key, message_id"),
    _Growing("reaction", "conversation_key, target_id, sender_key, emoji_key"),
    _Growing("reaction_count", "conversation_key, target_id, emoji_key"),
    _Growing("version", "version_key"),
    _Growing("file", "file_key", cost=25),
    _Growing("ordinal_block", "conversation_key, first_lamport, first_message_id"),
    _Growing("outgoing", "outgoing_key"),
    _Growing("incoming", "incoming_key"),
    _Growing("missing", "missing_key"),
    _Growing("member", "member_key"),
    _Growing("admin_entry", "entry_key"),
    _Growing("prekey", "prekey_key"),
    _Growing("deed", "conversation_key, entry_id"),
    _Growing("replacement", "replacement_key"),
    _Growing("fork", "fork_key"),
    _Growing("set_aside", "set_aside_key"),
    _Growing("spent", "conversation_key, sender_id, day, fetched"),
    _Growing("muted_member", "conversation_key, participant_id"),
    _Growing("newest_claim", "claim_key"),
    _Growing("own_sequence", "conversation_key, stay"),
    _Growing("pair_author", "conversation_key, instance_id"),
    _Growing("pair_waiting", "waiting_key"),
    _Growing("pair_lost", "conversation_key, instance_id, first_sequence"),
    _Growing(
        "mvds_record",
        "conversation_key, send_epoch, created_ms, peer_id, message_id",
        "ORDER BY send_epoch, created_ms, peer_id, message_id",
    ),
    _Growing("mvds_message", "message_key"),
    _Growing("mvds_held", "conversation_key, message_id"),
    _Growing("mvds_pending_ack", "ack_key"),
    _Growing("history_progress", "conversation_key, purpose"),
    _Growing("store_covered", "conversation_key, store"),
    # After the rows that name them.
    _Growing("participant", "participant_key"),
    _Growing("instance", "instance_key"),
)
SMALL_TABLES: Final = (
    "epoch", "contact", "open_channel", "channel", "timeline", "pair_clock", "history_reach",
    "muting", "log_index", "governed", "own_prekey", "pair_ratchet", "pair_session",
    "own_invitation", "asking",
)  # fmt: skip
"""At most a few rows per conversation; without its timeline it is in no list."""


def remove_conversation(connection: sqlite3.Connection, key: int) -> None:
    """From now on the conversation cannot be found."""
    for table in SMALL_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE conversation_key = ?", (key,))  # noqa: S608
    connection.execute(
        "UPDATE conversation SET conversation_id = 'removed ' || conversation_key, name = '', "
        "admin_public_key = x'', draft = '' WHERE conversation_key = ?",
        (key,),
    )
    connection.execute("INSERT INTO removed_conversation VALUES (?)", (key,))
    _clear(connection, key)


def clear_removed(connection: sqlite3.Connection) -> bool:
    """Delete one slice; return whether there is more."""
    row: tuple[int] | None = connection.execute(
        "SELECT conversation_key FROM removed_conversation LIMIT 1"
    ).fetchone()
    if row is None:
        return False
    _clear(connection, row[0])
    more: tuple[int] = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM removed_conversation)"
    ).fetchone()
    return bool(more[0])


def _clear(connection: sqlite3.Connection, key: int) -> None:
    room = SLICE_ROWS
    for growing in GROWING:
        most = -(-room // growing.cost)
        room -= connection.execute(growing.delete, (key, most)).rowcount * growing.cost
        if room <= 0:
            return
    connection.execute("DELETE FROM removed_conversation WHERE conversation_key = ?", (key,))
    connection.execute("DELETE FROM conversation WHERE conversation_key = ?", (key,))
