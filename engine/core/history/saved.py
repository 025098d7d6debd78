"""What a profile keeps of history besides messages: which Stores, how far each asking has come.

``Progress`` is of windows that are not done yet.  ``since_ms`` is how far back somebody ever wanted
to see a conversation, ``through_ms`` up to when all was asked for, ``covered`` the same for single
Stores that come and go, such as those of the local network.  Nothing here knows a disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never

from engine.core.history.progress import DropProgress, Progress, SaveProgress
from engine.core.history.queries import StoreRef
from engine.core.ids import UnixMs

MAX_STORES: Final = 32
"""In the settings of one profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """A Store that the user named, and what all its answers came to."""

    store: StoreRef
    place: int
    """Those with smaller ones are asked first; only the order matters."""
    enabled: bool = True
    queries: int = 0
    complete: int = 0
    messages: int = 0
    new: int = 0
    omitted: int = 0
    asked_ms: UnixMs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryKept:
    """Of one conversation."""

    progress: tuple[Progress, ...] = ()
    since_ms: UnixMs | None = None
    through_ms: UnixMs | None = None
    covered: Mapping[StoreRef, UnixMs] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReach:
    """Replaces both; None stays as it was."""

    since_ms: UnixMs | None = None
    through_ms: UnixMs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCovered:
    """All that the Store has up to then was handed in."""

    store: StoreRef
    through_ms: UnixMs


KeptWrite: TypeAlias = SaveProgress | DropProgress | SaveReach | SaveCovered
"""The conversation of the first two is that of the write they are part of."""


def with_write(kept: HistoryKept, write: KeptWrite) -> HistoryKept:
    """As it is once ``write`` is durable."""
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
