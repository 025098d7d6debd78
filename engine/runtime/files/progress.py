"""Tells how far the files are that come or are fetched, at most four times a second for each."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from engine.core.errors import StorageError
from engine.events import EngineEvent, MessageView
from engine.file_views import FetchView, FileProgressed
from engine.runtime.files.book import Blob, FileBook, FileKey
from engine.runtime.files.served import ServedFiles

TOLD_EVERY_S: Final = 0.25


class _Going(NamedTuple):
    done_bytes: int
    rate: int
    fetch: FetchView | None


_Told: TypeAlias = Mapping[FileKey, _Going | None]
"""None: it could not be told."""

_LOGGER = logging.getLogger(__name__)


class Progress:
    """``running``: what is on its way; ``tell``: that the state of a file changed."""

    def __init__(  # noqa: PLR0913 - what it looks at, and how it tells
        self,
        book: FileBook,
        running: Mapping[FileKey, object],
        served: ServedFiles,
        *,
        tell: Callable[[Blob], Awaitable[None]],
        view: Callable[[Blob], Awaitable[MessageView | None]],
        publish: Callable[[EngineEvent], None],
    ) -> None:
        self._book = book
        self._running = running
        self._served = served
        self._tell = tell
        self._view = view
        self._publish = publish

    def begin(self) -> None:
        """Something is on its way now."""
        self._served.begun.set()

    async def run(self) -> None:
        told: _Told = {}
        while True:
            if not self._running and not told:
                await self._served.begun.wait()
            self._served.begun.clear()
            await asyncio.sleep(TOLD_EVERY_S)
            told = await self._tell_what_changed(told)

    async def _tell_what_changed(self, told: _Told) -> _Told:
        """``told``: what was told of each that is on its way or fetched; return that of now.

        What stands still is told until its rate is nothing, too.
        """
        going: dict[FileKey, _Going | None] = {}
        fetched = self._served.now()
        for key in dict.fromkeys((*self._running, *fetched, *told)):
            blob = self._book.blobs.get(key)
            if blob is None:
                continue
            was, blob.fetch = told.get(key), fetched.get(key)
            may_be_over = key in told and (was is None or was.fetch is not None)
            if blob.transfer is None and blob.fetch is None and not may_be_over:
                continue
            done_bytes = 0 if blob.transfer is None else blob.transfer.done_bytes
            going[key] = now = _Going(done_bytes, blob.rate.add(done_bytes), blob.fetch)
            try:
                if blob.transfer and blob.shown != (blob.file_state(), blob.file_problem()):
                    await self._tell(blob)
                elif was != now:
                    await self._tell_how_far(blob)
            except StorageError:
                going[key] = None
                _LOGGER.warning("how far a file is could not be told; it is told again")
        return going

    async def _tell_how_far(self, blob: Blob) -> None:
        if blob.base is None:
            view = await self._view(blob)
            blob.base = None if view is None else view.file
        if blob.base is not None:
            conversation_id, message_id = blob.key
            file = self._book.view(blob, blob.base)
            self._publish(
                FileProgressed(conversation_id=conversation_id, message_id=message_id, file=file)
            )
