"""When to ask Stores: for named dependencies, and for everything sent while we were away.

Dependencies are retrieved (Periodic Incoming Buffer Sweep) on js-waku's schedule, the Store query
interval, but with doubling waits for what Stores do not have.  Those without a usable hint, or that
Stores do not find by it, are searched for by time (``time_search``).  js-waku's query on connect
starts from the last one that succeeded.  Which Store is asked, how, and what it answers is handled
elsewhere.
"""

from collections.abc import Iterable
from typing import Final

from engine.core.ids import MessageId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.missing import MissingTable
from engine.core.sds.step import Step
from engine.core.sds.time_search import TimeSearch
from engine.core.sds.vocabulary import AskStore, MissingEntry, SaveStoreQueried, StoreWindow
from engine.core.waku_store import HASH_BYTES

_MAX_ONCE: Final = 256


class StoreQueries:
    """The queries of one channel."""

    def __init__(
        self, missing: MissingTable, *, config: SdsConfig, queried_ms: UnixMs | None, online: bool
    ) -> None:
        self._missing = missing
        self._config = config
        self._longest_ms = max(config.store_query_longest_ms, config.store_query_interval_ms)
        self._waits: dict[MessageId, tuple[UnixMs, int]] = {}
        """Requested dependencies: when to ask again, and the wait after that."""
        self._once: dict[MessageId, MissingEntry] = {}
        """Lost dependencies that the user wants, until Stores can be asked."""
        self.by_time = TimeSearch(missing, config)
        self._at_ms: UnixMs | None = None
        """When to ask for dependencies next."""
        self._online = online
        self._reachable = False
        self._was_away = True
        self.queried_ms = queried_ms
        """Everything up to then was queried successfully, by the clock of that time."""

    def set_online(self, online: bool, step: Step) -> None:
        self._online = online
        self._was_away = self._was_away or not online
        self._connect(step)

    def set_reachable(self, reachable: bool, step: Step) -> None:
        """Whether any Store can be asked."""
        if reachable != self._reachable:
            self._reachable = reachable
            self._connect(step)
            self.ask_once((), step)

    def answered(self, through_ms: UnixMs, step: Step) -> None:
        """A query for everything up to ``through_ms`` succeeded.

        That may be before the known time, which then came from a clock that was ahead.
        """
        self._was_away = False
        if self.queried_ms != through_ms:
            self.queried_ms = through_ms
            step.writes.append(SaveStoreQueried(store_queried_ms=through_ms))

    def gap_changed(self, now_ms: UnixMs) -> None:
        """If more is missing, ask at the next interval, unless that is coming anyway."""
        at_ms = UnixMs(now_ms + self._config.store_query_interval_ms)
        if len(self._missing) and (self._at_ms is None or self._at_ms > at_ms):
            self._at_ms = at_ms

    def ask_now(self, now_ms: UnixMs) -> None:
        """Ask for everything missing, however often that failed."""
        self._waits.clear()
        self.by_time.begin_anew(now_ms)
        self._at_ms = now_ms if len(self._missing) else None

    def hasten(self, step: Step) -> None:
        """Ask now, but not for what Stores recently said that they do not have."""
        self._at_ms = step.now_ms if len(self._missing) else None
        self.sweep(step)

    def ask_once(self, entries: Iterable[MissingEntry], step: Step) -> None:
        """Ask for lost dependencies; nothing waits for the result."""
        self._once |= {entry.entry.message_id: entry for entry in entries}
        while len(self._once) > _MAX_ONCE:
            del self._once[next(iter(self._once))]
        if self._reachable and self._once:
            once, self._once = list(self._once.values()), {}
            self._ask(once, self.by_time.widest(once, step.now_ms), step)

    def search(
        self, message_ids: Iterable[MessageId], step: Step, *, decided: bool
    ) -> set[MessageId]:
        """Stores do not find these by their hints; returns those that are searched for by time."""
        begin, now_ms = self.by_time.begin, step.now_ms
        open_ = {each for each in message_ids if begin(each, now_ms, decided=decided)}
        if self._reachable:
            self._ask((), self.by_time.take_due(now_ms), step)
        return open_

    def next_deadline(self) -> UnixMs | None:
        if not self._reachable:
            return None
        times = (self._at_ms, self.by_time.next_deadline())
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def sweep(self, step: Step) -> None:
        """Ask for what is due.  A time too far ahead is from a clock that was set back since."""
        if not self._reachable:
            return
        at_ms, now_ms = self._at_ms, step.now_ms
        due = [] if at_ms is None or not self._is_due(at_ms, now_ms) else self._take_due(now_ms)
        self._ask(due, self.by_time.take_due(now_ms), step)

    def _ask(
        self, due: Iterable[MissingEntry], windows: tuple[StoreWindow, ...], step: Step
    ) -> None:
        missing = tuple(each.entry for each in due if _is_usable(each.entry.retrieval_hint))
        if missing or windows:
            step.sends.append(AskStore(missing=missing, windows=windows))

    def _is_due(self, at_ms: UnixMs, now_ms: UnixMs) -> bool:
        return not now_ms < at_ms <= now_ms + self._longest_ms

    def _take_due(self, now_ms: UnixMs) -> list[MissingEntry]:
        waits: dict[MessageId, tuple[UnixMs, int]] = {}
        due: list[MissingEntry] = []
        for missing in self._missing.wanted():
            entry = missing.entry
            if not _is_usable(entry.retrieval_hint):
                self.by_time.begin(entry.message_id, now_ms, decided=True)
                continue
            first = now_ms, self._config.store_query_interval_ms
            at_ms, wait_ms = self._waits.get(entry.message_id, first)
            if self._is_due(at_ms, now_ms):
                due.append(missing)
                at_ms, wait_ms = UnixMs(now_ms + wait_ms), min(2 * wait_ms, self._longest_ms)
            waits[entry.message_id] = at_ms, wait_ms
        self._waits = waits  # What has arrived is forgotten.
        self._at_ms = min((at_ms for at_ms, _ in waits.values()), default=None)
        return due

    def _connect(self, step: Step) -> None:
        """Ask for everything sent while we were away, and now for known missing dependencies."""
        if not self._online or not self._reachable:
            return
        self.ask_now(step.now_ms)
        since_ms = self._since(step.now_ms)
        if since_ms is not None:
            step.sends.append(AskStore(since_ms=since_ms))

    def _since(self, now_ms: UnixMs) -> UnixMs | None:
        """The time from which to ask for everything; None if nothing can have been missed."""
        config, queried_ms = self._config, self.queried_ms
        earliest_ms = UnixMs(max(now_ms - config.query_on_connect_longest_ms, 0))
        if not config.query_on_connect:
            return None
        if queried_ms is None or queried_ms > now_ms:  # The clock was set back, so it is useless.
            return earliest_ms
        if not self._was_away and now_ms - queried_ms <= config.query_on_connect_after_ms:
            return None
        return max(queried_ms, earliest_ms)


def _is_usable(retrieval_hint: bytes | None) -> bool:
    """Whether Stores can be asked by it: a Waku message hash."""
    return retrieval_hint is not None and len(retrieval_hint) == HASH_BYTES
