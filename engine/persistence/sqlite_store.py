"""``ProfileStore`` on a SQLCipher database: the port's writes and reads, one by one.

``apply`` is one transaction and returns after the commit is synced.  Statements go straight to the
connection, prepared once and cached by their text, to keep the path from Enter to "saved" short.
Every method runs on the thread that opened the database and raises only ``StorageError`` (and
``LocalProtocolError`` for an invalid call).
"""

import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Self, assert_never

from engine.core.errors import StorageError, StorageFault
from engine.core.governed import GovernedState, GovernedWrite
from engine.core.history.progress import HistoryKept, StoreRecord
from engine.core.ids import ConversationId, InstanceId, MessageId, ParticipantId, Position
from engine.core.joining import JoiningWrite
from engine.core.mvds.vocabulary import Epoch, MvdsId, MvdsMessage, MvdsState, Record
from engine.core.ports import (
    AddCounters,
    ApplyChannel,
    ApplyHistory,
    BeforeCommit,
    HideMessage,
    PutAnnotation,
    PutContact,
    PutDelivery,
    PutFileHolder,
    PutGroup,
    PutMember,
    PutMessage,
    PutNodeAddress,
    PutOpenChannel,
    PutStore,
    PutTransfer,
    RemoveGroup,
    RemoveStore,
    SaveDraft,
    SaveMemberMuted,
    SaveMuted,
    SaveOwnSequence,
    SavePicture,
    SaveProfile,
    SaveReadMark,
    SaveValue,
    StoreWrite,
)
from engine.core.records import (
    ContactRecord,
    GroupRecord,
    KeptAside,
    LoggedMessage,
    MemberRecord,
    OpenChannelRecord,
    OwnSequence,
    PairState,
    ProfileRecord,
)
from engine.core.sds.log_table import LogTable
from engine.core.sds.vocabulary import (
    AppendToLog,
    ChannelState,
    HolderEntry,
    RemoveFromLog,
    ReplaceRaw,
    SaveRetrievalHint,
    Write,
)
from engine.core.stored import (
    ConversationSummary,
    Listed,
    StoredMessage,
    StoredPage,
    StoredReactor,
    StoredTransfer,
    StoredVersion,
)
from engine.persistence import (
    annotation_reads,
    channel_reads,
    file_tables,
    governed_tables,
    history_tables,
    list_reads,
    muting,
    mvds_tables,
    open_tables,
    pair_tables,
    profile_tables,
    removal,
    saved_log,
    timeline_tables,
)
from engine.persistence.carry_over import Progress, unheard
from engine.persistence.channel_tables import apply_channel_write
from engine.persistence.connection import transaction
from engine.persistence.database import memory_database, open_database, open_readonly
from engine.persistence.errors import DatabaseUnreadableError, translated
from engine.persistence.file_damage import explained
from engine.persistence.inspection_store import SqliteInspection
from engine.persistence.joining_tables import SqliteJoining, apply_write
from engine.persistence.logged_reads import read_logged
from engine.persistence.pending_rows import PendingRows
from engine.persistence.rules import (
    EMPTY_PAGE,
    ConversationKind,
    DataWrite,
    ProfileWrite,
    UserWrite,
    check_kind,
    conversation_of,
    record_limit,
    require_channel,
)
from engine.persistence.search_store import SqliteSearch
from engine.persistence.stored_ids import stored_id
from engine.persistence.timeline_reads import TimelineReader


class SqliteProfileStore:
    """Owns ``connection``, which ``open_database`` or ``open_readonly`` made."""

    @classmethod
    def open(cls, path: Path, key: bytes, progress: Progress = unheard) -> Self:
        """Open or create the database at ``path``; raises as ``open_database`` does."""
        return cls(
            open_database(path, key, progress),
            partial(open_database, path, key),
            partial(open_readonly, path, key),
            partial(explained, path, key),
        )

    @classmethod
    def in_memory(cls) -> Self:
        """A profile that lasts as long as this object: for simulations and tests."""
        return cls(memory_database())

    def __init__(
        self,
        connection: sqlite3.Connection,
        reopen: Callable[[], sqlite3.Connection] | None = None,
        read_beside: Callable[[], sqlite3.Connection] | None = None,
        explain: Callable[[StorageError], StorageError] = lambda error: error,
    ) -> None:
        """``reopen``: opens the same database again; ``read_beside``: for reading only."""
        self._reopen, self._explain = reopen, explain
        self._connection = connection
        self._pending = PendingRows(connection)
        self._found: dict[ConversationId, tuple[int, ConversationKind]] = {}
        """Conversations that the transaction writes to."""
        self.inspecting: Final = SqliteInspection(lambda: self._connection, self._doing)
        self.joining: Final = SqliteJoining(lambda: self._connection, self._doing)
        self.searching: Final = SqliteSearch(lambda: self._connection, self._doing, read_beside)

    @contextmanager
    def _doing(self, action: str) -> Generator[None]:
        """Turn the driver's errors into StorageError; after damage a connection reads no page."""
        try:
            with translated(action, self._explain):
                yield
        except DatabaseUnreadableError:
            if self._reopen is not None and not self._connection.in_transaction:
                fresh = self._reopen()
                self._connection.close()
                self._connection, self._pending = fresh, PendingRows(fresh)
            raise

    def apply(self, writes: Sequence[StoreWrite], /, before_commit: BeforeCommit = None) -> None:
        try:
            with self._doing("save"), transaction(self._connection):
                for write in writes:
                    self._apply_one(write)
                self._pending.write()
                if before_commit is not None:
                    before_commit()
        finally:
            self._pending.forget()
            self._found.clear()

    def clear_removed(self) -> bool:
        with self._doing("delete what was removed"), transaction(self._connection):
            return removal.clear_removed(self._connection)

    def mark_muted(self) -> bool:
        with self._doing("hide the messages of a member"), transaction(self._connection):
            return muting.mark_muted(self._connection)

    def close(self) -> None:
        with self._doing("close the database"):
            self._connection.close()

    # --- writes ---------------------------------------------------------------------------------

    def _apply_one(self, write: StoreWrite) -> None:
        if isinstance(write, ApplyChannel | PutMessage | PutAnnotation):
            self._apply_data(write)
            return
        self._pending.write()
        match write:
            case PutGroup():
                profile_tables.put_group(self._connection, write)
            case PutOpenChannel():
                open_tables.put_open_channel(self._connection, write)
            case PutContact(contact=contact):
                pair_tables.put_contact(self._connection, contact)
            case RemoveGroup(conversation_id=conversation_id):
                self._remove(conversation_id)
            case (
                SaveReadMark() | SaveDraft() | SaveMuted() | SaveMemberMuted() | HideMessage()
                | ApplyHistory() | PutTransfer() | PutFileHolder()
            ):  # fmt: skip
                self._apply_of_user(write)
            case (
                SaveProfile() | SavePicture() | PutNodeAddress() | SaveValue() | AddCounters()
                | PutStore() | RemoveStore()
            ):  # fmt: skip
                self._apply_to_profile(write)
            case _ if isinstance(write, JoiningWrite):
                apply_write(self._connection, write)
            case _:
                self._apply_data(write)

    def _remove(self, conversation_id: ConversationId) -> None:
        self._found.clear()
        key = self._key(conversation_id)
        if key is not None:
            removal.remove_conversation(self._connection, key)

    def _apply_to_profile(self, write: ProfileWrite) -> None:
        match write:
            case PutStore(record=record):
                history_tables.put_store(self._connection, record)
            case RemoveStore(store=store):
                history_tables.remove_store(self._connection, store)
            case _:
                profile_tables.apply_to_profile(self._connection, write)

    def _apply_of_user(self, write: UserWrite) -> None:  # noqa: C901 - one case per kind
        connection = self._connection
        key = profile_tables.conversation_key(connection, write.conversation_id)
        if key is None:
            return
        match write:
            case SaveReadMark(up_to=up_to):
                timeline_tables.save_read_mark(connection, key, up_to)
            case SaveDraft(text=text):
                profile_tables.save_draft(connection, key, text)
            case SaveMuted(muted=muted, until_ms=until_ms):
                profile_tables.save_muted(connection, key, muted=muted, until_ms=until_ms)
            case SaveMemberMuted(participant_id=participant_id, muted=muted):
                muting.save_member_muted(connection, key, participant_id, muted=muted)
            case HideMessage(message_id=message_id):
                timeline_tables.hide_message(connection, key, message_id)
            case PutTransfer(message_id=message_id, state=state, fault=fault):
                stored = stored_id(message_id)
                file_tables.put_transfer(connection, key, stored, state, fault)
            case PutFileHolder(message_id=message_id, participant_id=who, held=held, as_of=as_of):
                stored = stored_id(message_id)
                file_tables.put_holder(connection, key, stored, who, held=held, as_of=as_of)
            case ApplyHistory(writes=kept_writes):
                for kept_write in kept_writes:
                    history_tables.apply_kept(connection, key, kept_write)
            case _:
                assert_never(write)

    def _apply_data(self, write: DataWrite) -> None:
        connection = self._connection
        key, kind = self._require(conversation_of(write))
        check_kind(write, kind)
        match write:
            case ApplyChannel(writes=channel_writes):
                for channel_write in channel_writes:
                    self._apply_to_channel(key, channel_write)
            case PutMessage():
                self._pending.put(key, write)
            case PutAnnotation(annotation=annotation):
                self._pending.annotate(key, annotation)
            case PutDelivery(message_id=message_id, delivery=delivery):
                timeline_tables.put_delivery(connection, key, message_id, delivery)
            case SaveOwnSequence(own_sequence=own_sequence):
                profile_tables.save_own_sequence(connection, key, own_sequence)
            case PutMember(member=member):
                profile_tables.put_member(connection, key, member)
            case _ if isinstance(write, GovernedWrite):
                governed_tables.apply_write(connection, key, write)
            case _:
                pair_tables.apply_pair_write(connection, key, write)

    def _apply_to_channel(self, key: int, write: Write) -> None:
        if isinstance(write, AppendToLog):
            self._pending.log(key, write)
            return
        if isinstance(write, SaveRetrievalHint | RemoveFromLog | ReplaceRaw):
            self._pending.write()  # It may refer to pending rows.
        apply_channel_write(self._connection, key, write)

    def _require(self, conversation_id: ConversationId) -> tuple[int, ConversationKind]:
        found = self._found.get(conversation_id)
        if found is None:
            found = profile_tables.require_conversation(self._connection, conversation_id)
            self._found[conversation_id] = found
        return found

    # --- reads ----------------------------------------------------------------------------------

    def profile(self) -> ProfileRecord | None:
        with self._doing("read the profile"):
            return profile_tables.read_profile(self._connection)

    def groups(self) -> list[GroupRecord]:
        with self._doing("read the groups"):
            return profile_tables.read_groups(self._connection)

    def open_channels(self) -> list[OpenChannelRecord]:
        with self._doing("read the open channels"):
            return open_tables.read_open_channels(self._connection)

    def contacts(self) -> list[ContactRecord]:
        with self._doing("read the contacts"):
            return pair_tables.read_contacts(self._connection)

    def picture(self) -> bytes:
        with self._doing("read the picture"):
            return profile_tables.read_picture(self._connection)

    def pair_state(self, conversation_id: ConversationId, /) -> PairState:
        with self._doing("read the conversation"):
            key = self._key(conversation_id)
            return (
                PairState() if key is None else pair_tables.read_pair_state(self._connection, key)
            )

    def mvds_state(self, conversation_id: ConversationId, /, *, limit: int) -> MvdsState:
        bounded = record_limit(limit)
        with self._doing("read what is to be sent"):
            key = self._key(conversation_id)
            if key is None:
                return MvdsState()
            return mvds_tables.read_mvds_state(self._connection, key, bounded)

    def mvds_records(
        self, conversation_id: ConversationId, from_epoch: Epoch, /, *, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        bounded = record_limit(limit)
        with self._doing("read what is to be sent"):
            key = self._key(conversation_id)
            if key is None:
                return (), None
            return mvds_tables.read_mvds_records(self._connection, key, from_epoch, bounded)

    def mvds_record(
        self, conversation_id: ConversationId, peer_id: ParticipantId, message_id: MvdsId, /
    ) -> Record | None:
        with self._doing("read what is to be sent"):
            key = self._key(conversation_id)
            read = mvds_tables.read_mvds_record
            return None if key is None else read(self._connection, key, peer_id, message_id)

    def mvds_message(
        self, conversation_id: ConversationId, message_id: MvdsId, /
    ) -> MvdsMessage | None:
        with self._doing("read a message"):
            key = self._key(conversation_id)
            read = mvds_tables.read_mvds_message
            return None if key is None else read(self._connection, key, message_id)

    def members(self, conversation_id: ConversationId, /) -> list[MemberRecord]:
        with self._doing("read the members"):
            key = self._key(conversation_id)
            keys = {} if key is None else {key: conversation_id}
            return profile_tables.read_members(self._connection, keys).get(key or 0, [])

    def governed(self, conversation_id: ConversationId, /) -> GovernedState:
        with self._doing("read the group"):
            key = self._key(conversation_id)
            return GovernedState() if key is None else governed_tables.read(self._connection, key)

    def channel_state(
        self,
        conversation_id: ConversationId,
        /,
        *,
        log: LogTable | None = None,
        held_since: int | None = None,
    ) -> ChannelState:
        with self._doing("read the channel"):
            return channel_reads.read_channel_state(
                self._connection, self._channel_key(conversation_id), log, held_since
            )

    def read_log(self, conversation_id: ConversationId, log: LogTable, /, *, limit: int) -> bool:
        if not log.rows_only:
            try:
                with self._doing("read the channel"), transaction(self._connection):
                    key = self._channel_key(conversation_id)
                    return saved_log.read_log(self._connection, key, log, limit)
            except StorageError as error:
                # If the rows cannot be read either, the next call says so.
                log.clear()
                log.distrusted = log.rows_only = True
                if error.fault is StorageFault.DAMAGED:
                    self._give_up_notes()
                return True
        with self._doing("read the channel"):
            return saved_log.read_rows(
                self._connection, self._channel_key(conversation_id), log, limit
            )

    def _give_up_notes(self) -> None:
        """If the notes about indexes cannot be read, do without: messages are still stored."""
        try:
            with self._doing("read the notes about logs"):
                saved_log.read_notes(self._connection)
        except StorageError:
            with self._doing("give up the notes about logs"), transaction(self._connection):
                saved_log.give_up(self._connection)

    def _channel_key(self, conversation_id: ConversationId) -> int:
        key, kind = profile_tables.require_conversation(self._connection, conversation_id)
        require_channel(kind)
        return key

    def logged(
        self, conversation_id: ConversationId, after: Position | None, /, *, limit: int
    ) -> list[LoggedMessage]:
        with self._doing("read the conversation"):
            key, kind = profile_tables.require_conversation(self._connection, conversation_id)
            is_pair = kind is ConversationKind.PAIR
            return read_logged(self._connection, key, after, is_pair=is_pair, limit=limit)

    def raw(self, conversation_id: ConversationId, message_id: MessageId, /) -> bytes | None:
        with self._doing("read a message"):
            key = self._key(conversation_id)
            return (
                None if key is None else channel_reads.read_raw(self._connection, key, message_id)
            )

    def file_data(self, conversation_id: ConversationId, message_id: MessageId, /) -> bytes | None:
        with self._doing("read a file"):
            key = self._key(conversation_id)
            if key is None:
                return None
            return file_tables.read_data(self._connection, key, stored_id(message_id))

    def with_files(
        self, conversation_id: ConversationId, before: Position | None, /, *, limit: int
    ) -> list[StoredMessage]:
        with self._doing("read the files of a conversation"):
            timeline = self._timeline(conversation_id)
            return [] if timeline is None else timeline.with_files(before, limit)

    def transfers(self) -> list[StoredTransfer]:
        with self._doing("read the files of messages"):
            return file_tables.read_transfers(self._connection)

    def set_aside(
        self, conversation_id: ConversationId, sender_id: ParticipantId, /, *, limit: int
    ) -> list[KeptAside]:
        with self._doing("read messages"):
            key = self._key(conversation_id)
            if key is None:
                return []
            return channel_reads.read_kept_aside(self._connection, key, sender_id, limit)

    def own_sequence(
        self, conversation_id: ConversationId, stay: InstanceId, /
    ) -> OwnSequence | None:
        with self._doing("read the sequence"):
            key = self._key(conversation_id)
            if key is None:
                return None
            return profile_tables.read_own_sequence(self._connection, key, stay)

    def message(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> StoredMessage | None:
        return self.messages(conversation_id, (message_id,)).get(message_id)

    def messages(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, StoredMessage]:
        with self._doing("read messages"):
            timeline = self._timeline(conversation_id)
            return {} if timeline is None else self._pending.read(timeline, message_ids)

    def targets(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> list[MessageId]:
        with self._doing("read messages"):
            key = self._key(conversation_id)
            return (
                [] if key is None else annotation_reads.targets(self._connection, key, message_ids)
            )

    def quoting(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> list[MessageId]:
        with self._doing("read messages"):
            key = self._key(conversation_id)
            return (
                [] if key is None else annotation_reads.quoting(self._connection, key, message_ids)
            )

    def counting(
        self, conversation_id: ConversationId, positions: Sequence[Position], /
    ) -> frozenset[MessageId]:
        with self._doing("read messages"):
            key = self._key(conversation_id)
            if key is None:
                return frozenset()
            return annotation_reads.counting(self._connection, key, positions)

    def versions(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[StoredVersion]:
        with self._doing("read a message"):
            key, connection = self._key(conversation_id), self._connection
            return [] if key is None else annotation_reads.versions(connection, key, message_id)

    def reactors(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[StoredReactor]:
        with self._doing("read a message"):
            key, connection = self._key(conversation_id), self._connection
            return [] if key is None else annotation_reads.reactors(connection, key, message_id)

    def latest_page(self, conversation_id: ConversationId, /, *, limit: int) -> StoredPage:
        with self._doing("read messages"):
            timeline = self._timeline(conversation_id)
            return EMPTY_PAGE if timeline is None else timeline.latest_page(limit)

    def page_before(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> StoredPage:
        with self._doing("read messages"):
            timeline = self._timeline(conversation_id)
            return EMPTY_PAGE if timeline is None else timeline.page_before(position, limit)

    def page_after(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> StoredPage:
        with self._doing("read messages"):
            timeline = self._timeline(conversation_id)
            return EMPTY_PAGE if timeline is None else timeline.page_after(position, limit)

    def summary(self, conversation_id: ConversationId, /) -> ConversationSummary:
        with self._doing("read the summary"):
            return list_reads.read_summary(self._connection, conversation_id)

    def listed(
        self, conversation_ids: Sequence[ConversationId], /
    ) -> Mapping[ConversationId, Listed]:
        with self._doing("read the conversations"):
            return list_reads.read_listed(self._connection, conversation_ids)

    def holders(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[HolderEntry]:
        with self._doing("read the holders"):
            key = self._key(conversation_id)
            if key is None:
                return []
            stored = stored_id(message_id)
            found = channel_reads.read_holders(self._connection, key, (stored,))
            return found.get(stored, [])

    def stores(self) -> list[StoreRecord]:
        with self._doing("read the Stores"):
            return history_tables.read_stores(self._connection)

    def history(self, conversation_id: ConversationId, /) -> HistoryKept:
        with self._doing("read how far Stores were asked"):
            key = self._key(conversation_id)
            if key is None:
                return HistoryKept()
            return history_tables.read_kept(self._connection, key, conversation_id)

    def node_addresses(self) -> list[str]:
        with self._doing("read the addresses"):
            return profile_tables.read_node_addresses(self._connection)

    def value(self, key: str, /) -> str | None:
        with self._doing("read a value"):
            return profile_tables.read_value(self._connection, key)

    def counters(self) -> Mapping[str, int]:
        with self._doing("read the counters"):
            return profile_tables.read_counters(self._connection)

    def _key(self, conversation_id: ConversationId) -> int | None:
        return profile_tables.conversation_key(self._connection, conversation_id)

    def _timeline(self, conversation_id: ConversationId) -> TimelineReader | None:
        key = self._key(conversation_id)
        return None if key is None else TimelineReader(self._connection, key, conversation_id)
