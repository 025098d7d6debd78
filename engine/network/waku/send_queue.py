"""Frames queued for one peer: bounded in bytes, control before messages.

Above ``soft_limit_bytes`` callers should wait for room; above the hard limits a frame is refused.
Frames are whole RPCs with their length prefix, so coalescing just joins them.  Their contents are
opaque, but the two kinds stay apart: after a stream breaks, messages are worth sending again
(receivers drop duplicates), and stale control is not.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from engine.core.errors import TransportError, TransportFault

_FAIR_TURNS = 20
"""Turns of the loop: several tasks run between a peer's reading and our next write."""


class Chunk(Struct, frozen=True, kw_only=True):
    """Frames for one write.  Control comes first and is already joined."""

    control: bytes
    frames: tuple[bytes, ...]

    @property
    def messages(self) -> bytes:
        return b"".join(self.frames)


class SendQueueLimits(Struct, frozen=True, kw_only=True):
    soft_bytes: int = 1024 * 1024
    message_bytes: int = 4 * 1024 * 1024
    control_bytes: int = 256 * 1024
    write_bytes: int = 64 * 1024
    """Frames are joined into writes of about this size."""


class SendQueue:
    """A queue with one writer that takes and many callers that add."""

    def __init__(self, limits: SendQueueLimits) -> None:
        self._limits = limits
        self._control: deque[bytes] = deque()
        self._messages: deque[bytes] = deque()
        self._control_bytes = 0
        self._message_bytes = 0
        self._taken = 0
        """Chunks taken since the start: shows whether the peer accepts anything."""
        self._failure: str | None = None
        self._filled = asyncio.Event()
        self._idle = asyncio.Event()
        """Set when the writer waits and the queue is empty."""
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    @property
    def queued_bytes(self) -> int:
        return self._control_bytes + self._message_bytes

    def add_control(self, frame: bytes) -> bool:
        """Return False if the frame was refused; ``take`` then fails and the peer starts anew."""
        if self._control_bytes + len(frame) > self._limits.control_bytes:
            self.fail("more control than a living peer leaves unread")
            return False
        self._control.append(frame)
        self._control_bytes += len(frame)
        self._idle.clear()
        self._filled.set()
        return True

    def add_message(self, frame: bytes) -> bool:
        """Return False if the frame was refused."""
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
        """Return frames that ``take`` gave and that could not be written."""
        self._messages.extendleft(reversed(frames))
        self._message_bytes += sum(map(len, frames))

    def fail(self, reason: str) -> None:
        """Make ``take`` raise TransportError, now or at its next call."""
        self._failure = reason
        self._filled.set()

    async def take(self, at_most: int | None = None) -> Chunk:
        """Wait for frames; return as many as fill one write.  Raises TransportError after ``fail``.

        ``at_most`` limits the number of messages.
        """
        while not self._control and not self._messages and self._failure is None:
            self._idle.set()
            self._filled.clear()
            await self._filled.wait()
        if self._failure is not None:
            raise TransportError(self._failure, TransportFault.LOST)
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
        """Prepare for a new stream: clear failure and stale control, keep the messages."""
        self._failure = None
        self._control.clear()
        self._control_bytes = 0

    async def wait_until_idle(self) -> None:
        """Wait until all added frames have been taken and written."""
        await self._idle.wait()

    async def wait_for_room(self) -> None:
        await self._room.wait()

    async def wait_while_taken(self, patience_s: float) -> bool:
        """Wait for room.  Return False once nothing has been taken for ``patience_s``.

        It also waits for some turns of the loop: if each turn is long, the peer is not the slow
        one.
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
        """Drop everything; return the number of frames dropped."""
        dropped = len(self._control) + len(self._messages)
        self._control.clear()
        self._messages.clear()
        self._control_bytes = self._message_bytes = 0
        self._room.set()
        return dropped
