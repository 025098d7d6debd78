"""One request and one response on a stream of their own, the pattern of all Waku services.

Each side sends one length-prefixed frame and closes its half; a client on a muxer with windows does
so when it has read the answer.  Every size and time is bounded: a peer that sends a second frame,
an oversized frame or nothing in time is reset.  Some peers never close their half after answering;
they get a moment and are then reset.  Requests and answers are opaque here.
"""

import asyncio
from typing import Final

from msgspec import Struct

from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.network.libp2p.ports import Host, PeerId, ProtocolId, Stream
from engine.network.waku.framing import FrameDecoder, encode_frame

_READ_BYTES: Final = 64 * 1024


class ExchangeLimits(Struct, frozen=True, kw_only=True):
    first_byte_timeout_s: float = 10.0
    """To agree on the protocol, send the request and receive the first byte of the answer."""
    timeout_s: float = 30.0
    """For the whole exchange."""
    end_timeout_s: float = 0.5
    """For the peer to close its half after its answer."""
    max_response_bytes: int = 64 * 1024


async def ask(
    host: Host, peer_id: PeerId, protocol: ProtocolId, request: bytes, limits: ExchangeLimits
) -> bytes:
    """Send the request and return the peer's answer.

    nwaku up to 0.36 forgets a stream once both halves are closed, and resets the connection if
    window for its answer comes after that.  So where we return window, our half is closed last.

    Raises TransportError if the peer cannot be reached or is too slow, and RemoteProtocolError
    (``frame_oversized``, ``response_missing`` and so on) if it breaks the protocol.
    """
    try:
        async with asyncio.timeout(limits.timeout_s):
            async with asyncio.timeout(limits.first_byte_timeout_s) as beginning:
                stream = await host.new_stream(peer_id, [protocol])
                try:
                    await stream.write(encode_frame(request))
                    if not stream.returns_window:
                        await stream.close_write()
                    first = await stream.read_some(_READ_BYTES)
                    beginning.reschedule(None)
                    response = await _read_frame(stream, limits.max_response_bytes, first)
                except BaseException:
                    await stream.reset()
                    raise
    except TimeoutError:
        text = f"{peer_id} did not answer {protocol} in time"
        raise TransportError(text, TransportFault.NO_ANSWER) from None
    await _end(stream, limits.end_timeout_s)
    return response


async def first_bytes(stream: Stream) -> bytes:
    """The first bytes of the stream, without a time limit.  Raises TransportError."""
    return await stream.read_some(_READ_BYTES)


async def read_request(stream: Stream, first: bytes, *, max_bytes: int, timeout_s: float) -> bytes:
    """Read a request that begins with ``first``, as a server.

    Raises TransportError, RemoteProtocolError.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await _read_frame(stream, max_bytes, first)
    except TimeoutError:
        raise RemoteProtocolError("request_timeout") from None


async def answer(stream: Stream, response: bytes, *, timeout_s: float) -> None:
    """Send the response, as a server.  Raises TransportError."""
    try:
        async with asyncio.timeout(timeout_s):
            await stream.write(encode_frame(response))
            await stream.close_write()
    except TimeoutError:
        await stream.reset()
        text = f"{stream.peer_id} does not read its answer"
        raise TransportError(text, TransportFault.NO_ANSWER) from None


async def _read_frame(stream: Stream, max_bytes: int, first: bytes) -> bytes:
    decoder = FrameDecoder(max_bytes)
    chunk = first
    while chunk:
        frames = list(decoder.feed(chunk))
        if frames:
            if len(frames) > 1 or decoder.pending_bytes:
                raise RemoteProtocolError("exchange_more_than_one_frame")
            return frames[0]
        chunk = await stream.read_some(_READ_BYTES)
    raise RemoteProtocolError("exchange_ended_early")


async def _end(stream: Stream, timeout_s: float) -> None:
    """Close our half and let the peer close its own, so that neither side has to reset."""
    try:
        async with asyncio.timeout(timeout_s):
            await stream.close_write()
            if await stream.read_some(1):
                await stream.reset()
    except (TimeoutError, TransportError):
        await stream.reset()
    except BaseException:
        await stream.reset()
        raise
