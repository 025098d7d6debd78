"""What a conversation's session returns: writes, sends, and notes on what changed.

A session is sans-I/O like the state machines in it.  A runner makes ``writes`` durable in one
transaction, then performs ``sends``, then turns ``notes`` into events by reading the rows that they
name.  Notes carry ids, not rows, so the window always shows what is on disk.
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
    """Publish ``message``.  ``message_ids`` are own messages to track the receipt of."""

    message: WakuMessage
    purpose: SendPurpose
    message_ids: tuple[MessageId, ...] = ()
    repairs: MessageId | None = None
    """The message that this repairs, because a member requested it."""
    says_all: bool = False
    """This supersedes earlier ones with ``says_all`` that are not sent yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadForRepair:
    """Read this message's raw bytes: a member requested it."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBodies:
    """Read the bodies that this payload needs and that are no longer in memory."""

    payload: SendPayload
    message_ids: tuple[MvdsId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadToSayAgain:
    """Read this message's raw bytes, to replace it: we sent it when our clock was ahead."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSetAside:
    """Read what is set aside of this author, a few at a time: the user wants to see it."""

    sender_id: ParticipantId


Load: TypeAlias = LoadForRepair | LoadToSayAgain | LoadSetAside | LoadBodies | LoadRecords
"""Read from the store by ``engine.session.loading``, then handled by the session as ``Loaded``."""

SessionSend: TypeAlias = Publish | Load | AskStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLoaded:
    load: LoadForRepair | LoadToSayAgain
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BodiesLoaded:
    """Whatever is missing from ``bodies`` is no longer needed."""

    payload: SendPayload
    bodies: Mapping[MvdsId, MvdsMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsRead:
    """``loaded_before`` is meaningless if no epoch was asked for."""

    load: LoadRecords
    records: tuple[Record, ...]
    loaded_before: Epoch | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideLoaded:
    """The first messages by (Lamport timestamp, id)."""

    load: LoadSetAside
    kept: tuple[KeptAside, ...]


Loaded: TypeAlias = RawLoaded | SetAsideLoaded | BodiesLoaded | RecordsRead


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAdded:
    message_id: MessageId
    is_own: bool
    notify: bool
    """Worth a desktop notification: someone else's message, live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanged:
    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRemoved:
    """Its author replaced the message, so its row is gone."""

    message_id: MessageId


@dataclass(frozen=True, slots=True, kw_only=True)
class GapNoted:
    """Ask ``Session.gap`` for what is missing now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersNoted:
    """A member joined or left, a name changed, or the peer of a pair changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingNoted:
    """Ask ``Session.typing_now`` who is typing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAsideNoted:
    """Ask ``Session.held_aside`` what is held aside and whose clock is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideNoted:
    """Ask ``Session.set_aside`` who is beyond the daily quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoHeard:
    """A member named a recent message of ours: evidence about our clock.

    ``known_ms``: since when, by our clock, this device knows that member.
    """

    echo: Echo
    known_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkNoted:
    """A member sent different people different messages: ask ``Session.forks``."""

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
    """Messages dated ahead of our clock."""

    rows: tuple[MessageRecord, ...] = ()
    """Those due soonest, as they will be shown once placed; not stored."""
    total: int = 0
    next_due_ms: UnixMs | None = None
    ahead_ms: tuple[tuple[ParticipantId, int], ...] = ()
    """How far ahead the clocks of the senders of ``rows`` are, the furthest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTransition:
    """Perform ``writes`` first, in one transaction; then ``sends``; then ``notes``.

    ``steps`` record what was done, for the delivery log; they are not part of the result.
    """

    writes: tuple[StoreWrite, ...] = ()
    sends: tuple[SessionSend, ...] = ()
    notes: tuple[Note, ...] = ()
    steps: tuple[Step, ...] = field(default=(), compare=False)
    message_id: MessageId | None = None
    """The id of the message that a ``Say`` created."""
