"""What this device knows of one message, for whoever looks into it (``engine.api.Inspection``).

Every statement has its evidence on this device: on disk, in the message's own bytes, or noted while
the program ran.  What was never noted is None, or missing from the list, and the fields beside it
say so: nothing is made up.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.answers import Arrival, HolderView
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.events import ConnectionLevel, ConnectionRole, MessageView
from engine.history_views import StoreHealth

RATE_MS: Final = 600_000
"""The time for which ``Figures`` count messages: ten minutes."""


class Whereabouts(StrEnum):
    """Where a message is, seen from this device."""

    LOGGED = "logged"
    """It has its place."""
    WAITING = "waiting"
    """It is here, and what it depends on is not, or its time has not come."""
    MISSING = "missing"
    """Somebody named it; it is looked for."""
    LOST = "lost"
    """It was looked for long enough."""
    UNKNOWN = "unknown"


class Occasion(StrEnum):
    """Why a copy was handed to the network."""

    FIRST = "first"
    UNACKNOWLEDGED = "unacknowledged"
    """Nobody had acknowledged it when it was due again."""
    ASKED_HERE = "asked_here"
    """The user wanted it sent again."""
    REPAIR = "repair"
    """A member asked for it, and this device has it."""
    NOT_NOTED = "not_noted"


class SentBy(StrEnum):
    RELAY = "relay"
    LIGHTPUSH = "lightpush"


class Seal(StrEnum):
    """How what two people say to each other was sealed."""

    OLM = "olm"
    """With a key of its own, which is forgotten."""
    SIGNED = "signed"
    """By HPKE to the other's long-term key, and signed: not forward secret."""
    BOTH = "both"
    """The first copies signed, and later ones by Olm."""
    NOT_NOTED = "not_noted"


class CopyView(Struct, frozen=True, kw_only=True):
    """One copy that this device handed to the network while the program ran."""

    number: int
    """1 for the first, as far as they were noted."""
    at_ms: UnixMs
    occasion: Occasion
    sent_by: SentBy | None
    """None: by both ways, while one took over from the other."""
    peers: int
    """How many it was handed to; 0: nobody was there."""
    size: int
    """Bytes of the Waku message's payload."""
    waku_hash: str
    """Hexadecimal; Stores find it by that."""
    together_with: int = 0
    """Other messages in the same copy, of a one-to-one conversation."""
    taken_ms: UnixMs | None = None
    """When a peer showed that it read the copy; None: none has, or it cannot be known."""
    by_olm: bool | None = None
    """Of a one-to-one conversation: by Olm, or signed."""


class LinkView(Struct, frozen=True, kw_only=True):
    """A message that this one names, or that names it."""

    message_id: MessageId
    whereabouts: Whereabouts
    sender_id: ParticipantId | None
    """None: the message that names it did not say."""
    sender_name: str
    position: Position | None
    """None: it has no place here."""
    is_shown: bool
    """Whether the timeline has a row of it."""
    saved_ms: UnixMs | None = None
    """When it got its place here; None: that is not recorded."""
    retrieval_hint: str = ""
    """Hexadecimal, as the message that names it gives it."""


class WantedView(Struct, frozen=True, kw_only=True):
    """How a message that is not here is looked for."""

    message_id: MessageId
    since_ms: UnixMs
    online_ms: int
    """How long it was looked for while somebody could be reached."""
    requests: int
    """How often members were asked."""
    next_request_ms: UnixMs | None
    """None: it was given up."""
    stores_asked_ms: UnixMs | None
    stores_lacked: int
    """Stores that said they do not have it."""
    stores_silent: int
    """Stores that could not be asked."""


class AgainView(Struct, frozen=True, kw_only=True):
    """What still happens with a message of ours that nobody is known to hold for certain."""

    state: str
    """As the protocol calls it."""
    attempts: int
    next_ms: UnixMs | None
    """When the next copy goes out if somebody can be reached; None: none does by itself."""
    accepted: bool
    """Some peer or Store took a copy."""


class PartView(Struct, frozen=True, kw_only=True):
    """A part of a message's bytes, by the specification's name of it."""

    name: str
    size: int


class FilterView(Struct, frozen=True, kw_only=True):
    size: int
    bits: int
    fill: float
    """The share of bits that are set."""
    about_ids: int
    """How many ids such a fill comes from."""
    false_probability: float


class StoreReturned(Struct, frozen=True, kw_only=True):
    """A Store returned a copy, so it kept one then."""

    address: str
    at_ms: UnixMs
    """The last time, since the program started."""


class SdsView(Struct, frozen=True, kw_only=True):
    """The fields of an SDS message, and what surrounds it."""

    sender_id: ParticipantId
    message_id: MessageId
    channel_id: str
    lamport_timestamp: int | None
    causal_history: tuple[MessageId, ...]
    bloom_filter: FilterView | None
    repair_request: tuple[MessageId, ...]
    content_size: int
    instance_id: str = ""
    """Hexadecimal; with ``sequence``: the n-th message of this author's device.  "" = none."""
    sequence: int | None = None
    previous_id: MessageId | None = None
    replaces: MessageId | None = None
    signed_ms: UnixMs | None = None
    """By its author's clock; None: nothing is signed in an open channel."""
    group_key: int | None = None
    """Which of the group's keys its signature names: 1 for the first; None: one not known here."""
    retrieval_hint: str = ""
    """Hexadecimal hash of a copy that Stores may have; "" = none is known."""


class MvdsView(Struct, frozen=True, kw_only=True):
    """What MVDS keeps of a message: its record, and its fields while they are needed."""

    message_id: MessageId
    group_id: str
    record: str = ""
    """"offer", "request" or "message"; "" = nothing of it is left to send."""
    send_count: int = 0
    send_epoch: int | None = None
    timestamp: int | None = None
    """Seconds; None: its body was dropped once it was not needed any more."""
    body_size: int | None = None
    seal: Seal | None = None
    """None: no copy of it was sealed yet."""
    olm_since_ms: UnixMs | None = None
    """Since when, by our clock, both speak Olm; None: not yet."""


class MessageInspection(Struct, frozen=True, kw_only=True):
    """All that is known of one message."""

    conversation_id: ConversationId
    message_id: MessageId
    whereabouts: Whereabouts
    is_open: bool
    """In an open channel, where nobody is proved to be anybody."""
    looked_ms: UnixMs
    """When this was read."""
    message: MessageView | None
    """None: no row shows it; it is not here, or it was deleted here, or it is no text."""
    sender_id: ParticipantId | None
    """Of a message that is not here, what those say who name it; nothing proves it."""
    sender_name: str
    is_own: bool
    saved_ms: UnixMs | None
    """When it was written down on this device; its row may be shown while it still waits."""
    arrival: Arrival
    came_ms: UnixMs | None = None
    """When it came, if it had to wait from then until ``saved_ms``."""
    repaired_by: str = ""
    copies: tuple[CopyView, ...] = ()
    copies_omitted: int = 0
    """Copies between the first and the last of ``copies`` that are not kept."""
    copies_since_ms: UnixMs | None = None
    """Copies before this time were not noted; None: all of them were."""
    again: AgainView | None = None
    holders: tuple[HolderView, ...] = ()
    names: tuple[LinkView, ...] = ()
    """Its causal history, oldest first."""
    named_by: tuple[LinkView, ...] = ()
    named_by_complete: bool = True
    """False: others may name it, too; only messages near it and those that wait were looked at."""
    waits_for: tuple[WantedView, ...] = ()
    returned_by: tuple[StoreReturned, ...] = ()
    """Stores that returned it lately; others may keep it, too."""
    wanted: WantedView | None = None
    """How the message itself is looked for, if it is not here."""
    sds: SdsView | None = None
    mvds: MvdsView | None = None
    parts: tuple[PartView, ...] = ()
    """What its kept bytes consist of; together they are all of them."""


class ConversationFigures(Struct, frozen=True, kw_only=True):
    """How delivery goes in one conversation, from its newest messages."""

    conversation_id: ConversationId
    name: str
    looked_at: int
    """Messages at its end that the figures are made from."""
    received: int
    """How many of them were written down here within ``RATE_MS``."""
    is_all: bool
    """False: there were more within that time than were looked at."""
    own: int
    """Ours among those looked at."""
    held_by_all: int
    """Of ours: those that every other member surely holds."""
    held_p50_ms: int | None
    """From "saved" until the last member was known to hold it; None: of none the time is known."""
    held_p95_ms: int | None
    waiting: int
    """Here, and waiting for what they depend on: the incoming buffer."""
    missing: int
    lost: int
    waiting_to_send: int
    """Ours that nobody has taken yet."""
    failed: int


class ConnectionFigures(Struct, frozen=True, kw_only=True):
    level: ConnectionLevel
    role: ConnectionRole
    peers: int
    bytes_in: int
    bytes_out: int


class StoreFigures(Struct, frozen=True, kw_only=True):
    """As ``engine.history_views.StoreView`` has them."""

    multiaddr: str
    enabled: bool
    health: StoreHealth
    queries: int
    complete: int
    messages: int
    omitted: int


class Figures(Struct, frozen=True, kw_only=True):
    """How the whole profile does at a moment."""

    at_ms: UnixMs
    connection: ConnectionFigures
    conversations: tuple[ConversationFigures, ...]
    more_conversations: int
    """Those beyond the most recent ones, which are not looked at."""
    stores: tuple[StoreFigures, ...]
    counters: dict[str, int]
