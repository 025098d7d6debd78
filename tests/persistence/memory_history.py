"""One conversation's progress with Stores, in memory, under the same rules as the tables."""

from typing import assert_never

from engine.core.history.progress import (
    DropProgress,
    HistoryKept,
    KeptWrite,
    Progress,
    Purpose,
    SaveCovered,
    SaveProgress,
    SaveReach,
    StoreRef,
)
from engine.core.ids import UnixMs
from engine.persistence.rules import MAX_COVERED_STORES


class MemoryHistory:
    def __init__(self) -> None:
        self._progress: dict[Purpose, Progress] = {}
        self._since_ms: int | None = None
        self._through_ms: int | None = None
        self._covered: dict[str, int] = {}

    def apply(self, write: KeptWrite) -> None:
        match write:
            case SaveProgress(progress=progress):
                self._progress[progress.purpose] = progress
            case DropProgress(purpose=purpose):
                self._progress.pop(purpose, None)
            case SaveReach(since_ms=since_ms, through_ms=through_ms):
                self._since_ms = self._since_ms if since_ms is None else since_ms
                self._through_ms = self._through_ms if through_ms is None else through_ms
            case SaveCovered(store=store, through_ms=through_ms):
                self._covered[store] = through_ms
                latest = sorted(self._covered, key=lambda one: (-self._covered[one], one))
                for forgotten in latest[MAX_COVERED_STORES:]:
                    del self._covered[forgotten]
            case _:
                assert_never(write)

    def kept(self) -> HistoryKept:
        return HistoryKept(
            progress=tuple(self._progress[purpose] for purpose in sorted(self._progress)),
            since_ms=None if self._since_ms is None else UnixMs(self._since_ms),
            through_ms=None if self._through_ms is None else UnixMs(self._through_ms),
            covered={StoreRef(one): UnixMs(at_ms) for one, at_ms in sorted(self._covered.items())},
        )
