"""One step of the machine while it is being taken: the writes, sends and events so far.

Every part of the channel adds to the same step, so that everything that one input causes becomes
durable in one transaction.  Messages whose holders changed, and the gap, are noted here and turned
into one event each at the end, however often they changed on the way.
"""

from dataclasses import dataclass, field

from engine.core.sds.types import Event, Send, Transition, Write
from engine.core.types import MessageId, UnixMs


@dataclass(slots=True)
class Step:
    """Collects what one input causes."""

    now_ms: UnixMs
    writes: list[Write] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    holders_changed: dict[MessageId, None] = field(default_factory=dict)
    gap_changed: bool = False

    def transition(self) -> Transition:
        return Transition(
            writes=tuple(self.writes), sends=tuple(self.sends), events=tuple(self.events)
        )
