"""Merges reactions, edits and retractions with the rows of which they speak.

The result depends only on what was put, not on the order: a message takes what waited for it when
its row comes.  ``reaction`` keeps the newest of each sender, target and emoji, ``version`` the
newest edits and the newest retraction of each sender and target, and the original of a message
that its author changed.  The row itself has the text shown now, for pages and for the search.  Runs
inside the store's transaction.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from engine.core.admin_log.log import Deletion
from engine.core.emoji import without_selectors
from engine.core.ids import MessageId, ParticipantId, Position
from engine.core.records import AnnotationRecord
from engine.persistence import rules
from engine.persistence.file_tables import forget_file
from engine.persistence.many_rows import Value, by_the_dozen, with_ids
from engine.persistence.reaction_counts import count_again
from engine.persistence.short_keys import participant_keys
from engine.persistence.stored_ids import (
    StoredId,
    message_id_of,
    stored_id,
    stored_ids,
    stored_place,
)
from engine.persistence.stored_spans import spans_text

_OF_CONVERSATION: Final = (
    "conversation_key INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE"
)
# What speaks of messages, also of some that are not here.
ANNOTATION_TABLES: Final = (
    "ALTER TABLE message ADD COLUMN reply_to ANY",
    "ALTER TABLE message ADD COLUMN forwarded INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE message ADD COLUMN mentions_me INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE message ADD COLUMN arrival INTEGER",
    "ALTER TABLE message ADD COLUMN repaired_by TEXT",
    # Which edit or retraction is shown; ``text`` and ``spans`` are its own.
    "ALTER TABLE message ADD COLUMN shown_id ANY",
    "ALTER TABLE message ADD COLUMN edited_ms INTEGER",
    "ALTER TABLE message ADD COLUMN retracted INTEGER NOT NULL DEFAULT 0",
    # Whether ``reaction`` has anything about it, so that a page looks nothing up for other rows.
    "ALTER TABLE message ADD COLUMN reacted INTEGER NOT NULL DEFAULT 0",
    """
    CREATE INDEX message_quoting ON message (conversation_key, reply_to, lamport_timestamp)
    WHERE reply_to IS NOT NULL
    """,
    """
    CREATE INDEX mention_order
    ON message (conversation_key, waiting, lamport_timestamp, message_id)
    WHERE hidden = 0 AND is_own = 0 AND kind = 'text' AND mentions_me = 1
    """,
    # The newest of each sender, target and emoji (as ``without_selectors`` writes it).
    f"""
    CREATE TABLE reaction (
      {_OF_CONVERSATION}, target_id ANY NOT NULL, sender_key INTEGER NOT NULL,
      emoji_key TEXT NOT NULL, emoji TEXT NOT NULL, removed INTEGER NOT NULL,
      lamport_timestamp INTEGER NOT NULL, message_id ANY NOT NULL, is_own INTEGER NOT NULL,
      sent_ms INTEGER NOT NULL,
      PRIMARY KEY (conversation_key, target_id, sender_key, emoji_key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE INDEX reaction_order ON reaction (conversation_key, lamport_timestamp, message_id)
    """,
    """
    CREATE INDEX own_reaction ON reaction (conversation_key, message_id) WHERE is_own = 1
    """,
    # Edits, retractions, and the original of each message that was edited or retracted.
    f"""
    CREATE TABLE version (
      version_key INTEGER PRIMARY KEY, {_OF_CONVERSATION}, target_id ANY NOT NULL,
      sender_key INTEGER NOT NULL, kind TEXT NOT NULL, lamport_timestamp INTEGER NOT NULL,
      message_id ANY NOT NULL, is_own INTEGER NOT NULL, sent_ms INTEGER NOT NULL,
      received_ms INTEGER NOT NULL, text TEXT NOT NULL, spans TEXT NOT NULL,
      mentions_me INTEGER NOT NULL,
      UNIQUE (conversation_key, target_id, sender_key, kind, lamport_timestamp, message_id)
    ) STRICT
    """,
    """
    CREATE INDEX version_order ON version (conversation_key, lamport_timestamp, message_id)
    WHERE kind <> 'original'
    """,
    """
    CREATE INDEX own_version ON version (conversation_key, message_id)
    WHERE is_own = 1 AND kind <> 'original'
    """,
)

REACTION: Final = "reaction"
EDIT: Final = "edit"
RETRACTION: Final = "retraction"
DELETION: Final = "deletion"
"""Of a version: an admin deleted the message.  Its sender is the author whom the admin named, its
text the admin, and its place is before all others."""
ORIGINAL: Final = "original"
"""Of a version: the message's own text.  Never said by anybody as an annotation."""

_PUT_REACTION: Final = """
INSERT INTO reaction (conversation_key, target_id, sender_key, emoji_key, emoji, removed,
                      lamport_timestamp, message_id, is_own, sent_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, target_id, sender_key, emoji_key) DO UPDATE SET
  emoji = excluded.emoji, removed = excluded.removed,
  lamport_timestamp = excluded.lamport_timestamp, message_id = excluded.message_id,
  is_own = excluded.is_own, sent_ms = excluded.sent_ms
WHERE (excluded.lamport_timestamp, excluded.message_id) > (lamport_timestamp, message_id)
"""
_FORGET_REACTIONS: Final = """
DELETE FROM reaction
WHERE (conversation_key, target_id, sender_key, emoji_key) IN (
  SELECT conversation_key, target_id, sender_key, emoji_key FROM reaction
  WHERE conversation_key = ? AND target_id = ? AND sender_key = ?
  -- With "+", or the index of the whole conversation would be read for its order.
  ORDER BY +lamport_timestamp DESC, +message_id DESC LIMIT -1 OFFSET ?
)
RETURNING target_id, emoji_key
"""
_MARK_REACTED: Final = """
UPDATE message SET reacted = 1 WHERE conversation_key = ? AND message_id = ? AND reacted = 0
"""
_PUT_VERSION: Final = """
INSERT INTO version (conversation_key, target_id, sender_key, kind, lamport_timestamp, message_id,
                     is_own, sent_ms, received_ms, text, spans, mentions_me)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_key, target_id, sender_key, kind, lamport_timestamp, message_id)
DO NOTHING
"""
_FORGET_VERSIONS: Final = """
DELETE FROM version WHERE version_key IN (
  SELECT version_key FROM version
  WHERE conversation_key = ? AND target_id = ? AND sender_key = ? AND kind = ?
  ORDER BY lamport_timestamp DESC, message_id DESC LIMIT -1 OFFSET ?
)
"""
_KEEP_ORIGINAL: Final = """
INSERT INTO version (conversation_key, target_id, sender_key, kind, lamport_timestamp, message_id,
                     is_own, sent_ms, received_ms, text, spans, mentions_me)
SELECT conversation_key, message_id, sender_key, 'original', lamport_timestamp, message_id, is_own,
       sent_ms, received_ms, text, spans, mentions_me
FROM message WHERE conversation_key = ? AND message_id = ?
"""
_FORGET_ORIGINAL: Final = (
    "DELETE FROM version WHERE conversation_key = ? AND target_id = ? AND kind = 'original'"
)
NEWEST_VERSION: Final = """
SELECT message_id, sent_ms, text, spans, mentions_me FROM version
WHERE conversation_key = ? AND target_id = ? AND sender_key = ? AND kind = ?
ORDER BY lamport_timestamp DESC, message_id DESC LIMIT 1
"""
_SHOW: Final = """
UPDATE message SET shown_id = ?, edited_ms = ?, retracted = ?, text = ?, spans = ?, mentions_me = ?
WHERE conversation_key = ? AND message_id = ?
"""
_ERASE: Final = """
UPDATE version SET text = '', spans = '', mentions_me = 0
WHERE conversation_key = ? AND target_id = ? AND sender_key = ? AND text <> ''
"""
REACTED_TO: Final = with_ids(
    "SELECT DISTINCT target_id FROM reaction WHERE conversation_key = ? AND target_id IN"
)
_CHANGED: Final = with_ids(
    "SELECT DISTINCT target_id FROM version WHERE conversation_key = ? AND target_id IN"
)
_REMOVE_REACTION: Final = """
DELETE FROM reaction WHERE conversation_key = ? AND lamport_timestamp = ? AND message_id = ?
RETURNING target_id, emoji_key
"""
_VERSIONS_AT: Final = """
SELECT target_id FROM version
WHERE conversation_key = ? AND lamport_timestamp = ? AND message_id = ? AND kind <> 'original'
"""
_REMOVE_VERSION: Final = """
DELETE FROM version
WHERE conversation_key = ? AND lamport_timestamp = ? AND message_id = ? AND kind <> 'original'
  AND target_id = ?
"""
_DELETIONS: Final = """
SELECT v.target_id, p.participant_id, v.text
FROM version AS v INDEXED BY version_order CROSS JOIN participant AS p
  ON p.participant_key = v.sender_key
WHERE v.conversation_key = ? AND v.lamport_timestamp = 0 AND v.kind <> 'original'
  AND v.kind = 'deletion'
"""
_DELETED_BY: Final = with_ids(
    "SELECT v.target_id, v.text FROM version AS v CROSS JOIN message AS m "
    "ON m.conversation_key = v.conversation_key AND m.message_id = v.target_id "
    "AND m.sender_key = v.sender_key "
    "WHERE v.kind = 'deletion' AND v.conversation_key = ? AND v.target_id IN"
)
_Version: TypeAlias = tuple[StoredId, int, str, str, int]
"""Id, time, text, spans, and whether it mentions us."""
_Emoji: TypeAlias = tuple[StoredId, str]
"""A message, and the key of an emoji."""


def put_annotations(
    connection: sqlite3.Connection, conversation: int, records: Sequence[AnnotationRecord]
) -> None:
    senders = participant_keys(connection, conversation, [one.sender_id for one in records])
    changed: dict[StoredId, None] = {}
    recounted: dict[_Emoji, None] = {}
    for record in records:
        sender = senders[record.sender_id]
        if record.kind == REACTION:
            recounted |= dict.fromkeys(_put_reaction(connection, conversation, record, sender))
        else:
            _put_version(connection, conversation, record, sender)
            changed[stored_id(record.target_id)] = None
    for target in changed:
        _show(connection, conversation, target)
    count_again(connection, conversation, recounted)


def _put_reaction(
    connection: sqlite3.Connection, conversation: int, record: AnnotationRecord, sender: int
) -> list[_Emoji]:
    """Returns what is to be counted again."""
    target = stored_id(record.target_id)
    key = without_selectors(record.emoji)
    connection.execute(
        _PUT_REACTION,
        (
            conversation, target, sender, key, record.emoji, record.removed,
            *stored_place(record.position), record.is_own, record.sent_ms,
        ),
    )  # fmt: skip
    forgotten: list[_Emoji] = connection.execute(
        _FORGET_REACTIONS, (conversation, target, sender, rules.MAX_EMOJI_EACH)
    ).fetchall()
    connection.execute(_MARK_REACTED, (conversation, target))
    return [(target, key), *forgotten]


def _put_version(
    connection: sqlite3.Connection, conversation: int, record: AnnotationRecord, sender: int
) -> None:
    target = stored_id(record.target_id)
    connection.execute(
        _PUT_VERSION,
        (
            conversation, target, sender, record.kind, *stored_place(record.position),
            record.is_own, record.sent_ms, record.received_ms, record.text,
            spans_text(record.spans), record.mentions_me,
        ),
    )  # fmt: skip
    kept = rules.MAX_VERSIONS if record.kind == EDIT else 1
    connection.execute(_FORGET_VERSIONS, (conversation, target, sender, record.kind, kept))


def rows_came(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> list[MessageId]:
    """These rows were written with their own texts: apply what speaks of them.

    Returns the ids of those of which something does.
    """
    stored = stored_ids(message_ids)
    reacted = _spoken_of(connection, REACTED_TO, conversation, stored)
    for target in reacted:
        connection.execute(_MARK_REACTED, (conversation, target))
    changed = _spoken_of(connection, _CHANGED, conversation, stored)
    for target in changed:
        connection.execute(_FORGET_ORIGINAL, (conversation, target))
        _show(connection, conversation, target)
    return [message_id_of(target) for target in (*reacted, *changed)]


def row_goes(connection: sqlite3.Connection, conversation: int, message_id: MessageId) -> None:
    """The row is removed; what others said of it waits for its return."""
    connection.execute(_FORGET_ORIGINAL, (conversation, stored_id(message_id)))


def remove_annotation(
    connection: sqlite3.Connection, conversation: int, position: Position
) -> None:
    """Its author replaced it; nothing happens if there is none at this position."""
    place = (conversation, *stored_place(position))
    recounted: list[_Emoji] = connection.execute(_REMOVE_REACTION, place).fetchall()
    count_again(connection, conversation, recounted)
    targets: list[tuple[StoredId]] = connection.execute(_VERSIONS_AT, place).fetchall()
    for (target,) in targets:
        connection.execute(_REMOVE_VERSION, (*place, target))
        _show(connection, conversation, target)


def put_deletion(
    connection: sqlite3.Connection,
    conversation: int,
    deletion: Deletion,
    deleted_by: ParticipantId | None,
) -> None:
    target = stored_id(deletion.message_id)
    senders = participant_keys(connection, conversation, [deletion.author])
    place = (conversation, target, senders[deletion.author], DELETION)
    connection.execute(
        "DELETE FROM version "
        "WHERE conversation_key = ? AND target_id = ? AND sender_key = ? AND kind = ?",
        place,
    )
    if deleted_by is not None:
        connection.execute(_PUT_VERSION, (*place, 0, target, False, 0, 0, deleted_by, "", False))
    _show(connection, conversation, target)


def read_deletions(
    connection: sqlite3.Connection, conversation: int
) -> dict[Deletion, ParticipantId]:
    """By whom."""
    rows: list[tuple[StoredId, str, str]] = connection.execute(
        _DELETIONS, (conversation,)
    ).fetchall()
    return {
        Deletion(message_id_of(target), ParticipantId(author)): ParticipantId(deleted_by)
        for target, author, deleted_by in rows
    }


def deleted_by(
    connection: sqlite3.Connection, conversation: int, targets: Sequence[StoredId]
) -> dict[StoredId, ParticipantId]:
    """Which admin deleted these messages."""
    found: list[tuple[StoredId, str]] = []
    for asked in by_the_dozen(targets):
        found += connection.execute(_DELETED_BY[len(asked)], (conversation, *asked)).fetchall()
    return {target: ParticipantId(who) for target, who in found}


def _spoken_of(
    connection: sqlite3.Connection,
    sql: Mapping[int, str],
    conversation: int,
    stored: Sequence[StoredId],
) -> list[StoredId]:
    found: list[tuple[StoredId]] = []
    for asked in by_the_dozen(stored):
        found += connection.execute(sql[len(asked)], (conversation, *asked)).fetchall()
    return [target for (target,) in found]


def _show(connection: sqlite3.Connection, conversation: int, target: StoredId) -> None:
    """Give the row the text that counts now; nothing happens if it is not here or says nothing."""
    row: tuple[int, str, StoredId | None] | None = connection.execute(
        "SELECT sender_key, kind, shown_id FROM message "
        "WHERE conversation_key = ? AND message_id = ?",
        (conversation, target),
    ).fetchone()
    if row is None or row[1] not in rules.SAID_KINDS:
        return
    sender, _, shown = row

    def newest(kind: str) -> _Version | None:
        version: _Version | None = connection.execute(
            NEWEST_VERSION, (conversation, target, sender, kind)
        ).fetchone()
        return version

    retraction = newest(RETRACTION)
    deletion = newest(DELETION)
    edit = newest(EDIT)
    if shown is None and (retraction or deletion or edit):
        connection.execute(_KEEP_ORIGINAL, (conversation, target))
    values: tuple[Value, ...]
    if retraction is not None:
        connection.execute(_ERASE, (conversation, target, sender))
        forget_file(connection, conversation, target)
        values = (retraction[0], None, True, "", "", False)
    elif deletion is not None:  # What it had is kept.
        values = (target, None, True, "", "", False)
    elif edit is not None:
        shown_id, sent_ms, text, spans, mentions_me = edit
        values = (shown_id, sent_ms, False, text, spans, mentions_me)
    elif (original := newest(ORIGINAL)) is not None:  # Its author replaced what changed it.
        _, _, text, spans, mentions_me = original
        values = (None, None, False, text, spans, mentions_me)
        connection.execute(_FORGET_ORIGINAL, (conversation, target))
    else:
        return
    connection.execute(_SHOW, (*values, conversation, target))
