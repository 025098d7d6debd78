"""What a profile saves of history besides messages: Stores, and how far queries have come.

``progress`` has the windows that are not done yet.  ``since_ms`` is how far back the conversation
was ever requested, and ``through_ms`` up to when it was fetched.  ``covered`` is ``through_ms`` for
single Stores, which matters for those that come and go, such as on a local network.  Disk access is
in ``engine.persistence``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never

from engine.core.history.progress import DropProgress, Progress, SaveProgress
from engine.core.history.queries import StoreRef
from engine.core.ids import UnixMs

MAX_STORES: Final = 32
"""Maximum per profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryKept:
    """The saved history state of one conversation."""

    progress: tuple[Progress, ...] = ()
    since_ms: UnixMs | None = None
    through_ms: UnixMs | None = None
    covered: Mapping[StoreRef, UnixMs] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveReach:
    """Replaces these values; None leaves a value unchanged."""

    since_ms: UnixMs | None = None
    through_ms: UnixMs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCovered:
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
