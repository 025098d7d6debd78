"""What a runner drives: one conversation's session, of a group or of a pair.

Sans-I/O: a session is fed time, bytes and wishes and gives back transitions
(``engine.session.transitions``).  It never raises for bytes from outside; for a wish it raises
``LocalProtocolError`` when the conversation does not allow it.  Runner, inbox and slice know this
protocol only.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from engine.core.content import Body
from engine.core.ids import MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.ports import ContactRecord, GroupRecord, MemberRecord
from engine.core.sds.flood_types import SetAsideOf
from engine.core.sds.fork_types import Fork
from engine.core.sds.inputs import StoresMissing
from engine.core.waku import WakuMessage
from engine.events import GapView
from engine.session.group.wire import GroupEnvelope
from engine.session.pair.wire import PairEnvelope
from engine.session.transitions import HeldAside, Loaded, SessionTransition

ConversationRecord: TypeAlias = GroupRecord | ContactRecord
Prechecked: TypeAlias = GroupEnvelope | PairEnvelope


class Session(Protocol):
    # what people want

    def say(self, body: Body, *, now_ms: UnixMs) -> SessionTransition:
        """Put something into the conversation; the transition names the message's id."""

    def type_now(self, *, active: bool, now_ms: UnixMs) -> SessionTransition: ...

    def resend(self, message_id: MessageId, *, now_ms: UnixMs) -> SessionTransition: ...

    def retrieve_kept_back(self, *, now_ms: UnixMs) -> SessionTransition:
        """Ask once more for what Stores had and nobody wanted to see: more is wanted by now."""

    def retrieve_lost(
        self, message_ids: Sequence[MessageId], *, now_ms: UnixMs
    ) -> SessionTransition:
        """Ask once more for what was given up."""

    def retrieve(self, *, now_ms: UnixMs) -> SessionTransition:
        """Ask for what is missing, now."""

    # what the world says

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> Prechecked | None:
        """What is worth a place in the queue; None, and counted: it is not.  Changes nothing."""

    def receive_checked(self, checked: Prechecked, *, now_ms: UnixMs) -> SessionTransition:
        """What passed ``precheck``, live.  Never raises for its bytes."""

    def receive(
        self, message: WakuMessage, waku_hash: WakuHash, *, now_ms: UnixMs, stored: bool = False
    ) -> SessionTransition:
        """What was not checked before.  ``stored``: a Store gave it, whenever it was said."""

    def accepted(
        self, message_ids: Sequence[MessageId], *, peers: int, waku_hash: WakuHash, now_ms: UnixMs
    ) -> SessionTransition:
        """``peers`` relays or service nodes took a copy of these own messages."""

    def loaded(self, loaded: Loaded, *, now_ms: UnixMs) -> SessionTransition: ...

    def connectivity(self, *, online: bool, now_ms: UnixMs) -> SessionTransition: ...

    def clock_set(self, offset_ms: int, *, now_ms: UnixMs) -> SessionTransition:
        """Our clock is ``offset_ms`` ahead of ``now_ms`` from here on.

        ``now_ms`` only ever goes on, whatever is done to clocks; timers go by it.
        """

    def advance(self, *, now_ms: UnixMs) -> SessionTransition:
        """Do what is due."""

    # what Stores say

    def open_ahead(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        """A Store gave it, and it will be received soon: what needs no state may be done now.

        Nothing changes by it but what ``receive`` will cost.
        """

    def stores_changed(self, *, reachable: bool, now_ms: UnixMs) -> SessionTransition:
        """Whether any Store can be asked."""

    def stores_answered(self, *, through_ms: UnixMs, now_ms: UnixMs) -> SessionTransition:
        """All that Stores have up to then was handed in."""

    def stores_missing(self, lacks: StoresMissing, *, now_ms: UnixMs) -> SessionTransition:
        """Every Store was asked for these and brought none of them."""

    def hasten_stores(self, *, now_ms: UnixMs) -> SessionTransition:
        """Much waits: ask Stores for what lacks, now."""

    def wants(self, message_id: MessageId) -> bool:
        """Whether a message is known to lack, and is looked for."""

    @property
    def oldest_ms(self) -> UnixMs | None:
        """About when the first message that is here was said; None: there is none."""

    # what can be asked

    @property
    def record(self) -> ConversationRecord:
        """As the session knows it; muted, draft and read mark belong to the user, not to it."""

    def members(self) -> Mapping[ParticipantId, MemberRecord]: ...

    @property
    def other_is_here(self) -> bool:
        """Of a pair: whether the other was heard lately.  Nobody says so of a group."""

    def next_deadline(self) -> UnixMs | None: ...

    def gap(self) -> GapView | None: ...

    def held_aside(self) -> HeldAside: ...

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """Who sends more than a day's quota, and how much of it waits."""

    def forks(self) -> tuple[Fork, ...]:
        """Who told different people different things, with the proof."""

    def typing_now(self) -> tuple[ParticipantId, ...]: ...
