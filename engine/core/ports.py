"""What the core needs from disk: the profile's store, as writes and reads.

All methods are synchronous and run on the one storage thread.  ``apply`` is one transaction: all or
nothing, durable when it returns.  One contract suite runs on SQLite and on the tests' model of it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from engine.core.governed import GovernedStore, GovernedWrite
from engine.core.history.progress import HistoryKept, KeptWrite, StoreRecord, StoreRef
from engine.core.ids import ConversationId, InstanceId, MessageId, ParticipantId, Position, UnixMs
from engine.core.inspection import InspectionStore
from engine.core.joining import JoiningStore, JoiningWrite
from engine.core.mvds.vocabulary import Epoch, MvdsId, MvdsMessage, MvdsState, MvdsWrite, Record
from engine.core.ratchet import SaveRatchet
from engine.core.records import (
    AnnotationRecord,
    ContactRecord,
    DeliveryRecord,
    GroupRecord,
    KeptAside,
    LoggedMessage,
    LostRange,
    MemberRecord,
    MessageRecord,
    OpenChannelRecord,
    OwnSequence,
    PairState,
    ProfileRecord,
    TransferState,
    WaitingContent,
)
from engine.core.sds.log_table import LogTable
from engine.core.sds.vocabulary import ChannelState, HolderEntry, Write
from engine.core.search import SearchStore
from engine.core.stored import (
    ConversationSummary,
    Listed,
    StoredMessage,
    StoredPage,
    StoredReactor,
    StoredTransfer,
    StoredVersion,
)


class SaveProfile(Struct, frozen=True, kw_only=True):
    profile: ProfileRecord


class PutGroup(Struct, frozen=True, kw_only=True):
    """Insert, or replace everything but what belongs to the user: muted, draft, read_up_to."""

    group: GroupRecord
    initial_state: ChannelState | None = None
    """The initial clock of a new group; otherwise None."""


class PutOpenChannel(Struct, frozen=True, kw_only=True):
    """Insert, or replace everything but what belongs to the user: muted, draft, read_up_to."""

    channel: OpenChannelRecord
    initial_state: ChannelState | None = None
    """The initial clock of a new channel; otherwise None."""


class RemoveGroup(Struct, frozen=True, kw_only=True):
    """Forget a conversation of any kind; its rows may still be on disk: see ``clear_removed``."""

    conversation_id: ConversationId


class PutContact(Struct, frozen=True, kw_only=True):
    """Insert, or replace everything but what belongs to the user: muted, draft, read_up_to."""

    contact: ContactRecord


class ApplyMvds(Struct, frozen=True, kw_only=True):
    """The writes of a pair's MVDS node."""

    conversation_id: ConversationId
    writes: tuple[MvdsWrite, ...]


class SavePairClock(Struct, frozen=True, kw_only=True):
    """Never moves backwards."""

    conversation_id: ConversationId
    lamport_timestamp: int


class SavePairAuthor(Struct, frozen=True, kw_only=True):
    """An instance of the peer was delivered up to ``sequence``."""

    conversation_id: ConversationId
    instance_id: InstanceId
    sequence: int


class PutWaiting(Struct, frozen=True, kw_only=True):
    """Insert or replace by message id."""

    conversation_id: ConversationId
    waiting: WaitingContent


class RemoveWaiting(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    message_id: MessageId


class PutLost(Struct, frozen=True, kw_only=True):
    """Insert, or replace by instance and first number."""

    conversation_id: ConversationId
    lost: LostRange


class RemoveLost(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    instance_id: InstanceId
    first: int


class SavePicture(Struct, frozen=True, kw_only=True):
    """The profile's own picture, PNG or JPEG; b"" = none."""

    picture: bytes


class PutMember(Struct, frozen=True, kw_only=True):
    """Insert, or replace everything but ``known_ms``."""

    member: MemberRecord


class ApplyChannel(Struct, frozen=True, kw_only=True, gc=False):
    """The writes of the SDS channel of a group, or of an open channel.

    What they remove from the log leaves the timeline too: its row, its delivery, every count.
    """

    conversation_id: ConversationId
    writes: tuple[Write, ...]


class PutMessage(Struct, frozen=True, kw_only=True, gc=False):
    """Insert or replace by message id; ``hidden`` stays as it was."""

    message: MessageRecord
    data: bytes = b""
    """The bytes of ``message.file``."""
    came_ms: UnixMs | None = None  # If it had to wait from then until ``message.received_ms``.


class PutTransfer(Struct, frozen=True, kw_only=True):
    """What becomes of the blob of a message, if it has one; ``PutMessage`` leaves it as it was."""

    conversation_id: ConversationId
    message_id: MessageId
    state: TransferState
    fault: str = ""


class PutFileHolder(Struct, frozen=True, kw_only=True):
    """A member says that it has the blob of a message as a whole, or not any more; else ignored.

    Of one member's, the one with the highest ``as_of`` counts, and of equal ones that it is gone.
    """

    conversation_id: ConversationId
    message_id: MessageId
    participant_id: ParticipantId
    held: bool = True
    as_of: int = 0


class PutAnnotation(Struct, frozen=True, kw_only=True):
    """Insert; one that is known already changes nothing, and so does one that counts nothing.

    It waits if its target is not here.  What is shown depends only on which annotations were put,
    not on their order: of one sender's reactions with one emoji the newest counts, and the newest
    edit by the target's own author, unless that author retracted it.  Newest is by position.
    """

    annotation: AnnotationRecord


class HideMessage(Struct, frozen=True, kw_only=True):
    """Delete on this device only: it leaves every page and count; the log keeps it for others."""

    conversation_id: ConversationId
    message_id: MessageId


class PutDelivery(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    message_id: MessageId
    delivery: DeliveryRecord


class SaveOwnSequence(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    own_sequence: OwnSequence


class SaveReadMark(Struct, frozen=True, kw_only=True):
    """Never moves backwards."""

    conversation_id: ConversationId
    up_to: Position


class SaveDraft(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    text: str


class SaveMuted(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    muted: bool
    until_ms: UnixMs | None = None
    """None: until the user ends it."""


class SaveMemberMuted(Struct, frozen=True, kw_only=True):
    """Hide a member's rows here, also future ones; the log keeps them, and they can return."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    muted: bool


class PutNodeAddress(Struct, frozen=True, kw_only=True):
    """A peer of a conversation (or of none): a multiaddr with /p2p/; newest 50 are kept."""

    multiaddr: str
    seen_ms: UnixMs


class SaveValue(Struct, frozen=True, kw_only=True):
    """A small named value of the profile, such as the port or the window's geometry."""

    key: str
    value: str


class AddCounters(Struct, frozen=True, kw_only=True):
    amounts: Mapping[str, int]


class PutStore(Struct, frozen=True, kw_only=True):
    """Insert, or replace by its address."""

    record: StoreRecord


class RemoveStore(Struct, frozen=True, kw_only=True):
    store: StoreRef


class ApplyHistory(Struct, frozen=True, kw_only=True):
    """How far the Stores were queried.  Ignored for a conversation that was removed."""

    conversation_id: ConversationId
    writes: tuple[KeptWrite, ...]


StoreWrite: TypeAlias = (
    SaveProfile
    | PutGroup
    | PutOpenChannel
    | RemoveGroup
    | PutContact
    | ApplyMvds
    | SavePairClock
    | SavePairAuthor
    | PutWaiting
    | RemoveWaiting
    | PutLost
    | RemoveLost
    | SaveRatchet
    | SavePicture
    | PutMember
    | GovernedWrite
    | JoiningWrite
    | ApplyChannel
    | PutMessage
    | PutAnnotation
    | PutTransfer
    | PutFileHolder
    | HideMessage
    | PutDelivery
    | SaveOwnSequence
    | SaveReadMark
    | SaveDraft
    | SaveMuted
    | SaveMemberMuted
    | PutNodeAddress
    | SaveValue
    | AddCounters
    | PutStore
    | RemoveStore
    | ApplyHistory
)

BeforeCommit: TypeAlias = Callable[[], object] | None
"""Called in the transaction, where it may read the changes.  If it fails, nothing was written."""


class ProfileStore(GovernedStore, Protocol):
    """Everything that a profile keeps.  Every method may raise StorageError."""

    @property
    def searching(self) -> SearchStore: ...

    @property
    def inspecting(self) -> InspectionStore: ...

    @property
    def joining(self) -> JoiningStore: ...

    def apply(self, writes: Sequence[StoreWrite], /, before_commit: BeforeCommit = None) -> None:
        """Make all ``writes`` durable in one transaction, in order, or none of them."""

    def clear_removed(self) -> bool:
        """Delete a small part of what removed conversations left; True if there is more."""

    def mark_muted(self) -> bool:
        """Hide some more rows of muted members, or bring rows back; True if there were any."""

    def profile(self) -> ProfileRecord | None: ...

    def groups(self) -> list[GroupRecord]: ...

    def open_channels(self) -> list[OpenChannelRecord]: ...

    def contacts(self) -> list[ContactRecord]: ...

    def picture(self) -> bytes:
        """The profile's own picture, b"" if there is none."""

    def pair_state(self, conversation_id: ConversationId, /) -> PairState: ...

    def mvds_state(self, conversation_id: ConversationId, /, *, limit: int) -> MvdsState:
        """At most ``limit`` records: those due soonest first, those given up last."""

    def mvds_records(
        self, conversation_id: ConversationId, from_epoch: Epoch, /, *, limit: int
    ) -> tuple[tuple[Record, ...], Epoch | None]:
        """The next records from this epoch on, and ``loaded_before`` as in ``MvdsState``.

        Records of one epoch come together, even beyond ``limit``.
        """

    def mvds_record(
        self, conversation_id: ConversationId, peer_id: ParticipantId, message_id: MvdsId, /
    ) -> Record | None: ...

    def mvds_message(
        self, conversation_id: ConversationId, message_id: MvdsId, /
    ) -> MvdsMessage | None:
        """The body of an own message that is still needed."""

    def members(self, conversation_id: ConversationId, /) -> list[MemberRecord]: ...

    def channel_state(
        self,
        conversation_id: ConversationId,
        /,
        *,
        log: LogTable | None = None,
        held_since: int | None = None,
    ) -> ChannelState:
        """``log``: what ``read_log`` read of it already.

        ``held_since``: only the holders of messages in the log from this Lamport timestamp on.
        Raises StorageError for an unknown conversation, and for a pair.
        """

    def read_log(self, conversation_id: ConversationId, log: LogTable, /, *, limit: int) -> bool:
        """Add the next entries of the log; False if there are no more.

        In its order, but that some that came late may be the last.  Raises as ``channel_state``
        does.
        """

    def logged(
        self, conversation_id: ConversationId, after: Position | None, /, *, limit: int
    ) -> list[LoggedMessage]:
        """The next messages in the conversation's order, including hidden ones; for audits."""

    def raw(self, conversation_id: ConversationId, message_id: MessageId, /) -> bytes | None:
        """The raw bytes of a logged message, for a repair response."""

    def set_aside(
        self, conversation_id: ConversationId, sender_id: ParticipantId, /, *, limit: int
    ) -> list[KeptAside]:
        """The first messages set aside and kept of this author, by (Lamport timestamp, id)."""

    def own_sequence(
        self, conversation_id: ConversationId, stay: InstanceId, /
    ) -> OwnSequence | None: ...

    def message(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> StoredMessage | None: ...

    def messages(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> Mapping[MessageId, StoredMessage]:
        """The messages that exist and are visible."""

    def targets(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> list[MessageId]:
        """The messages of which our own annotations among ``message_ids`` speak."""

    def quoting(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], /
    ) -> list[MessageId]:
        """The newest rows that quote one of these, at most ``rules.MAX_QUOTING``."""

    def counting(
        self, conversation_id: ConversationId, positions: Sequence[Position], /
    ) -> frozenset[MessageId]:
        """Which of the reactions at these positions count: nothing newer replaced them."""

    def versions(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[StoredVersion]:
        """The message's texts, oldest first; one if it was never edited.  The newest are kept."""

    def reactors(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[StoredReactor]:
        """Who reacted and was not muted, the earliest first.  Nobody to a retracted message."""

    def file_data(self, conversation_id: ConversationId, message_id: MessageId, /) -> bytes | None:
        """The bytes of a message's file, shown or not; b"" of a blob, None if none or retracted."""

    def with_files(
        self, conversation_id: ConversationId, before: Position | None, /, *, limit: int
    ) -> list[StoredMessage]:
        """The newest visible files before this position, or of all; the newest first."""

    def transfers(self) -> list[StoredTransfer]:
        """All blobs of messages that were neither retracted nor deleted here, in any order."""

    def latest_page(self, conversation_id: ConversationId, /, *, limit: int) -> StoredPage: ...

    def page_before(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> StoredPage: ...

    def page_after(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int
    ) -> StoredPage: ...

    def summary(self, conversation_id: ConversationId, /) -> ConversationSummary: ...

    def listed(
        self, conversation_ids: Sequence[ConversationId], /
    ) -> Mapping[ConversationId, Listed]:
        """Of each, also of one that is not there; many take little more time than one."""

    def holders(
        self, conversation_id: ConversationId, message_id: MessageId, /
    ) -> list[HolderEntry]: ...

    def stores(self) -> list[StoreRecord]:
        """The user's Stores, by place and address."""

    def history(self, conversation_id: ConversationId, /) -> HistoryKept: ...

    def node_addresses(self) -> list[str]:
        """Most recently seen first."""

    def value(self, key: str, /) -> str | None: ...

    def counters(self) -> Mapping[str, int]: ...

    def close(self) -> None: ...
