"""A second process that opens a group's messages while a large backfill is handled.

Opening a message (``engine.session.group.opening``) takes nearly half of what filling in one costs,
and other threads do not help, since Python's lock is needed for most of it.  The process is started
when it is first used, and ends when it was not used for a while, or with the program.  It answers
page by page over its standard streams, and keeps nothing: the keys come with each page.  The next
page is there before it has answered, so it never waits until this program's busy threads get to it.

What it does not answer is opened by the session as usual, and so is what comes before it runs.
Only while the session is loaded, pages wait for the process instead.  If it fails, it is counted,
and not started again.
"""

import asyncio
import contextlib
import logging
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Final, TypeAlias

import msgspec

from engine.core.counters import Counters
from engine.core.history.queries import HistoryMessage
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord
from engine.session.group.opening import (
    OpenedPage,
    PageToOpen,
    decode_opened,
    encode_page,
    open_page,
)

IDLE_S: Final = 20.0
ANSWER_S: Final = 30.0
"""A page that takes longer is opened by the session."""
PAGES_TOGETHER: Final = 2
"""One is opened, and one waits to be or was."""
PIPE_BYTES: Final = 1024 * 1024
"""Room for a page of texts, where that can be chosen (Linux): written and read in one go."""
END_S: Final = 5.0
LENGTH_BYTES: Final = 4
MAX_BYTES: Final = 64 * 1024 * 1024
"""Of a page or an answer: more than four times what a Store's page of the largest messages has."""
NOTHING: Final = PageToOpen(payloads=())
"""Answered as soon as it runs."""

SessionReady: TypeAlias = Callable[[], Coroutine[None, None, None]]
"""Returns once a session has been loaded, or loading it has failed."""

logger = logging.getLogger(__name__)


def serve(pages: IO[bytes], answers: IO[bytes]) -> None:
    """What the process does, until its input ends or is something else than pages."""
    with contextlib.suppress(msgspec.DecodeError):
        while (page := _read(pages)) is not None:
            _write(answers, open_page(page))


async def _at_once() -> None:
    pass


class OpeningProcess:
    def __init__(self, command: Sequence[str], counters: Counters) -> None:
        """``command`` runs ``serve``; without one, nothing is opened."""
        self._command = command
        self._counters = counters
        self._writing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="opening-pages")
        self._reading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="opening-answers")
        self._room = asyncio.Semaphore(PAGES_TOGETHER)
        self._process: Future[_Process] | None = None
        self._ready: Future[OpenedPage] | None = None
        self._asking = 0
        """Pages that are waited for."""
        self._began_s = 0.0
        self._idle: asyncio.TimerHandle | None = None
        self._is_over = not command

    async def open(
        self,
        group: GroupRecord,
        messages: Sequence[HistoryMessage],
        *,
        session_ready: SessionReady = _at_once,
    ) -> OpenedPage:
        """A result for each message; none at all if it does not run, or not yet.

        Until ``session_ready`` returns, the session opens nothing, and this waits until it runs.
        """
        async with self._room:
            return await self._open(group, messages, session_ready)

    async def _open(
        self,
        group: GroupRecord,
        messages: Sequence[HistoryMessage],
        session_ready: SessionReady,
    ) -> OpenedPage:
        if self._is_over:
            return ()
        process, ready = self._begun()
        self._asking += 1
        self._put_off_end()
        try:
            if not ready.done():
                await _first_of(asyncio.wrap_future(ready), asyncio.create_task(session_ready()))
            if not ready.done():
                if asyncio.get_running_loop().time() - self._began_s >= ANSWER_S:
                    self._fail(TimeoutError())
                return ()
            ready.result()
            return await self._answer(process.result(), _page(group, messages))
        except (OSError, EOFError, msgspec.DecodeError) as error:
            self._fail(error)
            return ()
        finally:
            self._asking -= 1
            self._put_off_end()

    async def _answer(self, process: "_Process", page: PageToOpen) -> OpenedPage:
        async with asyncio.timeout(ANSWER_S):
            answered = asyncio.wrap_future(self._ask(process, page))
            answered.add_done_callback(_look_at)
            return await asyncio.shield(answered)  # Or the next page would get its answer.

    async def stop(self) -> None:
        """End the process, whatever it does."""
        self._is_over = True
        if self._idle is not None:
            self._idle.cancel()
        with contextlib.suppress(OSError):
            if self._process is not None:
                (await asyncio.wrap_future(self._process)).kill()
            if ended := self._end():
                await asyncio.wrap_future(ended)
        self._writing.shutdown(wait=False)
        self._reading.shutdown(wait=False)

    def _begun(self) -> tuple[Future["_Process"], Future[OpenedPage]]:
        if self._process is None or self._ready is None:
            self._began_s = asyncio.get_running_loop().time()
            self._process = process = self._reading.submit(_Process, self._command)
            self._writing.submit(lambda: process.result().write(NOTHING))
            self._ready = self._reading.submit(lambda: process.result().read(NOTHING))
        return self._process, self._ready

    def _ask(self, process: "_Process", page: PageToOpen) -> Future[OpenedPage]:
        """If the page cannot be written, the process has ended, and there is no answer to read."""
        self._writing.submit(process.write, page)
        return self._reading.submit(process.read, page)

    def _put_off_end(self) -> None:
        """Not while it is asked: what does not answer has to be known to be killed."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not (self._asking or self._is_over):
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end_unused)

    def _end_unused(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._kill()  # Nobody waited for it, and it may never begin to answer.
        self._end()

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.done() and process.exception() is None:
            process.result().kill()

    def _end(self) -> Future[None] | None:
        """End it once it has answered what it was asked."""
        process, self._process, self._ready = self._process, None, None
        return None if process is None else self._reading.submit(lambda: process.result().end())

    def _fail(self, error: Exception) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._counters.add("history.opening_process_failed")
        logger.warning("the opening process failed", extra={"error": type(error).__name__})
        self._kill()
        self._end()


class _Process:
    """One run of it.  All methods but ``kill`` wait: ``write`` in one thread, the rest in another.

    Pages are answered in the order in which they were written.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Raises OSError."""
        self._popen = subprocess.Popen(  # noqa: S603 - the program itself
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pipesize=PIPE_BYTES,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def write(self, page: PageToOpen) -> None:
        """Raises OSError or ValueError if it has ended."""
        if self._popen.stdin is not None:
            _write(self._popen.stdin, encode_page(page))

    def read(self, page: PageToOpen) -> OpenedPage:
        """The next answer, which is to this page.

        Raises OSError or EOFError if it has ended, and DecodeError.
        """
        answer = None if self._popen.stdout is None else _read(self._popen.stdout)
        if answer is None:
            raise EOFError
        opened = decode_opened(answer)
        if len(opened) != len(page.payloads):
            raise EOFError
        return opened

    def kill(self) -> None:
        self._popen.kill()

    def end(self) -> None:
        try:
            self._popen.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.communicate()


def _page(group: GroupRecord, messages: Sequence[HistoryMessage]) -> PageToOpen:
    return PageToOpen(
        group_id=group_id_of(group.conversation_id),
        epoch_keys=group.epoch_keys,
        payloads=tuple(one.message.payload for one in messages),
    )


async def _first_of(runs: asyncio.Future[OpenedPage], loaded: asyncio.Task[None]) -> None:
    runs.add_done_callback(_look_at)
    try:
        await asyncio.wait((runs, loaded), return_when=asyncio.FIRST_COMPLETED)
    finally:
        loaded.cancel()


def _look_at(answered: asyncio.Future[OpenedPage]) -> None:
    """Nobody waits any more if the program ends, and asyncio would log the process's end."""
    if not answered.cancelled():
        answered.exception()


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(LENGTH_BYTES) + data)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """None: the stream has ended, perhaps in the middle, or announces too much."""
    length = int.from_bytes(head) if len(head := stream.read(LENGTH_BYTES)) == LENGTH_BYTES else 0
    if length > MAX_BYTES:
        return None
    data = stream.read(length)
    return data if 0 < length == len(data) else None
