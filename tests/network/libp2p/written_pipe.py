"""A pipe with no socket behind it, for what stands on top of one: Noise channels and WebSockets.

A test hands bytes to the layer above and looks here at what that wrote; nothing is ever read.
"""

from engine.core.errors import TransportError
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.pipe import PipeSink


class Wire:
    """A pipe of a test: keeps what is written, and whether anybody reads."""

    remote_address = parse_multiaddr("/ip4/127.0.0.1/tcp/1")

    def __init__(self) -> None:
        self.written = b""
        self.closed = False
        self.reading = True
        self.queued_bytes = 0
        self.sink: PipeSink | None = None

    async def read_exactly(self, count: int) -> bytes:
        raise TransportError(f"{count} bytes never come")

    def write(self, data: bytes) -> None:
        self.written += data

    def attach(self, sink: PipeSink) -> None:
        self.sink = sink

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    async def wait_closed(self) -> None:
        return
