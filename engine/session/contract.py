"""The interface between a runner and one conversation's session: group, open channel or pair.

A session is sans-I/O: it handles inputs (``engine.session.inputs``) and returns transitions
(``engine.session.transitions``).  It never raises for bytes from outside.  It raises
``LocalProtocolError`` for a command that the conversation does not allow.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from engine.core.ids import MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.records import ContactRecord, GroupRecord, MemberRecord, OpenChannelRecord
from engine.core.sds.floods import SetAsideOf
from engine.core.sds.forks import Fork
from engine.core.sds.vocabulary import Buffers
from engine.core.waku import WakuMessage
from engine.events import GapView
from engine.session.inputs import Prechecked, SessionInput
from engine.session.transitions import HeldAside, SessionTransition

ConversationRecord: TypeAlias = GroupRecord | OpenChannelRecord | ContactRecord


class Session(Protocol):
    def handle(self, input_: SessionInput, *, now_ms: UnixMs) -> SessionTransition:
        """Handle one input.  ``now_ms`` never goes back, however clocks are set; timers use it."""

    def next_deadline(self) -> UnixMs | None:
        """When to send the session a ``DeadlineReached``."""

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> Prechecked | None:
        """Check an envelope cheaply, without changing anything.

        Returns what may take a place in the job queue, or None for a refusal, which is counted.
        """

    @property
    def record(self) -> ConversationRecord:
        """The record as the session knows it.  Muted, draft and read mark belong to the user."""

    @property
    def oldest_ms(self) -> UnixMs | None:
        """The approximate time of the oldest message here; None if there is none."""

    @property
    def other_is_here(self) -> bool:
        """Whether the peer of a pair was heard lately; otherwise always False."""

    def members(self) -> Mapping[ParticipantId, MemberRecord]:
        """By id; empty for an open channel, where nobody is proved to be."""

    def gap(self) -> GapView | None:
        """What is missing; None if nothing is."""

    def held_aside(self) -> HeldAside:
        """Messages that have no place yet because their time is too far ahead."""

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """Authors beyond their daily quota, and how much of theirs is set aside."""

    def forks(self) -> tuple[Fork, ...]:
        """Forks found so far, with their proofs."""

    def claimed_by(self, message_id: MessageId) -> frozenset[ParticipantId]:
        """Members who said lately that they hold this message, our own or another's."""

    def heard(self) -> Mapping[ParticipantId, UnixMs]:
        """When something live came from others; of a group, since the session was loaded."""

    def buffers(self) -> Buffers | int:
        """What the protocol holds at a moment: the buffers of SDS, or how many records of MVDS."""

    def counted(self) -> Mapping[str, int]:
        """What this conversation has refused, and all else that it counts, since it was loaded."""

    def typing_now(self) -> tuple[ParticipantId, ...]: ...
