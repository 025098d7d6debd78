"""A piece of a conversation as the view of its delivery shows it (``engine.api.Inspection``).

A page is a bounded part of the log, by place, with what waits for it and what is missing in it.  It
says of each message what this device has evidence for, as ``engine.inspection_views`` says it of
one: a certain holder signed that it is one, a possible holder is the guess of a filter, and whoever
is not named gave no sign.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs

MOST_IN_PAGE: Final = 400
"""Messages of the log; and as many that wait, and as many that are missing."""


class DeliveryMark(StrEnum):
    """How a message stands on this device.  One of these, the first that is true."""

    MISSING = "missing"
    """Somebody named it; it is looked for."""
    LOST = "lost"
    """It was looked for long enough."""
    WAITING = "waiting"
    """It is in the incoming buffer: what it depends on is not here, or its time has not come."""
    FAILED = "failed"
    """Ours; nobody took it, and it was given up."""
    ONLY_HERE = "only_here"
    """Ours; nobody has taken it yet."""
    LATE = "late"
    """It is in its place, where later ones already stood when it came."""
    HERE = "here"


class HolderMark(Struct, frozen=True, kw_only=True, gc=False):
    """Somebody else who holds a message, or perhaps does; its author is not named."""

    participant_id: ParticipantId
    certain: bool
    since_ms: UnixMs | None
    """Since when this device knows it; None: not recorded, as of others' messages."""


class DeliveryMessage(Struct, frozen=True, kw_only=True, gc=False):
    """Values only, so no cycle is possible, and the collector need not look through thousands."""

    message_id: MessageId
    mark: DeliveryMark
    sender_id: ParticipantId | None
    """None: whoever names a missing message did not say whose it is."""
    sender_name: str
    is_own: bool
    lamport_timestamp: int | None
    """None: it is not here, and so not known."""
    position: Position | None
    """Its place in the log; None: it has none."""
    before: Position | None = None
    """Of a missing message: the first one known to depend on it."""
    received_ms: UnixMs | None = None
    """When it was written down here, or since when it is missing; None: not recorded."""
    came_ms: UnixMs | None = None
    """When it came, if it had to wait from then until ``received_ms``."""
    sent_ms: UnixMs | None = None
    """By its author's clock; None: not recorded."""
    late_by_ms: int | None = None
    """Of a late one: since when another stood behind its place, of those in the page."""
    is_shown: bool = False
    """Whether the timeline has a row of it."""
    names: tuple[MessageId, ...] = ()
    """Its causal history, oldest first; also messages that are not in the page."""
    holders: tuple[HolderMark, ...] = ()
    of: int = 0
    """How many others it is for, without its author; 0: not known, as in an open channel."""
    held_by: int = 0
    """How many of those surely hold it."""

    @property
    def is_held_by_all(self) -> bool:
        return 0 < self.of == self.held_by


class DeliveryPage(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    looked_ms: UnixMs
    """When this was read, by this device's clock."""
    messages: tuple[DeliveryMessage, ...]
    """In the log's order.  A missing one stands ahead of the first that is known to depend on it;
    those that wait, and what they lack, come at the end of the newest page."""
    first: Position | None
    """The place of the oldest in the log, from which to read on; None: there is none."""
    has_older: bool
    has_newer: bool
    is_open: bool
    """An open channel: nobody is proved to be anybody, so nobody surely holds anything."""
    is_pair: bool
    """Between two people, where nothing names anything."""
    clock: int
    """The highest Lamport timestamp of the page."""
    more_missing: bool = False
    more_waiting: bool = False
    """There are more than the page says."""
