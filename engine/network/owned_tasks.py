"""Tasks with an owner: none outlives it, and no failure is lost.

A ChatError that ends a task belongs to its awaiter.  Any other exception is a bug, is counted, and
is logged with its traceback.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import TypeVar

from engine.core.counters import Counters
from engine.core.errors import ChatError

_LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")
_CANCEL_AGAIN_S = 1.0  # for a handler that swallowed the first cancellation


class OwnedTasks:
    def __init__(self, counters: Counters, *, failed: str) -> None:
        """``failed``: the counter of tasks that a bug ended."""
        self._counters = counters
        self._failed = failed
        self._tasks: set[asyncio.Task[object]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(
        self, work: Coroutine[object, object, _T], *, name: str | None = None
    ) -> asyncio.Task[_T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def cancel_all(self) -> None:
        """Return when all have ended, including those started on the way."""
        while self._tasks:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_CANCEL_AGAIN_S)

    def _done(self, task: asyncio.Task[_T]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, ChatError):
            self._counters.add(self._failed)
            _LOGGER.error("a task failed", exc_info=error, extra={"counter": self._failed})
