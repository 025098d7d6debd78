"""What a runner drives: one conversation's session, of a group or of a pair.

Sans-I/O: a session handles inputs (``engine.session.inputs``) and gives back transitions
(``engine.session.transitions``).  It never raises for bytes from outside; for what people want it
raises ``LocalProtocolError`` when the conversation does not allow it.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from engine.core.ids import ParticipantId, UnixMs, WakuHash
from engine.core.records import ContactRecord, GroupRecord, MemberRecord
from engine.core.sds.flood_types import SetAsideOf
from engine.core.sds.fork_types import Fork
from engine.core.waku import WakuMessage
from engine.events import GapView
from engine.session.inputs import Prechecked, SessionInput
from engine.session.transitions import HeldAside, SessionTransition

ConversationRecord: TypeAlias = GroupRecord | ContactRecord


class Session(Protocol):
    def handle(self, input_: SessionInput, *, now_ms: UnixMs) -> SessionTransition:
        """``now_ms`` only ever goes on, whatever is done to clocks; timers go by it."""

    def next_deadline(self) -> UnixMs | None:
        """When it wants a ``DeadlineReached``."""

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> Prechecked | None:
        """What is worth a place in the queue; None, and counted: it is not.  Changes nothing."""

    def open_ahead(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        """A Store gave it, and it will arrive soon: what needs no state may be done now.

        Nothing changes by it but what ``MessageArrived`` will cost.
        """

    @property
    def record(self) -> ConversationRecord:
        """As the session knows it; muted, draft and read mark belong to the user, not to it."""

    @property
    def oldest_ms(self) -> UnixMs | None:
        """About when the first message that is here was said; None: there is none."""

    @property
    def other_is_here(self) -> bool:
        """Of a pair: whether the other was heard lately.  Nobody says so of a group."""

    def members(self) -> Mapping[ParticipantId, MemberRecord]: ...

    def gap(self) -> GapView | None:
        """What is known to exist and not here; None if nothing is."""

    def held_aside(self) -> HeldAside:
        """What has no place yet because it claims a time too far ahead."""

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """Who sends more than a day's quota, and how much of it waits."""

    def forks(self) -> tuple[Fork, ...]:
        """Who told different people different things, with the proof."""

    def typing_now(self) -> tuple[ParticipantId, ...]: ...
