"""At most one sheet at a time, each led by a coroutine that ``Tasks`` owns.

Asking for another while one is open brings the open one to the front instead.
"""

from collections.abc import Callable, Coroutine

from PySide6.QtWidgets import QWidget

from ui.dialogs.sheet import Sheet
from ui.tasks import Tasks

Flow = Callable[[], Coroutine[object, object, None]]


class OneSheet:
    def __init__(self, tasks: Tasks, window: QWidget) -> None:
        self._tasks = tasks
        self._window = window
        self._busy = False
        self.sheet: Sheet | None = None
        """The one that is open."""
        self.when_free: Callable[[], None] = lambda: None
        """Called when another may be asked for."""

    @property
    def is_busy(self) -> bool:
        return self._busy

    def start(self, purpose: str, flow: Flow) -> None:
        if self._busy:
            if self.sheet is not None:
                self.sheet.raise_()
                self.sheet.activateWindow()
            return
        self._busy = True

        async def alone() -> None:
            try:
                await flow()
            finally:
                self._busy = False
                self.when_free()

        self._tasks.spawn(alone, purpose=purpose, retry=False)

    async def ask(self, sheet: Sheet) -> bool:
        self.sheet = sheet
        try:
            return await sheet.answered()
        finally:
            self.sheet = None
            # Not every window manager gives the keys back to the window behind a dialog.
            self._window.activateWindow()
