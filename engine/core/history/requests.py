"""Pending requests of one conversation: windows by purpose, and hash lookups.

There is one window request per purpose, which grows when more is requested; only dependencies may
have several.  Requests that the user waits for come first.  Hash lookups are collected into
batches.  Both are bounded.  Stores and results are handled in ``scheduler``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.pages import Place
from engine.core.history.progress import Progress, Purpose, StoreRef, advanced, is_done, widened
from engine.core.ids import UnixMs, WakuHash

_ORDER: Final = {purpose: place for place, purpose in enumerate(Purpose)}
_DURABLE: Final = frozenset({Purpose.USER, Purpose.EARLIER, Purpose.CONNECT})
"""Purposes whose progress is saved.  The others are requested again by whatever caused them."""


@dataclass(slots=True)
class WindowRequest:
    """A window and its progress."""

    progress: Progress
    not_before_ms: UnixMs | None = None
    retries: int = 0
    continuations: int = 0
    periods: int = 0
    """In how many the budget for dependencies ended with it."""
    given_up: bool = False
    asked_from_ns: int = 0
    """How far it had come when the current query started."""
    places: dict[StoreRef, Place] = field(default_factory=dict)
    """Where paging stopped at Stores with more pages than one query may fetch.  A time is not
    enough to continue from: many messages may share one."""

    @property
    def purpose(self) -> Purpose:
        return self.progress.purpose

    @property
    def is_durable(self) -> bool:
        return self.purpose in _DURABLE

    @property
    def is_done(self) -> bool:
        return is_done(self.progress)

    def is_due(self, now_ms: UnixMs, *, longest_ms: int) -> bool:
        """Whether to query now.  A wait longer than ``longest_ms`` means the clock was set back."""
        if self.given_up:
            return False
        return self.not_before_ms is None or not now_ms < self.not_before_ms <= now_ms + longest_ms

    def advance(self, reached_ns: int) -> bool:
        """Record progress; returns whether it changed."""
        before = self.progress
        self.progress = advanced(before, reached_ns)
        return self.progress.reached_ns != before.reached_ns

    def revive(self) -> None:
        self.not_before_ms, self.retries, self.continuations = None, 0, 0
        self.given_up = False


class WindowRequests:
    """The pending windows, sorted by purpose and start."""

    def __init__(self, progress: Iterable[Progress], *, config: HistoryConfig) -> None:
        self._config = config
        self._requests = [WindowRequest(item) for item in progress]
        self._sort()
        self._longest_ms = max(config.longest_retry_ms, config.trailing_ms)

    def find(self, purpose: Purpose) -> WindowRequest | None:
        """The first request for this purpose; of several dependency windows the earliest."""
        return next((request for request in self._requests if request.purpose is purpose), None)

    def add(self, progress: Progress, *, not_before_ms: UnixMs | None = None) -> WindowRequest:
        """Add a window, or widen the request of the same purpose if there is one."""
        request = self.find(progress.purpose)
        if request is None:
            request = WindowRequest(progress, not_before_ms)
            self._requests.append(request)
            self._sort()
            return request
        before = request.progress
        request.progress = widened(before, progress)
        if request.progress.start_ns < before.start_ns:
            request.places = {}
        request.revive()
        request.not_before_ms = not_before_ms
        return request

    def add_dependency(self, progress: Progress, *, running: WindowRequest | None) -> bool:
        """Add a dependency window, or merge it with an overlapping one that is not running.

        Returns False if there are too many; the session that needs it asks again.
        """
        windows = [each for each in self._requests if each.purpose is Purpose.DEPENDENCY]
        for request in windows:
            old = request.progress
            overlaps = progress.start_ns <= old.end_ns and old.start_ns <= progress.end_ns
            if overlaps and request is not running:
                both = widened(old, progress)
                request.progress = replace(both, reached_ns=both.start_ns)
                request.revive()
                return True
        if len(windows) >= self._config.max_dependency_windows:
            return False
        self._requests.append(WindowRequest(progress))
        self._sort()
        return True

    def remove(self, request: WindowRequest) -> None:
        self._requests = [other for other in self._requests if other is not request]

    def revive(self) -> None:
        """Retry everything: the Stores have changed."""
        for request in self._requests:
            if request.given_up or request.retries:
                request.revive()

    def due(self, now_ms: UnixMs, *, dependencies_from_ms: UnixMs) -> WindowRequest | None:
        """The request to query next; none for dependencies before that time."""
        waiting = Purpose.DEPENDENCY if now_ms < dependencies_from_ms else None
        return next(
            (
                request
                for request in self._requests
                if request.purpose is not waiting
                and request.is_due(now_ms, longest_ms=self._longest_ms)
            ),
            None,
        )

    def next_ms(self, *, dependencies_from_ms: UnixMs) -> UnixMs | None:
        """When a request that waits is due."""
        times = [
            max(
                request.not_before_ms or UnixMs(0),
                dependencies_from_ms if request.purpose is Purpose.DEPENDENCY else UnixMs(0),
            )
            for request in self._requests
            if not request.given_up
        ]
        return min((at_ms for at_ms in times if at_ms), default=None)

    def _sort(self) -> None:
        self._requests.sort(
            key=lambda request: (_ORDER[request.purpose], request.progress.start_ns)
        )


def comes_first(purpose: Purpose, other: Purpose) -> bool:
    """Whether a request for ``purpose`` interrupts a query for ``other``: the user waits for it."""
    waits = purpose in (Purpose.USER, Purpose.EARLIER)
    return waits and _ORDER[purpose] < _ORDER[other]


def retry_at(
    request: WindowRequest, *, config: HistoryConfig, random_unit: RandomUnit, now_ms: UnixMs
) -> UnixMs:
    wait_ms = min(config.retry_ms << min(request.retries - 1, 20), config.longest_retry_ms)
    return UnixMs(now_ms + wait_ms - int(wait_ms / 2 * random_unit()))


class HashLookups:
    """Pending hash lookups, in the order in which they were added."""

    def __init__(self, *, config: HistoryConfig) -> None:
        self._config = config
        self._lookups: dict[WakuHash, None] = {}
        self._asked: dict[WakuHash, None] = {}
        self._unanswered: dict[WakuHash, int] = {}
        """How often a Store left it unanswered."""

    def __len__(self) -> int:
        return len(self._lookups)

    def add(self, hashes: Iterable[WakuHash]) -> int:
        """Add lookups.  Returns how many were refused because the queue is full."""
        refused = 0
        for message_hash in hashes:
            if message_hash in self._lookups or message_hash in self._asked:
                continue
            if len(self._lookups) >= self._config.max_lookups:
                refused += 1
            else:
                self._lookups[message_hash] = None
        return refused

    def take(self) -> tuple[WakuHash, ...]:
        """Return the next batch; it counts as running until ``answered``."""
        batch = tuple(self._lookups)[: self._config.lookup_batch]
        self._asked = dict.fromkeys(batch)
        for item in batch:
            del self._lookups[item]
        return batch

    def answered(self) -> set[WakuHash]:
        """End the running batch and return its hashes."""
        asked, self._asked = set(self._asked), {}
        return asked

    def unanswered(self, hashes: Iterable[WakuHash]) -> None:
        """Note that a Store left these unanswered once more."""
        for item in hashes:
            self._unanswered[item] = self._unanswered.pop(item, 0) + 1
        while len(self._unanswered) > self._config.max_lookups:
            del self._unanswered[next(iter(self._unanswered))]

    def waited_enough(self, message_hash: WakuHash) -> bool:
        """Whether Stores left it unanswered so often that the others decide."""
        return self._unanswered.get(message_hash, 0) >= self._config.unanswered_rounds

    def found(self, hashes: Iterable[WakuHash]) -> None:
        for item in hashes:
            self._unanswered.pop(item, None)
