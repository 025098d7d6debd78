"""Why a query gave up on a Store, in words for the settings."""

from typing import Final

from engine.core.history.queries import End, StoreNote

_REASONS: Final = {
    "unreachable": "it cannot be reached",
    "too_many_requests": "it says that it is asked too often",
    "unavailable": "it says that it is out of service",
    "protocol_unsupported": "it keeps no messages for others",
    "no_store": "there is no Store to ask",
    "store_hash_mismatch": "it gave a message that does not bear its hash",
    "store_entry_unasked": "it gave messages that were not asked for",
    "store_entry_without_data": "it gave messages without content",
    "store_entry_outside_window": "it gave messages of another time",
    "store_cursor_stuck": "its pages do not go on",
    "store_cursor_repeated": "its pages begin again and again",
    "store_cursor_malformed": "its pages cannot be followed",
    "store_cursor_unknown": "it forgets where its pages were",
    "bad_request": "it refuses to answer",
    "bad_response": "it refuses to answer",
    "status_unknown": "it answers with an unknown status",
    "frame_oversized": "its answer is larger than allowed",
}
_ENDS: Final = {
    End.NOTHING_NEW: "its pages bring nothing new and never end",
    End.TOO_MANY_PAGES: "it has more pages than are read at once",
    End.TIMEOUT: "it does not answer in time",
    End.CANNOT: "it cannot look for single messages",
}


def problem_of(end: End, reason: str) -> str:
    """Empty if the query completed or was cancelled."""
    if end in (End.COMPLETE, End.CANCELLED):
        return ""
    if end in _ENDS and not reason:
        return _ENDS[end]
    return _REASONS.get(reason, f"its answer cannot be read ({reason})")


def end_words(end: End, reason: str) -> str:
    """Why a window is given up.  The reason is that of the Store that came furthest."""
    return f"no Store answered to the end; of the one that came furthest: {problem_of(end, reason)}"


def doubt_of(note: StoreNote) -> str:
    """What was wrong with a complete answer; empty if nothing was."""
    if note.omitted:
        what = "1 message" if note.omitted == 1 else f"{note.omitted} messages"
        return f"it lacked {what} that others had"
    if note.statistics.refused:
        refused = note.statistics.refused
        what = "1 entry" if refused == 1 else f"{refused} entries"
        return f"{what} of its answer could not be used"
    return ""
