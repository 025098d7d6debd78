"""Reads what was said about messages: quotes, versions, who reacted, and the newest of it.

A page asks once for all of its rows that quote something; other rows cost nothing.  Reactions of
muted members are left out when they are read, so that muting touches no row.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from engine.core.ids import DeliveryState, MessageId, ParticipantId, Position, UnixMs
from engine.core.records import DeliveryRecord
from engine.core.stored import StoredAnnotation, StoredQuote, StoredReactor, StoredVersion
from engine.persistence import rules
from engine.persistence.annotation_tables import EDIT, ORIGINAL
from engine.persistence.channel_reads import read_holders
from engine.persistence.file_tables import read_files
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.stored_ids import (
    StoredId,
    message_id_of,
    position_of,
    stored_id,
    stored_ids,
    stored_place,
)
from engine.persistence.stored_spans import spans_of

_NOT_MUTED: Final = """
NOT EXISTS (SELECT 1 FROM muted_member AS mute WHERE mute.conversation_key = r.conversation_key
            AND mute.participant_id = p.participant_id)
"""
_QUOTED: Final = f"""
SELECT m.message_id, m.lamport_timestamp, p.participant_id, m.is_own,
       CASE WHEN m.kind = 'file' AND m.text = '' AND m.retracted = 0 THEN coalesce((
              SELECT f.name FROM file AS f
              WHERE f.conversation_key = m.conversation_key AND f.message_id = m.message_id), '')
            WHEN m.kind IN ('text', 'file') THEN substr(m.text, 1, {2 * rules.QUOTED_CHARACTERS})
            ELSE '' END,
       CASE WHEN m.kind IN ('text', 'file') THEN m.spans ELSE '' END, m.retracted, m.hidden,
       m.kind = 'file' AND m.retracted = 0 AND m.hidden = 0
FROM message AS m CROSS JOIN participant AS p ON p.participant_key = m.sender_key
"""  # noqa: S608 - our own number
QUOTES: Final = with_ids(f"{_QUOTED} WHERE m.conversation_key = ? AND m.message_id IN")
_QuoteRow: TypeAlias = tuple[StoredId, int, ParticipantId, int, str, str, int, int, int]
KEPT_FROM_US: Final = with_ids(
    "SELECT message_id FROM missing WHERE conversation_key = ? AND state = 'lost' "
    "AND stores_kept_back = 1 AND online_ms = 0 AND message_id IN"
)
TARGETS: Final = with_ids(
    """
SELECT target_id FROM (
  SELECT conversation_key, message_id, target_id FROM reaction WHERE is_own = 1
  UNION ALL
  SELECT conversation_key, message_id, target_id FROM version
  WHERE is_own = 1 AND kind <> 'original'
)
WHERE conversation_key = ? AND message_id IN
    """
)
_COUNTING: Final = """
SELECT 1 FROM reaction
WHERE conversation_key = ? AND lamport_timestamp = ? AND message_id = ? AND removed = 0
"""
QUOTING: Final = with_ids(
    "SELECT message_id FROM message INDEXED BY message_quoting "
    "WHERE conversation_key = ? AND reply_to IN",
    order=f"ORDER BY lamport_timestamp DESC LIMIT {rules.MAX_QUOTING}",
)
VERSIONS: Final = """
SELECT v.message_id, CASE m.retracted WHEN 1 THEN '' ELSE v.text END,
       CASE m.retracted WHEN 1 THEN '' ELSE v.spans END, v.sent_ms, v.received_ms, v.is_own,
       v.message_id = coalesce(m.shown_id, m.message_id), d.state, d.attempts, d.failure
FROM message AS m CROSS JOIN version AS v
  ON v.conversation_key = m.conversation_key AND v.target_id = m.message_id
    AND v.sender_key = m.sender_key AND v.kind = ?
LEFT JOIN delivery AS d
  ON v.is_own = 1 AND d.conversation_key = v.conversation_key AND d.message_id = v.message_id
WHERE m.conversation_key = ? AND m.message_id = ?
ORDER BY v.lamport_timestamp, v.message_id
"""
_UNCHANGED: Final = """
SELECT m.message_id, m.text, m.spans, m.sent_ms, m.received_ms, m.is_own, 1, d.state, d.attempts,
       d.failure
FROM message AS m
LEFT JOIN delivery AS d
  ON m.is_own = 1 AND d.conversation_key = m.conversation_key AND d.message_id = m.message_id
WHERE m.conversation_key = ? AND m.message_id = ? AND m.kind IN ('text', 'file')
"""
_VersionRow: TypeAlias = tuple[
    StoredId, str, str, int, int, int, int, str | None, int | None, str | None
]
REACTORS: Final = f"""
SELECT r.message_id, p.participant_id, r.emoji, r.sent_ms, r.is_own, d.state, d.attempts, d.failure
FROM reaction AS r CROSS JOIN participant AS p ON p.participant_key = r.sender_key
LEFT JOIN delivery AS d
  ON r.is_own = 1 AND d.conversation_key = r.conversation_key AND d.message_id = r.message_id
WHERE r.conversation_key = ? AND r.target_id = ? AND r.removed = 0 AND {_NOT_MUTED}
  AND NOT EXISTS (SELECT 1 FROM message AS m WHERE m.conversation_key = r.conversation_key
                  AND m.message_id = r.target_id AND m.retracted = 1)
ORDER BY r.lamport_timestamp, r.message_id
"""  # noqa: S608 - our own columns
_ReactorRow: TypeAlias = tuple[
    StoredId, ParticipantId, str, int, int, str | None, int | None, str | None
]
# Only the newest are looked at, as somebody may speak of messages that are nowhere.
LATE_REACTIONS: Final = f"""
SELECT 'reaction', r.message_id, r.target_id, p.participant_id, r.is_own, r.sent_ms, r.emoji,
       r.lamport_timestamp
FROM (
  SELECT * FROM reaction INDEXED BY reaction_order
  WHERE conversation_key = ? AND (lamport_timestamp, message_id) > (?, ?)
  ORDER BY lamport_timestamp DESC, message_id DESC LIMIT {rules.MAX_LATE_LOOKED_AT}
) AS r
CROSS JOIN participant AS p ON p.participant_key = r.sender_key
CROSS JOIN message AS m
  ON m.conversation_key = r.conversation_key AND m.message_id = r.target_id
WHERE r.removed = 0 AND m.hidden = 0 AND m.retracted = 0 AND {_NOT_MUTED}
ORDER BY r.lamport_timestamp DESC, r.message_id DESC LIMIT 1
"""  # noqa: S608 - our own columns
LATE_CHANGES: Final = f"""
SELECT v.kind, v.message_id, v.target_id, p.participant_id, v.is_own, v.sent_ms, '',
       v.lamport_timestamp
FROM (
  SELECT * FROM version INDEXED BY version_order
  WHERE conversation_key = ? AND kind <> 'original'
    AND (lamport_timestamp, message_id) > (?, ?)
  ORDER BY lamport_timestamp DESC, message_id DESC LIMIT {rules.MAX_LATE_LOOKED_AT}
) AS v
CROSS JOIN participant AS p ON p.participant_key = v.sender_key
CROSS JOIN message AS m
  ON m.conversation_key = v.conversation_key AND m.message_id = v.target_id
    AND m.shown_id = v.message_id
WHERE m.hidden = 0
ORDER BY v.lamport_timestamp DESC, v.message_id DESC LIMIT 1
"""  # noqa: S608 - our own columns
_LateRow: TypeAlias = tuple[str, StoredId, StoredId, ParticipantId, int, int, str, int]


def quotes(
    connection: sqlite3.Connection, conversation: int, quoted: Sequence[StoredId]
) -> Mapping[StoredId, StoredQuote]:
    """Those of the messages that are here, shown or not."""
    found: dict[StoredId, StoredQuote] = {}
    for asked in by_the_dozen(quoted):
        rows: list[_QuoteRow] = connection.execute(
            QUOTES[len(asked)], (conversation, *asked)
        ).fetchall()
        with_file = [row[0] for row in rows if row[8]]
        files = read_files(connection, conversation, with_file) if with_file else {}
        for stored, lamport, sender_id, is_own, text, spans, retracted, hidden, _ in rows:
            found[stored] = StoredQuote(
                position=position_of(lamport, stored),
                sender_id=sender_id,
                is_own=bool(is_own),
                text="" if hidden else text,
                spans=() if hidden else spans_of(spans),
                retracted=bool(retracted),
                hidden=bool(hidden),
                file=files.get(stored),
            )
    return found


def kept_from_us(
    connection: sqlite3.Connection, conversation: int, quoted: Sequence[StoredId]
) -> frozenset[StoredId]:
    """Those missing of which ``MissingEntry.is_from_before`` is true."""
    found: set[StoredId] = set()
    for asked in by_the_dozen([message_id_of(stored) for stored in quoted]):
        rows: list[tuple[MessageId]] = connection.execute(
            KEPT_FROM_US[len(asked)], (conversation, *asked)
        ).fetchall()
        found.update(stored_id(message_id) for (message_id,) in rows)
    return frozenset(found)


def targets(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> list[MessageId]:
    """The messages of which our own annotations among ``message_ids`` speak."""
    return _found_by(connection, conversation, message_ids, TARGETS)


def quoting(
    connection: sqlite3.Connection, conversation: int, message_ids: Sequence[MessageId]
) -> list[MessageId]:
    """The newest rows that quote one of these."""
    return _found_by(connection, conversation, message_ids, QUOTING)[: rules.MAX_QUOTING]


def counting(
    connection: sqlite3.Connection, conversation: int, positions: Sequence[Position]
) -> frozenset[MessageId]:
    """Which of the reactions at these positions count."""
    return frozenset(
        position.message_id
        for position in positions
        if connection.execute(_COUNTING, (conversation, *stored_place(position))).fetchone()
    )


def _found_by(
    connection: sqlite3.Connection,
    conversation: int,
    message_ids: Sequence[MessageId],
    sql: Mapping[int, str],
) -> list[MessageId]:
    found: dict[StoredId, None] = {}
    for asked in by_the_dozen(stored_ids(message_ids)):
        rows: list[tuple[StoredId]] = connection.execute(
            sql[len(asked)], (conversation, *asked)
        ).fetchall()
        found.update(dict.fromkeys(one for (one,) in rows))
    return list(map(message_id_of, found))


def versions(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId
) -> list[StoredVersion]:
    place = (conversation, stored_id(message_id))
    rows: list[_VersionRow] = connection.execute(VERSIONS, (ORIGINAL, *place)).fetchall()
    if rows:
        rows += connection.execute(VERSIONS, (EDIT, *place)).fetchall()
    else:
        rows = connection.execute(_UNCHANGED, place).fetchall()
    holders = read_holders(connection, conversation, [row[0] for row in rows if row[5]])
    return [
        StoredVersion(
            message_id=message_id_of(stored),
            text=text,
            spans=spans_of(spans),
            sent_ms=UnixMs(sent_ms),
            received_ms=UnixMs(received_ms),
            is_own=bool(is_own),
            is_shown=bool(is_shown),
            delivery=delivery_of(state, attempts, failure),
            holders=tuple(holders.get(stored, ())),
        )
        for stored, text, spans, sent_ms, received_ms, is_own, is_shown, state, attempts, failure
        in rows
    ]  # fmt: skip


def reactors(
    connection: sqlite3.Connection, conversation: int, message_id: MessageId
) -> list[StoredReactor]:
    rows: list[_ReactorRow] = connection.execute(
        REACTORS, (conversation, stored_id(message_id))
    ).fetchall()
    holders = read_holders(connection, conversation, [row[0] for row in rows if row[4]])
    return [
        StoredReactor(
            message_id=message_id_of(stored),
            participant_id=participant_id,
            emoji=emoji,
            sent_ms=UnixMs(sent_ms),
            is_own=bool(is_own),
            delivery=delivery_of(state, attempts, failure),
            holders=tuple(holders.get(stored, ())),
        )
        for stored, participant_id, emoji, sent_ms, is_own, state, attempts, failure in rows
    ]


def last_annotation(
    connection: sqlite3.Connection, conversation: int, after: Position
) -> StoredAnnotation | None:
    """The newest after this place that counts, of a message that is shown."""
    place = (conversation, *stored_place(after))
    late: list[_LateRow] = [
        row
        for sql in (LATE_REACTIONS, LATE_CHANGES)
        for row in connection.execute(sql, place).fetchall()
    ]
    if not late:
        return None
    newest = max(late, key=lambda row: (row[7], message_id_of(row[1])))
    kind, stored, target, sender_id, is_own, sent_ms, emoji, _ = newest
    return StoredAnnotation(
        kind=kind,
        message_id=message_id_of(stored),
        target_id=message_id_of(target),
        sender_id=sender_id,
        is_own=bool(is_own),
        sent_ms=UnixMs(sent_ms),
        emoji=emoji,
        target=quotes(connection, conversation, [target])[target],
    )


def delivery_of(
    state: str | None, attempts: int | None, failure: str | None
) -> DeliveryRecord | None:
    """What three columns of ``delivery`` hold."""
    if state is None:
        return None
    return DeliveryRecord(state=DeliveryState(state), attempts=attempts or 0, failure=failure)
