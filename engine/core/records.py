"""What a profile keeps, as values: who we are, conversations, members, rows, and what waits.

Stores read and write them (``engine.core.ports``), sessions make them.  Private keys are raw
32 bytes; the database is encrypted.  Nothing here acts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.core.contacts import ContactState
from engine.core.ids import (
    ConversationId,
    DeliveryState,
    InstanceId,
    MessageId,
    ParticipantId,
    Position,
    UnixMs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRecord:
    """The identity of a device.  Private keys are raw 32 bytes; the database is encrypted."""

    name: str
    signing_key: bytes
    encryption_key: bytes
    network_key: bytes
    """The libp2p identity: not the participant's, so that a peer id names nobody."""
    instance_id: InstanceId
    created_ms: UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    conversation_id: ConversationId
    name: str
    epoch_keys: tuple[bytes, ...]
    """Oldest first, at least one: the first leads to the content topic, the newest seals."""
    admin_public_key: bytes
    created_ms: UnixMs
    service_nodes: tuple[str, ...] = ()
    """Multiaddrs of nodes that serve the group, as its founder named them."""
    muted: bool = False
    draft: str = ""
    read_up_to: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRecord:
    """A one-to-one conversation and whom it is with; its id is the pair's MVDS group id."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    public_key: bytes
    encryption_key: bytes
    name: str
    """As they call themselves."""
    state: ContactState
    created_ms: UnixMs
    local_name: str = ""
    """As the user calls them, "" = as they call themselves."""
    picture: bytes = b""
    last_seen_ms: UnixMs | None = None
    muted: bool = False
    draft: str = ""
    read_up_to: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingContent:
    """Received of a contact, and acknowledged, but an earlier message of the same author lacks."""

    message_id: MessageId
    sender_id: ParticipantId
    content: bytes
    received_ms: UnixMs
    shown: bool = False
    """The soft time-out is over: the window shows it below a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRange:
    """Messages in a row of one instance of the other side that were given up and never came."""

    instance_id: InstanceId
    first: int
    """Sequence numbers, both included."""
    last: int
    before: Position
    """The first message known to come after them."""
    since_ms: UnixMs
    """Since when they were known to lack."""
    given_up_ms: UnixMs


@dataclass(frozen=True, slots=True, kw_only=True)
class PairState:
    """What the order of a one-to-one conversation continues from."""

    lamport_timestamp: int = 0
    authors: Mapping[InstanceId, int] = field(default_factory=dict)
    """Up to which sequence number each instance of the other side was delivered."""
    waiting: tuple[WaitingContent, ...] = ()
    lost: tuple[LostRange, ...] = ()
    """By instance and number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
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
    """When they took ``name`` by their own clock; 0 = with their join."""
    known_ms: int = 0
    """When this device first heard of them, by its own clock; never changes afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    kind: str
    start: int
    length: int
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """One row of a timeline, decrypted, as it will be shown."""

    conversation_id: ConversationId
    position: Position
    sender_id: ParticipantId
    is_own: bool
    kind: str
    text: str
    spans: tuple[SpanRecord, ...]
    sent_ms: UnixMs
    received_ms: UnixMs
    waiting: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """What the sender is shown of one own message."""

    state: DeliveryState
    attempts: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMessage:
    """A message that has its place, shown or hidden: what an audit needs of it."""

    position: Position
    sender_id: ParticipantId
    sent_ms: UnixMs


class KeptAside(NamedTuple):
    """The signed part of a message that is set aside."""

    raw: bytes
    retrieval_hint: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSequence:
    """The newest content message that we wrote during one stay in a conversation."""

    stay: InstanceId
    """Of this device's being in the conversation, until it leaves: the first instance of it."""
    instance_id: InstanceId
    """Which numbers messages now: another one once a clock that was ahead was put right."""
    sequence: int
    previous_id: MessageId
