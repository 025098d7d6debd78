"""Small movements: a value that goes from 0 to 1 or back within 150 ms and asks to be painted.

Nothing waits for a movement.  What appears is there from the first moment and takes keys and clicks
at once; only its paint, or for a panel its place, follows.  Until ``allow_motion`` was called every
change is immediate: the desktop or the settings may not want movement (``chat_app/motion.py``).
"""

from typing import Final

from PySide6.QtCore import QAbstractAnimation, QEasingCurve, QObject, QVariantAnimation, Signal

LONGEST_MS: Final = 150

_allowed = False


def allow_motion(allowed: bool) -> None:
    global _allowed  # noqa: PLW0603 - one desktop per process, as with its look.
    _allowed = allowed


def is_motion_allowed() -> bool:
    return _allowed


class Movement(QObject):
    """Begins at its end: 1."""

    changed = Signal()

    def __init__(self, parent: QObject, duration_ms: int = LONGEST_MS) -> None:
        super().__init__(parent)
        self.value = 1.0
        self._run = QVariantAnimation(self)
        self._run.setDuration(min(duration_ms, LONGEST_MS))
        self._run.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._run.valueChanged.connect(self._take)

    @property
    def is_running(self) -> bool:
        return self._run.state() is QAbstractAnimation.State.Running

    def appear(self) -> None:
        """From 0 to 1."""
        self._go(0.0, 1.0)

    def vanish(self) -> None:
        """To 0."""
        self._go(self.value, 0.0)

    def rest(self) -> None:
        """Be at 1, without a movement."""
        self._run.stop()
        self.value = 1.0

    def _go(self, start: float, end: float) -> None:
        self._run.stop()
        if not _allowed:
            self.value = end
            self.changed.emit()
            return
        self._run.setStartValue(start)
        self._run.setEndValue(end)
        self._run.start()

    def _take(self, value: float) -> None:
        self.value = value
        self.changed.emit()
