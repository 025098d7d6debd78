"""Follows the carrying over of an old profile, which is the longest that a start can take.

The storage thread tells how far it is; a window shows it if it takes longer than a moment, and
closing that window, or a signal, stops it.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from chat_app.interrupts import Interrupts
from ui.app import build_carrying_over
from ui.settings import UiSettings

if TYPE_CHECKING:
    from ui.carrying_over import CarryingOverWindow

SHOWN_AFTER_S: Final = 0.3
"""A small profile takes less; a window that flashes would only frighten."""


class CarryingOver:
    """To be made on the loop's thread."""

    def __init__(
        self,
        settings: UiSettings,
        interrupts: Interrupts,
        *,
        shown_after_s: float = SHOWN_AFTER_S,
        is_salvage: bool = False,
    ) -> None:
        """``is_salvage``: what can be read of a damaged database is copied."""
        self._is_salvage = is_salvage
        self._settings = settings
        self._interrupts = interrupts
        self._shown_after_s = shown_after_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._share = 0.0
        self._closed = asyncio.Event()
        self.window: CarryingOverWindow | None = None

    def progress(self, share: float) -> bool:
        """On the storage thread.  Whether to go on."""
        self._loop.call_soon_threadsafe(self._follow, share)
        return not (self._closed.is_set() or self._interrupts.asked.is_set())

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.window is not None:
            self.window.close()
            self.window.deleteLater()
            self.window = None

    def _follow(self, share: float) -> None:
        self._share = share
        if share >= 1:
            self.end()
        elif self.window is not None:
            self.window.show_share(share)
        elif self._timer is None:
            self._timer = self._loop.call_later(self._shown_after_s, self._show)

    def _show(self) -> None:
        self.window = build_carrying_over(self._settings, is_salvage=self._is_salvage)
        self.window.closed.connect(self._closed.set)
        self.window.show_share(self._share)
        self.window.show()
