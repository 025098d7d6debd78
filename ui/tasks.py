"""Work that a click or a key starts: every task is owned, and no exception is ever lost.

A ``ChatError`` is something that happened in the user's world and is said in a notice, with a way
to try again where that makes sense.  Anything else is a bug and goes to the loop's exception
handler, where the program reports bugs.
"""

import asyncio
from collections.abc import Callable, Coroutine

from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from engine.core.errors import ChatError
from ui.error_words import error_words

Work = Callable[[], Coroutine[object, object, None]]


class Failure(Struct, frozen=True, kw_only=True):
    """``purpose`` says what was being done and is the notice's key; ``retry`` does it again."""

    purpose: str
    text: str
    retry: Callable[[], None] | None


class Tasks(QObject):
    """Starts coroutines on the running loop and keeps them until they end."""

    failed = Signal(Failure)
    succeeded = Signal(str)
    """The ``purpose`` of work that went well: an older failure notice of it may go."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Work, *, purpose: str, retry: bool = True) -> asyncio.Task[None]:
        """``purpose`` completes the sentence "Could not …"."""
        task = asyncio.get_running_loop().create_task(
            self._guard(work, purpose=purpose, retry=retry), name=f"ui: {purpose}"
        )
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def settle(self, timeout_s: float = 5.0) -> None:
        """Wait for what was started, or is meanwhile; cancel what still runs; for the way out."""
        try:
            async with asyncio.timeout(timeout_s):
                while waiting := self._running - {asyncio.current_task()}:
                    await asyncio.wait(waiting)
        except TimeoutError:
            pending = self._running - {asyncio.current_task()}
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _guard(self, work: Work, *, purpose: str, retry: bool) -> None:
        try:
            await work()
        except ChatError as error:
            again = self._again(work, purpose) if retry else None
            self.failed.emit(Failure(purpose=purpose, text=error_words(error), retry=again))
        else:
            self.succeeded.emit(purpose)

    def _again(self, work: Work, purpose: str) -> Callable[[], None]:
        def start() -> None:
            self.spawn(work, purpose=purpose)

        return start

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            task.get_loop().call_exception_handler(
                {
                    "message": f"{task.get_name()} failed",
                    "exception": error,
                    "task": task,
                }
            )
