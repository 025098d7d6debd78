"""What a profile saves of history besides messages: progress of windows, and Stores.

There is one window per conversation and purpose.  Its progress is a time and not a cursor, because
a cursor is valid at one Store only and not forever.  A resumed window starts somewhat before that
time: Stores accept messages that are up to 20 s late, and messages of one time may span a page
boundary.  The session recognises the repeats.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NewType, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from engine.core.ids import ConversationId, UnixMs

NS_PER_MS: Final = 1_000_000
MAX_STORES: Final = 32
"""Maximum per profile."""

StoreRef = NewType("StoreRef", str)
"""A Store's multiaddr as written in the settings."""


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
    """Where a missing message must lie that no Store finds by its hash."""


class Progress(Struct, frozen=True, kw_only=True):
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


class SaveProgress(Struct, frozen=True):
    """Save only after the messages of the same transition are durable."""

    progress: Progress


class DropProgress(Struct, frozen=True):
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


# --- saved state --------------------------------------------------------------------------------


class StoreRecord(Struct, frozen=True, kw_only=True):
    """A Store that the user named, with statistics of its answers."""

    store: StoreRef
    place: int
    """Stores with smaller places are asked first; only the order matters."""
    enabled: bool = True
    queries: int = 0
    complete: int = 0
    messages: int = 0
    new: int = 0
    omitted: int = 0
    asked_ms: UnixMs | None = None


class HistoryKept(Struct, frozen=True, kw_only=True):
    """The saved history state of one conversation."""

    progress: tuple[Progress, ...] = ()
    """The windows that are not done yet."""
    since_ms: UnixMs | None = None
    """How far back the conversation was ever requested."""
    through_ms: UnixMs | None = None
    """Up to when it was fetched."""
    covered: Mapping[StoreRef, UnixMs] = field(default_factory=dict)
    """``through_ms`` for single Stores, for those that come and go, as on a local network."""


class SaveReach(Struct, frozen=True, kw_only=True):
    """Replaces these values; None leaves a value unchanged."""

    since_ms: UnixMs | None = None
    through_ms: UnixMs | None = None


class SaveCovered(Struct, frozen=True, kw_only=True):
    """Everything the Store has up to then was delivered."""

    store: StoreRef
    through_ms: UnixMs


KeptWrite: TypeAlias = SaveProgress | DropProgress | SaveReach | SaveCovered
"""The first two apply to the conversation of the ``ApplyHistory`` that contains them."""


def with_write(kept: HistoryKept, write: KeptWrite) -> HistoryKept:
    """The state after ``write``."""
    match write:
        case SaveProgress(progress=progress):
            others = tuple(one for one in kept.progress if one.purpose is not progress.purpose)
            return replace(kept, progress=(*others, progress))
        case DropProgress(purpose=purpose):
            left = tuple(one for one in kept.progress if one.purpose is not purpose)
            return replace(kept, progress=left)
        case SaveReach(since_ms=since_ms, through_ms=through_ms):
            return replace(
                kept,
                since_ms=kept.since_ms if since_ms is None else since_ms,
                through_ms=kept.through_ms if through_ms is None else through_ms,
            )
        case SaveCovered(store=store, through_ms=at_ms):
            return replace(kept, covered={**kept.covered, store: at_ms})
        case _:
            assert_never(write)
