"""Whether our own clock is right, by the times that live Waku messages bear.

A Store refuses what is more than 20 s off its clock, so whoever is off by more than 15 s is warned
before messages of theirs are missing in history.  One message may lie, be late, or come from a
wrong clock: the median of many of the last minutes does not.
"""

from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Final

from engine.core.duration import duration_words
from engine.core.types import UnixMs
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


class ClockCheck:
    def __init__(
        self, now_ms: Callable[[], UnixMs], publish: Callable[[EngineEvent], None]
    ) -> None:
        self._now_ms = now_ms
        self._publish = publish
        self._samples: deque[tuple[UnixMs, int]] = deque(maxlen=SAMPLES)
        """When, and how far the sender's clock was ahead of ours."""
        self._warned = False

    def hear(self, timestamp_ns: int | None) -> None:
        """Of a message that was said just now."""
        if not timestamp_ns:
            return
        now_ms = self._now_ms()
        if self._samples and not self._is_apart(now_ms):
            return
        self._samples.append((now_ms, timestamp_ns // NS_PER_MS - now_ms))
        while self._samples and not 0 <= now_ms - self._samples[0][0] <= MEMORY_MS:
            self._samples.popleft()  # Long ago, or our clock was set meanwhile.
        self._judge()

    def _is_apart(self, now_ms: UnixMs) -> bool:
        return not 0 <= now_ms - self._samples[-1][0] < APART_MS

    def _judge(self) -> None:
        if len(self._samples) < LEAST_SAMPLES:
            return
        ahead_ms = median(ahead for _, ahead in self._samples)
        if abs(ahead_ms) > WARN_MS and not self._warned:
            self._warned = True
            where = "behind" if ahead_ms > 0 else "ahead of"
            words = duration_words(round(abs(ahead_ms)))
            self._publish(
                NoticeRaised(
                    key=KEY,
                    level=NoticeLevel.WARNING,
                    text=f"The clock of this device is {words} {where} the network's. Stores keep "
                    "no messages whose time is wrong. Please set it right.",
                )
            )
        elif abs(ahead_ms) < CLEAR_MS and self._warned:
            self._warned = False
            self._publish(NoticeCleared(key=KEY))
