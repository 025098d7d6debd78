"""The engine's events, and the read models they carry: decrypted and ready to show.

Events are named in the past tense.  Each carries whole read models, so a listener can draw without
further queries.  How messages are transported, sealed or stored is not visible here.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from engine.core.contacts import ContactState
from engine.core.content import Mention
from engine.core.errors import StorageError
from engine.core.ids import (
    ChannelId,
    ContentTopic,
    ConversationId,
    DeliveryState,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.problems import ConnectionReason, FailureReason, NodeTrouble
from engine.fault_views import FaultsChanged
from engine.file_views import FileProgressed, FileView
from engine.governance_views import DeedView, GovernanceChanged, JoinsChanged
from engine.history_views import HistoryChanged, LostView, StoresChanged
from engine.text_spans import TextSpan


class MessageKind(StrEnum):
    TEXT = "text"
    FILE = "file"
    """A picture or another file, ``MessageView.file``; ``text`` is its caption, maybe empty."""
    CREATED = "created"
    JOINED = "joined"
    LEFT = "left"
    RENAMED = "renamed"
    """Changed their name; ``text`` is the old name and the new one, one per line."""
    ASKED = "asked"
    """Asked to talk one to one: the first row of a pair."""
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    """Withdrew the request before the other answered."""
    DEED = "deed"
    """Somebody governed the group: ``MessageView.deed``."""
    UNSUPPORTED = "unsupported"
    """Content of a newer version.  Shown as such, never dropped."""


class DeliveryView(Struct, frozen=True, kw_only=True):
    """Of one of our messages or its last edit or retraction.  Other current members only."""

    state: DeliveryState
    held_by: tuple[ParticipantId, ...] = ()
    maybe_held_by: tuple[ParticipantId, ...] = ()
    of: int = 0
    """n: the number of other members now."""
    attempts: int = 0
    failure: FailureReason | None = None


class QuoteView(Struct, frozen=True, kw_only=True):
    """The message that another one answers, as far as this device knows it."""

    message_id: MessageId
    position: Position | None = None
    """None: the message is not on this device."""
    sender_id: ParticipantId | None = None
    sender_name: str = ""
    is_own: bool = False
    text: str = ""
    """The beginning of what it says now, at most 280 characters."""
    retracted: bool = False
    hidden: bool = False
    """It is here, but not shown: deleted on this device, or its sender is muted."""
    from_before: bool = False
    """It is not here: said before we were let into the group, and we were not given its key."""
    file: FileView | None = None
    """What came with it.  How far a larger one has come is told with its own message only."""


class ReactionView(Struct, frozen=True, kw_only=True):
    """Everybody who reacted to a message with one emoji."""

    emoji: str
    count: int
    mine: bool = False
    pending: bool = False
    """Ours, and no relay or service node has taken it yet."""
    names: tuple[str, ...] = ()
    """At most 8 of the people, without ourselves."""


class MessageView(Struct, frozen=True, kw_only=True):
    """One row of a timeline.  Rows are ordered by ``position``, with waiting rows last."""

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
    """Received, but SDS waits for earlier messages that are missing."""
    late: bool = False
    held: bool = False
    """Held aside: it claims a time too far ahead and gets its place when that time comes."""
    quote: QuoteView | None = None
    reactions: tuple[ReactionView, ...] = ()
    """The most frequent first."""
    more_reactions: int = 0
    """How many other emoji there are beyond ``reactions``."""
    edited_ms: UnixMs | None = None
    """When its author last changed it; ``text`` is what it says since then."""
    retracted: bool = False
    """Its author deleted it for everybody; ``text`` is empty."""
    forwarded: bool = False
    """Its author says that somebody else wrote it."""
    mentions_me: bool = False
    file: FileView | None = None
    """Set if ``kind`` is FILE and it is not retracted."""
    deed: DeedView | None = None
    """Set if ``kind`` is DEED."""
    retracted_by: str = ""
    """The name of the admin who deleted it, if it was not its author."""

    @property
    def message_id(self) -> MessageId:
        return self.position.message_id


class GapPlace(Struct, frozen=True, kw_only=True):
    """One gap: the messages missing directly before one message."""

    missing: int
    """0: no message is known to be missing, although some wait."""
    waiting: int
    """How many received messages wait between this gap and the next."""
    since_ms: UnixMs
    """0 if unknown."""
    requests: int = 0
    next_request_ms: UnixMs | None = None
    before: Position | None = None
    """The first message known to follow the gap; None if its place is unknown."""


class GapView(Struct, frozen=True, kw_only=True):
    """Messages that are known to exist but missing on this device."""

    conversation_id: ConversationId
    missing: int
    waiting: int
    """How many received messages wait for them."""
    places: tuple[GapPlace, ...] = ()
    """In order.  If there are very many gaps, the last ones are merged into one."""
    lost: tuple[LostView, ...] = ()
    """The latest 64 entries of lost messages.  A gap may consist of these only."""
    lost_total: int = 0
    """How many messages are lost, including those without an entry here."""


class ClockView(Struct, frozen=True, kw_only=True):
    """A member whose clock was ahead of ours when it sent what is held aside."""

    participant_id: ParticipantId
    name: str
    is_self: bool
    ahead_ms: int


class HeldView(Struct, frozen=True, kw_only=True):
    """Messages held aside because they claim a time too far ahead, the earliest first."""

    conversation_id: ConversationId
    messages: tuple[MessageView, ...]
    """At most 64 of ``total``."""
    total: int
    next_due_ms: UnixMs
    """When the first of them gets its place, by this device's clock."""
    clocks: tuple[ClockView, ...]
    """The clocks of the senders of ``messages``, the furthest ahead first."""


class OwnClockView(Struct, frozen=True, kw_only=True):
    """Evidence from others' signed messages that our clock is wrong, and the user's correction."""

    behind_ms: int = 0
    """How far our clock is behind theirs now; negative: ahead; 0: no evidence."""
    by: tuple[str, ...] = ()
    """Names of the members whose messages say so."""
    heard: int = 0
    """How many members gave evidence, including those in ``by``."""
    known_long: bool = False
    """They are a majority of the members known for a day.  Else it is one person's word."""
    offset_ms: int = 0
    """The correction that the user set, added to the system's time."""
    since_ms: UnixMs | None = None
    """When it was set, by the system's time."""

    @property
    def others_ahead_ms(self) -> int:
        """How far the others are ahead of the system's time."""
        return self.offset_ms + self.behind_ms


class ForkView(Struct, frozen=True, kw_only=True):
    """A fork: an author told different people different things, both with their signature."""

    conversation_id: ConversationId
    sender_id: ParticipantId
    sender_name: str
    is_self: bool
    """This very profile, in use in two places at the same time."""
    sequence: int
    first_id: MessageId
    second_id: MessageId


class FloodView(Struct, frozen=True, kw_only=True):
    """A member over the daily quota.  The messages beyond it are not in the timeline."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    name: str
    waiting: int
    """Messages set aside that can be shown, ``size`` bytes in total; ``dropped`` are not kept."""
    size: int
    dropped: int


class MemberView(Struct, frozen=True, kw_only=True):
    participant_id: ParticipantId
    name: str
    is_self: bool
    is_admin: bool
    has_left: bool
    fingerprint: str
    is_muted: bool = False
    """Their messages are received and kept, but not shown on this device."""
    has_keys: bool = True
    """What it takes to ask them to talk has come here (``People.ask_member``)."""
    safety_number: str = ""
    """As in ``ContactView``; "" of ourselves."""


class ContactView(Struct, frozen=True, kw_only=True):
    """The other side of a one-to-one conversation."""

    participant_id: ParticipantId
    name: str
    """The name they use.  The user sees the conversation's name."""
    local_name: str
    state: ContactState
    fingerprint: str
    safety_number: str
    """60 digits over both identities.  If the two sides differ, somebody is in between."""
    picture: bytes
    """PNG or JPEG, b"" if there is none.  Untrusted: decode with limits."""
    last_seen_ms: UnixMs | None
    is_online: bool
    """Heard within the last two minutes."""
    forward_secret_ms: UnixMs | None = None
    """Since when, by our clock; 0: not yet; None: not known until the session is loaded."""
    below_olm_ms: UnixMs | None = None
    """Since when, by our clock, what comes in their name is sealed as before Olm, and not heard.

    None: nothing such came since the start, or something by Olm after it.
    """


class AnnotationKind(StrEnum):
    REACTION = "reaction"
    EDIT = "edit"
    RETRACTION = "retraction"


class AnnotationView(Struct, frozen=True, kw_only=True):
    """What somebody said about a message: a reaction, a new text, or that it is to be deleted."""

    kind: AnnotationKind
    message_id: MessageId
    """Its own, as content of the conversation."""
    target_id: MessageId
    target_text: str
    """The beginning of what the message says now; "" if it is not here."""
    target_file: FileView | None = None
    """Of which ``target_text`` is the name if the message has no words."""
    sender_id: ParticipantId
    sender_name: str
    is_own: bool
    sent_ms: UnixMs
    emoji: str = ""


class OpenChannelView(Struct, frozen=True, kw_only=True):
    """A channel that anybody, or anybody who has its key, can read and write."""

    channel_id: ChannelId
    content_topic: ContentTopic
    cluster_id: int
    shard: int | None
    """None: it follows from the content topic."""
    sender_id: ParticipantId
    """Ours in this channel."""
    is_served: bool
    """Our node is on its cluster; else nothing is sent or received."""
    has_key: bool = False
    """A shared one, which seals all that is sent; else nothing is encrypted."""


class ConversationView(Struct, frozen=True, kw_only=True):
    """One row of the conversation list: a group, if it has neither contact nor open channel."""

    conversation_id: ConversationId
    name: str
    members: tuple[MemberView, ...]
    """None in an open channel."""
    unread: int
    first_unread: Position | None
    muted: bool
    last_message: MessageView | None
    missing: int
    waiting_to_send: int
    failed: int
    created_ms: UnixMs
    draft: str
    draft_mentions: tuple[Mention, ...] = ()
    contact: ContactView | None = None
    open_channel: OpenChannelView | None = None
    mentions: int = 0
    """Unread messages that mention us."""
    first_mention: Position | None = None
    last_annotation: AnnotationView | None = None
    """The newest one, if it is newer than ``last_message``."""
    muted_until_ms: UnixMs | None = None
    """None: not muted, or until the user ends it."""
    key_is_lost: bool = False
    """Of a group, in a repaired database: it can be read, and nothing comes or goes."""

    @property
    def last_said_ms(self) -> UnixMs:
        """When the newest message was sent, or what was said of one after it; else it began."""
        last = self.last_annotation or self.last_message
        return self.created_ms if last is None else last.sent_ms


class ConnectionLevel(StrEnum):
    OFFLINE = "offline"
    MINIMAL = "minimal"
    GOOD = "good"


class ConnectionRole(StrEnum):
    RELAY = "relay"
    EDGE = "edge"
    """Service nodes relay for us."""


class ConnectionView(Struct, frozen=True, kw_only=True):
    level: ConnectionLevel
    peers: int
    """Relay peers, or an edge node's service nodes."""
    reason: ConnectionReason
    bytes_in: int
    bytes_out: int
    role: ConnectionRole = ConnectionRole.RELAY
    trouble: NodeTrouble | None = None
    """The most informative problem of a service node, unless the level is good."""


class IdentityView(Struct, frozen=True, kw_only=True):
    participant_id: ParticipantId
    name: str
    fingerprint: str
    key_storage: str
    """What the database's key opened with: "system keyring", "key file" or "passphrase"."""
    picture: bytes = b""


# --- events -------------------------------------------------------------------------------------


class ConversationAdded(Struct, frozen=True, kw_only=True):
    conversation: ConversationView


class ConversationChanged(Struct, frozen=True, kw_only=True):
    """The name, members, unread count, last message, missing count or muting changed."""

    conversation: ConversationView


class ConversationRemoved(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId


class MessageAdded(Struct, frozen=True, kw_only=True):
    """A new row, at its position.  Durable before the event is published."""

    message: MessageView
    notify: bool
    """True for another member's live message in a conversation that is not muted, or, if the
    settings allow it, in a muted one and it mentions us."""


class MessagesAdded(Struct, frozen=True, kw_only=True):
    """Many new rows at once, as Stores give them, in the log's order; none rings."""

    conversation_id: ConversationId
    messages: tuple[MessageView, ...]


class ReactionReceived(Struct, frozen=True, kw_only=True):
    """Somebody else reacted to a message of ours, live, in a conversation that is not muted.

    Not published for a reaction that a newer one replaced, or if the message was retracted.
    """

    conversation_id: ConversationId
    annotation: AnnotationView


class MessageChanged(Struct, frozen=True, kw_only=True):
    """A row with a known message id changed: delivery, text, reactions, or it no longer waits."""

    message: MessageView


class MessageRemoved(Struct, frozen=True, kw_only=True):
    """A message was deleted on this device only."""

    conversation_id: ConversationId
    message_id: MessageId


class TimelineChanged(Struct, frozen=True, kw_only=True):
    """Many rows appeared, disappeared or changed: read the timeline again."""

    conversation_id: ConversationId


class FloodsChanged(Struct, frozen=True, kw_only=True):
    """Lists all members of the conversation with messages set aside."""

    conversation_id: ConversationId
    floods: tuple[FloodView, ...]


class GapUpdated(Struct, frozen=True, kw_only=True):
    """``gap`` is None once nothing is missing."""

    conversation_id: ConversationId
    gap: GapView | None


class HeldUpdated(Struct, frozen=True, kw_only=True):
    """``held`` is None once no message is held aside."""

    conversation_id: ConversationId
    held: HeldView | None


class ForksFound(Struct, frozen=True, kw_only=True):
    """All forks of the conversation, each for one author at one place."""

    conversation_id: ConversationId
    forks: tuple[ForkView, ...]


class ClockJudged(Struct, frozen=True, kw_only=True):
    """``clock`` is None once no offset is set and there is no evidence against our clock."""

    clock: OwnClockView | None


class ClockOffsetDropped(Struct, frozen=True, kw_only=True):
    """The system's time was set, which drops the offset that the user had set."""

    offset_ms: int


class TypingChanged(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    names: tuple[str, ...]
    """Who is typing now; may be empty."""


class ConnectionChanged(Struct, frozen=True, kw_only=True):
    connection: ConnectionView


class NoticeLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ClocksAhead(Struct, frozen=True, kw_only=True):
    """Messages are held aside, because the clock of ``names`` is ahead by up to ``ahead_ms``."""

    conversation_name: str
    messages: int
    names: tuple[str, ...]
    """The furthest ahead first."""
    ahead_ms: int


class NotSaved(Struct, frozen=True, kw_only=True):
    """The disk refused; it is tried again."""

    error: StorageError


class IndexMadeAgain(Struct, frozen=True, kw_only=True):
    """What a conversation's start had kept was damaged or out of date; no message is lost."""

    conversation_name: str


class SearchMadeAgain(Struct, frozen=True, kw_only=True):
    """The search's index was damaged; it is made again, and no message is lost."""


class DatabaseDamaged(Struct, frozen=True, kw_only=True):
    """A part of the database cannot be read.  Nothing is written over it."""


class RecordingStopped(Struct, frozen=True, kw_only=True):
    """Deliveries are not recorded, since nothing can be written to ``directory``."""

    directory: str


NoticeContent: TypeAlias = (
    ClocksAhead | NotSaved | IndexMadeAgain | SearchMadeAgain | DatabaseDamaged | RecordingStopped
)


class SearchIndexed(Struct, frozen=True, kw_only=True):
    """How far the messages of an old profile can be found."""

    left: int
    """About so many cannot be found yet; 0: all can."""
    total: int
    is_paused: bool


class NoticeRaised(Struct, frozen=True, kw_only=True):
    """Something the user must know.  It replaces an earlier notice with the same ``key``."""

    key: str
    level: NoticeLevel
    content: NoticeContent


class NoticeCleared(Struct, frozen=True, kw_only=True):
    key: str


EngineEvent: TypeAlias = (
    ConversationAdded
    | ConversationChanged
    | ConversationRemoved
    | MessageAdded
    | MessagesAdded
    | MessageChanged
    | ReactionReceived
    | FileProgressed
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
    | SearchIndexed
    | FaultsChanged
    | GovernanceChanged
    | JoinsChanged
)

Listener: TypeAlias = Callable[[EngineEvent], None]
