"""Python's cycle collector on the main thread only.

The collector runs on whatever thread happens to allocate.  On the storage thread it would destroy
windows and timers that the main thread's rubbish holds in cycles, and Qt objects must be destroyed
where they live: "Timers cannot be stopped from another thread", then a crash.  So automatic
collection is off, and a timer on the main thread does the same work, youngest generation first, by
the interpreter's own thresholds.  Reference counting, which frees nearly everything, is untouched.
Where nothing is to be collected the timer comes ever less often, so that an idle program sleeps.
"""

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

EVERY_MS: Final = 500
IDLE_MS: Final = 4_000


class MainThreadCollector(QObject):
    """Collects from construction until ``stop``, which gives the work back to the interpreter."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        gc.disable()
        gc.collect()
        gc.freeze()  # What the program is made of need not be looked through again.
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._look)
        self._timer.start(EVERY_MS)

    @property
    def interval_ms(self) -> int:
        """Until it looks again."""
        return self._timer.interval()

    def _look(self) -> None:
        longer_ms = min(2 * self.interval_ms, IDLE_MS)
        interval_ms = EVERY_MS if self.collect_due() else longer_ms
        if interval_ms != self.interval_ms:
            self._timer.setInterval(interval_ms)

    @staticmethod
    def collect_due() -> bool:
        """Collect the oldest generation whose count is over its threshold, if any, and say so."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation] > 0:
                gc.collect(generation)
                return True
        return False

    def stop(self) -> None:
        """Collect a last time, here, while Qt's objects can still be destroyed."""
        self._timer.stop()
        gc.collect()
        if self._was_enabled:
            gc.enable()
