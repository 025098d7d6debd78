"""Return types of the engine's queries, beside the read models of ``engine.events``."""

from enum import StrEnum

from msgspec import Struct

from engine.core.contacts import ContactState
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.search import FoundPlace
from engine.core.search_text import Excerpt
from engine.events import DeliveryView, MessageView
from engine.text_spans import TextSpan

PAGE_SIZE = 100
"""Rows of a timeline page, if nothing else is asked for."""
FOUND_SIZE = 50
"""Messages that the search answers with, if nothing else is asked for."""


class TimelinePage(Struct, frozen=True, kw_only=True):
    """Consecutive timeline rows, oldest first."""

    messages: tuple[MessageView, ...]
    has_older: bool
    has_newer: bool
    older_count: int
    """Rows of the timeline before the first one here: the scrollbar's ordinal."""
    total: int


class InvitePreview(Struct, frozen=True, kw_only=True):
    """The content of an invitation link, before anything touches the network."""

    conversation_id: ConversationId
    group_name: str
    inviter_name: str
    admin_fingerprint: str
    node_addresses: tuple[str, ...]
    already_joined: bool
    service_nodes: tuple[str, ...] = ()
    asks_first: bool = False
    """The inviter's device has to let us in: the link itself opens nothing."""
    expires_ms: UnixMs | None = None
    is_over: bool = False
    """Anyone with the link was in the group, which we are not in any more, until it ended."""


class ContactPreview(Struct, frozen=True, kw_only=True):
    """The content of a contact link, before anything touches the network."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    name: str
    fingerprint: str
    node_addresses: tuple[str, ...]
    known: ContactState | None
    """Our agreement with this person so far; None = none."""


class HolderView(Struct, frozen=True, kw_only=True):
    """One entry of "who holds it"; ``source`` and ``since_ms`` are None if not yet."""

    participant_id: ParticipantId
    name: str
    certain: bool
    source: str | None
    since_ms: UnixMs | None
    false_probability: float | None = None
    """The probability that an uncertain entry is wrong, where it is known."""


class ForkProof(Struct, frozen=True, kw_only=True):
    """Two contradicting messages of one author, with the proof in a form to show others."""

    messages: tuple[MessageView | None, MessageView | None]
    """None for a message without a row: it still waits, or was hidden here."""
    text: str
    """JSON: ``proves`` ("equivocation"), the author, and the two signed parts in base64."""


class VersionView(Struct, frozen=True, kw_only=True):
    """One version of a message that was edited."""

    message_id: MessageId
    """Of the message itself for the first version, else of the edit."""
    text: str
    spans: tuple[TextSpan, ...]
    sent_ms: UnixMs
    received_ms: UnixMs
    is_shown: bool
    delivery: DeliveryView | None
    """None for other people's messages."""


class ReactorView(Struct, frozen=True, kw_only=True):
    """One person's reaction to a message, with one emoji."""

    participant_id: ParticipantId
    name: str
    emoji: str
    sent_ms: UnixMs
    is_own: bool
    delivery: DeliveryView | None
    """None for other people's reactions."""


class Arrival(StrEnum):
    """How a message came to this device."""

    WRITTEN_HERE = "written_here"
    LIVE = "live"
    STORE = "store"
    REPAIR = "repair"
    """A member sent it again because somebody missed it."""
    UNKNOWN = "unknown"
    """It came before ways were noted, or waited for others while the program ended."""


class MessageInfo(Struct, frozen=True, kw_only=True):
    """All that is known about a message, our own or somebody else's."""

    message: MessageView
    received_ms: UnixMs
    """When it came."""
    placed_ms: UnixMs | None
    """Since when its row is shown, if it had to wait for that."""
    arrival: Arrival
    repaired_by: str
    """Name of the member who sent it again; "" if nobody did."""
    holders: tuple[HolderView, ...]
    size: int
    """Bytes of the signed part; 0 if unknown."""


class FoundView(Struct, frozen=True, kw_only=True):
    """A message that the search found."""

    conversation_id: ConversationId
    conversation_name: str
    position: Position
    sender_id: ParticipantId
    sender_name: str
    is_own: bool
    sent_ms: UnixMs
    excerpt: Excerpt
    file_name: str
    """"" if it has no file."""

    @property
    def place(self) -> FoundPlace:
        return FoundPlace(self.position, self.conversation_id)

    @property
    def message_id(self) -> MessageId:
        return self.position.message_id


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """The newest come first, by their places over all conversations."""

    found: tuple[FoundView, ...]
    has_more: bool
    is_shortened: bool
    """More was asked for than is looked for; only the first words counted."""
