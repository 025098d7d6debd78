"""What one conversation still wants of Stores: windows by purpose, and messages by hash.

Windows of one purpose are one wish, which grows; somebody who waits comes first.  Look-ups are
collected into batches.  Both are bounded.  Who is asked and what comes of it is not known here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.inputs import HashLookup
from engine.core.history.pages import Place
from engine.core.history.progress import Progress, Purpose, advanced, is_done, widened
from engine.core.history.queries import StoreRef
from engine.core.ids import UnixMs, WakuHash

_ORDER: Final = {purpose: place for place, purpose in enumerate(Purpose)}
_DURABLE: Final = frozenset({Purpose.USER, Purpose.EARLIER, Purpose.CONNECT})
"""The others are wished for again by whatever caused them."""


@dataclass(slots=True)
class WindowRequest:
    """A window, as far as it has come."""

    progress: Progress
    not_before_ms: UnixMs | None = None
    retries: int = 0
    continuations: int = 0
    given_up: bool = False
    asked_from_ns: int = 0
    """What was reached when it was asked for last."""
    places: dict[StoreRef, Place] = field(default_factory=dict)
    """Where Stores were left that had more pages than one query may have: of one time there may be
    more messages than that, and then a time is no place to go on from."""

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
        """A time too far ahead is of a clock that was set back since."""
        if self.given_up:
            return False
        return self.not_before_ms is None or not now_ms < self.not_before_ms <= now_ms + longest_ms

    def advance(self, reached_ns: int) -> bool:
        """Whether that is news."""
        before = self.progress
        self.progress = advanced(before, reached_ns)
        return self.progress.reached_ns != before.reached_ns

    def revive(self) -> None:
        self.not_before_ms, self.retries, self.continuations = None, 0, 0
        self.given_up = False


class WindowRequests:
    def __init__(self, progress: Iterable[Progress], *, config: HistoryConfig) -> None:
        self._config = config
        self._requests = [WindowRequest(item) for item in progress]
        self._sort()
        self._longest_ms = max(config.longest_retry_ms, config.trailing_ms)

    def find(self, purpose: Purpose) -> WindowRequest | None:
        """The first, of look-ups by time the earliest."""
        return next((request for request in self._requests if request.purpose is purpose), None)

    def add(self, progress: Progress, *, not_before_ms: UnixMs | None = None) -> WindowRequest:
        """Together with the wish of that purpose, if there is one."""
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

    def add_around(self, progress: Progress, *, running: WindowRequest | None) -> None:
        """A window of its own, or one with another that is not being asked for yet.

        Too many are read over: whoever misses a message asks again.
        """
        around = [request for request in self._requests if request.purpose is Purpose.DEPENDENCY]
        for request in around:
            old = request.progress
            overlaps = progress.start_ns <= old.end_ns and old.start_ns <= progress.end_ns
            if overlaps and request is not running:
                both = widened(old, progress)
                request.progress = replace(both, reached_ns=both.start_ns)
                request.revive()
                return
        if len(around) < self._config.max_around_windows:
            self._requests.append(WindowRequest(progress))
            self._sort()

    def remove(self, request: WindowRequest) -> None:
        self._requests = [other for other in self._requests if other is not request]

    def revive(self) -> None:
        """There are other Stores now."""
        for request in self._requests:
            if request.given_up or request.retries:
                request.revive()

    def due(self, now_ms: UnixMs) -> WindowRequest | None:
        """The one to be asked for next."""
        longest_ms = self._longest_ms
        return next((w for w in self._requests if w.is_due(now_ms, longest_ms=longest_ms)), None)

    def next_ms(self) -> UnixMs | None:
        times = [
            request.not_before_ms
            for request in self._requests
            if request.not_before_ms is not None and not request.given_up
        ]
        return min(times, default=None)

    def _sort(self) -> None:
        self._requests.sort(
            key=lambda request: (_ORDER[request.purpose], request.progress.start_ns)
        )


def comes_first(purpose: Purpose, other: Purpose) -> bool:
    """Whether a wish of the one interrupts a query of the other: somebody waits for it."""
    waits = purpose in (Purpose.USER, Purpose.EARLIER)
    return waits and _ORDER[purpose] < _ORDER[other]


def retry_at(
    request: WindowRequest, *, config: HistoryConfig, random_unit: RandomUnit, now_ms: UnixMs
) -> UnixMs:
    wait_ms = min(config.retry_ms << min(request.retries - 1, 20), config.longest_retry_ms)
    return UnixMs(now_ms + wait_ms - int(wait_ms / 2 * random_unit()))


class HashLookups:
    """Messages to be looked up by hash, in the order in which they were wanted."""

    def __init__(self, *, config: HistoryConfig) -> None:
        self._config = config
        self._lookups: dict[WakuHash, HashLookup] = {}
        self._asked: dict[WakuHash, HashLookup] = {}
        self._unanswered: dict[WakuHash, int] = {}
        """How often a Store gave no answer to it."""

    def __len__(self) -> int:
        return len(self._lookups)

    def add(self, lookups: Iterable[HashLookup]) -> int:
        """How many were read over, there being too many."""
        refused = 0
        for lookup in lookups:
            if lookup.message_hash in self._lookups or lookup.message_hash in self._asked:
                continue
            if len(self._lookups) >= self._config.max_lookups:
                refused += 1
            else:
                self._lookups[lookup.message_hash] = lookup
        return refused

    def take(self) -> tuple[WakuHash, ...]:
        """The next batch, which is being asked for until ``answered``."""
        batch = tuple(self._lookups)[: self._config.lookup_batch]
        self._asked = {item: self._lookups.pop(item) for item in batch}
        return batch

    def answered(self) -> dict[WakuHash, HashLookup]:
        """What was asked for."""
        asked, self._asked = self._asked, {}
        return asked

    def unanswered(self, hashes: Iterable[WakuHash]) -> None:
        """Once more, some Store said nothing of these."""
        for item in hashes:
            self._unanswered[item] = self._unanswered.pop(item, 0) + 1
        while len(self._unanswered) > self._config.max_lookups:
            del self._unanswered[next(iter(self._unanswered))]

    def waited_enough(self, message_hash: WakuHash) -> bool:
        """For those that give no answer."""
        return self._unanswered.get(message_hash, 0) >= self._config.unanswered_rounds

    def found(self, hashes: Iterable[WakuHash]) -> None:
        for item in hashes:
            self._unanswered.pop(item, None)
