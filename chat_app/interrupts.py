"""Ctrl+C and ``kill`` while Qt's loop runs: a clean end, not a traceback.

Python runs a signal's handler only between two of its own instructions, and while Qt waits there
are none.  So the signal's number is also written to a socket that Qt watches, which wakes the
interpreter.  The first signal sets an event that windows close at; a second one acts as if this
program handled none, for users who cannot wait.
"""

import asyncio
import contextlib
import signal
import socket
from types import FrameType, TracebackType
from typing import Final, Self

from PySide6.QtCore import QSocketNotifier

_WATCHED: Final = (signal.SIGINT, signal.SIGTERM)
_STATUS: Final = {signal.SIGINT: 130, signal.SIGTERM: 0}


class Interrupts:
    """To be entered on the main thread, inside the running loop."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.status = 0
        """The exit status that the signal asks for."""

    def __enter__(self) -> Self:
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(self._woken)
        self._before = {number: signal.getsignal(number) for number in _WATCHED}
        self._wakeup_before = signal.set_wakeup_fd(
            self._writing.fileno(), warn_on_full_buffer=False
        )
        for number in _WATCHED:
            signal.signal(number, self._received)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        with contextlib.suppress(RuntimeError):  # Qt took it along when the display went away.
            self._notifier.setEnabled(False)
        self._reading.close()
        self._writing.close()

    def _received(self, number: int, frame: FrameType | None) -> None:
        del frame
        for watched in _WATCHED:
            signal.signal(watched, signal.SIG_DFL)
        self.status = _STATUS[signal.Signals(number)]
        self.asked.set()

    def _woken(self) -> None:
        """By now the interpreter has run the handler; only the wake-up call is left to take."""
        try:
            self._reading.recv(64)
        except OSError:
            return


async def closed_or_interrupted(closed: asyncio.Event, interrupts: Interrupts) -> None:
    waits = {asyncio.create_task(event.wait()) for event in (closed, interrupts.asked)}
    _done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
