"""Durable progress of windows, one per conversation and purpose.

Progress is a time and not a cursor, because a cursor is valid at one Store only and not forever.  A
resumed window starts somewhat before that time: Stores accept messages that are up to 20 s late,
and messages of one time may span a page boundary.  The session recognises the repeats.  Windows
with progress are paged forward.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Final, TypeAlias

from engine.core.ids import ConversationId, UnixMs
from engine.core.value import value

NS_PER_MS: Final = 1_000_000


class Purpose(StrEnum):
    """Why a window is requested, in the order of priority."""

    USER = "user"
    """The user asked for 7, 30, 365 days or all, and waits."""
    EARLIER = "earlier"
    """The user scrolled up past the oldest local message."""
    CONNECT = "connect"
    """Messages sent while this device was offline."""
    TRAILING = "trailing"
    """Messages that Stores received during paging."""
    DEPENDENCY = "dependency"
    """Around the time of a waiting message, if no Store supports hash lookups."""


@value(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one window has come.

    ``through_ns`` is the time up to which everything counts as fetched once the window is done.  It
    is the time of the request, because Stores accept messages that are up to 20 s late.
    """

    conversation_id: ConversationId
    purpose: Purpose
    start_ns: int
    end_ns: int
    through_ns: int
    reached_ns: int


@value(frozen=True, slots=True)
class SaveProgress:
    """Save only after the messages of the same transition are durable."""

    progress: Progress


@value(frozen=True, slots=True)
class DropProgress:
    """The window is done or no longer requested."""

    conversation_id: ConversationId
    purpose: Purpose


HistoryWrite: TypeAlias = SaveProgress | DropProgress


def advanced(progress: Progress, reached_ns: int) -> Progress:
    """Set ``reached_ns``, limited to the window."""
    reached_ns = min(max(reached_ns, progress.start_ns), progress.end_ns)
    return replace(progress, reached_ns=reached_ns)


def rest_ns(progress: Progress, *, overlap_ns: int) -> tuple[int, int]:
    """Start and end of what is left to fetch."""
    return max(progress.reached_ns - overlap_ns, progress.start_ns), progress.end_ns


def is_done(progress: Progress) -> bool:
    return progress.reached_ns >= progress.end_ns


def widened(progress: Progress, other: Progress) -> Progress:
    """The union of both windows.  Progress is reset if the start moves to an earlier time."""
    earlier = other.start_ns < progress.start_ns
    return replace(
        progress,
        start_ns=min(progress.start_ns, other.start_ns),
        end_ns=max(progress.end_ns, other.end_ns),
        through_ns=max(progress.through_ns, other.through_ns),
        reached_ns=other.start_ns if earlier else progress.reached_ns,
    )


def ns_of(at_ms: UnixMs) -> int:
    """Unix time in nanoseconds, as Waku counts."""
    return at_ms * NS_PER_MS


def ms_of(at_ns: int) -> UnixMs:
    return UnixMs(at_ns // NS_PER_MS)
