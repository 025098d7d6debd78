"""Reads what a session asked for: the one place where a ``Load`` meets the store.

Runs on the thread that may use the store and touches no session.  The runner hands the result to
the session in turn with its other inputs.
"""

from collections import deque
from typing import Final, assert_never

from engine.codec.content import decode_content
from engine.codec.envelope import decode_signed_part
from engine.codec.sds import decode_message
from engine.core.admin_log.acts import EntryId
from engine.core.admin_log.cuts import Written
from engine.core.content import Attachment, Text
from engine.core.ids import ConversationId, MessageId
from engine.core.invite import group_id_of
from engine.core.mvds.vocabulary import LoadRecords, MvdsId, MvdsMessage, Record
from engine.core.ports import ProfileStore
from engine.crypto.admin_entry import SignedEntry, read_entry
from engine.session.group.author_binding import bound_author
from engine.session.transitions import (
    BodiesLoaded,
    EntriesLoaded,
    Load,
    LoadBodies,
    Loaded,
    LoadEntries,
    LoadForRepair,
    LoadSetAside,
    LoadToSayAgain,
    LoadToShow,
    LoadWritten,
    RawLoaded,
    RecordsRead,
    SetAsideLoaded,
    WrittenLoaded,
)

SHOWN_TOGETHER: Final = 8
"""Messages set aside to read in one go: each takes a signature check and up to 64 KiB of text."""
MAX_NAMED: Final = 4_096
"""Entries of an admin log to read in one go, since others name them."""


def read(store: ProfileStore, conversation_id: ConversationId, load: Load) -> Loaded | None:
    """Returns None if there is nothing to hand back.  Raises StorageError."""
    match load:
        case LoadWritten():
            found = ((at, store.raw(conversation_id, at.message_id)) for at in load.places)
            written = (written_in(at.message_id, raw) for at, raw in found if raw)
            return WrittenLoaded(load=load, written=tuple(written))
        case LoadEntries():
            return EntriesLoaded(entries=_entries(store, conversation_id, load))
        case LoadForRepair() | LoadToSayAgain() | LoadToShow():
            at = load.position if isinstance(load, LoadToShow) else load
            raw = store.raw(conversation_id, at.message_id)
            return RawLoaded(load=load, raw=raw) if raw else None
        case LoadSetAside():
            kept = store.set_aside(conversation_id, load.sender_id, limit=SHOWN_TOGETHER)
            return SetAsideLoaded(load=load, kept=tuple(kept)) if kept else None
        case LoadBodies():
            return BodiesLoaded(
                payload=load.payload, bodies=_bodies(store, conversation_id, load.message_ids)
            )
        case LoadRecords():
            return _records(store, conversation_id, load)
        case _:
            assert_never(load)


def _entries(
    store: ProfileStore, conversation_id: ConversationId, load: LoadEntries
) -> tuple[SignedEntry, ...]:
    """MAX_NAMED of those that are named, those that are wanted themselves first."""
    group_id = group_id_of(conversation_id)
    by_id = dict[EntryId, bytes]()
    found = dict[EntryId, SignedEntry]()
    for data in store.governed(conversation_id).entries:
        entry = read_entry(data, group_id=group_id)
        by_id[entry.entry_id] = data
        if entry.author in load.authors:
            found[entry.entry_id] = SignedEntry(entry=entry, data=data)
    named, looked = deque(sorted(load.wanted)), set(load.wanted)
    while named and len(looked) <= MAX_NAMED:
        data = by_id.get(named.popleft(), b"")
        if data:
            entry = read_entry(data, group_id=group_id)
            found[entry.entry_id] = SignedEntry(entry=entry, data=data)
            named += [head for head in entry.heads if head not in looked]
            looked.update(entry.heads)
    return tuple(found.values())


def written_in(message_id: MessageId, raw: bytes) -> Written:
    """From the signed part of a message of a group's log, which was checked when it came."""
    message = decode_message(decode_signed_part(raw).sds_message)
    content = decode_content(message.content or b"")
    return Written(
        message_id=message_id,
        author=message.sender_id,
        instance_id=bound_author(message.sender_id, content.author).instance_id,
        sequence=content.author.sequence,
        previous_id=content.previous_id,
        is_said=isinstance(content.body, Text | Attachment),
    )


def _bodies(
    store: ProfileStore, conversation_id: ConversationId, ids: tuple[MvdsId, ...]
) -> dict[MvdsId, MvdsMessage]:
    found = ((id_, store.mvds_message(conversation_id, id_)) for id_ in ids)
    return {id_: message for id_, message in found if message is not None}


def _records(
    store: ProfileStore, conversation_id: ConversationId, load: LoadRecords
) -> RecordsRead:
    by_id = (store.mvds_record(conversation_id, peer_id, id_) for peer_id, id_ in load.ids)
    records: list[Record] = [record for record in by_id if record is not None]
    loaded_before = None
    if load.from_epoch is not None:
        next_ones, loaded_before = store.mvds_records(
            conversation_id, load.from_epoch, limit=load.limit
        )
        records += next_ones
    return RecordsRead(load=load, records=tuple(records), loaded_before=loaded_before)
