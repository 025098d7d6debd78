"""The tables of the search, and which messages are still to be indexed.

``search_N`` is an FTS5 table without the texts; N counts how often it was made anew.  A message is
indexed under its ``message_key``.  New ones are those beyond ``indexed_to``, so receiving costs
nothing; triggers note in ``search_due`` which changed or went, in every connection.  Messages of an
old profile are indexed downwards from ``old_from`` to ``old_after``.

Each term begins with the code of a bucket: a stretch of Lamport timestamps with a few thousand
messages, over all conversations.  So the newest hits are found bucket by bucket, however many
there are in all, and the beginning of a word is looked up among the words of one bucket.  Only
terms of scripts without spaces have codes of several buckets (``search_pairs``).  Runs inside the
store's transaction.
"""

import sqlite3
import unicodedata
from typing import Final
from zlib import crc32

from msgspec import Struct

from engine.core.ids import ParticipantId

FORM: Final = f"4, Unicode {unicodedata.unidata_version}"
"""Changes with what ``search_text`` makes of a text."""
SIGN: Final = "\ue000"
"""Begins what is no word: no word has such a character."""
DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_CODE_LENGTH: Final = 4
_BLOCK_BYTES: Final = 3_960
"""Of the index.  FTS5's own size is a little more than a page of a sealed database has room for."""

_CHANGED: Final = """
  OLD.text IS NOT NEW.text OR OLD.spans IS NOT NEW.spans OR OLD.kind IS NOT NEW.kind
  OR OLD.lamport_timestamp IS NOT NEW.lamport_timestamp OR OLD.sender_key IS NOT NEW.sender_key
  OR OLD.retracted IS NOT NEW.retracted OR (OLD.hidden = 1) IS NOT (NEW.hidden = 1)
"""
_TRIGGERS: Final = ("search_message_changed", "search_message_left")
SEARCH_TABLES: Final = (
    """
    CREATE TABLE search_state (
      state_key INTEGER PRIMARY KEY CHECK (state_key = 1), form TEXT NOT NULL,
      generation INTEGER NOT NULL, indexed_to INTEGER NOT NULL, old_after INTEGER NOT NULL,
      old_from INTEGER NOT NULL, old_total INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE TABLE search_due (message_key INTEGER PRIMARY KEY) STRICT",
    # Up to the next one's first timestamp; least and most are of what is in it.
    """
    CREATE TABLE search_bucket (
      bucket_key INTEGER PRIMARY KEY, first_lamport INTEGER NOT NULL, rows INTEGER NOT NULL,
      least_lamport INTEGER NOT NULL, most_lamport INTEGER NOT NULL,
      least_sent_ms INTEGER NOT NULL, most_sent_ms INTEGER NOT NULL
    ) STRICT
    """,
    f"""
    CREATE TRIGGER search_message_changed AFTER UPDATE ON message WHEN {_CHANGED}
    BEGIN
      INSERT INTO search_due SELECT NEW.message_key
      WHERE NOT EXISTS (SELECT 1 FROM search_due WHERE message_key = NEW.message_key);
    END
    """,  # noqa: S608 - our own literal
    # The key of the last row is given again, to a message that would not count as new.
    """
    CREATE TRIGGER search_message_left AFTER DELETE ON message
    BEGIN
      INSERT INTO search_due SELECT OLD.message_key
      WHERE NOT EXISTS (SELECT 1 FROM search_due WHERE message_key = OLD.message_key);
      UPDATE search_state SET indexed_to = OLD.message_key - 1
      WHERE indexed_to >= OLD.message_key
        AND NOT EXISTS (SELECT 1 FROM message WHERE message_key > OLD.message_key);
    END
    """,
    """
    INSERT INTO search_state VALUES (1, '', 0, 0, 0, 0, 0)
    """,
)
"""Statements that make them, and the triggers.  The first indexing makes the FTS5 table."""


class SearchState(Struct):
    form: str
    generation: int
    indexed_to: int
    old_after: int
    old_from: int
    old_total: int

    @property
    def table(self) -> str:
        return f"search_{self.generation}"

    @property
    def old_left(self) -> int:
        return max(self.old_from - self.old_after, 0)


def read_state(connection: sqlite3.Connection) -> SearchState:
    row: tuple[str, int, int, int, int, int] = connection.execute(
        "SELECT form, generation, indexed_to, old_after, old_from, old_total FROM search_state"
    ).fetchone()
    return SearchState(*row)


def write_state(connection: sqlite3.Connection, state: SearchState) -> None:
    connection.execute(
        "UPDATE search_state SET form = ?, generation = ?, indexed_to = ?, old_after = ?, "
        "old_from = ?, old_total = ?",
        (
            state.form, state.generation, state.indexed_to, state.old_after, state.old_from,
            state.old_total,
        ),
    )  # fmt: skip


def newest_key(connection: sqlite3.Connection) -> int:
    row: tuple[int] = connection.execute(
        "SELECT coalesce(max(message_key), 0) FROM message"
    ).fetchone()
    return row[0]


def begin_anew(connection: sqlite3.Connection, *, drop: bool) -> None:
    """An empty index, and all messages to be indexed as those of an old profile.

    ``drop``: the former one is removed, which a damaged one may not let happen.
    """
    state = read_state(connection)
    if drop:
        connection.execute(f"DROP TABLE IF EXISTS {state.table}")
        connection.execute(f"DROP TABLE IF EXISTS {state.table}_common")
    newest = newest_key(connection)
    state = SearchState(FORM, state.generation + 1, newest, 0, newest, newest)
    connection.execute("DELETE FROM search_due")
    connection.execute("DELETE FROM search_bucket")
    # Everything but separators is part of a term: texts are folded and cut before.
    connection.execute(
        f"CREATE VIRTUAL TABLE {state.table} USING fts5(terms, content='', contentless_delete=1, "
        "detail=none, tokenize=\"unicode61 remove_diacritics 2 categories 'L* N* M* Co'\")"
    )
    connection.execute(
        f"INSERT INTO {state.table} ({state.table}, rank) VALUES ('pgsz', ?)",  # noqa: S608
        (_BLOCK_BYTES,),
    )
    # After which characters there are more than the fewest kinds (``search_pairs``).
    connection.execute(
        f"CREATE TABLE {state.table}_common (epoch INTEGER, character TEXT, kinds INTEGER NOT NULL,"
        " PRIMARY KEY (epoch, character)) STRICT, WITHOUT ROWID"
    )
    write_state(connection, state)


def give_up(connection: sqlite3.Connection) -> None:
    """Note nothing from now on: if the notes are damaged, messages could not be stored."""
    for name in _TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")


# --- terms --------------------------------------------------------------------------------------


def code_of(bucket_key: int) -> str:
    """Of one length, so that a word is never taken for a code and another word."""
    digits = ""
    for _ in range(_CODE_LENGTH):
        bucket_key, digit = divmod(bucket_key, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits


IN_CONVERSATION: Final = f"{SIGN}c"
"""The beginning of a term that each message has."""
HAS_RUNS: Final = SIGN
"""A term of each message in a bucket that has something in a script without spaces."""
WITH_FILE: Final = f"{SIGN}f"
WITH_LINK: Final = f"{SIGN}l"
LINK_SPAN: Final = '["link", '
"""In the spans of a message with a link."""


def conversation_term(conversation: int) -> str:
    return f"{IN_CONVERSATION}{conversation}"


def sender_term(sender_id: ParticipantId) -> str:
    """Others may have the same, so the sender is compared, too."""
    return f"{SIGN}p{crc32(sender_id.encode('utf-8', 'surrogatepass')):08x}"
