"""Do not disturb: no notification at all, for a while or until it is switched off.

The end is a time of day that outlives a restart.  Whether it is over is judged when something
happens; a timer only makes the menu say so, and looks again at least once a minute because the
time of day can be set.  An end further away than any that is offered was made by a wrong clock and
counts as over; what is over is forgotten, so that no clock brings it back.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from ui.mute_entries import durations
from ui.settings import UiSettings

_ALWAYS: Final = "always"
_DIGITS: Final = 15
_LOOK_MS: Final = 60_000


class DoNotDisturb(QObject):
    changed = Signal()

    def __init__(
        self, settings: UiSettings, now: Callable[[], datetime], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._now = now
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._look)
        self._look()

    def is_on(self) -> bool:
        return self._stored() == _ALWAYS or self.until_ms() is not None

    def until_ms(self) -> int | None:
        """None: it is off, or until it is switched off."""
        stored = self._stored()
        until_ms = int(stored) if stored.isdecimal() and len(stored) <= _DIGITS else 0
        longest_ms = max(for_ms for _, for_ms in durations() if for_ms is not None)
        return until_ms if 0 < until_ms - self._now_ms() <= longest_ms else None

    def begin(self, for_ms: int | None) -> None:
        until = _ALWAYS if for_ms is None else str(self._now_ms() + for_ms)
        self._settings.put("quiet_until", until)
        self._look()

    def end(self) -> None:
        self._settings.put("quiet_until", "")
        self._look()

    def _look(self) -> None:
        self._timer.stop()
        until_ms = self.until_ms()
        if self._stored() and not self.is_on():
            self._settings.put("quiet_until", "")
        if until_ms is not None:
            self._timer.start(min(until_ms - self._now_ms(), _LOOK_MS))
        self.changed.emit()

    def _stored(self) -> str:
        return self._settings.get("quiet_until") or ""

    def _now_ms(self) -> int:
        return int(self._now().timestamp() * 1000)
