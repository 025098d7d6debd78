"""The inputs of a session: commands, messages from the network, and answers from Stores.

``Session.handle`` takes each of them.  They are plain data, so a queue of them can be bounded,
counted and logged.  Inputs that the SDS channel takes unchanged are the channel's own types.
"""

from typing import TypeAlias

from msgspec import Struct

from engine.core.admin_log.acts import Act
from engine.core.content import Body
from engine.core.governed import Admission
from engine.core.ids import MessageId, WakuHash
from engine.core.sds.inputs import (
    ClockSet,
    ConnectivityChanged,
    DeadlineReached,
    HastenStoreQuery,
    ResendRequested,
    RetrieveLostRequested,
    RetrieveQuoted,
    RetrieveRequested,
    ShowSetAside,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
    WindowAnswered,
)
from engine.core.waku import WakuMessage
from engine.session.group.opening import OpenedEnvelope
from engine.session.group.wire import GroupEnvelope, LockedEnvelope
from engine.session.open.wire import OpenEnvelope
from engine.session.pair.wire import PairEnvelope
from engine.session.transitions import GovernedLoaded, Loaded, PairLoaded

Prechecked: TypeAlias = GroupEnvelope | LockedEnvelope | OpenEnvelope | PairEnvelope
"""The result of ``Session.precheck``: the envelope as far as it was opened."""


# --- commands -----------------------------------------------------------------------------------


class Say(Struct, frozen=True):
    """Send ``body``; the transition carries the new message's id.

    In a pair, raises LocalProtocolError with a reason to show before both agree to talk.
    """

    body: Body


class Govern(Struct, frozen=True):
    """Write an entry of a governed group's admin log.

    Raises LocalProtocolError for one that would not count.
    """

    act: Act


class TakeAdmission(Struct, frozen=True):
    """Somebody let us into the group again; all of ``admission`` was checked."""

    admission: Admission


class TypeNow(Struct, frozen=True, kw_only=True):
    """Tell the others that we are typing, or have stopped, unless they know."""

    active: bool


class RetrieveKeptBack(Struct, frozen=True):
    """Look up again what Stores had before the oldest time shown: the user now wants more."""


class AskToTalk(Struct, frozen=True):
    """Ask the peer to talk, or accept if they ask; does nothing if we asked lately."""


class AcceptContact(Struct, frozen=True):
    """Accept the peer's request.  After either side declined, ask anew instead."""


class DeclineContact(Struct, frozen=True):
    """Decline to talk with the peer, or stop."""


class WithdrawRequest(Struct, frozen=True):
    """Take back our request.  Raises LocalProtocolError once it is answered."""


class SetBlocked(Struct, frozen=True, kw_only=True):
    """Block or unblock the peer.  Nothing of a blocked peer's is taken in or answered."""

    blocked: bool


class SetLocalName(Struct, frozen=True):
    """The peer's name on this device."""

    name: str


class SetLabel(Struct, frozen=True):
    """The user's name for an open channel."""

    label: str


class ProfileChanged(Struct, frozen=True):
    """Our name or picture changed.  In a pair, the peer learns it once we talk or ask to."""


ContactInput: TypeAlias = (
    AskToTalk
    | AcceptContact
    | DeclineContact
    | WithdrawRequest
    | SetBlocked
    | SetLocalName
    | ProfileChanged
)
"""Inputs of pairs only."""


# --- messages from the network ------------------------------------------------------------------


class MessageArrived(Struct, frozen=True, gc=False):
    """A Waku message that was not prechecked.

    ``stored``: a Store delivered it, so it is not live, whatever its age.  ``if_wanted``: ignore it
    unless this message is still missing.  ``opened``: its envelope, if that was opened before.
    """

    message: WakuMessage
    waku_hash: WakuHash
    stored: bool = False
    if_wanted: MessageId | None = None
    opened: OpenedEnvelope | None = None


class EnvelopeArrived(Struct, frozen=True):
    """A live message that passed ``Session.precheck``."""

    envelope: Prechecked


class HoldsFiles(Struct, frozen=True):
    """We have the blobs of these messages of others as a whole, the newest last: all of them.

    ``let_go``: those that we had until now, and have no more.
    """

    message_ids: tuple[MessageId, ...]
    let_go: tuple[MessageId, ...] = ()


class CopiesAccepted(Struct, frozen=True, kw_only=True):
    """``peers`` relays or service nodes accepted a copy of these own messages.

    0: a copy is on its way, so that later messages can name its hash.
    """

    message_ids: tuple[MessageId, ...]
    peers: int
    waku_hash: WakuHash


StoreInput: TypeAlias = (
    StoreChanged | StoreAnswered | StoresMissing | WindowAnswered | HastenStoreQuery
)
"""Answers of Stores, and whether there are any.  A pair looks up nothing by hash."""

ChannelInput: TypeAlias = ConnectivityChanged | ResendRequested | RetrieveRequested | StoreInput
"""What sessions of groups and open channels pass on to SDS as it is."""

NotOfGroups: TypeAlias = (
    ContactInput | SetLabel | EnvelopeArrived | PairLoaded | GovernedLoaded | TakeAdmission
)
"""What a group takes none of, or only some groups, or only some of these envelopes."""

SessionInput: TypeAlias = (
    Say
    | Govern
    | TakeAdmission
    | TypeNow
    | ResendRequested
    | RetrieveRequested
    | RetrieveLostRequested
    | RetrieveQuoted
    | ShowSetAside
    | ContactInput
    | SetLabel
    | MessageArrived
    | EnvelopeArrived
    | CopiesAccepted
    | HoldsFiles
    | Loaded
    | ConnectivityChanged
    | ClockSet
    | DeadlineReached
    | StoreInput
    | RetrieveKeptBack
)
