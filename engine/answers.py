"""What queries of the engine give back, beside the read models of ``engine.events``."""

from dataclasses import dataclass

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.events import MessageView


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePage:
    """Consecutive rows, oldest first."""

    messages: tuple[MessageView, ...]
    has_older: bool
    has_newer: bool
    older_count: int
    """Rows before the first one: the scrollbar's ordinal."""
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitePreview:
    """What a link says, before anything touches the network."""

    conversation_id: ConversationId
    group_name: str
    inviter_name: str
    admin_fingerprint: str
    node_addresses: tuple[str, ...]
    already_joined: bool
    service_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactPreview:
    """What a contact link says, before anything touches the network."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    name: str
    fingerprint: str
    node_addresses: tuple[str, ...]
    known: ContactState | None
    """How far we have come with this person already; None = not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderView:
    """One line of "who holds it": source and since when, or None if not yet."""

    participant_id: ParticipantId
    name: str
    certain: bool
    source: str | None
    since_ms: UnixMs | None
    false_probability: float | None = None
    """Of a maybe: how likely it is wrong, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkProof:
    """Two messages of one author that contradict each other, and how to show it to anybody."""

    messages: tuple[MessageView | None, MessageView | None]
    """None: it has no row, because it still waits or was hidden here."""
    text: str
    """JSON: what it proves, and the two signed parts in base64."""
