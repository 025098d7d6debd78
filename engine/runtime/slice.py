"""What a runner handled together: durable together, then sent, answered and told, in that order."""

from dataclasses import dataclass, field
from typing import Generic

from engine.core.ports import StoreWrite
from engine.core.types import MessageId
from engine.runtime.inbox import Job, S
from engine.session.types import Note, RowAdded, RowChanged, SessionSend, SessionTransition


@dataclass(slots=True)
class Slice(Generic[S]):
    """Collects transitions in the order in which the session made them."""

    writes: list[StoreWrite] = field(default_factory=list)
    sends: list[SessionSend] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    finished: list[tuple[Job[S], MessageId | None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.writes or self.sends or self.notes or self.finished)

    def add(self, transition: SessionTransition, job: Job[S] | None = None) -> None:
        self.writes.extend(transition.writes)
        self.sends.extend(transition.sends)
        self.notes.extend(transition.notes)
        if job is not None and job.done is not None:
            self.finished.append((job, transition.message_id))

    def touched(self) -> list[MessageId]:
        ids = [n.message_id for n in self.notes if isinstance(n, RowAdded | RowChanged)]
        return list(dict.fromkeys(ids))
