"""What a session is told: what people want, what the network brings, what Stores say.

``Session.handle`` takes each of them.  They are plain data, so a queue of them can be bounded,
counted and logged.  What the SDS channel takes as it is, is the channel's own input.
"""

from dataclasses import dataclass
from typing import TypeAlias

from engine.core.content import Body
from engine.core.ids import MessageId, WakuHash
from engine.core.sds.inputs import (
    ClockSet,
    ConnectivityChanged,
    DeadlineReached,
    HastenStoreQuery,
    ResendRequested,
    RetrieveLostRequested,
    RetrieveRequested,
    ShowSetAside,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
)
from engine.core.waku import WakuMessage
from engine.session.group.wire import GroupEnvelope
from engine.session.pair.wire import PairEnvelope
from engine.session.transitions import Loaded

Prechecked: TypeAlias = GroupEnvelope | PairEnvelope
"""What ``Session.precheck`` found: the envelope as far as it was opened."""


# --- what people want ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say:
    """Put something into the conversation; the transition names the message's id.

    In a pair: LocalProtocolError, with the reason in words, before both wanted to talk.
    """

    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeNow:
    """Tell the others that we are typing, if that is news."""

    active: bool


@dataclass(frozen=True, slots=True)
class RetrieveKeptBack:
    """Ask once more for what Stores had and nobody wanted to see: more is wanted by now."""


@dataclass(frozen=True, slots=True)
class AskToTalk:
    """Ask the other of a pair, or accept if they ask; nothing if that was said already."""


@dataclass(frozen=True, slots=True)
class AcceptContact:
    """Talk with the other of a pair; one whom we declined, or who declined, is asked."""


@dataclass(frozen=True, slots=True)
class DeclineContact:
    """Do not talk with the other of a pair."""


@dataclass(frozen=True, slots=True)
class WithdrawRequest:
    """Take back our request; LocalProtocolError once it is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBlocked:
    """From now on, or no longer, nothing of the other's is taken in or answered."""

    blocked: bool


@dataclass(frozen=True, slots=True)
class SetLocalName:
    """How the other of a pair is called on this device."""

    name: str


@dataclass(frozen=True, slots=True)
class ProfileChanged:
    """Our name or picture did; the other of a pair is told once we are on speaking terms."""


ContactInput: TypeAlias = (
    AskToTalk
    | AcceptContact
    | DeclineContact
    | WithdrawRequest
    | SetBlocked
    | SetLocalName
    | ProfileChanged
)
"""Of pairs only."""


# --- what the network brings --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A Waku message that was not checked before.

    ``stored``: it is not live, a Store gave it, whenever it was said.  ``if_wanted``: ignore it
    unless this message is still looked for.
    """

    message: WakuMessage
    waku_hash: WakuHash
    stored: bool = False
    if_wanted: MessageId | None = None


@dataclass(frozen=True, slots=True)
class EnvelopeArrived:
    """A live message that passed ``Session.precheck``."""

    envelope: Prechecked


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesAccepted:
    """``peers`` relays or service nodes took a copy of these own messages."""

    message_ids: tuple[MessageId, ...]
    peers: int
    waku_hash: WakuHash


StoreInput: TypeAlias = (
    StoreChanged | StoreAnswered | StoresMissing | HastenStoreQuery | RetrieveKeptBack
)
"""What Stores say, which concerns groups only: a pair asks for nothing by its name."""

SessionInput: TypeAlias = (
    Say
    | TypeNow
    | ResendRequested
    | RetrieveRequested
    | RetrieveLostRequested
    | ShowSetAside
    | ContactInput
    | MessageArrived
    | EnvelopeArrived
    | CopiesAccepted
    | Loaded
    | ConnectivityChanged
    | ClockSet
    | DeadlineReached
    | StoreInput
)
