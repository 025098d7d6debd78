"""What a conversation's session gives back: writes, publications, and notes on what changed.

A session is sans-I/O like the state machines it composes.  A runner makes ``writes`` durable in one
transaction, then performs ``sends``, then turns ``notes`` into events by reading the rows that they
name.  Notes carry ids, not rows, so that what is shown is always what is on disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.core.clock_evidence import Echo
from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.mvds.types import Epoch, LoadRecords, MvdsId, MvdsMessage, Record, SendPayload
from engine.core.ports import StoreWrite
from engine.core.records import KeptAside, MessageRecord
from engine.core.sds.types import AskStore, SendPurpose
from engine.core.waku import WakuMessage
from engine.delivery.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Hand this to the network.  ``message_ids`` are the own messages whose receipt matters."""

    message: WakuMessage
    purpose: SendPurpose
    message_ids: tuple[MessageId, ...] = ()
    repairs: MessageId | None = None
    """Somebody asked for this message, and it is sent again for them."""
    says_all: bool = False
    """With it an earlier one that says all need not be sent any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadForRepair:
    """Read this message's raw bytes: somebody asked for it."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBodies:
    """Read what this payload has to carry and is not in memory any more."""

    payload: SendPayload
    message_ids: tuple[MvdsId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadToSayAgain:
    """Read this message's raw bytes: we said it when our clock was ahead, and say it again."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSetAside:
    """Read what is set aside of this author: somebody wants to see it, a few at a time."""

    sender_id: ParticipantId


Load: TypeAlias = LoadForRepair | LoadToSayAgain | LoadSetAside | LoadBodies | LoadRecords
"""To be read from the store (``engine.session.loading``) and given to ``Session.loaded``."""

SessionSend: TypeAlias = Publish | Load | AskStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLoaded:
    load: LoadForRepair | LoadToSayAgain
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BodiesLoaded:
    """What is not among ``bodies`` is needed by nobody any more."""

    payload: SendPayload
    bodies: Mapping[MvdsId, MvdsMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsRead:
    """``loaded_before`` means nothing if no epoch was asked for."""

    load: LoadRecords
    records: tuple[Record, ...]
    loaded_before: Epoch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideLoaded:
    """The first ones by (lamport, id)."""

    load: LoadSetAside
    kept: tuple[KeptAside, ...]


Loaded: TypeAlias = RawLoaded | SetAsideLoaded | BodiesLoaded | RecordsRead


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAdded:
    message_id: MessageId
    is_own: bool
    notify: bool
    """Worth a desktop notification: somebody else said it, live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanged:
    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRemoved:
    """Its author said it again, and what was shown is not there any more."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class GapNoted:
    """Ask ``Session.gap`` for what is missing now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersNoted:
    """Somebody joined or left, a name changed; or what is known of the other side of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingNoted:
    """Ask ``Session.typing_now`` who is typing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAsideNoted:
    """Ask ``Session.held_aside`` what is held aside now, and whose clock is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideNoted:
    """Ask ``Session.set_aside`` who sends more than a day's quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoHeard:
    """Somebody named what we said just now: what that tells of our clock.

    ``known_ms``: since when, by our clock, this device knows them.
    """

    echo: Echo
    known_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkNoted:
    """Somebody told different people different things: ask ``Session.forks``."""

    participant_id: ParticipantId


Note: TypeAlias = (
    RowAdded
    | RowChanged
    | RowRemoved
    | GapNoted
    | MembersNoted
    | TypingNoted
    | HeldAsideNoted
    | SetAsideNoted
    | EchoHeard
    | ForkNoted
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAside:
    """Messages from the future by our clock."""

    rows: tuple[MessageRecord, ...] = ()
    """Those due soonest, as they will be shown once they have a place; stored nowhere."""
    total: int = 0
    next_due_ms: UnixMs | None = None
    ahead_ms: tuple[tuple[ParticipantId, int], ...] = ()
    """Of the senders of ``rows``: how far ahead their clocks are, the furthest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTransition:
    """``writes`` first, in one transaction; then ``sends``; then ``notes``.

    ``steps``: what was done for it, for whoever records that; no part of what it comes to.
    """

    writes: tuple[StoreWrite, ...] = ()
    sends: tuple[SessionSend, ...] = ()
    notes: tuple[Note, ...] = ()
    steps: tuple[Step, ...] = field(default=(), compare=False)
    message_id: MessageId | None = None
    """The id of the message that a ``say`` made."""
