"""Reads what the conversation list shows: who is in a conversation, its counts, its newest row.

A start reads that of all conversations before anything is seen.  So a statement is about many of
them (``many_rows``), and what few of them have is looked for in those alone.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from engine.core.ids import ConversationId, DeliveryState, MessageId, ParticipantId, Position
from engine.core.stored import ConversationSummary, Listed, StoredMessage
from engine.persistence.annotation_reads import last_annotation
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.profile_tables import read_members
from engine.persistence.rules import EMPTY_SUMMARY
from engine.persistence.stored_ids import StoredId, mark_of, position_of, stored_place
from engine.persistence.timeline_reads import COLUMNS, ROW, Row, TimelineReader

_KEYS: Final = with_ids(
    "SELECT conversation_key, conversation_id FROM conversation WHERE conversation_id IN"
)
_MUTED: Final = with_ids(
    "SELECT conversation_key, participant_id FROM muted_member WHERE conversation_key IN"
)
_UNREAD: Final = "hidden = 0 AND is_own = 0 AND kind IN ('text', 'file')"
# The last column: whether there may be an unread mention; the mark's own Lamport timestamp counts.
COUNTS: Final = with_ids(
    f"""
SELECT conversation_key, unread, read_lamport, read_message_id, (
    SELECT message_key FROM message
    WHERE conversation_key = timeline.conversation_key AND hidden = 0
    ORDER BY waiting DESC, lamport_timestamp DESC, message_id DESC LIMIT 1
  ), unread > 0 AND EXISTS (
    SELECT 1 FROM message
    WHERE conversation_key = timeline.conversation_key AND waiting IN (0, 1) AND {_UNREAD}
      AND mentions_me = 1 AND lamport_timestamp >= coalesce(read_lamport, -1)
  )
FROM timeline WHERE conversation_key IN
    """  # noqa: S608 - our own columns
)
# The last column: whether somebody said something about a message after this one.
NEWEST: Final = with_ids(
    f"""
SELECT {COLUMNS}, m.conversation_key, EXISTS (
    SELECT 1 FROM reaction AS r INDEXED BY reaction_order
    WHERE r.conversation_key = m.conversation_key
      AND (r.lamport_timestamp, r.message_id) > (m.lamport_timestamp, m.message_id)
  ) OR EXISTS (
    SELECT 1 FROM version AS v INDEXED BY version_order
    WHERE v.conversation_key = m.conversation_key AND v.kind <> 'original'
      AND (v.lamport_timestamp, v.message_id) > (m.lamport_timestamp, m.message_id)
  )
FROM {ROW} WHERE m.message_key IN
    """  # noqa: S608 - our own columns
)
UNSETTLED: Final = with_ids(
    """
SELECT d.conversation_key, d.state, count(*) FROM delivery AS d CROSS JOIN message AS m
  ON m.conversation_key = d.conversation_key AND m.message_id = d.message_id
WHERE d.state IN ('saved', 'failed') AND m.is_own = 1 AND m.hidden = 0
  AND m.kind IN ('text', 'file') AND d.conversation_key IN
    """,
    order="GROUP BY d.conversation_key, d.state",
)
FIRST_UNREAD: Final = f"""
SELECT lamport_timestamp, message_id FROM message
WHERE conversation_key = ? AND waiting = ? AND {_UNREAD}
  AND (lamport_timestamp, message_id) > (?, ?)
ORDER BY waiting, lamport_timestamp, message_id LIMIT 1
"""  # noqa: S608 - our own columns
_UNREAD_MENTIONS: Final = f"""
FROM message
WHERE conversation_key = ? AND waiting = ? AND {_UNREAD} AND mentions_me = 1
  AND (lamport_timestamp, message_id) > (?, ?)
"""
MENTIONS: Final = f"SELECT count(*) {_UNREAD_MENTIONS}"
FIRST_MENTION: Final = f"""
SELECT lamport_timestamp, message_id {_UNREAD_MENTIONS}
ORDER BY lamport_timestamp, message_id LIMIT 1
"""

NOT_THERE: Final = Listed(summary=EMPTY_SUMMARY, members=(), muted=frozenset())
_Newest: TypeAlias = tuple[StoredMessage, bool]
"""The newest row, and whether anything was said about a message after it."""


class _Counts(NamedTuple):
    """A row of ``COUNTS``."""

    key: int
    unread: int
    read_lamport: int | None
    read_message_id: MessageId | None
    newest: int | None
    may_mention_us: int

    @property
    def mark(self) -> tuple[int, StoredId]:
        mark = mark_of(self.read_lamport, self.read_message_id)
        return (-1, "") if mark is None else stored_place(mark)


def read_listed(
    connection: sqlite3.Connection, conversation_ids: Sequence[ConversationId]
) -> dict[ConversationId, Listed]:
    """Of each, also of one that is not there."""
    keys = _keys(connection, conversation_ids)
    summaries = _summaries(connection, keys)
    members, muted = read_members(connection, keys), _muted(connection, keys)
    found = {
        conversation_id: Listed(
            summary=summaries[key],
            members=tuple(members.get(key, ())),
            muted=frozenset(muted.get(key, ())),
        )
        for key, conversation_id in keys.items()
    }
    return {one: found.get(one, NOT_THERE) for one in conversation_ids}


def read_summary(
    connection: sqlite3.Connection, conversation_id: ConversationId
) -> ConversationSummary:
    summaries = _summaries(connection, _keys(connection, (conversation_id,)))
    return next(iter(summaries.values()), EMPTY_SUMMARY)


def _keys(
    connection: sqlite3.Connection, conversation_ids: Sequence[ConversationId]
) -> dict[int, ConversationId]:
    """The ids of those that are there, by their keys."""
    found: dict[int, ConversationId] = {}
    for some in by_the_dozen(conversation_ids):
        found.update(connection.execute(_KEYS[len(some)], some).fetchall())
    return found


def _muted(
    connection: sqlite3.Connection, keys: Mapping[int, ConversationId]
) -> Mapping[int, Sequence[ParticipantId]]:
    found: dict[int, list[ParticipantId]] = {}
    for some in by_the_dozen(list(keys)):
        for key, participant_id in connection.execute(_MUTED[len(some)], some).fetchall():
            found.setdefault(key, []).append(ParticipantId(participant_id))
    return found


def _summaries(
    connection: sqlite3.Connection, keys: Mapping[int, ConversationId]
) -> dict[int, ConversationSummary]:
    unsettled: dict[tuple[int, str], int] = {}
    counted: list[_Counts] = []
    for some in by_the_dozen(list(keys)):
        for key, state, count in connection.execute(UNSETTLED[len(some)], some).fetchall():
            unsettled[key, state] = count
        counted += map(_Counts._make, connection.execute(COUNTS[len(some)], some).fetchall())
    newest = _newest(connection, keys, [one.newest for one in counted if one.newest is not None])
    found: dict[int, ConversationSummary] = {}
    for counts in counted:
        key = counts.key
        last, is_spoken_of = newest.get(key, (None, False))
        mentions, first_mention = (
            _mentions(connection, counts) if counts.may_mention_us else (0, None)
        )
        found[key] = ConversationSummary(
            unread=counts.unread,
            first_unread=_first_unread(connection, counts) if counts.unread else None,
            last_message=last,
            waiting_to_send=unsettled.get((key, DeliveryState.SAVED), 0),
            failed=unsettled.get((key, DeliveryState.FAILED), 0),
            mentions=mentions,
            first_mention=first_mention,
            last_annotation=last_annotation(connection, key, last.record.position)
            if last and is_spoken_of
            else None,
        )
    return found


def _newest(
    connection: sqlite3.Connection, keys: Mapping[int, ConversationId], newest: Sequence[int]
) -> dict[int, _Newest]:
    """``newest``: the keys of the rows."""
    found: dict[int, _Newest] = {}
    for some in by_the_dozen(newest):
        rows: list[tuple[Row, int, int]] = [
            (row[:-2], *row[-2:]) for row in connection.execute(NEWEST[len(some)], some).fetchall()
        ]
        for row, key, is_spoken_of in rows:
            (last,) = TimelineReader(connection, key, keys[key]).stored([row])
            found[key] = last, bool(is_spoken_of)
    return found


def _first_unread(connection: sqlite3.Connection, counts: _Counts) -> Position | None:
    for waiting in (0, 1):
        row: tuple[int, StoredId] | None = connection.execute(
            FIRST_UNREAD, (counts.key, waiting, *counts.mark)
        ).fetchone()
        if row is not None:
            return position_of(*row)
    return None


def _mentions(connection: sqlite3.Connection, counts: _Counts) -> tuple[int, Position | None]:
    """Unread rows that mention us; they have an index of their own."""
    count, first = 0, None
    for waiting in (0, 1):
        place = (counts.key, waiting, *counts.mark)
        counted: tuple[int] = connection.execute(MENTIONS, place).fetchone()
        if counted[0] and first is None:
            found: tuple[int, StoredId] = connection.execute(FIRST_MENTION, place).fetchone()
            first = position_of(*found)
        count += counted[0]
    return count, first
