"""Collects what one call on a session gives back, in order."""

from dataclasses import dataclass, field

from engine.core.ids import MessageId
from engine.core.ports import StoreWrite
from engine.delivery.steps import Step
from engine.session.transitions import Note, SessionSend, SessionTransition


@dataclass(slots=True)
class TransitionBuilder:
    """Collects what one call gives back."""

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
