"""ping 1.0.0: 32 bytes there and back.

Used only to measure, by us and by peers.  The muxer's ping checks whether a connection lives,
without using a stream.
"""

from collections.abc import Callable

from engine.core.errors import RemoteProtocolError
from engine.network.libp2p.ports import ProtocolId, Stream

PING = ProtocolId("/ipfs/ping/1.0.0")
PING_BYTES = 32
MAX_PINGS_PER_STREAM = 100_000


async def serve_ping(stream: Stream) -> None:
    """Echo until the peer stops."""
    for _ in range(MAX_PINGS_PER_STREAM):
        data = await stream.read_some(PING_BYTES)
        if not data:
            break
        if len(data) < PING_BYTES:
            data += await stream.read_exactly(PING_BYTES - len(data))
        await stream.write(data)


async def measure_ping(stream: Stream, *, payload: bytes, now: Callable[[], float]) -> float:
    """Seconds for one round trip.  Raises TransportError, RemoteProtocolError."""
    started = now()
    await stream.write(payload)
    echo = await stream.read_exactly(len(payload))
    elapsed = now() - started
    if echo != payload:
        raise RemoteProtocolError("ping_wrong_echo")
    await stream.close_write()
    return elapsed
