"""The one thread that touches a profile's database, called from asyncio.

The connection is opened, used and closed on this thread only (SQLite would refuse another one).
One thread also means one order: the first call is durable first.  Works on the qasync loop and on a
plain one.  The calls are opaque here.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from engine.core.errors import StorageError, StorageFault

_P = ParamSpec("_P")
_T = TypeVar("_T")

DAMAGE: Final = frozenset({StorageFault.DAMAGED, StorageFault.NOT_DECRYPTED})
"""Once a database was opened, the key is right."""
MAX_PENDING: Final = 4096
"""Calls that wait for the disk.  Beyond this the disk is far too slow: fail instead of queueing."""


class StorageThread:
    def __init__(self, *, max_pending: int = MAX_PENDING) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="storage")
        self._max_pending = max_pending
        self._pending = 0
        self._closed = False
        self.damage_met: Callable[[], None] = lambda: None
        """Called on the loop's thread when a page cannot be read, or what it says is impossible."""

    @property
    def pending(self) -> int:
        """Calls that have not returned yet."""
        return self._pending

    async def run(self, fn: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call ``fn`` on the storage thread; raises what it raises.

        A cancelled caller does not learn the outcome: a call that has begun is completed.  Raises
        StorageError once closed, or when too many calls are waiting.
        """
        try:
            return await self.attempt(fn, *args, **kwargs)
        except StorageError as error:
            self.tell_of(error)
            raise

    def tell_of(self, error: StorageError) -> None:
        """Tell if it is of damage."""
        if error.fault in DAMAGE:
            self.damage_met()

    async def attempt(self, fn: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The same for callers who can do something about damage."""
        if self._closed:
            raise StorageError("The profile's storage is closed.", StorageFault.CLOSING)
        if self._pending >= self._max_pending:
            text = f"The disk is too slow: {self._pending} operations wait for it."
            raise StorageError(text, StorageFault.TOO_SLOW)
        self._pending += 1
        try:
            future = self._executor.submit(fn, *args, **kwargs)
            return await asyncio.wrap_future(future)
        finally:
            self._pending -= 1

    async def close(self, last: Callable[[], object] | None = None) -> None:
        """Finish earlier calls, call ``last`` (the store's ``close``), and end the thread.

        Idempotent.  Raises what ``last`` raises, after the thread has ended.
        """
        if self._closed:
            return
        self._closed = True
        try:
            # One thread works in order, so when this returns, all earlier calls are done.
            await asyncio.shield(asyncio.wrap_future(self._executor.submit(last or (lambda: None))))
        finally:
            self._executor.shutdown(wait=False)
