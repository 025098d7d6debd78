"""What waits to be written to one peer: bounded in bytes, control before messages.

Above ``soft_limit_bytes`` whoever adds messages should wait for room; above the hard limits a frame
is not taken.  Frames are whole RPCs behind their length, so joining them is all that coalescing
needs.  It refuses to know what a frame says, but keeps both kinds apart to the end: when a stream
breaks, messages are worth sending again (receivers drop duplicates) and stale control is not.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine.core.errors import TransportError

_FAIR_TURNS = 20
"""From a peer's reading to our next write several tasks take their turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Frames for one write; control goes first and is joined already."""

    control: bytes
    frames: tuple[bytes, ...]

    @property
    def messages(self) -> bytes:
        return b"".join(self.frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendQueueLimits:
    soft_bytes: int = 1024 * 1024
    message_bytes: int = 4 * 1024 * 1024
    control_bytes: int = 256 * 1024
    write_bytes: int = 64 * 1024
    """Frames are joined into writes of about this size."""


class SendQueue:
    """One writer takes, many add."""

    def __init__(self, limits: SendQueueLimits) -> None:
        self._limits = limits
        self._control: deque[bytes] = deque()
        self._messages: deque[bytes] = deque()
        self._control_bytes = 0
        self._message_bytes = 0
        self._taken = 0
        """Chunks taken, ever: whether the peer takes anything at all."""
        self._failure: str | None = None
        self._filled = asyncio.Event()
        self._idle = asyncio.Event()
        """The writer has come back for more and there is nothing."""
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    @property
    def queued_bytes(self) -> int:
        return self._control_bytes + self._message_bytes

    def add_control(self, frame: bytes) -> bool:
        """False if the frame was not taken: then ``take`` fails, for the peer must start anew."""
        if self._control_bytes + len(frame) > self._limits.control_bytes:
            self.fail("more control than a living peer leaves unread")
            return False
        self._control.append(frame)
        self._control_bytes += len(frame)
        self._idle.clear()
        self._filled.set()
        return True

    def add_message(self, frame: bytes) -> bool:
        """False if the frame was not taken."""
        if self._message_bytes + len(frame) > self._limits.message_bytes:
            return False
        self._messages.append(frame)
        self._message_bytes += len(frame)
        self._idle.clear()
        self._filled.set()
        if self._message_bytes > self._limits.soft_bytes:
            self._room.clear()
        return True

    def put_back(self, frames: Sequence[bytes]) -> None:
        """What ``take`` gave and could not be written."""
        self._messages.extendleft(reversed(frames))
        self._message_bytes += sum(map(len, frames))

    def fail(self, reason: str) -> None:
        """Make ``take`` raise TransportError, now or when it is next called."""
        self._failure = reason
        self._filled.set()

    async def take(self, at_most: int | None = None) -> Chunk:
        """Wait for frames; as many as make one write.  Raises TransportError after ``fail``.

        ``at_most`` so many of them are messages.
        """
        while not self._control and not self._messages and self._failure is None:
            self._idle.set()
            self._filled.clear()
            await self._filled.wait()
        if self._failure is not None:
            raise TransportError(self._failure)
        control = b"".join(self._control)
        self._control.clear()
        self._control_bytes = 0
        messages: list[bytes] = []
        size = len(control)
        while self._messages and size < self._limits.write_bytes and len(messages) != at_most:
            frame = self._messages.popleft()
            self._message_bytes -= len(frame)
            messages.append(frame)
            size += len(frame)
        if self._message_bytes <= self._limits.soft_bytes // 2:
            self._room.set()
        self._taken += 1
        return Chunk(control=control, frames=tuple(messages))

    def start_anew(self) -> None:
        """A new stream: forget failure and stale control, keep the messages."""
        self._failure = None
        self._control.clear()
        self._control_bytes = 0

    async def wait_until_idle(self) -> None:
        """Until all that was added has been taken, and dealt with."""
        await self._idle.wait()

    async def wait_for_room(self) -> None:
        await self._room.wait()

    async def wait_while_taken(self, patience_s: float) -> bool:
        """Wait for room; False once nothing was taken for ``patience_s``.

        And for some turns of the loop: where each of them is long, it is not the peer who is slow.
        """
        while not self.has_room:
            taken = self._taken
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self.wait_for_room()
            for _ in range(_FAIR_TURNS):
                if self._taken != taken or self.has_room:
                    break
                await asyncio.sleep(0)
            else:
                return False
        return True

    def clear(self) -> int:
        """Drop everything; returns how many frames that were."""
        dropped = len(self._control) + len(self._messages)
        self._control.clear()
        self._messages.clear()
        self._control_bytes = self._message_bytes = 0
        self._room.set()
        return dropped
