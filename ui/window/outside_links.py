"""``causerie:`` links from other programs: shows what each says, one after another.

They wait while there is nobody yet to join or be met, while the window is locked, and while another
sheet is open.  A few may wait; more are somebody's mistake or malice, and the oldest are dropped,
since who opens a link now means the newest.  The last one that was shown can be shown again: at a
first start, where Enter answers each step, it also closes what a link opened.
"""

from collections import deque
from collections.abc import Callable

from engine.core.contacts import CONTACT_PREFIX
from engine.core.message_link import MESSAGE_PREFIX
from ui.window.one_sheet import OneSheet

MAX_WAITING = 4


class OutsideLinks:
    def __init__(
        self, one_sheet: OneSheet, *, is_ready: Callable[[], bool], show: Callable[[str], None]
    ) -> None:
        self._one_sheet = one_sheet
        self._is_ready = is_ready
        self._show = show
        self._waiting: deque[str] = deque(maxlen=MAX_WAITING)
        self._shown = ""
        one_sheet.when_free = self.show_next

    def open(self, link: str) -> None:
        if link and link not in self._waiting:
            self._waiting.append(link)
        self.show_next()

    def show_next(self) -> None:
        """Harmless while it is too early."""
        if self._waiting and self._is_ready() and not self._one_sheet.is_busy:
            link = self._waiting.popleft()
            if not link.startswith(MESSAGE_PREFIX):  # What it opens is no step of a first start.
                self._shown = link
            self._show(link)

    def show_again(self, *, contact: bool) -> bool:
        """The last one that was shown, if it is of this kind; whether there was one."""
        is_there = bool(self._shown) and self._shown.startswith(CONTACT_PREFIX) is contact
        if is_there:
            self._show(self._shown)
        return is_there
