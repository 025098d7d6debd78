"""Knows for how long nobody has used the window: no key, no mouse, no finger in it.

It listens where input reaches a window from the desktop, not at every widget.  The clock goes on
while the machine sleeps, so a machine that wakes up is not taken for one that was just used.
"""

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QWindow
from shiboken6 import isValid

_INPUT: Final = frozenset(
    {
        QEvent.Type.KeyPress,
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseMove,
        QEvent.Type.Wheel,
        QEvent.Type.TouchBegin,
        QEvent.Type.TouchUpdate,
        QEvent.Type.TabletPress,
        QEvent.Type.TabletMove,
    }
)
_NS_PER_MS: Final = 1_000_000
_LOOK_MS: Final = 10_000
"""A timer rests while the machine sleeps, so one of an hour would fire long after it woke up."""


def awake_or_asleep_ms() -> int:
    """Since the machine was started; where the system tells it, asleep too."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    found = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return found // _NS_PER_MS


class IdleWatch(QObject):
    idle = Signal()

    def __init__(
        self,
        parent: QObject | None = None,
        *,
        now_ms: Callable[[], int] = awake_or_asleep_ms,
        look_ms: int = _LOOK_MS,
    ) -> None:
        super().__init__(parent)
        self._now_ms = now_ms
        self._look_ms = look_ms
        self._limit_ms = 0
        self._last_ms = 0
        self._watched: QWindow | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.look)
        if isinstance(app := QGuiApplication.instance(), QGuiApplication):
            app.focusWindowChanged.connect(self._follow)

    def begin(self, limit_ms: int) -> None:
        """Tell after this time without input; 0: never."""
        self._limit_ms, self._last_ms = limit_ms, self._now_ms()
        self._follow(QGuiApplication.focusWindow())
        if limit_ms:
            self._timer.start(min(limit_ms, self._look_ms))
        else:
            self._timer.stop()

    def look(self) -> None:
        left_ms = self._last_ms + self._limit_ms - self._now_ms()
        if not self._limit_ms:
            return
        if left_ms > 0:
            self._timer.start(min(left_ms, self._look_ms))
        else:
            self.idle.emit()

    def _follow(self, window: QWindow | None) -> None:
        """Of this program: also a menu or a file dialog."""
        if self._watched is not None and isValid(self._watched):
            self._watched.removeEventFilter(self)
        self._watched = window if self._limit_ms else None
        if self._watched is not None:
            self._watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() not in _INPUT or not self._limit_ms:
            return False
        now_ms = self._now_ms()
        if now_ms - self._last_ms >= self._limit_ms:
            self.idle.emit()  # The machine slept; this key is not for what stands there.
            return True
        self._last_ms = now_ms
        return False
