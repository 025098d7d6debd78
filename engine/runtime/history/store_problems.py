"""What a query's end, and a Store's note, say against the Store."""

from engine.core.history.queries import End, StoreNote
from engine.core.problems import EntriesRefused, MessagesOmitted, QueryFailed


def problem_of(end: End, reason: str) -> QueryFailed | None:
    """None if the query completed or was cancelled."""
    return None if end in (End.COMPLETE, End.CANCELLED) else QueryFailed(end, reason)


def doubt_of(note: StoreNote) -> MessagesOmitted | EntriesRefused | None:
    """What was wrong with a complete answer; None if nothing was."""
    if note.omitted:
        return MessagesOmitted(note.omitted)
    if note.statistics.refused:
        return EntriesRefused(note.statistics.refused)
    return None
