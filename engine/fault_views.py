"""The fault bench as the window sees it: what is done on purpose to which conversation.

``Faults`` is a facet of ``engine.api.ChatEngine``.  A tester makes the network of this device bad,
and sees how the conversations get over it.  Nothing of it is kept: after a restart there are no
faults.  What it did is counted here and stands in the delivery log as ``fault``.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from engine.core.fault_bench import EVERYTHING, FaultRule, FaultTarget, Preset
from engine.core.ids import ConversationId, UnixMs


class FaultView(Struct, frozen=True, kw_only=True):
    target: FaultTarget
    rule: FaultRule
    """What is done now."""
    preset: Preset | None = None
    ends_ms: UnixMs | None = None
    """By steady time, as ``FaultsView.now_ms``; None: once it is stopped."""


class CutOffView(Struct, frozen=True, kw_only=True):
    """A peer with which this device has no connection, on purpose."""

    peer_id: str
    ends_ms: UnixMs | None = None
    """As of ``FaultView``."""


class FaultsView(Struct, frozen=True, kw_only=True):
    faults: tuple[FaultView, ...] = ()
    cut_off: tuple[CutOffView, ...] = ()
    skew_ms: int = 0
    """So much our clock is put ahead on purpose."""
    counts: Mapping[str, int] = {}
    """Of the copies to which something was done, since the first fault was switched on."""
    waiting: int = 0
    """Copies that are delayed or held."""
    waiting_bytes: int = 0
    now_ms: UnixMs = UnixMs(0)

    @property
    def is_on(self) -> bool:
        return bool(self.faults or self.cut_off) or self.skew_ms != 0

    def about(self, conversation_id: ConversationId) -> tuple[FaultView, ...]:
        """What is done to this conversation: its own fault, or else everybody's, and to members."""
        whole = {each.target: each for each in self.faults}
        own = whole.get(FaultTarget(conversation_id=conversation_id), whole.get(EVERYTHING))
        members = tuple(
            each
            for each in self.faults
            if each.target.participant_id and each.target.conversation_id == conversation_id
        )
        return members if own is None else (own, *members)

    @property
    def of_peers(self) -> tuple[FaultView, ...]:
        """What is done to single peers, whatever the conversation."""
        return tuple(each for each in self.faults if each.target.peer_id is not None)


class FaultsChanged(Struct, frozen=True, kw_only=True):
    """Faults were switched on or off, or ended by themselves."""

    faults: FaultsView


class Faults(Protocol):
    """Faults made on purpose.  ``engine.runtime.fault_bench`` implements it.

    A conversation with a fault of its own does not share in those of all conversations, and what a
    member with one sends not in that of the conversation.  A fault of a peer comes on top of those
    of conversations, as a bad last mile would.
    """

    def view(self) -> FaultsView: ...

    def set(self, target: FaultTarget, rule: FaultRule) -> None:
        """From now on and until it is stopped.

        Raises CommandError for what is not there, or if there are too many faults.
        """

    def start(self, target: FaultTarget, preset: Preset) -> None:
        """Begin a preset, which ends by itself.  Raises CommandError as ``set``."""

    def stop(self, target: FaultTarget) -> None:
        """What is delayed or held goes on at once.  Does nothing if there is no such fault."""

    def cut_off(self, peer_id: str, for_ms: int | None = None) -> None:
        """Have no connection with this peer; None: until it is let back.

        Raises CommandError if too many are cut off.
        """

    def let_back(self, peer_id: str) -> None:
        """It may connect again, and is dialled soon if it is one to be kept."""

    def skew(self, skew_ms: int) -> None:
        """Put our clock ahead by so much, or back.  Raises InputError beyond a day."""

    def stop_all(self) -> None:
        """No faults, all peers let back, and the clock as it was."""


class HasFaults(Protocol):
    """The part of ``engine.api.ChatEngine`` that is about them."""

    @property
    def faults(self) -> Faults: ...
