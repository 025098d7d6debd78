"""Collects the transition of one call on a session, in order."""

from dataclasses import dataclass, field

from engine.core.ids import MessageId
from engine.core.ports import StoreWrite
from engine.delivery.steps import Step
from engine.session.transitions import Note, SessionSend, SessionTransition


@dataclass(slots=True)
class TransitionBuilder:
    """The parts of one transition so far."""

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
