"""Limits the windows that are requested for missing dependencies.

Anybody can name messages that do not exist, and a Store can answer for ever.  So these windows
share a budget of requests and bytes per period, at all Stores, and wait for the next period once it
is spent.  A Store with too many pages for one of them is skipped for a while if there are others.
"""

from collections.abc import Iterable

from engine.core.history.config import HistoryConfig
from engine.core.history.progress import StoreRef
from engine.core.history.queries import Candidate, End, StoreNote
from engine.core.ids import UnixMs


class DependencyBudget:
    def __init__(self, config: HistoryConfig) -> None:
        self._config = config
        self._period_end_ms = UnixMs(0)
        """Of the last period in which anything was spent."""
        self._asks = self._bytes = 0
        """Spent in it."""
        self._resting = dict[StoreRef, UnixMs]()
        """Until when each Store is skipped."""

    def spend(self, now_ms: UnixMs, *, asks: int = 0, size: int = 0) -> None:
        if now_ms >= self._period_end_ms:
            self._period_end_ms = UnixMs(now_ms + self._config.dependency_period_ms)
            self._asks = self._bytes = 0
        self._asks += asks
        self._bytes += size

    def again_ms(self) -> UnixMs:
        """When there is budget again."""
        config = self._config
        is_spent = self._asks >= config.dependency_asks or self._bytes >= config.dependency_bytes
        return self._period_end_ms if is_spent else UnixMs(0)

    def ended(self, notes: Iterable[StoreNote], now_ms: UnixMs) -> None:
        """Note how the query of such a window ended at each Store."""
        self._resting = {each: at_ms for each, at_ms in self._resting.items() if now_ms < at_ms}
        for note in notes:
            if note.end is End.TOO_MANY_PAGES:
                self._resting[note.store] = UnixMs(now_ms + self._config.dependency_rest_ms)

    def stores(self, candidates: tuple[Candidate, ...], now_ms: UnixMs) -> tuple[Candidate, ...]:
        """Those to query: all but the resting ones, or all if all rest."""
        awake = [each for each in candidates if now_ms >= self._resting.get(each.store, 0)]
        return tuple(awake) or candidates
