"""Reads a timeline: pages by keyset, never by OFFSET, with ordinals from the blocks.

Rows are ordered by (waiting, Lamport timestamp, message id), so waiting rows come last.  A position
to page from is a waiting row's place if a waiting row has exactly this position.  Otherwise it is
the place in the log, whether a row is there or not.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from engine.core.ids import (
    ConversationId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.records import FileRecord, MessageRecord
from engine.core.sds.vocabulary import HolderEntry
from engine.core.stored import StoredMessage, StoredPage, StoredQuote
from engine.persistence.annotation_reads import (
    delivery_of,
    kept_from_us,
    quotes,
)
from engine.persistence.annotation_tables import deleted_by
from engine.persistence.channel_reads import read_holders
from engine.persistence.file_tables import read_files
from engine.persistence.many_rows import by_the_dozen, with_ids
from engine.persistence.ordinals import placed_before
from engine.persistence.reaction_counts import MessageReactions, reactions
from engine.persistence.rules import FILE_KIND, page, page_limit
from engine.persistence.stored_ids import (
    StoredId,
    message_id_of,
    position_of,
    stored_id,
    stored_ids,
    stored_place,
)
from engine.persistence.stored_spans import spans_of
from engine.persistence.timeline_tables import ARRIVALS

Row: TypeAlias = tuple[
    StoredId, int, int, int, int, str, str, int, int, str, str, StoredId | None, int, int,
    int | None, str | None, StoredId | None, int | None, int, int,
    str | None, int | None, str | None,
]  # fmt: skip
_Place: TypeAlias = tuple[int, int, StoredId]
"""(waiting, lamport, message id): the order of rows."""

COLUMNS: Final = """
m.message_id, m.lamport_timestamp, m.waiting, m.is_own, m.late, m.kind, p.participant_id, m.sent_ms,
m.received_ms, m.text, m.spans, m.reply_to, m.forwarded, m.mentions_me, m.arrival, m.repaired_by,
m.shown_id, m.edited_ms, m.retracted, m.reacted, d.state, d.attempts, d.failure
"""
"""Of a ``Row``."""

ROW: Final = """
message AS m CROSS JOIN participant AS p ON p.participant_key = m.sender_key
LEFT JOIN delivery AS d
  ON m.is_own = 1 AND d.conversation_key = m.conversation_key
    AND d.message_id = coalesce(m.shown_id, m.message_id)
"""
_ROWS: Final = (
    f"SELECT {COLUMNS} FROM {ROW} "  # noqa: S608 - our own columns
    "WHERE m.conversation_key = ? AND m.hidden = 0"
)
_NEWEST_FIRST: Final = (
    "ORDER BY m.waiting DESC, m.lamport_timestamp DESC, m.message_id DESC LIMIT ?"
)
_OLDEST_FIRST: Final = "ORDER BY m.waiting, m.lamport_timestamp, m.message_id LIMIT ?"
_PLACE: Final = "(m.waiting, m.lamport_timestamp, m.message_id)"

MESSAGES: Final = with_ids(f"{_ROWS} AND m.message_id IN")
LATEST_ROWS: Final = f"{_ROWS} {_NEWEST_FIRST}"
ROWS_BEFORE: Final = f"{_ROWS} AND {_PLACE} < (?, ?, ?) {_NEWEST_FIRST}"
ROWS_AFTER: Final = f"{_ROWS} AND {_PLACE} > (?, ?, ?) {_OLDEST_FIRST}"
# Led by the files: they are few among the rows of a conversation.
FILES_BEFORE: Final = """
SELECT m.message_id FROM file AS f CROSS JOIN message AS m
  ON m.conversation_key = f.conversation_key AND m.message_id = f.message_id
WHERE f.conversation_key = ? AND m.hidden = 0 AND m.retracted = 0
  AND (m.lamport_timestamp, m.message_id) < (?, ?)
ORDER BY m.lamport_timestamp DESC, m.message_id DESC LIMIT ?
"""
AFTER_ALL: Final = (2**63 - 1, "")
"""A place that no row has: Lamport timestamps are smaller."""


class TimelineReader:
    """Reads one conversation; created anew for every call."""

    def __init__(
        self, connection: sqlite3.Connection, conversation: int, conversation_id: ConversationId
    ) -> None:
        self._connection = connection
        self._conversation = conversation
        self.conversation_id = conversation_id

    def messages(self, message_ids: Sequence[MessageId]) -> dict[MessageId, StoredMessage]:
        found: dict[MessageId, StoredMessage] = {}
        for asked in by_the_dozen(stored_ids(message_ids)):
            for stored in self._rows(MESSAGES[len(asked)], *asked):
                found[stored.record.position.message_id] = stored
        return found

    def with_files(self, before: Position | None, limit: int) -> list[StoredMessage]:
        place = AFTER_ALL if before is None else stored_place(before)
        rows = self._connection.execute(
            FILES_BEFORE, (self._conversation, *place, page_limit(limit))
        ).fetchall()
        ids = [message_id_of(stored) for (stored,) in rows]
        found = self.messages(ids)
        return [found[message_id] for message_id in ids if message_id in found]

    def latest_page(self, limit: int) -> StoredPage:
        rows = self._rows(LATEST_ROWS, page_limit(limit))[::-1]
        total = self._total()
        return page(rows, older_count=total - len(rows), total=total)

    def page_before(self, position: Position, limit: int) -> StoredPage:
        place, _ = self._place_of(position)
        rows = self._rows(ROWS_BEFORE, *place, page_limit(limit))[::-1]
        return page(rows, older_count=self._before(place) - len(rows), total=self._total())

    def page_after(self, position: Position, limit: int) -> StoredPage:
        place, is_row = self._place_of(position)
        rows = self._rows(ROWS_AFTER, *place, page_limit(limit))
        return page(rows, older_count=self._before(place) + is_row, total=self._total())

    # --- ordinals -------------------------------------------------------------------------------

    def _total(self) -> int:
        row: tuple[int] = self._connection.execute(
            "SELECT placed + waiting FROM timeline WHERE conversation_key = ?",
            (self._conversation,),
        ).fetchone()
        return row[0]

    def _before(self, place: _Place) -> int:
        """The number of visible rows strictly before ``place``."""
        waiting, lamport, message_id = place
        if not waiting:
            return placed_before(self._connection, self._conversation, (lamport, message_id))
        row: tuple[int] = self._connection.execute(
            "SELECT (SELECT placed FROM timeline WHERE conversation_key = :conversation) + "
            "(SELECT count(*) FROM message WHERE conversation_key = :conversation AND waiting = 1 "
            "AND hidden = 0 AND (lamport_timestamp, message_id) < (:lamport, :message_id))",
            {"conversation": self._conversation, "lamport": lamport, "message_id": message_id},
        ).fetchone()
        return row[0]

    def _place_of(self, position: Position) -> tuple[_Place, bool]:
        """The place of ``position`` among the rows, and whether a visible row is there."""
        row: tuple[int, int] | None = self._connection.execute(
            "SELECT waiting, hidden FROM message "
            "WHERE conversation_key = ? AND message_id = ? AND lamport_timestamp = ?",
            (self._conversation, stored_id(position.message_id), position.lamport_timestamp),
        ).fetchone()
        waiting, hidden = row or (0, 1)
        return (waiting, *stored_place(position)), not hidden

    # --- rows -----------------------------------------------------------------------------------

    def _rows(self, sql: str, *parameters: int | StoredId) -> tuple[StoredMessage, ...]:
        return self.stored(
            self._connection.execute(sql, (self._conversation, *parameters)).fetchall()
        )

    def stored(self, rows: Sequence[Row]) -> tuple[StoredMessage, ...]:
        """Rows of this conversation with what other tables know about them."""
        # Own rows only (the index of is_own is 3): each lookup is a random page of a large table.
        own = [row[16] or row[0] for row in rows if row[3]]
        holders = read_holders(self._connection, self._conversation, own) if own else {}
        quoted = [row[11] for row in rows if row[11] is not None]
        quoting = quotes(self._connection, self._conversation, quoted) if quoted else {}
        reacted = [row[0] for row in rows if row[19] and not row[18]]
        reacting = reactions(self._connection, self._conversation, reacted) if reacted else {}
        with_file = [row[0] for row in rows if row[5] == FILE_KIND and not row[18]]
        files = read_files(self._connection, self._conversation, with_file) if with_file else {}
        found = tuple(self._stored(row, holders, quoting, reacting, files) for row in rows)
        if nowhere := [stored for stored in quoted if stored not in quoting]:
            kept = kept_from_us(self._connection, self._conversation, nowhere)
            found = tuple(
                replace(one, quotes_before=True) if row[11] in kept else one
                for row, one in zip(rows, found, strict=True)
            )
        gone = [row[0] for row in rows if row[18] and row[16] == row[0]]
        if not gone:
            return found
        by = {
            message_id_of(stored): who
            for stored, who in deleted_by(self._connection, self._conversation, gone).items()
        }
        return tuple(
            replace(one, deleted_by=by.get(one.record.position.message_id), shown_id=None)
            if one.shown_id == one.record.position.message_id
            else one
            for one in found
        )

    def _stored(
        self,
        row: Row,
        holders: Mapping[StoredId, Sequence[HolderEntry]],
        quoting: Mapping[StoredId, StoredQuote],
        reacting: Mapping[StoredId, MessageReactions],
        files: Mapping[StoredId, FileRecord],
    ) -> StoredMessage:
        (
            stored_as, lamport, waiting, is_own, late, kind, sender_id, sent_ms, received_ms, text,
            spans, reply_to, forwarded, mentions_me, arrival, repaired_by, shown_id, edited_ms,
            retracted, reacted, state, attempts, failure,
        ) = row  # fmt: skip
        record = MessageRecord(
            conversation_id=self.conversation_id,
            position=position_of(lamport, stored_as),
            sender_id=ParticipantId(sender_id),
            is_own=bool(is_own),
            kind=kind,
            text=text,
            spans=spans_of(spans) if spans else (),
            sent_ms=UnixMs(sent_ms),
            received_ms=UnixMs(received_ms),
            waiting=bool(waiting),
            late=bool(late),
            arrival="unknown" if arrival is None else ARRIVALS[arrival],
            repaired_by=None if repaired_by is None else ParticipantId(repaired_by),
            file=files.get(stored_as),
        )
        delivery = delivery_of(state, attempts, failure)
        holding = tuple(holders.get(shown_id or stored_as, ())) if is_own else ()
        if reply_to is None and shown_id is None and not (forwarded or mentions_me or reacted):
            return StoredMessage(record=record, delivery=delivery, holders=holding)
        reacted_to = reacting.get(stored_as)
        return StoredMessage(
            record=replace(
                record,
                reply_to=None if reply_to is None else message_id_of(reply_to),
                forwarded=bool(forwarded),
                mentions_me=bool(mentions_me),
            ),
            delivery=delivery,
            holders=holding,
            shown_id=None if shown_id is None else message_id_of(shown_id),
            edited_ms=None if edited_ms is None else UnixMs(edited_ms),
            retracted=bool(retracted),
            quote=None if reply_to is None else quoting.get(reply_to),
            reactions=reacted_to.shown if reacted_to else (),
            more_reactions=reacted_to.more if reacted_to else 0,
        )
