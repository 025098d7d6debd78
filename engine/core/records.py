"""What a profile keeps, as values: identity, conversations, members, rows, and what waits.

Stores read and write them (``engine.core.ports``); sessions create them.  Private keys are raw 32
bytes; the database is encrypted.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from engine.core.admin_log.acts import EntryId
from engine.core.blobs.manifest import Manifest
from engine.core.contacts import ContactState
from engine.core.ids import (
    ChannelId,
    ContentTopic,
    ConversationId,
    DeliveryState,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)
from engine.core.invite import group_id_of
from engine.core.ratchet import RatchetState


class ProfileRecord(Struct, frozen=True, kw_only=True):
    """The identity of a device.  Private keys are raw 32 bytes; the database is encrypted."""

    name: str
    signing_key: bytes
    encryption_key: bytes
    network_key: bytes
    """The libp2p key.  It differs from the participant's, so a peer id identifies no person."""
    instance_id: InstanceId
    created_ms: UnixMs


class GroupRecord(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    name: str
    epoch_keys: tuple[bytes, ...]
    """Oldest first, at least one: the first leads to the content topic, the newest seals."""
    admin_public_key: bytes
    created_ms: UnixMs
    service_nodes: tuple[str, ...] = ()
    """Multiaddrs of nodes that serve the group, as its creator named them."""
    first_entry: EntryId | None = None
    """Of a governed group: id of the ``Create`` of its admin log.

    None: anyone with the link is in, and there is one key.
    """
    topic_name: bytes = b""
    """Of the content topic, in a governed group that began with a link: it stays the same."""
    muted: bool = False
    muted_until_ms: UnixMs | None = None
    """By our clock; None: until the user ends it, or not muted."""
    draft: str = ""
    read_up_to: Position | None = None

    @property
    def topic_secret(self) -> bytes:
        """What the content topic follows from.

        Of a governed group its id: a newcomer has no key of the first epoch.
        """
        return self.epoch_keys[0] if self.first_entry is None else group_id_of(self.conversation_id)


class ContactRecord(Struct, frozen=True, kw_only=True):
    """A one-to-one conversation and its peer; its id is the pair's MVDS group id."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    public_key: bytes
    encryption_key: bytes
    name: str
    """The peer's own name."""
    state: ContactState
    created_ms: UnixMs
    local_name: str = ""
    """The user's name for the peer; "" = the peer's own."""
    picture: bytes = b""
    last_seen_ms: UnixMs | None = None
    muted: bool = False
    muted_until_ms: UnixMs | None = None
    draft: str = ""
    read_up_to: Position | None = None


class ChannelName(Struct, frozen=True, kw_only=True):
    """What an open channel is called, and its key if it has one: all it takes to be in it."""

    channel_id: ChannelId
    """"0" for one without a name of its own."""
    content_topic: ContentTopic
    cluster_id: int
    shard: int | None = None
    """None: it follows from the content topic."""
    key: bytes = b""
    """The shared key of 32 bytes, with which all payloads are sealed; b"": they are not."""

    def __repr__(self) -> str:
        """Without the key, wherever it is printed."""
        return f"ChannelName({self.channel_id!r}, {self.content_topic!r}, {self.cluster_id})"


class OpenFormat(StrEnum):
    """What the content of our messages in an open channel is."""

    AUTO = "auto"
    """Text, until somebody sends a message of 22/TOY-CHAT."""
    TEXT = "text"
    TOY_CHAT = "toy_chat"


class OpenPace(StrEnum):
    """Whose numbers an open channel keeps to: how long its histories are, and how it retries."""

    JS_WAKU = "js_waku"
    CAUSERIE = "causerie"


class OpenChannelRecord(Struct, frozen=True, kw_only=True):
    """A channel as js-waku's ``ReliableChannel`` makes them: anybody can read and write there.

    If it has a shared key, anybody who has the key can, and nobody else.
    """

    conversation_id: ConversationId
    name: str
    """The user's label."""
    channel_id: ChannelId
    content_topic: ContentTopic
    cluster_id: int
    shard: int | None
    """None: it follows from the content topic."""
    sender_id: ParticipantId
    """Ours in this channel; not the participant id, which would tell who it is."""
    nick: str
    """Our name in 22/TOY-CHAT."""
    created_ms: UnixMs
    format: OpenFormat = OpenFormat.AUTO
    pace: OpenPace = OpenPace.JS_WAKU
    key: bytes = b""
    """See ``ChannelName``."""
    muted: bool = False
    muted_until_ms: UnixMs | None = None
    draft: str = ""
    read_up_to: Position | None = None


class WaitingContent(Struct, frozen=True, kw_only=True):
    """Received from a contact and acknowledged, but an earlier message of its author is missing."""

    message_id: MessageId
    sender_id: ParticipantId
    content: bytes
    received_ms: UnixMs
    shown: bool = False
    """It waited long enough, so the window shows it below a gap."""


class LostRange(Struct, frozen=True, kw_only=True):
    """Consecutive messages of one instance of the peer that were given up and never came."""

    instance_id: InstanceId
    first: int
    """Sequence numbers, both included."""
    last: int
    before: Position
    """The first message known to come after them."""
    since_ms: UnixMs
    """Since when they were known to be missing."""
    given_up_ms: UnixMs


class PairState(Struct, frozen=True, kw_only=True):
    """The saved order of a one-to-one conversation."""

    lamport_timestamp: int = 0
    authors: Mapping[InstanceId, int] = field(default_factory=dict)
    """The sequence number up to which each instance of the peer was delivered."""
    waiting: tuple[WaitingContent, ...] = ()
    lost: tuple[LostRange, ...] = ()
    """By instance and number."""
    ratchet: RatchetState | None = None
    """None: nothing was said by Olm, and no keys for it were made or heard."""


class MemberRecord(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    participant_id: ParticipantId
    public_key: bytes
    encryption_key: bytes
    name: str
    is_admin: bool
    joined_ms: UnixMs
    left_ms: UnixMs | None = None
    join_statement: bytes = b""
    named_ms: int = 0
    """When they took ``name``, by their own clock; 0 = with their join."""
    known_ms: int = 0
    """When this device first heard of them, by its own clock; never changes afterwards."""


class SpanRecord(Struct, frozen=True, kw_only=True):
    kind: str
    start: int
    length: int
    target: str


class TransferState(StrEnum):
    """What becomes of a blob on this device; stored."""

    OFFERED = "offered"
    """Somebody else's, and nobody here wants it yet."""
    WANTED = "wanted"
    """Somebody else's: to be fetched, and after a restart fetched on."""
    OFFERING = "offering"
    """Ours: to be put at nodes that keep it for others."""
    PAUSED = "paused"
    COMPLETE = "complete"
    """All of it is here; ours also is where it should be."""
    FAILED = "failed"


class TransferRecord(Struct, frozen=True, kw_only=True):
    manifest: Manifest
    state: TransferState
    fault: str = ""
    """Of FAILED: an ``engine.core.problems.FileFault``."""
    holders: tuple[ParticipantId, ...] = ()
    """Other members who say that they have all of it, in the order of their ids."""


class FileRecord(Struct, frozen=True, kw_only=True):
    """What is known of a file without its bytes; clean (``engine.core.file_names``)."""

    name: str
    media_type: str
    size: int
    width: int = 0
    """Of a picture, in pixels; 0 if it is none."""
    height: int = 0
    transfer: TransferRecord | None = None
    """Set if the file is a blob, which travels apart from the message."""


class MessageRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One row of a timeline, decrypted, as it will be shown."""

    conversation_id: ConversationId
    position: Position
    sender_id: ParticipantId
    """In an open channel whatever name the message bears."""
    is_own: bool
    kind: str
    text: str
    spans: tuple[SpanRecord, ...]
    sent_ms: UnixMs
    received_ms: UnixMs
    waiting: bool = False
    late: bool = False
    reply_to: MessageId | None = None
    forwarded: bool = False
    mentions_me: bool = False
    arrival: str = "unknown"
    """``engine.answers.Arrival``: by which way it came here first."""
    repaired_by: ParticipantId | None = None
    """The member who sent it again, if it came by repair."""
    file: FileRecord | None = None


class AnnotationRecord(Struct, frozen=True, kw_only=True):
    """A reaction, edit or retraction.  Stores merge them with what they speak of."""

    conversation_id: ConversationId
    position: Position
    """Its own."""
    kind: str
    """One of ``engine.core.content.ANNOTATION_KINDS``."""
    target_id: MessageId
    sender_id: ParticipantId
    is_own: bool
    sent_ms: UnixMs
    received_ms: UnixMs
    emoji: str = ""
    removed: bool = False
    text: str = ""
    spans: tuple[SpanRecord, ...] = ()
    mentions_me: bool = False


class DeliveryRecord(Struct, frozen=True, kw_only=True):
    """The delivery state shown to the sender of one own message."""

    state: DeliveryState
    attempts: int = 0
    failure: str | None = None


class LoggedMessage(Struct, frozen=True, kw_only=True):
    """A placed message, shown or hidden, for audits."""

    position: Position
    sender_id: ParticipantId
    sent_ms: UnixMs
    """Of what makes no row, such as a reaction: its Lamport timestamp, which is about the time."""


class KeptAside(NamedTuple):
    """The signed part of a message that is set aside."""

    raw: bytes
    retrieval_hint: bytes | None


class OwnSequence(Struct, frozen=True, kw_only=True):
    """The newest content message that we wrote during one stay in a conversation."""

    stay: InstanceId
    """Identifies this device's stay until it leaves: the stay's first instance."""
    instance_id: InstanceId
    """The instance in use; a new one begins when a clock that was ahead is put right."""
    sequence: int
    previous_id: MessageId
