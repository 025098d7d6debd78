"""What a stream multiplexer is to a connection: a sans-I/O machine with these calls and events.

yamux is preferred; mplex is there for peers that have nothing else.  A muxer turns bytes of the
secured channel into events, queues frames in ``take_output``, and counts windows or what is unread.
It refuses to know sockets, tasks and protocols.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """By the peer."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class DataReceived:
    stream_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The peer will write no more; our half may still be open."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamOverflowed:
    """More came than a stream without a window may hold unread: it has been reset, both ways."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """``send`` takes more bytes now than before."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamRefused:
    """The peer wanted a stream more than our limit: it was told so."""


@dataclass(frozen=True, slots=True)
class PongReceived:
    opaque: int


@dataclass(frozen=True, slots=True)
class PeerLeaves:
    """The peer opens and takes no more streams, and will close the connection."""

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
        """What comes of ``data``, or of a part of it: see ``has_unhandled``.

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
        """When ``take_output`` has more though nothing else happens; the loop's clock."""

    @property
    def has_ping(self) -> bool:
        """Else the connection is kept alive by other means."""

    @property
    def open_streams(self) -> int: ...

    def open_stream(self) -> int:
        """Id of a new stream.  Raises TransportError if there are too many, or the peer leaves."""

    def send(self, stream_id: int, data: bytes | memoryview, /) -> int:
        """Queue as much as the peer's window and one frame allow; how much that was.

        The data is kept as it is, not copied: it must not change until ``take_output``.
        """

    def consumed(self, stream_id: int, count: int, /) -> None:
        """The application has read so many bytes: the peer may send as many again."""

    def close_write(self, stream_id: int, /) -> None: ...

    def reset(self, stream_id: int, /) -> None: ...

    def ping(self, opaque: int, /) -> None:
        """Ask for a PongReceived with the same value, which any answer of the peer replaces."""

    def leave(self, code: int, /) -> None:
        """Announce the end of the connection: 0 normal, 1 protocol error, 2 internal error."""
