"""Reads from the store what it knows of one message: once, together, and only by its id and place.

Runs on the storage thread, so what it returns was all true at one moment.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from engine.codec.mvds_id import mvds_id_of_row
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.mvds.vocabulary import MvdsMessage, Record
from engine.core.ports import ProfileStore
from engine.core.records import ContactRecord, GroupRecord, OpenChannelRecord
from engine.core.sds.vocabulary import (
    HistoryEntry,
    HolderEntry,
    IncomingEntry,
    LogEntry,
    MissingEntry,
    OutgoingEntry,
)
from engine.core.stored import StoredMessage
from engine.runtime.inspection.message_bytes import ReadBytes, causal_history, read_bytes

LOOKED_AT: Final = 64
"""The messages after one, and those that wait, in which it is looked for who names it.

A causal history goes back a dozen messages, so those that name one lie close behind it.
"""


class Linked(Struct, frozen=True, kw_only=True):
    """A message that another one names, or is named by, and where it is."""

    message_id: MessageId
    sender_id: ParticipantId | None
    position: Position | None
    is_waiting: bool
    missing: MissingEntry | None
    is_shown: bool
    saved_ms: UnixMs | None = None
    """When it got its place; None: it has none, or no row."""
    retrieval_hint: bytes | None = None


class SdsFacts(Struct, frozen=True, kw_only=True):
    row: StoredMessage | None
    entry: LogEntry | None
    incoming: IncomingEntry | None
    missing: MissingEntry | None
    outgoing: OutgoingEntry | None
    holders: tuple[HolderEntry, ...]
    read: ReadBytes | None
    names: tuple[Linked, ...] = ()
    named_by: tuple[Linked, ...] = ()
    named_by_complete: bool = True
    came_ms: UnixMs | None = None
    """When it came, if its row is of a later time."""


class MvdsFacts(Struct, frozen=True, kw_only=True):
    row: StoredMessage | None
    record: Record | None
    message: MvdsMessage | None
    holders: tuple[HolderEntry, ...] = field(default_factory=tuple)
    came_ms: UnixMs | None = None
    """See ``SdsFacts``."""


def read_sds(
    store: ProfileStore, about: GroupRecord | OpenChannelRecord, message_id: MessageId
) -> SdsFacts | None:
    """None if nothing is known of it."""
    conversation_id, inspecting = about.conversation_id, store.inspecting
    entry = inspecting.log_entry(conversation_id, message_id)
    incoming = inspecting.incoming(conversation_id, message_id) if entry is None else None
    missing = inspecting.missing(conversation_id, (message_id,)).get(message_id)
    if entry is None and incoming is None and missing is None:
        return None
    raw = incoming.raw if incoming else store.raw(conversation_id, message_id)
    read = read_bytes(raw, about) if raw else None
    history = read.message.causal_history if read else ()
    is_open = isinstance(about, OpenChannelRecord)
    namers, complete = _namers(store, conversation_id, message_id, entry, is_open=is_open)
    return SdsFacts(
        row=store.message(conversation_id, message_id),
        entry=entry,
        incoming=incoming,
        missing=missing,
        outgoing=inspecting.outgoing(conversation_id, message_id),
        holders=tuple(store.holders(conversation_id, message_id)),
        read=read,
        names=_linked(store, conversation_id, history),
        named_by=_linked(store, conversation_id, namers),
        named_by_complete=complete,
        came_ms=inspecting.came_ms(conversation_id, (message_id,)).get(message_id),
    )


def read_mvds(store: ProfileStore, about: ContactRecord, message_id: MessageId) -> MvdsFacts | None:
    """None if nothing is known of it."""
    conversation_id = about.conversation_id
    try:
        mvds_id = mvds_id_of_row(message_id)
    except LocalProtocolError:
        return None
    row = store.message(conversation_id, message_id)
    record = store.mvds_record(conversation_id, about.participant_id, mvds_id)
    message = store.mvds_message(conversation_id, mvds_id)
    if row is None and record is None and message is None:
        return None
    came_ms = store.inspecting.came_ms(conversation_id, (message_id,)).get(message_id)
    return MvdsFacts(row=row, record=record, message=message, came_ms=came_ms)


def _namers(
    store: ProfileStore,
    conversation_id: ConversationId,
    wanted: MessageId,
    entry: LogEntry | None,
    *,
    is_open: bool,
) -> tuple[list[HistoryEntry], bool]:
    """What names it, of the next messages and those that wait; whether that is all that does."""
    waiting = store.inspecting.waiting(conversation_id, limit=LOOKED_AT)
    waiting_namers = [
        HistoryEntry(each.message_id, None, each.sender_id)
        for each in waiting
        if any(named.message_id == wanted for named in each.causal_history)
    ]
    if entry is None:  # Without a place it is not known behind what to look in the log.
        return waiting_namers, False
    sought = wanted.encode()
    after = store.inspecting.following(conversation_id, entry.position, limit=LOOKED_AT)
    namers = [
        HistoryEntry(each.position.message_id, None, each.sender_id)
        for each in after
        # Most do not have it anywhere: only the others are parsed.
        if sought in each.raw and wanted in causal_history(each.raw, is_open=is_open)
    ]
    return namers + waiting_namers, max(len(after), len(waiting)) < LOOKED_AT


def _linked(
    store: ProfileStore, conversation_id: ConversationId, entries: Iterable[HistoryEntry]
) -> tuple[Linked, ...]:
    entries = tuple(entries)
    ids = [entry.message_id for entry in entries]
    inspecting = store.inspecting
    missing: Mapping[MessageId, MissingEntry] = inspecting.missing(conversation_id, ids)
    shown = store.messages(conversation_id, ids)
    links = []
    for entry in entries:
        logged = inspecting.log_entry(conversation_id, entry.message_id)
        waiting = None if logged else inspecting.incoming(conversation_id, entry.message_id)
        row = shown.get(entry.message_id) if logged else None
        known = logged.sender_id if logged else waiting.message.sender_id if waiting else None
        links.append(
            Linked(
                message_id=entry.message_id,
                sender_id=known or entry.sender_id,
                position=logged.position if logged else None,
                is_waiting=waiting is not None,
                missing=missing.get(entry.message_id),
                is_shown=entry.message_id in shown,
                saved_ms=row.record.received_ms if row else None,
                retrieval_hint=entry.retrieval_hint,
            )
        )
    return tuple(links)
