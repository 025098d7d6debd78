"""The interface of stream multiplexers: sans-I/O machines with these calls and events.

yamux is preferred; mplex is for peers that have nothing else.  A muxer turns bytes of the secured
channel into events, queues frames in ``take_output``, and counts windows or unread bytes.  The
connection handles sockets and tasks.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct


class StreamOpened(Struct, frozen=True):
    """The peer opened it."""

    stream_id: int


class DataReceived(Struct, frozen=True):
    stream_id: int
    data: bytes


class StreamEnded(Struct, frozen=True):
    """The peer will write no more; our half may still be open."""

    stream_id: int


class StreamReset(Struct, frozen=True):
    stream_id: int


class StreamOverflowed(Struct, frozen=True):
    """A stream without a window exceeded its limit of unread bytes and was reset, both ways."""

    stream_id: int


class WindowOpened(Struct, frozen=True):
    """``send`` accepts more bytes now than before."""

    stream_id: int


class StreamRefused(Struct, frozen=True):
    """The peer exceeded our limit of streams; it has been told so."""


class PongReceived(Struct, frozen=True):
    opaque: int


class PeerLeaves(Struct, frozen=True):
    """The peer opens and accepts no more streams, and will close the connection."""

    code: int


MuxerEvent: TypeAlias = (
    StreamOpened
    | DataReceived
    | StreamEnded
    | StreamReset
    | StreamOverflowed
    | WindowOpened
    | StreamRefused
    | PongReceived
    | PeerLeaves
)


class Muxer(Protocol):
    def receive(self, data: bytes, /) -> Sequence[MuxerEvent]:
        """The events of ``data``, or of a part of it: see ``has_unhandled``.

        Raises RemoteProtocolError: the connection must be dropped (after ``take_output``).
        """

    @property
    def has_unhandled(self) -> bool:
        """``receive`` has left frames for another turn of the loop: call it again with b""."""

    def take_output(self) -> bytes:
        """Frames to be sent, in order; b"" if there are none."""

    @property
    def queued_bytes(self) -> int:
        """Size of what ``take_output`` would return."""

    @property
    def next_output_at(self) -> float | None:
        """When ``take_output`` will have more without other input; the loop's clock."""

    @property
    def has_ping(self) -> bool:
        """False: the connection is kept alive by other means."""

    @property
    def returns_window(self) -> bool:
        """Whether ``consumed`` queues frames."""

    @property
    def open_streams(self) -> int: ...

    def open_stream(self) -> int:
        """Id of a new stream.  Raises TransportError if there are too many, or the peer leaves."""

    def send(self, stream_id: int, data: bytes | memoryview, /) -> int:
        """Queue as much as the peer's window and one frame allow; return how much that was.

        The data is not copied and must not change until ``take_output``.
        """

    def consumed(self, stream_id: int, count: int, /) -> None:
        """The application has read this many bytes: the peer may send as many again."""

    def close_write(self, stream_id: int, /) -> None: ...

    def reset(self, stream_id: int, /) -> None: ...

    def ping(self, opaque: int, /) -> None:
        """Request a PongReceived with the same value; any answer of the peer replaces it."""

    def leave(self, code: int, /) -> None:
        """Announce the end of the connection: 0 normal, 1 protocol error, 2 internal error."""
