"""The vocabulary of an SDS channel: messages, saved state, writes, sends, events.

Shapes follow the specification's Participant state and Message sections.  A state machine takes an
``Input`` (see ``inputs``) and returns a ``Transition``; the runner makes ``writes`` durable in one
transaction, and only then performs ``sends`` and publishes ``events``.  These two modules define
all that crosses the border of the core.  Sealing, storage and transport are handled elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    HolderSource,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.sds.floods import (
    ForgetSetAside,
    PutSetAside,
    PutSpent,
    RemoveSetAside,
    SetAside,
    SetAsideChanged,
    Spent,
)
from engine.core.sds.forks import Fork, ForkFound, PutFork


class HistoryEntry(NamedTuple):
    """One dependency: its id, how to retrieve it (Waku message hash), who sent it (SDS-R).

    A tuple, because a channel reads and writes hundreds of them with every message.
    """

    message_id: MessageId
    retrieval_hint: bytes | None = None
    sender_id: ParticipantId | None = None


class Message(Struct, frozen=True, gc=False):
    """An SDS message as on the wire.

    content + lamport = content message; lamport without content = sync; content without lamport =
    ephemeral.  ``causal_history`` is oldest first.
    """

    sender_id: ParticipantId
    message_id: MessageId
    channel_id: ChannelId
    lamport_timestamp: int | None = None
    causal_history: tuple[HistoryEntry, ...] = ()
    bloom_filter: bytes | None = None
    repair_request: tuple[HistoryEntry, ...] = ()
    content: bytes | None = None

    @property
    def is_sync(self) -> bool:
        return self.lamport_timestamp is not None and not self.content

    @property
    def is_ephemeral(self) -> bool:
        return self.lamport_timestamp is None


class SequenceRange(Struct, frozen=True, kw_only=True):
    """Sequence numbers ``first`` to ``last``, both included, without gaps."""

    first: int
    last: int
    head: bytes = b""
    """First 8 bytes of the last message's id, b"" if not given.  By this, members who hold the same
    numbers of a forked author notice that the messages differ."""


Holdings: TypeAlias = dict[InstanceId, tuple[SequenceRange, ...]]
"""What is held per author instance; ranges are ascending and disjoint."""


class Claim(Struct, frozen=True):
    """What a member states about itself beside a message, under its signature."""

    holdings: Holdings | None = None
    held_aside: tuple[MessageId, ...] = ()
    """Messages that are here but too far ahead of the member's clock to be delivered."""
    whole_files: tuple[MessageId, ...] = ()
    """Messages of others whose blobs the member has as a whole."""
    let_go_files: tuple[MessageId, ...] = ()
    """Those whose blobs it had and has no more."""
    files_as_of: int = 0
    """Of both: a later statement of the same member has more.  0: an older version says none."""


# --- saved state --------------------------------------------------------------------------------


class OutgoingState(StrEnum):
    """The specification's states; ACKNOWLEDGED leaves the outgoing buffer."""

    UNACKNOWLEDGED = "unacknowledged"
    POSSIBLY_ACKNOWLEDGED = "possibly_acknowledged"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"


class LogEntry(Struct, frozen=True, gc=False):
    """A delivered message: everything to remember of it except its raw bytes."""

    position: Position
    sender_id: ParticipantId
    retrieval_hint: bytes | None = None
    author: AuthorSequence | None = None
    previous_id: MessageId | None = None
    """The author's message before this one, until that is known to be here."""
    size: int = 0
    """The size of its raw bytes: the cost of sending it again."""


class OutgoingEntry(Struct, frozen=True):
    """One of our messages that still has to be acknowledged."""

    message_id: MessageId
    raw: bytes
    state: OutgoingState
    attempts: int
    next_send_ms: UnixMs
    accepted: bool
    created_ms: UnixMs


class IncomingEntry(Struct, frozen=True):
    """A received message with unmet causal dependencies."""

    message: Message
    raw: bytes
    author: AuthorSequence | None
    retrieval_hint: bytes | None
    received_ms: UnixMs
    shown: bool = False
    """The soft time-out has passed: the window shows it below a gap."""
    previous_id: MessageId | None = None
    replaces: MessageId | None = None


class MissingState(StrEnum):
    WANTED = "wanted"
    LOST = "lost"


class StoresSaid(Struct, frozen=True, kw_only=True):
    """What Stores had of a dependency when last asked: see ``StoresMissing``."""

    at_ms: UnixMs
    lacked: int
    silent: tuple[str, ...] = ()
    kept_back: bool = False


class MissingEntry(Struct, frozen=True, kw_only=True):
    """A missing dependency, and when to ask for it (SDS-R) next."""

    entry: HistoryEntry
    state: MissingState
    since_ms: UnixMs
    online_ms: int
    """How long we have looked for it while online."""
    request_at_ms: UnixMs
    requests: int
    before: Position | None = None
    """The first message known to depend on it; it belongs before that one."""
    stores: StoresSaid | None = None
    """None: no Store was asked for it by hash yet."""

    @property
    def is_from_before(self) -> bool:
        """Whether whoever let us in named it as said before we came, in a key not given to us.

        It was never looked for, as other lost ones were.
        """
        kept_back = self.stores is not None and self.stores.kept_back
        return self.state is MissingState.LOST and kept_back and self.online_ms == 0


class Gap(Struct, frozen=True, kw_only=True):
    """Dependencies missing before one message, and how many messages wait from there on.

    ``waiting`` counts up to the next gap.  ``since_ms``, ``requests`` and ``next_request_ms`` are
    those of the one missing longest, asked for most often, and asked for next.
    """

    before: Position | None
    """None: only sync messages name them, so their place is unknown."""
    missing: int
    waiting: int
    since_ms: UnixMs
    requests: int
    next_request_ms: UnixMs | None


class HolderEntry(Struct, frozen=True):
    message_id: MessageId
    participant_id: ParticipantId
    source: HolderSource
    since_ms: UnixMs
    false_probability: float | None = None
    """P(the filter is wrong), from its m, k and fill; None if not from a filter."""


class Replacement(Struct, frozen=True, kw_only=True):
    """A message that its sender replaced because its Lamport timestamp was from the future.

    It counts only for a message of the same sender that is further ahead than its replacement and
    replaces no other.  So every dropped message is named by one that stays, which every member
    receives in the end.
    """

    message_id: MessageId
    """The message that every member drops."""
    sender_id: ParticipantId
    lamport_timestamp: int
    """The Lamport timestamp of the message that takes its place."""
    by: MessageId
    """The message that takes its place."""


class NewestClaim(Struct, frozen=True):
    """When a member last claimed or requested something; older messages are not answered."""

    participant_id: ParticipantId
    lamport_timestamp: int


class Buffers(Struct, frozen=True, kw_only=True):
    """How much a channel holds at a moment, for whoever looks into it."""

    outgoing: int
    incoming: int
    held: int
    missing: int
    filter_bytes: bytes
    lamport_timestamp: int


class ChannelState(Struct, frozen=True, kw_only=True):
    """All that a channel needs to continue after a restart.  Blooms are recomputed from it."""

    lamport_timestamp: int
    """At least this: the log's newest entry may say more."""
    log: Sequence[LogEntry] = ()
    """Ascending by position; of many, a ``LogTable``."""
    outgoing: tuple[OutgoingEntry, ...] = ()
    incoming: tuple[IncomingEntry, ...] = ()
    """Includes those held aside because they are ahead of the clock."""
    missing: tuple[MissingEntry, ...] = ()
    holders: tuple[HolderEntry, ...] = ()
    """Only for own messages that some member may not hold yet."""
    store_queried_ms: UnixMs | None = None
    """The time up to which Stores were last queried successfully for everything."""
    replaced: tuple[Replacement, ...] = ()
    forks: tuple[Fork, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    spent: tuple[Spent, ...] = ()
    newest_claims: tuple[NewestClaim, ...] = ()
    """One per member that made any claim."""


# --- writes -------------------------------------------------------------------------------------


class SaveClock(Struct, frozen=True):
    """The Lamport timestamp of a sync message; those of content messages are in the log."""

    lamport_timestamp: int


class SaveStoreQueried(Struct, frozen=True, kw_only=True):
    """Stores were queried for everything up to then."""

    store_queried_ms: UnixMs


class AppendToLog(Struct, frozen=True, gc=False):
    """Insert at ``entry.position``, which may lie before messages already there."""

    entry: LogEntry
    raw: bytes


class RemoveFromLog(Struct, frozen=True, kw_only=True):
    """Its sender replaced it.  Its raw bytes and holders go with it."""

    message_id: MessageId


class PutReplacement(Struct, frozen=True, kw_only=True):
    """Insert or replace."""

    replacement: Replacement


class PutNewestClaims(Struct, frozen=True):
    """Insert or replace, by participant."""

    claims: tuple[NewestClaim, ...]


class SaveRetrievalHint(Struct, frozen=True):
    message_id: MessageId
    retrieval_hint: bytes


class ReplaceRaw(Struct, frozen=True):
    """Our message was signed anew, before anybody took it."""

    message_id: MessageId
    raw: bytes


class PutOutgoing(Struct, frozen=True):
    """Insert or replace."""

    entry: OutgoingEntry


class MarkAccepted(Struct, frozen=True):
    """Only this changed in an outgoing entry: its bytes need not be written again."""

    message_id: MessageId


class RemoveOutgoing(Struct, frozen=True):
    message_id: MessageId


class PutIncoming(Struct, frozen=True, kw_only=True):
    """Insert or replace."""

    entry: IncomingEntry


class RemoveIncoming(Struct, frozen=True, kw_only=True):
    message_id: MessageId


class PutMissing(Struct, frozen=True, kw_only=True):
    """Insert or replace."""

    entry: MissingEntry


class RemoveMissing(Struct, frozen=True, kw_only=True):
    message_id: MessageId


class PutHolder(Struct, frozen=True):
    """Insert, or replace a less certain source by a more certain one."""

    entry: HolderEntry


Write: TypeAlias = (
    SaveClock
    | SaveStoreQueried
    | AppendToLog
    | RemoveFromLog
    | PutReplacement
    | PutFork
    | PutSetAside
    | RemoveSetAside
    | ForgetSetAside
    | PutSpent
    | PutNewestClaims
    | SaveRetrievalHint
    | ReplaceRaw
    | PutOutgoing
    | MarkAccepted
    | RemoveOutgoing
    | PutIncoming
    | RemoveIncoming
    | PutMissing
    | RemoveMissing
    | PutHolder
)


# --- sends --------------------------------------------------------------------------------------


class SendPurpose(StrEnum):
    CONTENT = "content"
    RETRANSMISSION = "retransmission"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"


class Broadcast(Struct, frozen=True):
    """Seal ``raw`` (bytes that ``sign`` made) afresh and publish it."""

    message_id: MessageId
    raw: bytes
    purpose: SendPurpose


class BroadcastRepair(Struct, frozen=True, kw_only=True):
    """A member asked for this message: load its raw bytes and resend them as a repair response."""

    message_id: MessageId


class StoreWindow(Struct, frozen=True, kw_only=True):
    """A span of time, by the clocks of senders, both ends included."""

    since_ms: UnixMs
    until_ms: UnixMs


class AskStore(Struct, frozen=True, kw_only=True):
    """Ask Stores for dependencies by their hints, for everything since a time, and for windows.

    In the windows dependencies must lie that Stores do not find by hints.
    """

    missing: tuple[HistoryEntry, ...] = ()
    since_ms: UnixMs | None = None
    windows: tuple[StoreWindow, ...] = ()


Send: TypeAlias = Broadcast | BroadcastRepair | AskStore


# --- events -------------------------------------------------------------------------------------


class MessageDelivered(Struct, frozen=True):
    """All dependencies are met (or lost): it is in the log.  Own ones are delivered when sent."""

    message: Message
    position: Position
    author: AuthorSequence | None
    is_own: bool
    late: bool
    """It was inserted before messages that were already delivered."""
    came_back: bool = False
    """An own one that others sent us, as after joining again: nothing of it waits to be sent."""
    came_ms: UnixMs | None = None
    """When it came, if it had to wait since then."""


class MessageShownWaiting(Struct, frozen=True, kw_only=True):
    """The soft time-out (60 s) passed and dependencies are missing: show it below the gap."""

    message: Message
    author: AuthorSequence | None
    came_ms: UnixMs


class EphemeralReceived(Struct, frozen=True, kw_only=True):
    message: Message


class GapChanged(Struct, frozen=True, kw_only=True):
    """Other messages are missing than before: ask ``SdsChannel.gaps``."""

    waiting: int
    """How many messages wait for them; back-pressure on a backfill goes by that."""


class HeldMessage(Struct, frozen=True, kw_only=True):
    """A message whose Lamport timestamp is too far ahead: its sender's clock, or ours, is wrong."""

    message: Message
    ahead_ms: int
    """How far ahead of our clock it was on arrival: the error of its sender's clock, or ours."""
    due_ms: UnixMs
    """When it is checked again, by our clock."""

    @property
    def message_id(self) -> MessageId:
        return self.message.message_id

    @property
    def sender_id(self) -> ParticipantId:
        return self.message.sender_id


class HeldAsideChanged(Struct, frozen=True, kw_only=True):
    """What is held aside now.  ``held`` names those due soonest, at most 64 of ``held_total``."""

    held: tuple[HeldMessage, ...]
    held_total: int


class MessageReplaced(Struct, frozen=True, kw_only=True):
    """A delivered message left the log: ``by`` replaces it."""

    message_id: MessageId
    by: MessageId


class OwnFromFuture(Struct, frozen=True, kw_only=True):
    """Our clock was ahead when we sent these: send replacements now, in this order."""

    message_ids: tuple[MessageId, ...]


class DependencyLost(Struct, frozen=True, kw_only=True):
    entry: HistoryEntry


class HeldByChanged(Struct, frozen=True):
    """Who holds one of our messages, certainly or maybe (never us)."""

    message_id: MessageId
    certain: tuple[HolderEntry, ...]
    maybe: tuple[HolderEntry, ...]


class OutgoingChanged(Struct, frozen=True):
    """The protocol's state of one of our messages, and whether the network ever took a copy."""

    message_id: MessageId
    state: OutgoingState
    accepted: bool
    attempts: int = 0
    """How many attempts failed, for a message that was given up."""


class RepairRequested(Struct, frozen=True, kw_only=True):
    message_ids: tuple[MessageId, ...]


OtherEvent: TypeAlias = (
    MessageShownWaiting
    | EphemeralReceived
    | GapChanged
    | HeldAsideChanged
    | SetAsideChanged
    | MessageReplaced
    | OwnFromFuture
    | ForkFound
    | DependencyLost
    | HeldByChanged
    | OutgoingChanged
    | RepairRequested
)
Event: TypeAlias = MessageDelivered | OtherEvent


@dataclass(slots=True)
class Transition:
    """Perform ``writes`` first, in one transaction; then ``sends``; then ``events``."""

    writes: Sequence[Write] = ()
    sends: Sequence[Send] = ()
    events: Sequence[Event] = ()


# --- injected functions -------------------------------------------------------------------------

MessageIdOf: TypeAlias = Callable[
    [ParticipantId, ChannelId, int, Sequence[MessageId], bytes], MessageId
]
"""(sender, channel, lamport, ids of the causal history, content) → id of a content message."""

Sign: TypeAlias = Callable[[Message, Claim | None, UnixMs], bytes]
"""Turns a message into the raw bytes to keep and broadcast (sealed channel: a signed part).

The time is our clock's.
"""

Hash64: TypeAlias = Callable[[str], int]
"""First 8 bytes, big-endian, of sha256 of the UTF-8 text: SDS-R's H."""
