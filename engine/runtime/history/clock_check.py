"""Whether our own clock is right, by live Waku messages and by Stores that say when they had them.

A Store refuses what is more than 20 s off its clock, so whoever is off by more than 15 s is warned
before messages of theirs are missing in history.  A message bears its sender's time, and a Store of
2.0.0-beta4 says when it took it in: beside the time when we heard it live, that is the Store's
clock against ours, whatever the sender's.  One message may lie, be late, or come from a wrong
clock, and so may one Store be wrong: the median of many of the last minutes is not.
"""

from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Final

from engine.core.duration import duration_words
from engine.core.history.types import StoreRef
from engine.core.types import UnixMs
from engine.core.waku_store import HistoryIndex
from engine.events import EngineEvent, NoticeCleared, NoticeLevel, NoticeRaised

KEY: Final = "clock/network"
WARN_MS: Final = 15_000
CLEAR_MS: Final = 10_000
SAMPLES: Final = 31
LEAST_SAMPLES: Final = 5
MEMORY_MS: Final = 10 * 60_000
APART_MS: Final = 500
"""Between two samples: a burst of one sender's is one opinion."""
NS_PER_MS: Final = 1_000_000
LEAST_STORES: Final = 2
"""Clocks of Stores that say enough without anybody's messages."""
MAX_STORES: Final = 32
HEARD: Final = 256
"""Messages of which it is known when they were heard."""
SECONDS_SAID_MS: Final = 120_000


class ClockCheck:
    def __init__(
        self, now_ms: Callable[[], UnixMs], publish: Callable[[EngineEvent], None]
    ) -> None:
        self._now_ms = now_ms
        self._publish = publish
        self._samples: deque[tuple[UnixMs, int]] = deque(maxlen=SAMPLES)
        """When, and how far the sender's clock was ahead of ours."""
        self._heard: dict[int, UnixMs] = {}
        """Times of messages, and when they were heard by our own clock."""
        self._stores: dict[StoreRef, tuple[UnixMs, int]] = {}
        """When each was last heard of, and how far its clock was ahead of ours."""
        self._warned = False

    def hear(self, timestamp_ns: int | None) -> None:
        """Of a message that was said just now."""
        if not timestamp_ns:
            return
        now_ms = self._now_ms()
        self._heard.setdefault(timestamp_ns, now_ms)
        while len(self._heard) > HEARD:
            del self._heard[next(iter(self._heard))]
        if self._samples and not self._is_apart(now_ms):
            return
        self._samples.append((now_ms, timestamp_ns // NS_PER_MS - now_ms))
        while self._samples and not 0 <= now_ms - self._samples[0][0] <= MEMORY_MS:
            self._samples.popleft()  # Long ago, or our clock was set meanwhile.
        self._judge()

    def hear_store(self, store: StoreRef, index: HistoryIndex) -> None:
        """When it says that it took a message in; of one that we heard as well, that is a clock."""
        heard_ms = self._heard.get(index.sender_time_ns)
        if heard_ms is None or index.receiver_time_ns <= 0:
            return
        self._stores.pop(store, None)
        self._stores[store] = (self._now_ms(), index.receiver_time_ns // NS_PER_MS - heard_ms)
        while len(self._stores) > MAX_STORES:
            del self._stores[next(iter(self._stores))]
        self._judge()

    def store_clocks(self) -> list[tuple[StoreRef, int]]:
        """How far each was ahead of ours, lately."""
        now_ms = self._now_ms()
        return [
            (store, ahead_ms)
            for store, (at_ms, ahead_ms) in self._stores.items()
            if 0 <= now_ms - at_ms <= MEMORY_MS
        ]

    def heard_at(self, *, least_ms: int) -> int | None:
        """The time of the newest message that was heard at least so long ago, in nanoseconds."""
        latest_ms = self._now_ms() - least_ms
        old = (at_ns for at_ns, heard_ms in reversed(self._heard.items()) if heard_ms <= latest_ms)
        return next(old, None)

    def _is_apart(self, now_ms: UnixMs) -> bool:
        return not 0 <= now_ms - self._samples[-1][0] < APART_MS

    def _judge(self) -> None:
        stores = [ahead for _, ahead in self.store_clocks()]
        if len(self._samples) < LEAST_SAMPLES and len(stores) < LEAST_STORES:
            return
        ahead_ms = median([*(ahead for _, ahead in self._samples), *stores])
        if abs(ahead_ms) > WARN_MS and not self._warned:
            self._warned = True
            where = "behind" if ahead_ms > 0 else "ahead of"
            self._publish(
                NoticeRaised(
                    key=KEY,
                    level=NoticeLevel.WARNING,
                    text=f"The clock of this device is {off_words(round(abs(ahead_ms)))} {where} "
                    "the network's. Stores keep "
                    "no messages whose time is wrong. Please set it right.",
                )
            )
        elif abs(ahead_ms) < CLEAR_MS and self._warned:
            self._warned = False
            self._publish(NoticeCleared(key=KEY))


def off_words(off_ms: int) -> str:
    """Seconds are said where a minute would be too coarse: "20 s", "2 min"."""
    return f"{round(off_ms / 1_000)} s" if off_ms < SECONDS_SAID_MS else duration_words(off_ms)
