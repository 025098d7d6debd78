"""What a conversation's session returns: writes, sends, and notes on what changed.

A session is sans-I/O like the state machines in it.  A runner makes ``writes`` durable in one
transaction, then performs ``sends``, then turns ``notes`` into events by reading the rows that they
name.  Notes carry ids, not rows, so the window always shows what is on disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from engine.core.admin_log.acts import EntryId
from engine.core.admin_log.cuts import Written
from engine.core.clock_evidence import Echo
from engine.core.ids import MessageId, ParticipantId, Position, UnixMs
from engine.core.mvds.vocabulary import Epoch, LoadRecords, MvdsId, MvdsMessage, Record, SendPayload
from engine.core.ports import StoreWrite
from engine.core.records import AnnotationRecord, KeptAside, MessageRecord
from engine.core.sds.vocabulary import AskStore, SendPurpose
from engine.core.waku import WakuMessage
from engine.crypto.admin_entry import SignedEntry
from engine.delivery.steps import Step


class Publish(Struct, frozen=True, kw_only=True):
    """Publish ``message``.  ``message_ids`` are own messages to track the receipt of."""

    message: WakuMessage
    purpose: SendPurpose
    message_ids: tuple[MessageId, ...] = ()
    repairs: MessageId | None = None
    """The message that this repairs, because a member requested it."""
    says_all: bool = False
    """This supersedes earlier ones with ``says_all`` that are not sent yet."""
    says_typing: bool = False
    """To a group, that one types: not to be sent any more after a text, which says that one ended.

    Two people's go as they come, since Olm counts them."""
    by_olm: bool | None = None
    """Whether it is sealed by Olm, or signed; None: it is not of two people."""


class LoadForRepair(Struct, frozen=True, kw_only=True):
    """Read this message's raw bytes: a member requested it."""

    message_id: MessageId


class LoadBodies(Struct, frozen=True, kw_only=True):
    """Read the bodies that this payload needs and that are no longer in memory."""

    payload: SendPayload
    message_ids: tuple[MvdsId, ...]


class LoadToSayAgain(Struct, frozen=True, kw_only=True):
    """Read this message's raw bytes, to replace it: we sent it when our clock was ahead."""

    message_id: MessageId


class LoadSetAside(Struct, frozen=True, kw_only=True):
    """Read what is set aside of this author, a few at a time: the user wants to see it."""

    sender_id: ParticipantId


class LoadWritten(Struct, frozen=True, kw_only=True):
    """Read what these logged messages of one author say of their place among the author's."""

    sender_id: ParticipantId
    places: tuple[Position, ...]


class LoadEntries(Struct, frozen=True, kw_only=True):
    """Read entries of the group's admin log that were not kept in memory: others name them now."""

    wanted: frozenset[EntryId]
    """And what these name in turn."""
    authors: frozenset[ParticipantId]
    """All that they wrote."""


class LoadToShow(Struct, frozen=True, kw_only=True):
    """Read this logged message's raw bytes: it was void, and is not any more."""

    position: Position


Load: TypeAlias = (
    LoadForRepair
    | LoadToSayAgain
    | LoadToShow
    | LoadWritten
    | LoadEntries
    | LoadSetAside
    | LoadBodies
    | LoadRecords
)
"""Read from the store by ``engine.session.loading``, then handled by the session as ``Loaded``."""

SessionSend: TypeAlias = Publish | Load | AskStore


class RawLoaded(Struct, frozen=True, kw_only=True):
    load: LoadForRepair | LoadToSayAgain | LoadToShow
    raw: bytes


class BodiesLoaded(Struct, frozen=True, kw_only=True):
    """Whatever is missing from ``bodies`` is no longer needed."""

    payload: SendPayload
    bodies: Mapping[MvdsId, MvdsMessage]


class RecordsRead(Struct, frozen=True, kw_only=True):
    """``loaded_before`` is meaningless if no epoch was asked for."""

    load: LoadRecords
    records: tuple[Record, ...]
    loaded_before: Epoch | None


class SetAsideLoaded(Struct, frozen=True, kw_only=True):
    """The first messages by (Lamport timestamp, id)."""

    load: LoadSetAside
    kept: tuple[KeptAside, ...]


class WrittenLoaded(Struct, frozen=True, kw_only=True):
    """Those of ``load`` that are there."""

    load: LoadWritten
    written: tuple[Written, ...]


class EntriesLoaded(Struct, frozen=True, kw_only=True):
    entries: tuple[SignedEntry, ...]
    """Verified when they came; some may be in memory."""


PairLoaded: TypeAlias = BodiesLoaded | RecordsRead
GovernedLoaded: TypeAlias = WrittenLoaded | EntriesLoaded
Loaded: TypeAlias = RawLoaded | SetAsideLoaded | GovernedLoaded | PairLoaded


class RowAdded(Struct, frozen=True, kw_only=True):
    message_id: MessageId
    is_own: bool
    notify: bool
    """Worth a desktop notification: someone else's message, live."""


class AnnotationAdded(Struct, frozen=True, kw_only=True):
    """Something was said about a message, which may not be here."""

    annotation: AnnotationRecord
    notify: bool
    """Somebody else said it, live."""


class RowChanged(Struct, frozen=True, kw_only=True):
    """Its row changed, or the delivery of what it says about another message."""

    message_id: MessageId


class RowRemoved(Struct, frozen=True, kw_only=True):
    """Its author replaced the message, so its row is gone."""

    message_id: MessageId


class GapNoted(Struct, frozen=True, kw_only=True):
    """Ask ``Session.gap`` for what is missing now."""


class MembersNoted(Struct, frozen=True, kw_only=True):
    """A member joined or left, a name changed, or the peer of a pair changed."""


class TypingNoted(Struct, frozen=True, kw_only=True):
    """Ask ``Session.typing_now`` who is typing."""


class HeldAsideNoted(Struct, frozen=True, kw_only=True):
    """Ask ``Session.held_aside`` what is held aside and whose clock is wrong."""


class SetAsideNoted(Struct, frozen=True, kw_only=True):
    """Ask ``Session.set_aside`` who is beyond the daily quota."""


class EchoHeard(Struct, frozen=True, kw_only=True):
    """A member named a recent message of ours: evidence about our clock.

    ``known_ms``: since when, by our clock, this device knows that member.
    """

    echo: Echo
    known_ms: int


class ForkNoted(Struct, frozen=True, kw_only=True):
    """A member sent different people different messages: ask ``Session.forks``."""

    participant_id: ParticipantId


class GovernanceNoted(Struct, frozen=True, kw_only=True):
    """Something of what ``GroupSession.governance`` says is different."""


Note: TypeAlias = (
    RowAdded
    | AnnotationAdded
    | RowChanged
    | RowRemoved
    | GapNoted
    | MembersNoted
    | TypingNoted
    | HeldAsideNoted
    | SetAsideNoted
    | EchoHeard
    | ForkNoted
    | GovernanceNoted
)


class HeldAside(Struct, frozen=True, kw_only=True):
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


@dataclass(slots=True)
class TransitionBuilder:
    """Collects what one call on a session causes, in order."""

    writes: list[StoreWrite] = field(default_factory=list)
    sends: list[SessionSend] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    message_id: MessageId | None = None

    def finish(self) -> SessionTransition:
        return SessionTransition(
            writes=tuple(self.writes),
            sends=tuple(self.sends),
            notes=tuple(self.notes),
            steps=tuple(self.steps),
            message_id=self.message_id,
        )
