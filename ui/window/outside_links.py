"""``causerie:`` links from other programs: shows what each says, one after another.

They wait while there is nobody yet to join or be met, and while another sheet is open.  A few may
wait; more are somebody's mistake or malice, and are dropped.
"""

from collections import deque
from collections.abc import Callable

from ui.window.one_sheet import OneSheet

MAX_WAITING = 4


class OutsideLinks:
    def __init__(
        self, one_sheet: OneSheet, *, is_ready: Callable[[], bool], show: Callable[[str], None]
    ) -> None:
        self._one_sheet = one_sheet
        self._is_ready = is_ready
        self._show = show
        self._waiting: deque[str] = deque()
        one_sheet.when_free = self.show_next

    def open(self, link: str) -> None:
        if link and link not in self._waiting and len(self._waiting) < MAX_WAITING:
            self._waiting.append(link)
        self.show_next()

    def show_next(self) -> None:
        """Harmless while it is too early."""
        if self._waiting and self._is_ready() and not self._one_sheet.is_busy:
            self._show(self._waiting.popleft())
