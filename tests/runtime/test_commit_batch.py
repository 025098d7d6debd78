"""Which rows a batch reads again, those it names and those that quotes show, and what it writes."""

from engine.core.ids import InstanceId, MessageId, ParticipantId
from engine.core.ratchet import KeyBundle, RatchetState, SaveRatchet
from engine.runtime.commit_batch import CommitBatch
from engine.session.transitions import AnnotationAdded, RowAdded, RowChanged, SessionTransition
from tests.persistence.store_examples import PAIR, annotation, clock


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


def test_of_a_ratchet_s_states_the_last_one_is_written_and_everything_else_in_order() -> None:
    keys = KeyBundle(number=1, identity_key=b"", one_time_keys=(), fallback_key=b"")
    first, second = (
        SaveRatchet(
            conversation_id=PAIR,
            state=RatchetState(
                stay=InstanceId(b""), pickle_key=b"", account="", ours=keys, highest=number
            ),
        )
        for number in (1, 2)
    )
    batch = CommitBatch()
    batch.add(SessionTransition(writes=(clock(1), first)))
    batch.add(SessionTransition(writes=(clock(2), second, clock(3))))
    assert batch.lasting_writes() == (clock(1), clock(2), second, clock(3))
