"""A batch of transitions that are made durable together, then sent, answered and published.

What is published of it is read in the same transaction, once it is written.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard

from engine.core.ids import ConversationId, MessageId, Position
from engine.core.ports import ProfileStore, StoreWrite
from engine.core.ratchet import SaveRatchet
from engine.core.stored import ConversationSummary, StoredMessage
from engine.delivery.steps import Step
from engine.persistence.rules import MAX_QUOTING
from engine.runtime.job_queue import Job
from engine.session.rows import REACTION
from engine.session.transitions import (
    AnnotationAdded,
    Note,
    RowAdded,
    RowChanged,
    SessionSend,
    SessionTransition,
)


@dataclass(slots=True)
class CommitBatch:
    """Collects transitions in the order in which the session made them.

    It collects their steps only if ``recorded`` is set.
    """

    recorded: bool = False

    writes: list[StoreWrite] = field(default_factory=list)
    sends: list[SessionSend] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    finished: list[tuple[Job, MessageId | None]] = field(default_factory=list)
    fed: int = 0
    """How many jobs came from Stores."""
    arrived: int = 0
    """Readable messages among those."""

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
        """Turn off notifications for old messages."""
        if isinstance(note, RowAdded) and note.notify:
            self.arrived += 1
            return RowAdded(message_id=note.message_id, is_own=note.is_own, notify=False)
        if isinstance(note, AnnotationAdded):
            return AnnotationAdded(annotation=note.annotation, notify=False)
        return note

    def lasting_writes(self) -> tuple[StoreWrite, ...]:
        """Of a ratchet's states the last one alone: what comes from a Store has one each."""
        states = [at for at, write in enumerate(self.writes) if isinstance(write, SaveRatchet)]
        superseded = frozenset(states[:-1])
        return tuple(write for at, write in enumerate(self.writes) if at not in superseded)

    def ringing(self) -> list[Position]:
        """Positions of the reactions that are worth a notification, if they count."""
        return [note.annotation.position for note in self.notes if _rings(note)]

    def hush(self, counting: Collection[MessageId]) -> None:
        """Turn off notifications for reactions that do not count."""
        for index, note in enumerate(self.notes):
            if _rings(note) and note.annotation.position.message_id not in counting:
                self.notes[index] = self._quiet(note)

    def quotable(self) -> list[MessageId]:
        """Ids of the rows of which a quote shows something else now."""
        ids: dict[MessageId, None] = {}
        for note in self.notes:
            if isinstance(note, RowAdded):
                ids[note.message_id] = None
            elif isinstance(note, AnnotationAdded) and note.annotation.kind != REACTION:
                ids[note.annotation.target_id] = None
        return list(ids)

    def touched(self) -> list[MessageId]:
        """Ids of the rows that were added or changed, also by what was said about them."""
        ids: dict[MessageId, None] = {}
        for note in self.notes:
            if isinstance(note, RowAdded | RowChanged):
                ids[note.message_id] = None
            elif isinstance(note, AnnotationAdded):
                ids[note.annotation.target_id] = None
        return list(ids)


class SavedBatch(NamedTuple):
    """What was read after a batch was written."""

    rows: Mapping[MessageId, StoredMessage]
    summary: ConversationSummary
    counting: frozenset[MessageId]
    """Reactions of the batch that count."""
    is_crowded: bool
    """More rows than were read may quote what changed."""


def read_back(
    store: ProfileStore,
    conversation_id: ConversationId,
    batch: CommitBatch,
    touched: Sequence[MessageId],
) -> SavedBatch:
    """On the storage thread, before the commit."""
    quoting = store.quoting(conversation_id, batch.quotable())
    also = store.targets(conversation_id, touched) + quoting
    return SavedBatch(
        rows=store.messages(conversation_id, list(dict.fromkeys([*touched, *also]))),
        summary=store.summary(conversation_id),
        counting=store.counting(conversation_id, batch.ringing()),
        is_crowded=len(quoting) >= MAX_QUOTING,
    )


def _rings(note: Note) -> TypeGuard[AnnotationAdded]:
    if not isinstance(note, AnnotationAdded):
        return False
    return note.notify and note.annotation.kind == REACTION and not note.annotation.removed
