"""What passes in one conversation while somebody looks (``engine.api.Inspection.watch``).

Sums count from the moment the watch began, so two samples tell what happened between them.  Nothing
is counted for a conversation that nobody watches.
"""

from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct, field

from engine.core.ids import ConversationId, MessageId, UnixMs

FOLLOWED: Final = 400
"""The most messages of ours whose holders one watch follows: the newest."""


class TrafficKind(StrEnum):
    """What a copy is for, by its purpose when sent and by what it led to when received."""

    CONTENT = "content"
    """The first copy of a message."""
    AGAIN = "again"
    """Another copy of a message: sent again; or nothing new came of it here."""
    REPAIR = "repair"
    """A member sent another's message, because somebody asked for it."""
    HISTORY = "history"
    """From a Store."""
    SYNC = "sync"
    """What somebody has and wants: sync messages of SDS; offers, requests and acks of MVDS."""
    EPHEMERAL = "ephemeral"
    REFUSED = "refused"
    """It was opened and failed a check."""


class Traffic(Struct, frozen=True, kw_only=True):
    copies: int = 0
    size: int = 0
    """Bytes of the Waku messages' payloads."""


class SkewView(Struct, frozen=True, kw_only=True):
    """Lamport timestamp minus this device's clock, of messages as they arrived live.

    About minus the time a message travelled; above zero, somebody's clock is ahead of this one.
    """

    lowest_ms: int
    highest_ms: int


class BufferView(Struct, frozen=True, kw_only=True):
    """How much of a conversation waits, at a moment."""

    outgoing: int
    """Messages of ours that nobody, or not everybody, is known to hold; MVDS: its records."""
    incoming: int = 0
    """Here, and waiting for what they depend on."""
    held_aside: int = 0
    """Here, and dated ahead of this device's clock."""
    missing: int = 0
    to_send: int = 0
    """Copies that wait to be handed to the network."""
    to_handle: int = 0
    """Copies that came and wait to be handled."""
    filter_fill: float | None = None
    """The share of our Bloom filter's bits that are set; None: MVDS has none."""
    filter_false_probability: float | None = None
    lamport_ahead_ms: int | None = None
    """Our Lamport timestamp minus our clock: a quiet channel falls behind it."""


class OwnMessage(Struct, frozen=True, kw_only=True):
    message_id: MessageId
    saved_ms: UnixMs
    held_after_ms: int | None
    """From "saved" until the last other member was known to hold it; None: not yet."""
    copies: int
    """How many were handed to the network while the program ran."""


class LiveSample(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    at_ms: UnixMs
    since_ms: UnixMs
    """When the watch began."""
    placed: int
    """Messages that got their place here, our own among them."""
    sent: dict[TrafficKind, Traffic] = field(default_factory=dict)
    received: dict[TrafficKind, Traffic] = field(default_factory=dict)
    repairs_asked: int = 0
    """Ids that our copies asked members for."""
    skew: SkewView | None = None
    """Since the last sample; None: nothing came live, or MVDS, which has no Lamport timestamps."""
    buffers: BufferView | None = None
    """None: the conversation is not loaded."""
    own: tuple[OwnMessage, ...] = ()
    """The newest of ours, oldest first; at most FOLLOWED."""
    counted: dict[str, int] = field(default_factory=dict)
    """This conversation's counters since it was loaded: what was refused is among them."""
    earlier: tuple[UnixMs, ...] = ()
    """Only in the first sample: when the newest messages were written down, before the watch."""


class DeliveryWatch(Protocol):
    """Counts what passes in one conversation, until it is closed."""

    async def sample(self) -> LiveSample:
        """How it goes now.  Raises CommandError if the conversation is gone."""

    def close(self) -> None: ...


class RecordView(Struct, frozen=True, kw_only=True):
    """What MVDS still has to offer, to request or to send."""

    message_id: MessageId
    record: str
    """"offer", "request" or "message", as in 2/MVDS."""
    send_count: int
    send_epoch: int | None
    """None: it was given up."""
    next_ms: UnixMs | None
    """When the next attempt is made if somebody can be reached; None: none by itself."""
    created_ms: UnixMs
    size: int
    """Bytes of the body; 0 of one that is requested."""
    is_shown: bool
    """Whether the timeline has a row of it; statements about the contact have none."""


class PairDelivery(Struct, frozen=True, kw_only=True):
    """What is left to do between two people."""

    conversation_id: ConversationId
    at_ms: UnixMs
    epoch: int
    epoch_ms: int
    records: tuple[RecordView, ...]
    """Those due soonest first, those given up last."""
    is_all: bool
    """False: there are more."""
