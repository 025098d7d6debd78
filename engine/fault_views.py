"""The fault bench as the window sees it: what is done on purpose to which conversation.

``Faults`` is a facet of ``engine.api.ChatEngine``.  A tester makes the network of this device bad,
and sees how the conversations get over it.  Nothing of it is kept: after a restart there are no
faults.  What it did is counted here and stands in the delivery log as ``fault``.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from engine.core.fault_bench import FaultRule, Preset
from engine.core.ids import ConversationId, UnixMs


class FaultView(Struct, frozen=True, kw_only=True):
    """``conversation_id`` None: all conversations."""

    conversation_id: ConversationId | None
    rule: FaultRule
    """What is done now."""
    preset: Preset | None = None
    ends_ms: UnixMs | None = None
    """By steady time, as ``FaultsView.now_ms``; None: once it is stopped."""


class FaultsView(Struct, frozen=True, kw_only=True):
    faults: tuple[FaultView, ...] = ()
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
        return bool(self.faults) or self.skew_ms != 0

    def about(self, conversation_id: ConversationId) -> FaultView | None:
        """What is done to this conversation: its own fault, or else everybody's."""
        own = (each for each in self.faults if each.conversation_id == conversation_id)
        all_ = (each for each in self.faults if each.conversation_id is None)
        return next(own, None) or next(all_, None)


class FaultsChanged(Struct, frozen=True, kw_only=True):
    """Faults were switched on or off, or ended by themselves."""

    faults: FaultsView


class Faults(Protocol):
    """Faults made on purpose.  ``engine.runtime.fault_bench`` implements it.

    A conversation with a fault of its own does not share in those of all conversations.
    """

    def view(self) -> FaultsView: ...

    def set(self, conversation_id: ConversationId | None, rule: FaultRule) -> None:
        """From now on and until it is stopped; None: for all conversations.

        Raises CommandError for a conversation that is not there, or if too many have faults.
        """

    def start(self, conversation_id: ConversationId | None, preset: Preset) -> None:
        """Begin a preset, which ends by itself.  Raises CommandError as ``set``."""

    def stop(self, conversation_id: ConversationId | None) -> None:
        """What is delayed or held goes on at once.  Does nothing if there is no such fault."""

    def skew(self, skew_ms: int) -> None:
        """Put our clock ahead by so much, or back.  Raises InputError beyond a day."""

    def stop_all(self) -> None:
        """No faults, and the clock as it was."""


class HasFaults(Protocol):
    """The part of ``engine.api.ChatEngine`` that is about them."""

    @property
    def faults(self) -> Faults: ...
