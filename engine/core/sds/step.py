"""The writes, sends and events of one step of the machine, while it is taken.

All parts of the channel add to the same step, so everything that one input causes becomes durable
in one transaction.  Messages whose holders changed, and the gap, are noted and become one event
each at the end, however often they changed.  The step itself is returned as the ``Transition``.
"""

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.vocabulary import Event, Send, Transition, Write


class Step(Transition):
    """Collects what one input causes."""

    __slots__ = ("gap_changed", "held_changed", "holders_changed", "now_ms", "set_aside_changed")

    writes: list[Write]
    sends: list[Send]
    events: list[Event]

    def __init__(self, now_ms: UnixMs) -> None:
        self.now_ms = now_ms
        self.writes = []
        self.sends = []
        self.events = []
        self.holders_changed: dict[MessageId, None] = {}
        self.gap_changed = False
        self.held_changed = False
        self.set_aside_changed = False
