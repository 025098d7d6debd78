"""How far a window has come, and what is left of it: durable, for each conversation and purpose.

What was reached is kept as a time and not as a cursor, for a cursor means something to one Store
only, and not for ever.  What is left begins somewhat before it: Stores take in messages that are up
to 20 s late, and messages of one time may lie on both sides of a page's boundary.  Whatever comes
twice by that is known where it is received.  Windows are paged forward here.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Final, TypeAlias

from engine.core.ids import ConversationId, UnixMs
from engine.core.value import value

NS_PER_MS: Final = 1_000_000


class Purpose(StrEnum):
    """Why a conversation asks; in this order they are served."""

    USER = "user"
    """Somebody asked for 7, 30, 365 days or all, and waits."""
    EARLIER = "earlier"
    """Somebody scrolled up past what is local."""
    CONNECT = "connect"
    """What was said while nobody listened."""
    TRAILING = "trailing"
    """What Stores took in while they were paged."""
    DEPENDENCY = "dependency"
    """Around the time of who waits, where no Store finds by hash."""


@value(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one window has come; durable, one per conversation and purpose.

    ``through_ns`` is up to when everything counts as asked for once the window is done: the time
    when it was asked for, for Stores take in what is up to 20 s late.
    """

    conversation_id: ConversationId
    purpose: Purpose
    start_ns: int
    end_ns: int
    through_ns: int
    reached_ns: int


@value(frozen=True, slots=True)
class SaveProgress:
    """After the messages of the same transition are durable, not before."""

    progress: Progress


@value(frozen=True, slots=True)
class DropProgress:
    """The window is done, or not wanted any more."""

    conversation_id: ConversationId
    purpose: Purpose


HistoryWrite: TypeAlias = SaveProgress | DropProgress


def advanced(progress: Progress, reached_ns: int) -> Progress:
    """``reached_ns`` as a query says it; it never leaves the window, nor falls below its start."""
    reached_ns = min(max(reached_ns, progress.start_ns), progress.end_ns)
    return replace(progress, reached_ns=reached_ns)


def rest_ns(progress: Progress, *, overlap_ns: int) -> tuple[int, int]:
    """What is left to ask for, its start and end."""
    return max(progress.reached_ns - overlap_ns, progress.start_ns), progress.end_ns


def is_done(progress: Progress) -> bool:
    return progress.reached_ns >= progress.end_ns


def widened(progress: Progress, other: Progress) -> Progress:
    """Both windows as one; what was reached counts only if it does not begin earlier by that."""
    earlier = other.start_ns < progress.start_ns
    return replace(
        progress,
        start_ns=min(progress.start_ns, other.start_ns),
        end_ns=max(progress.end_ns, other.end_ns),
        through_ns=max(progress.through_ns, other.through_ns),
        reached_ns=other.start_ns if earlier else progress.reached_ns,
    )


def ns_of(at_ms: UnixMs) -> int:
    """Unix nanoseconds, which Waku counts in."""
    return at_ms * NS_PER_MS


def ms_of(at_ns: int) -> UnixMs:
    return UnixMs(at_ns // NS_PER_MS)
