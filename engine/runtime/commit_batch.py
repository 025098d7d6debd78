"""What a runner handled together: durable together, then sent, answered and told, in that order."""

from dataclasses import dataclass, field

from engine.core.ids import MessageId
from engine.core.ports import StoreWrite
from engine.delivery.steps import Step
from engine.runtime.job_queue import Job
from engine.session.transitions import Note, RowAdded, RowChanged, SessionSend, SessionTransition


@dataclass(slots=True)
class CommitBatch:
    """Collects transitions in the order in which the session made them.

    Their steps only if they are recorded.
    """

    recorded: bool = False

    writes: list[StoreWrite] = field(default_factory=list)
    sends: list[SessionSend] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    finished: list[tuple[Job, MessageId | None]] = field(default_factory=list)
    fed: int = 0
    """How many of them came from Stores."""
    arrived: int = 0
    """Messages to read among these."""

    def __bool__(self) -> bool:
        return bool(self.writes or self.sends or self.notes or self.finished or self.steps)

    def add(self, transition: SessionTransition, job: Job | None = None) -> None:
        self.writes.extend(transition.writes)
        self.sends.extend(transition.sends)
        if job is not None and job.is_fed:
            self.fed += 1
            self.notes.extend(map(self._quiet, transition.notes))
        else:
            self.notes.extend(transition.notes)
        if self.recorded:
            self.steps.extend(transition.steps)
        if job is not None and job.done is not None:
            self.finished.append((job, transition.message_id))

    def _quiet(self, note: Note) -> Note:
        """What was said some time ago is nothing to ring a bell for."""
        if isinstance(note, RowAdded) and note.notify:
            self.arrived += 1
            return RowAdded(message_id=note.message_id, is_own=note.is_own, notify=False)
        return note

    def touched(self) -> list[MessageId]:
        ids = [n.message_id for n in self.notes if isinstance(n, RowAdded | RowChanged)]
        return list(dict.fromkeys(ids))
