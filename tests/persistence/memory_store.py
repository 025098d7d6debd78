"""A model of ``ProfileStore`` in plain dictionaries, which the SQLite one is held against.

A batch is checked as a whole before anything changes, so it is applied completely or not at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import assert_never

from msgspec.structs import replace

from engine.core.errors import StorageError
from engine.core.governed import (
    GovernedState,
    GovernedWrite,
    RemoveRow,
)
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
from engine.core.sds.vocabulary import AppendToLog, ChannelState, HolderEntry, RemoveFromLog
from engine.core.stored import (
    ConversationSummary,
    Listed,
    StoredMessage,
    StoredPage,
    StoredReactor,
    StoredTransfer,
    StoredVersion,
)
from engine.persistence.logged_reads import MAX_PAGE
from engine.persistence.rules import (
    EMPTY_PAGE,
    EMPTY_SUMMARY,
    MAX_NODE_ADDRESSES,
    MAX_PAGE_ROWS,
    ConversationKind,
    ConversationRow,
    DataWrite,
    ProfileWrite,
    UserWrite,
    check_kind,
    check_picture,
    conversation_of,
    initial_clock,
    kind_of,
    record_limit,
    require_channel,
    require_kind,
)
from tests.persistence.memory_conversation import MemoryConversation
from tests.persistence.memory_inspection import MemoryInspection
from tests.persistence.memory_joining import MemoryJoining
from tests.persistence.memory_search import MemorySearch


class MemoryProfileStore:
    def __init__(self) -> None:
        self._profile: ProfileRecord | None = None
        self._conversations: dict[ConversationId, MemoryConversation] = {}
        self._node_addresses: dict[str, int] = {}
        self._picture = b""
        self._values: dict[str, str] = {}
        self._counters: dict[str, int] = {}
        self._stores: dict[str, StoreRecord] = {}
        self.searching = MemorySearch(self._visible_rows)
        self.inspecting = MemoryInspection(self._conversations)
        self.joining = MemoryJoining(self._conversations.__contains__)

    def _visible_rows(self) -> Iterator[tuple[ConversationId, StoredMessage]]:
        for conversation_id, conversation in self._conversations.items():
            for row in conversation.latest_page(MAX_PAGE_ROWS).messages:
                yield conversation_id, row

    def apply(self, writes: Sequence[StoreWrite], /, before_commit: BeforeCommit = None) -> None:
        self._check(writes)
        before = None if before_commit is None else deepcopy(vars(self))
        for write in writes:
            self._apply_one(write)
        if before_commit is None or before is None:
            return
        try:
            before_commit()
        except BaseException:
            vars(self).update(before)
            raise

    def clear_removed(self) -> bool:
        """Nothing to do: removal is immediate."""
        return False

    def mark_muted(self) -> bool:
        """Nothing to do: muting is immediate."""
        return False

    def close(self) -> None:
        """Nothing to close; the state stays, like a file."""

    # --- what SQLite's constraints refuse -------------------------------------------------------

    def _check(self, writes: Sequence[StoreWrite]) -> None:
        known = {
            conversation_id: kind_of(conversation.about)
            for conversation_id, conversation in self._conversations.items()
        }
        fresh: set[ConversationId] = set()
        logged: dict[tuple[ConversationId, MessageId], bool] = {}
        """Whether each message is logged, according to the batch so far."""
        for write in writes:
            match write:
                case PutGroup() | PutOpenChannel() | PutContact():
                    _check_conversation(write, known)
                case SavePicture(picture=picture):
                    check_picture(picture)
                case RemoveGroup(conversation_id=gone):
                    known.pop(gone, None)
                    fresh.add(gone)
                    logged = {entry: is_in for entry, is_in in logged.items() if entry[0] != gone}
                case (
                    SaveProfile() | PutNodeAddress() | SaveValue() | AddCounters()
                    | SaveReadMark() | SaveDraft() | SaveMuted() | SaveMemberMuted()
                    | HideMessage() | PutStore() | RemoveStore() | ApplyHistory()
                    | PutTransfer() | PutFileHolder()
                ):  # fmt: skip
                    pass
                case _ if isinstance(write, JoiningWrite):
                    pass
                case _:
                    conversation_id = conversation_of(write)
                    if conversation_id not in known:
                        raise StorageError("This conversation is not in the profile.")
                    check_kind(write, known[conversation_id])
                    if isinstance(write, ApplyChannel):
                        self._check_appends(write, logged, is_fresh=conversation_id in fresh)

    def _check_appends(
        self,
        write: ApplyChannel,
        logged: dict[tuple[ConversationId, MessageId], bool],
        *,
        is_fresh: bool,
    ) -> None:
        conversation_id = write.conversation_id
        old = None if is_fresh else self._conversations.get(conversation_id)
        for channel_write in write.writes:
            if isinstance(channel_write, RemoveFromLog):
                logged[conversation_id, channel_write.message_id] = False
            if not isinstance(channel_write, AppendToLog):
                continue
            message_id = channel_write.entry.position.message_id
            was_logged = old is not None and old.channel.has_logged(message_id)
            if logged.get((conversation_id, message_id), was_logged):
                raise StorageError("Cannot save: it contradicts what is stored already.")
            logged[conversation_id, message_id] = True

    # --- writes ---------------------------------------------------------------------------------

    def _apply_one(self, write: StoreWrite) -> None:
        match write:
            case PutGroup() | PutOpenChannel() | PutContact():
                self._put_conversation(write)
            case RemoveGroup(conversation_id=conversation_id):
                self._conversations.pop(conversation_id, None)
                self.joining.forget(conversation_id)
            case _ if isinstance(write, JoiningWrite):
                self.joining.apply(write)
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
            case _:
                self._apply_data(write)

    def _apply_to_profile(self, write: ProfileWrite) -> None:
        match write:
            case SaveProfile(profile=profile):
                self._profile = profile
            case SavePicture(picture=picture):
                self._picture = picture
            case PutNodeAddress():
                self._put_node_address(write)
            case SaveValue(key=key, value=value):
                self._values[key] = value
            case AddCounters(amounts=amounts):
                for name, amount in amounts.items():
                    self._counters[name] = self._counters.get(name, 0) + amount
            case PutStore(record=record):
                self._stores[record.store] = record
            case RemoveStore(store=store):
                self._stores.pop(store, None)
            case _:
                assert_never(write)

    def _apply_of_user(self, write: UserWrite) -> None:  # noqa: C901 - one case per kind
        conversation = self._conversations.get(write.conversation_id)
        if conversation is None:
            return
        match write:
            case SaveReadMark(up_to=up_to):
                conversation.save_read_mark(up_to)
            case SaveDraft(text=text):
                conversation.about = replace(conversation.about, draft=text)
            case SaveMuted(muted=muted, until_ms=until_ms):
                conversation.about = replace(
                    conversation.about, muted=muted, muted_until_ms=until_ms if muted else None
                )
            case SaveMemberMuted(participant_id=participant_id, muted=muted):
                conversation.set_member_muted(participant_id, muted=muted)
            case HideMessage(message_id=message_id):
                conversation.hide_message(message_id)
            case PutTransfer(message_id=message_id, state=state, fault=fault):
                conversation.put_transfer(message_id, state=state, fault=fault)
            case PutFileHolder():
                conversation.put_file_holder(write)
            case ApplyHistory(writes=kept_writes):
                for kept_write in kept_writes:
                    conversation.history.apply(kept_write)
            case _:
                assert_never(write)

    def _apply_data(self, write: DataWrite) -> None:
        conversation = self._conversations[conversation_of(write)]
        match write:
            case ApplyChannel(writes=channel_writes):
                for channel_write in channel_writes:
                    conversation.apply_channel(channel_write)
            case PutMessage(message=message, data=data, came_ms=came_ms):
                conversation.put_message(message, data, came_ms)
            case PutAnnotation(annotation=annotation):
                conversation.put_annotation(annotation)
            case PutDelivery(message_id=message_id, delivery=delivery):
                conversation.put_delivery(message_id, delivery)
            case SaveOwnSequence(own_sequence=own_sequence):
                conversation.own_sequences[own_sequence.stay] = own_sequence
            case PutMember(member=member):
                conversation.put_member(member)
            case RemoveRow(position=position):
                conversation.remove_row(position)
            case _ if isinstance(write, GovernedWrite):
                conversation.govern(write)
            case _:
                conversation.pair.apply(write)

    def _put_conversation(self, write: PutGroup | PutOpenChannel | PutContact) -> None:
        about = _about(write)
        known = self._conversations.get(about.conversation_id)
        if known is not None:
            known.replace(about)
            return
        clock = 0 if isinstance(write, PutContact) else initial_clock(write)
        self._conversations[about.conversation_id] = MemoryConversation(about, clock)

    def _put_node_address(self, write: PutNodeAddress) -> None:
        seen = self._node_addresses
        seen[write.multiaddr] = max(write.seen_ms, seen.get(write.multiaddr, write.seen_ms))
        for multiaddr in self.node_addresses()[MAX_NODE_ADDRESSES:]:
            del seen[multiaddr]

    # --- reads ----------------------------------------------------------------------------------

    def profile(self) -> ProfileRecord | None:
        return self._profile

    def groups(self) -> list[GroupRecord]:
        every = (conversation.about for conversation in self._conversations.values())
        return [about for about in every if isinstance(about, GroupRecord)]

    def open_channels(self) -> list[OpenChannelRecord]:
        every = (conversation.about for conversation in self._conversations.values())
        return [about for about in every if isinstance(about, OpenChannelRecord)]

    def contacts(self) -> list[ContactRecord]:
        every = (conversation.about for conversation in self._conversations.values())
        return [about for about in every if isinstance(about, ContactRecord)]

    def picture(self) -> bytes:
        return self._picture

    def pair_state(self, conversation_id: ConversationId, /) -> PairState:
        conversation = self._conversations.get(conversation_id)
        return conversation.pair.state() if conversation else PairState()

    def mvds_state(self, conversation_id: ConversationId, /, *, limit: int) -> MvdsState:
        bounded = record_limit(limit)
        conversation = self._conversations.get(conversation_id)
        return conversation.pair.mvds_state(bounded) if conversation else MvdsState()

    def mvds_records(
        self, conversation_id: ConversationId, from_epoch: Epoch, /, *, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        bounded = record_limit(limit)
        conversation = self._conversations.get(conversation_id)
        return conversation.pair.mvds_records(from_epoch, bounded) if conversation else ((), None)

    def mvds_record(
        self, conversation_id: ConversationId, peer_id: ParticipantId, message_id: MvdsId, /
    ) -> Record | None:
        conversation = self._conversations.get(conversation_id)
        return conversation.pair.mvds_record(peer_id, message_id) if conversation else None

    def mvds_message(
        self, conversation_id: ConversationId, message_id: MvdsId, /
    ) -> MvdsMessage | None:
        conversation = self._conversations.get(conversation_id)
        return conversation.pair.mvds_message(message_id) if conversation else None

    def members(self, conversation_id: ConversationId, /) -> list[MemberRecord]:
        conversation = self._conversations.get(conversation_id)
        return list(conversation.members.values()) if conversation else []

    def governed(self, conversation_id: ConversationId, /) -> GovernedState:
        conversation = self._conversations.get(conversation_id)
        return conversation.governed if conversation else GovernedState()

    def read_log(self, conversation_id: ConversationId, log: LogTable, /, *, limit: int) -> bool:
        entries = self.channel_state(conversation_id).log[len(log) :]
        for entry in entries[:limit]:
            log.append(entry)
        return len(entries) >= limit

    def channel_state(
        self,
        conversation_id: ConversationId,
        /,
        *,
        log: LogTable | None = None,
        held_since: int | None = None,
    ) -> ChannelState:
        if log is not None:
            return replace(self.channel_state(conversation_id, held_since=held_since), log=log)
        if held_since is not None:
            state = self.channel_state(conversation_id)
            recent = {
                entry.position.message_id
                for entry in state.log
                if entry.position.lamport_timestamp >= held_since
            }
            holders = tuple(each for each in state.holders if each.message_id in recent)
            return replace(state, holders=holders)
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            raise StorageError("This conversation is not in the profile.")
        require_channel(kind_of(conversation.about))
        return conversation.channel_state()

    def logged(
        self, conversation_id: ConversationId, after: Position | None, /, *, limit: int
    ) -> list[LoggedMessage]:
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            raise StorageError("This conversation is not in the profile.")
        return conversation.logged(after)[: min(limit, MAX_PAGE)]

    def raw(self, conversation_id: ConversationId, message_id: MessageId, /) -> bytes | None:
        conversation = self._conversations.get(conversation_id)
        return conversation.channel.raw(message_id) if conversation else None

    def file_data(self, conversation_id: ConversationId, message_id: MessageId, /) -> bytes | None:
        conversation = self._conversations.get(conversation_id)
        return conversation.file_data(message_id) if conversation else None

    def with_files(
        self, conversation_id: ConversationId, before: Position | None, /, *, limit: int
    ) -> list[StoredMessage]:
        conversation = self._conversations.get(conversation_id)
        return conversation.with_files(before, limit) if conversation else []

    def transfers(self) -> list[StoredTransfer]:
        return [
            transfer
            for conversation in self._conversations.values()
            for transfer in conversation.transfers()
        ]

    def set_aside(
        self, conversation_id: ConversationId, sender_id: ParticipantId, /, *, limit: int
    ) -> list[KeptAside]:
        conversation = self._conversations.get(conversation_id)
        return conversation.channel.set_aside(sender_id, limit) if conversation else []

    def own_sequence(
        self, conversation_id: ConversationId, stay: InstanceId, /
    ) -> OwnSequence | None:
        conversation = self._conversations.get(conversation_id)
        return conversation.own_sequences.get(stay) if conversation else None

    def message(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> StoredMessage | None:
        conversation = self._conversations.get(conversation_id)
        return conversation.message(message_id) if conversation else None

    def messages(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, StoredMessage]:
        found = ((each, self.message(conversation_id, each)) for each in message_ids)
        return {message_id: stored for message_id, stored in found if stored is not None}

    def targets(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> list[MessageId]:
        conversation = self._conversations.get(conversation_id)
        return conversation.targets(message_ids) if conversation else []

    def quoting(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> list[MessageId]:
        conversation = self._conversations.get(conversation_id)
        return conversation.quoting(message_ids) if conversation else []

    def counting(
        self, conversation_id: ConversationId, positions: Sequence[Position], /
    ) -> frozenset[MessageId]:
        conversation = self._conversations.get(conversation_id)
        return conversation.annotations.counting(positions) if conversation else frozenset()

    def versions(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[StoredVersion]:
        conversation = self._conversations.get(conversation_id)
        return conversation.versions(message_id) if conversation else []

    def reactors(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[StoredReactor]:
        conversation = self._conversations.get(conversation_id)
        return conversation.reactors(message_id) if conversation else []

    def latest_page(self, conversation_id: ConversationId, /, *, limit: int) -> StoredPage:
        conversation = self._conversations.get(conversation_id)
        return conversation.latest_page(limit) if conversation else EMPTY_PAGE

    def page_before(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> StoredPage:
        conversation = self._conversations.get(conversation_id)
        return conversation.page_before(position, limit) if conversation else EMPTY_PAGE

    def page_after(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> StoredPage:
        conversation = self._conversations.get(conversation_id)
        return conversation.page_after(position, limit) if conversation else EMPTY_PAGE

    def summary(self, conversation_id: ConversationId, /) -> ConversationSummary:
        conversation = self._conversations.get(conversation_id)
        return conversation.summary() if conversation else EMPTY_SUMMARY

    def listed(
        self, conversation_ids: Sequence[ConversationId], /
    ) -> Mapping[ConversationId, Listed]:
        return {
            each: Listed(
                summary=self.summary(each),
                members=tuple(self.members(each)),
                muted=frozenset(conversation.muted_members)
                if (conversation := self._conversations.get(each))
                else frozenset(),
            )
            for each in conversation_ids
        }

    def holders(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[HolderEntry]:
        conversation = self._conversations.get(conversation_id)
        return conversation.channel.holders(message_id) if conversation else []

    def stores(self) -> list[StoreRecord]:
        return sorted(self._stores.values(), key=lambda record: (record.place, record.store))

    def history(self, conversation_id: ConversationId, /) -> HistoryKept:
        conversation = self._conversations.get(conversation_id)
        return conversation.history.kept() if conversation else HistoryKept()

    def node_addresses(self) -> list[str]:
        """Most recently seen first."""
        return sorted(
            self._node_addresses,
            key=lambda multiaddr: (-self._node_addresses[multiaddr], multiaddr),
        )

    def value(self, key: str, /) -> str | None:
        return self._values.get(key)

    def counters(self) -> Mapping[str, int]:
        return dict(sorted(self._counters.items()))


def _about(write: PutGroup | PutOpenChannel | PutContact) -> ConversationRow:
    match write:
        case PutGroup():
            return write.group
        case PutOpenChannel():
            return write.channel
        case PutContact():
            return write.contact


def _check_conversation(
    write: PutGroup | PutOpenChannel | PutContact, known: dict[ConversationId, ConversationKind]
) -> None:
    about = _about(write)
    if isinstance(write, PutContact):
        check_picture(write.contact.picture)
    elif about.conversation_id not in known:
        initial_clock(write)
    kind = kind_of(about)
    require_kind(known.setdefault(about.conversation_id, kind), kind)
