"""Which rows a batch reads again: those it names, and those that quotes of others show."""

from engine.core.ids import MessageId, ParticipantId
from engine.runtime.commit_batch import CommitBatch
from engine.session.transitions import AnnotationAdded, RowAdded, RowChanged, SessionTransition
from tests.persistence.store_examples import annotation


def said(kind: str, target: str) -> AnnotationAdded:
    record = annotation(1, f"{kind} of {target}", target, kind=kind).annotation
    return AnnotationAdded(annotation=record, notify=record.sender_id != ParticipantId("me"))


def test_a_tick_or_a_reaction_changes_no_quote() -> None:
    batch = CommitBatch()
    notes = (
        RowAdded(message_id=MessageId("new"), is_own=False, notify=True),
        RowChanged(message_id=MessageId("ticked")),
        said("reaction", "liked"),
        said("edit", "edited"),
        said("retraction", "gone"),
        said("edit", "edited"),
    )
    batch.add(SessionTransition(notes=notes))
    assert batch.touched() == ["new", "ticked", "liked", "edited", "gone"]
    assert batch.quotable() == ["new", "edited", "gone"]
