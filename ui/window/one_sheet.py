"""At most one sheet at a time, each led by a coroutine that ``Tasks`` owns.

Asking for another while one is open brings the open one to the front instead.  Only a question
about quitting does not wait: the open sheet is dismissed for it.
"""

from collections.abc import Awaitable, Callable, Coroutine

from PySide6.QtWidgets import QWidget

from ui.dialogs.sheet import Sheet
from ui.tasks import Tasks

Flow = Callable[[], Coroutine[object, object, None]]


async def _at_once() -> bool:
    """Nothing covers the window."""
    return True


class OneSheet:
    def __init__(self, tasks: Tasks, window: QWidget) -> None:
        self._tasks = tasks
        self._window = window
        self._busy = False
        self._purpose = ""
        """Of the one that is under way, or came last."""
        self._next: tuple[str, Flow] | None = None
        self.sheet: Sheet | None = None
        """The one that is open."""
        self.uncovered: Callable[[], Awaitable[bool]] = _at_once
        """Waited for before a sheet is shown: the window may be locked.  False: it ended so."""
        self.when_free: Callable[[], None] = lambda: None
        """Called when another may be asked for."""

    @property
    def window(self) -> QWidget:
        """In which the sheets lie."""
        return self._window

    @property
    def is_busy(self) -> bool:
        return self._busy

    def start(self, purpose: str, flow: Flow, *, waits: bool = False) -> None:
        """``waits``: it comes after one that is under way and shows no sheet just now."""
        if self._busy:
            if self.sheet is not None:
                self.sheet.raise_()
                self.sheet.activateWindow()
            elif waits and purpose != self._purpose:
                self._next = (purpose, flow)
            return
        self._busy, self._purpose = True, purpose

        async def alone() -> None:
            try:
                await flow()
            finally:
                self._busy = False
                following, self._next = self._next, None
                if following is None:
                    self.when_free()
                else:
                    self.start(*following)

        self._tasks.spawn(alone, purpose=purpose, retry=False)

    def start_instead(self, purpose: str, flow: Flow) -> None:
        """Dismiss the sheet that is open, if any, and begin once its coroutine is through."""
        if not self._busy or purpose == self._purpose:
            self.start(purpose, flow)
            return
        self._next = (purpose, flow)
        if self.sheet is not None:
            self.sheet.reject()

    async def ask(self, sheet: Sheet) -> bool:
        if not await self.uncovered():
            return False
        self.sheet = sheet
        try:
            return await sheet.answered()
        finally:
            self.sheet = None
            # Not every window manager gives the keys back to the window behind a dialog.
            self._window.activateWindow()
