"""Reads what a profile's database says of one message; see ``engine.core.inspection``.

It uses the store's connection, on the storage thread, and nothing but look-ups by key.
"""

import sqlite3
from collections.abc import Callable, Sequence

from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from engine.core.inspection import LoggedRaw, PlacedMessage, WaitingMessage
from engine.core.sds.vocabulary import (
    HolderEntry,
    IncomingEntry,
    LogEntry,
    MissingEntry,
    OutgoingEntry,
)
from engine.persistence import channel_reads, delivery_reads
from engine.persistence.profile_tables import conversation_key
from engine.persistence.search_store import Doing


class SqliteInspection:
    """``engine.core.inspection.InspectionStore``."""

    def __init__(self, connection: Callable[[], sqlite3.Connection], doing: Doing) -> None:
        self._connection = connection
        self._doing = doing

    def log_entry(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> LogEntry | None:
        with self._doing("read a message"):
            connection, key = self._find(conversation_id)
            return (
                None if key is None else channel_reads.read_log_entry(connection, key, message_id)
            )

    def incoming(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> IncomingEntry | None:
        with self._doing("read a message"):
            connection, key = self._find(conversation_id)
            if key is None:
                return None
            return next(iter(channel_reads.read_incoming(connection, key, message_id)), None)

    def waiting(self, conversation_id: ConversationId, /, *, limit: int) -> list[WaitingMessage]:
        with self._doing("read messages"):
            connection, key = self._find(conversation_id)
            return [] if key is None else channel_reads.read_waiting(connection, key, limit)

    def outgoing(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> OutgoingEntry | None:
        with self._doing("read a message"):
            connection, key = self._find(conversation_id)
            if key is None:
                return None
            return next(iter(channel_reads.read_outgoing(connection, key, message_id)), None)

    def missing(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, MissingEntry]:
        with self._doing("read what is missing"):
            connection, key = self._find(conversation_id)
            if key is None:
                return {}
            return {
                message_id: entry
                for message_id in message_ids
                for entry in channel_reads.read_missing(connection, key, message_id)
            }

    def following(
        self, conversation_id: ConversationId, after: Position, /, *, limit: int
    ) -> list[LoggedRaw]:
        with self._doing("read messages"):
            connection, key = self._find(conversation_id)
            return (
                [] if key is None else channel_reads.read_following(connection, key, after, limit)
            )

    def placed(
        self, conversation_id: ConversationId, before: Position | None, /, *, limit: int
    ) -> list[PlacedMessage]:
        with self._doing("read messages"):
            connection, key = self._find(conversation_id)
            return [] if key is None else delivery_reads.read_placed(connection, key, before, limit)

    def came_ms(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, UnixMs]:
        with self._doing("read messages"):
            connection, key = self._find(conversation_id)
            return {} if key is None else delivery_reads.read_came(connection, key, message_ids)

    def raws(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, bytes]:
        with self._doing("read messages"):
            connection, key = self._find(conversation_id)
            return {} if key is None else delivery_reads.read_raws_of(connection, key, message_ids)

    def holders_of(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> dict[MessageId, list[HolderEntry]]:
        with self._doing("read the holders"):
            connection, key = self._find(conversation_id)
            return (
                {} if key is None else delivery_reads.read_holders_of(connection, key, message_ids)
            )

    def missing_between(
        self,
        conversation_id: ConversationId,
        first: Position | None,
        before: Position | None,
        /,
        *,
        limit: int,
    ) -> list[MissingEntry]:
        with self._doing("read what is missing"):
            connection, key = self._find(conversation_id)
            if key is None:
                return []
            return delivery_reads.read_missing_between(connection, key, first, before, limit)

    def _find(self, conversation_id: ConversationId) -> tuple[sqlite3.Connection, int | None]:
        connection = self._connection()
        return connection, conversation_key(connection, conversation_id)
