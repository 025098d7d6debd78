"""The vocabulary of an SDS channel: messages, saved state, writes, sends, events.

Shapes follow the specification's Participant state and Message sections.  A state machine takes an
``Input`` (see ``inputs``) and returns a ``Transition``; the runner makes ``writes`` durable in one
transaction, and only then performs ``sends`` and publishes ``events``.  Whoever reads these two
modules knows everything that crosses the border of the core; nothing here knows how bytes are
sealed, stored or carried.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

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
from engine.core.sds.flood_types import (
    ForgetSetAside,
    PutSetAside,
    PutSpent,
    RemoveSetAside,
    SetAside,
    SetAsideChanged,
    Spent,
)
from engine.core.sds.fork_types import Fork, ForkFound, PutFork
from engine.core.value import value


class HistoryEntry(NamedTuple):
    """One dependency: its id, how to retrieve it (Waku message hash), who sent it (SDS-R).

    A tuple, because a channel reads and writes hundreds of them with every message.
    """

    message_id: MessageId
    retrieval_hint: bytes | None = None
    sender_id: ParticipantId | None = None


def history_entry(
    message_id: MessageId, retrieval_hint: bytes | None, sender_id: ParticipantId | None
) -> HistoryEntry:
    """The same, sooner: a named tuple is made by way of a function that takes it apart again."""
    return tuple.__new__(HistoryEntry, (message_id, retrieval_hint, sender_id))


@value(frozen=True, slots=True)
class Message:
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


@value(frozen=True, slots=True, kw_only=True)
class SequenceRange:
    """Sequence numbers ``first`` to ``last``, both included, without a hole."""

    first: int
    last: int
    head: bytes = b""
    """First 8 bytes of the id of the last one, b"" if not told: two who hold the same numbers of
    an author who told them different things see it by this."""


Holdings: TypeAlias = dict[InstanceId, tuple[SequenceRange, ...]]
"""Per author instance what is held, ranges ascending and disjoint."""


@value(frozen=True, slots=True)
class Claim:
    """What a member says of itself beside a message, under its signature."""

    holdings: Holdings | None = None
    held_aside: tuple[MessageId, ...] = ()
    """Messages that are here but too far ahead of the member's clock to be delivered."""


# --- saved state --------------------------------------------------------------------------------


class OutgoingState(StrEnum):
    """The specification's states; ACKNOWLEDGED leaves the outgoing buffer."""

    UNACKNOWLEDGED = "unacknowledged"
    POSSIBLY_ACKNOWLEDGED = "possibly_acknowledged"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"


@value(frozen=True, slots=True)
class LogEntry:
    """A delivered message: all of it that must be remembered besides its raw bytes."""

    position: Position
    sender_id: ParticipantId
    retrieval_hint: bytes | None = None
    author: AuthorSequence | None = None
    previous_id: MessageId | None = None
    """The author's message before this one, as long as that is not known to be here."""
    size: int = 0
    """Of its raw bytes: what sending it again costs."""


@value(frozen=True, slots=True)
class OutgoingEntry:
    """One of our messages that still has to be acknowledged."""

    message_id: MessageId
    raw: bytes
    state: OutgoingState
    attempts: int
    next_send_ms: UnixMs
    accepted: bool
    created_ms: UnixMs


@value(frozen=True, slots=True)
class IncomingEntry:
    """A received message with unmet causal dependencies."""

    message: Message
    raw: bytes
    author: AuthorSequence | None
    retrieval_hint: bytes | None
    received_ms: UnixMs
    shown: bool = False
    """The soft time-out is over: the window shows it below a gap."""
    previous_id: MessageId | None = None
    replaces: MessageId | None = None


class MissingState(StrEnum):
    WANTED = "wanted"
    LOST = "lost"


@value(frozen=True, slots=True, kw_only=True)
class StoresSaid:
    """What Stores had of a dependency when they were asked last: see ``StoresMissing``."""

    at_ms: UnixMs
    lacked: int
    silent: tuple[str, ...] = ()
    kept_back: bool = False


@value(frozen=True, slots=True, kw_only=True)
class MissingEntry:
    """A dependency that we lack, and when to ask for it (SDS-R) next."""

    entry: HistoryEntry
    state: MissingState
    since_ms: UnixMs
    online_ms: int
    """How long we have looked for it while online."""
    request_at_ms: UnixMs
    requests: int
    before: Position | None = None
    """The first message known to depend on it: it lies before that."""
    stores: StoresSaid | None = None
    """None: no Store was asked for it by name yet."""


@value(frozen=True, slots=True, kw_only=True)
class Gap:
    """Dependencies that lack before one message, and how many messages wait from there on.

    ``waiting`` counts up to the next gap.  ``since_ms``, ``requests`` and ``next_request_ms`` are
    those of the one missing longest, asked for most often, and asked for next.
    """

    before: Position | None
    """None: only sync messages name them, so that nobody knows their place."""
    missing: int
    waiting: int
    since_ms: UnixMs
    requests: int
    next_request_ms: UnixMs | None


@value(frozen=True, slots=True)
class HolderEntry:
    message_id: MessageId
    participant_id: ParticipantId
    source: HolderSource
    since_ms: UnixMs
    false_probability: float | None = None
    """P(a filter says so by chance), from its m, k and fill; None = not from a filter."""


@value(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A message that its sender said again, because its Lamport timestamp was from the future.

    It counts only for a message of the same sender that is further ahead than what replaces it,
    and that replaces none itself: so whatever is dropped is named by a message that stays, which
    everybody gets in the end.
    """

    message_id: MessageId
    """Of the message that is dropped by everybody."""
    sender_id: ParticipantId
    lamport_timestamp: int
    """Of the message that takes its place."""
    by: MessageId
    """That message."""


@value(frozen=True, slots=True)
class NewestClaim:
    """When a member last said what it holds or lacks; what it said before is not answered."""

    participant_id: ParticipantId
    lamport_timestamp: int


@value(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """All that a channel needs to continue after a restart.  Blooms are recomputed from it."""

    lamport_timestamp: int
    """At least this: the log's newest entry may say more."""
    log: Sequence[LogEntry] = ()
    """Ascending by position; of many, a ``LogTable``."""
    outgoing: tuple[OutgoingEntry, ...] = ()
    incoming: tuple[IncomingEntry, ...] = ()
    """Those held aside because they are ahead of the clock, too."""
    missing: tuple[MissingEntry, ...] = ()
    holders: tuple[HolderEntry, ...] = ()
    """Only of our own messages that are not yet held by everybody."""
    store_queried_ms: UnixMs | None = None
    """Up to when Stores were last asked for everything with success."""
    replaced: tuple[Replacement, ...] = ()
    forks: tuple[Fork, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    spent: tuple[Spent, ...] = ()
    newest_claims: tuple[NewestClaim, ...] = ()
    """One of each member that made any."""


# --- writes -------------------------------------------------------------------------------------


@value(frozen=True, slots=True)
class SaveClock:
    """The Lamport timestamp of a sync message; those of content messages are in the log."""

    lamport_timestamp: int


@value(frozen=True, slots=True, kw_only=True)
class SaveStoreQueried:
    """Stores were asked for everything up to then."""

    store_queried_ms: UnixMs


@value(frozen=True, slots=True)
class AppendToLog:
    """Insert at ``entry.position``, which may lie before messages already there."""

    entry: LogEntry
    raw: bytes


@value(frozen=True, slots=True, kw_only=True)
class RemoveFromLog:
    """Its sender said it again at another place.  Its raw bytes and holders go with it."""

    message_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class PutReplacement:
    """Insert or replace."""

    replacement: Replacement


@value(frozen=True, slots=True)
class PutNewestClaims:
    """Insert or replace, by participant."""

    claims: tuple[NewestClaim, ...]


@value(frozen=True, slots=True)
class SaveRetrievalHint:
    message_id: MessageId
    retrieval_hint: bytes


@value(frozen=True, slots=True)
class PutOutgoing:
    """Insert or replace."""

    entry: OutgoingEntry


@value(frozen=True, slots=True)
class MarkAccepted:
    """Of an outgoing entry nothing else has changed: its bytes need not be written again."""

    message_id: MessageId


@value(frozen=True, slots=True)
class RemoveOutgoing:
    message_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class PutIncoming:
    """Insert or replace."""

    entry: IncomingEntry


@value(frozen=True, slots=True, kw_only=True)
class RemoveIncoming:
    message_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class PutMissing:
    """Insert or replace."""

    entry: MissingEntry


@value(frozen=True, slots=True, kw_only=True)
class RemoveMissing:
    message_id: MessageId


@value(frozen=True, slots=True)
class PutHolder:
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


@value(frozen=True, slots=True)
class Broadcast:
    """Seal ``raw`` (bytes that ``sign`` made) afresh and publish it."""

    message_id: MessageId
    raw: bytes
    purpose: SendPurpose


@value(frozen=True, slots=True, kw_only=True)
class BroadcastRepair:
    """Somebody asked for this message: load its raw bytes and resend them as a repair response."""

    message_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class AskStore:
    """Ask Stores for these dependencies by their hints, and for everything since a time, if any."""

    missing: tuple[HistoryEntry, ...] = ()
    since_ms: UnixMs | None = None
    around: Mapping[MessageId, int] = field(default_factory=dict, compare=False, hash=False)
    """Of those missing, where known, the Lamport timestamp of the first that waits for it: about
    the time where Stores can look for it that know no hints."""


Send: TypeAlias = Broadcast | BroadcastRepair | AskStore


# --- events -------------------------------------------------------------------------------------


@value(frozen=True, slots=True)
class MessageDelivered:
    """All dependencies are met (or lost): it is in the log.  Own messages are delivered at send."""

    message: Message
    position: Position
    author: AuthorSequence | None
    is_own: bool
    late: bool
    """It was inserted before messages that had been delivered already."""


@value(frozen=True, slots=True, kw_only=True)
class MessageShownWaiting:
    """The soft time-out (60 s) is over and dependencies still lack: show it below the gap."""

    message: Message
    author: AuthorSequence | None


@value(frozen=True, slots=True, kw_only=True)
class EphemeralReceived:
    message: Message


@value(frozen=True, slots=True, kw_only=True)
class GapChanged:
    """What is missing now, and how many messages wait for it.  Empty ``missing`` = gap closed.

    ``missing`` names those missing longest, at most 64 of ``missing_total``.
    """

    missing: tuple[MissingEntry, ...]
    waiting: int
    missing_total: int = 0
    """``waiting`` is what back-pressure on a backfill goes by."""


@value(frozen=True, slots=True, kw_only=True)
class HeldMessage:
    """A message whose Lamport timestamp is too far ahead: its sender's clock, or ours, is wrong."""

    message: Message
    ahead_ms: int
    """Of our clock when it came: how far its sender's clock is wrong, or ours."""
    due_ms: UnixMs
    """When it is looked at again, by our clock."""

    @property
    def message_id(self) -> MessageId:
        return self.message.message_id

    @property
    def sender_id(self) -> ParticipantId:
        return self.message.sender_id


@value(frozen=True, slots=True, kw_only=True)
class HeldAsideChanged:
    """What is held aside now.  ``held`` names those due soonest, at most 64 of ``held_total``."""

    held: tuple[HeldMessage, ...]
    held_total: int


@value(frozen=True, slots=True, kw_only=True)
class MessageReplaced:
    """A message that was delivered is not in the log any more: ``by`` says the same."""

    message_id: MessageId
    by: MessageId


@value(frozen=True, slots=True, kw_only=True)
class OwnFromFuture:
    """Our clock was ahead when we said these, and is right now: say them again, in this order."""

    message_ids: tuple[MessageId, ...]


@value(frozen=True, slots=True, kw_only=True)
class DependencyLost:
    entry: HistoryEntry


@value(frozen=True, slots=True)
class HeldByChanged:
    """One of our messages: who holds it for certain and who maybe (never ourselves)."""

    message_id: MessageId
    certain: tuple[HolderEntry, ...]
    maybe: tuple[HolderEntry, ...]


@value(frozen=True, slots=True)
class OutgoingChanged:
    """One of our messages: the protocol's state, and whether the network ever took a copy."""

    message_id: MessageId
    state: OutgoingState
    accepted: bool
    attempts: int = 0
    """How often it was sent in vain: of one that was given up."""


@value(frozen=True, slots=True, kw_only=True)
class RepairRequested:
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


@value(frozen=False, slots=True)
class Transition:
    """``writes`` first, in one transaction; then ``sends``; then ``events``."""

    writes: Sequence[Write] = ()
    sends: Sequence[Send] = ()
    events: Sequence[Event] = ()


# --- what is injected ---------------------------------------------------------------------------

MessageIdOf: TypeAlias = Callable[
    [ParticipantId, ChannelId, int, Sequence[MessageId], bytes], MessageId
]
"""(sender, channel, lamport, ids of the causal history, content) → id of a content message."""

Sign: TypeAlias = Callable[[Message, Claim | None, UnixMs], bytes]
"""Turn a message into the raw bytes that are kept and broadcast (sealed channel: a signed part).

The time is our clock's."""

Hash64: TypeAlias = Callable[[str], int]
"""First 8 bytes, big-endian, of sha256 of the UTF-8 text: SDS-R's H."""
