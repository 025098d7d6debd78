"""What the engine tells the outside: read models, decrypted and ready to show, and its events.

Events are past tense and carry whole read models, so that a listener never has to ask back to
draw.  Nothing here knows how a message was carried, sealed or stored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from engine.core.contacts import ContactState
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.history_views import HistoryChanged, LostView, StoresChanged


class MessageKind(StrEnum):
    TEXT = "text"
    CREATED = "created"
    JOINED = "joined"
    LEFT = "left"
    RENAMED = "renamed"
    """Calls themselves otherwise; ``text`` is the old name and the new one, each on a line."""
    ASKED = "asked"
    """Asked to talk one to one, the first row of a pair."""
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    """Asked no longer, before the other answered."""
    UNSUPPORTED = "unsupported"
    """Content of a newer version: shown as such, never dropped."""


class SpanKind(StrEnum):
    LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSpan:
    """``start`` and ``length`` in UTF-16 code units, as Qt counts them."""

    kind: SpanKind
    start: int
    length: int
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """State of one of our own messages.  Tuples hold the other current members only."""

    state: DeliveryState
    held_by: tuple[ParticipantId, ...] = ()
    maybe_held_by: tuple[ParticipantId, ...] = ()
    of: int = 0
    """n: all other members, now."""
    attempts: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One row of a timeline.  Rows are ordered by ``position``; waiting rows stand last."""

    conversation_id: ConversationId
    position: Position
    sender_id: ParticipantId
    sender_name: str
    is_own: bool
    kind: MessageKind
    text: str
    spans: tuple[TextSpan, ...]
    sent_ms: UnixMs
    delivery: DeliveryView | None
    """None for other people's messages."""
    waiting: bool = False
    """Received, but held back by SDS: earlier messages are missing."""
    late: bool = False
    held: bool = False
    """Held aside: it claims a time too far ahead, and has no place until that has come."""

    @property
    def message_id(self) -> MessageId:
        return self.position.message_id


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPlace:
    """One gap: what lacks directly before one message."""

    missing: int
    """0: nothing is known to lack, and yet something waits."""
    waiting: int
    """How many received messages wait from here to the next gap."""
    since_ms: UnixMs
    """0: nobody knows."""
    requests: int = 0
    next_request_ms: UnixMs | None = None
    before: Position | None = None
    """The first message known to come after what lacks; None: nobody knows where it belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GapView:
    """Messages known to exist that this device lacks."""

    conversation_id: ConversationId
    missing: int
    waiting: int
    """How many received messages wait behind them."""
    places: tuple[GapPlace, ...] = ()
    """In order; of very many gaps, the last ones as one."""
    lost: tuple[LostView, ...] = ()
    """Given up, the latest 64 entries; a gap may hold nothing else."""
    lost_total: int = 0
    """How many messages are lost, those of entries that are not here among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockView:
    """Somebody whose clock was this far ahead of ours when it said what is held aside."""

    participant_id: ParticipantId
    name: str
    is_self: bool
    ahead_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldView:
    """Messages held aside because they claim a time too far ahead, the soonest due first."""

    conversation_id: ConversationId
    messages: tuple[MessageView, ...]
    """At most 64 of ``total``."""
    total: int
    next_due_ms: UnixMs
    """When the first of them takes its place, by this device's clock."""
    clocks: tuple[ClockView, ...]
    """Of the senders of ``messages``, the furthest ahead first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnClockView:
    """Our clock, where others' signed words say that it is wrong, or a person set it by them."""

    behind_ms: int = 0
    """What it lacks to theirs as it goes now; negative: it is ahead; 0: nothing says so."""
    by: tuple[str, ...] = ()
    """The names of those who say so."""
    heard: int = 0
    """Of how many who were heard, themselves among them."""
    known_long: bool = False
    """They are the majority of those known for a day; else it is one person's word."""
    offset_ms: int = 0
    """What a person set: so much is added to the time of the system."""
    since_ms: UnixMs | None = None
    """Since when, by the system's time."""

    @property
    def others_ahead_ms(self) -> int:
        """How far the others are ahead of the time of the system."""
        return self.offset_ms + self.behind_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkView:
    """Somebody told different people different things: both messages bear their signature."""

    conversation_id: ConversationId
    sender_id: ParticipantId
    sender_name: str
    is_self: bool
    """This very profile, used in two places at once."""
    sequence: int
    first_id: MessageId
    second_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodView:
    """A member who sends more than a day's quota.  What is beyond it is not in the timeline."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    name: str
    waiting: int
    """Messages that can be shown, of ``size`` bytes."""
    size: int
    dropped: int
    """Messages that are known, and not here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    participant_id: ParticipantId
    name: str
    is_self: bool
    is_admin: bool
    has_left: bool
    fingerprint: str
    is_muted: bool = False
    """Their messages are received and kept, and not shown on this device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactView:
    """The other side of a one-to-one conversation."""

    participant_id: ParticipantId
    name: str
    """As they call themselves; the conversation's name is what the user sees."""
    local_name: str
    state: ContactState
    fingerprint: str
    safety_number: str
    """60 digits over both identities: equal on both sides, or somebody is in between."""
    picture: bytes
    """PNG or JPEG, b"" if there is none.  From outside: decode with limits."""
    last_seen_ms: UnixMs | None
    is_online: bool
    """Heard within the last two minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """One row of the conversation list: a group, or with ``contact`` a person."""

    conversation_id: ConversationId
    name: str
    members: tuple[MemberView, ...]
    unread: int
    first_unread: Position | None
    muted: bool
    last_message: MessageView | None
    missing: int
    waiting_to_send: int
    failed: int
    created_ms: UnixMs
    draft: str
    contact: ContactView | None = None


class ConnectionLevel(StrEnum):
    OFFLINE = "offline"
    MINIMAL = "minimal"
    GOOD = "good"


class ConnectionRole(StrEnum):
    RELAY = "relay"
    EDGE = "edge"
    """Through service nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionView:
    level: ConnectionLevel
    peers: int
    """Those that relay for us, or the service nodes that do it for an edge node."""
    reason: str
    """One sentence for the status strip, without capital and full stop."""
    bytes_in: int
    bytes_out: int
    role: ConnectionRole = ConnectionRole.RELAY


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityView:
    participant_id: ParticipantId
    name: str
    fingerprint: str
    key_storage: str
    """Where the database key lives, in words: "system keyring" or "key file"."""
    picture: bytes = b""


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationAdded:
    conversation: ConversationView


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChanged:
    """Name, members, unread, last message, missing or muted changed."""

    conversation: ConversationView


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRemoved:
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """A row that was not there; it belongs at its position.  Durable before this is told."""

    message: MessageView
    notify: bool
    """Somebody else's, live, in a conversation that is not muted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChanged:
    """The same message id: delivery, or a waiting row that found its place."""

    message: MessageView


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRemoved:
    """Deleted on this device only."""

    conversation_id: ConversationId
    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineChanged:
    """Rows came or went in masses: what was read of the conversation is to be read again."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodsChanged:
    """All members of the conversation of whom something is set aside."""

    conversation_id: ConversationId
    floods: tuple[FloodView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GapUpdated:
    """``gap`` is None once everything arrived."""

    conversation_id: ConversationId
    gap: GapView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUpdated:
    """``held`` is None once everything took its place."""

    conversation_id: ConversationId
    held: HeldView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForksFound:
    """All that there are in the conversation, each for one author at one place."""

    conversation_id: ConversationId
    forks: tuple[ForkView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockJudged:
    """``clock`` is None once the time of the system is in force and nothing is said against it."""

    clock: OwnClockView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffsetDropped:
    """The system's time was set, so what a person had set beside it holds no longer."""

    offset_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingChanged:
    conversation_id: ConversationId
    names: tuple[str, ...]
    """Who is typing now; empty when nobody is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionChanged:
    connection: ConnectionView


class NoticeLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRaised:
    """Something the user must know; ``key`` replaces an earlier notice of the same key."""

    key: str
    level: NoticeLevel
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeCleared:
    key: str


EngineEvent: TypeAlias = (
    ConversationAdded
    | ConversationChanged
    | ConversationRemoved
    | MessageAdded
    | MessageChanged
    | MessageRemoved
    | TimelineChanged
    | FloodsChanged
    | GapUpdated
    | HeldUpdated
    | ForksFound
    | ClockJudged
    | ClockOffsetDropped
    | TypingChanged
    | ConnectionChanged
    | NoticeRaised
    | NoticeCleared
    | HistoryChanged
    | StoresChanged
)

Listener: TypeAlias = Callable[[EngineEvent], None]
