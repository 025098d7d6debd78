"""Length-prefixed frames (unsigned varint), by which every Waku protocol divides a stream.

Sans-I/O: bytes go in as they arrive, whole frames come out.  An oversized frame is refused at its
prefix, before any of its body is kept, so a reader never holds more than one limit and one chunk.
"""

from collections.abc import Iterator

from engine.core.errors import RemoteProtocolError

_MAX_PREFIX_BYTES = 5
_MORE = 0x80  # set on every byte of a varint but the last


def encode_frame(payload: bytes) -> bytes:
    """``payload`` after its length as an unsigned varint."""
    length = len(payload)
    prefix = bytearray()
    while length >= _MORE:
        prefix.append(length & 0x7F | _MORE)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + payload


class FrameDecoder:
    """Decodes one direction of one stream.  Once it has raised, the stream is unusable."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Bytes held of an incomplete frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that ``data`` completes.

        Exhaust the iterator before the next call.  Raises RemoteProtocolError ``frame_oversized``
        or ``frame_prefix_malformed``.
        """
        self._buffer += data
        start = 0
        try:
            while (prefix := self._prefix(start)) is not None:
                body, length = prefix
                if len(self._buffer) < body + length:
                    return
                start = body + length
                yield bytes(memoryview(self._buffer)[body:start])
        finally:
            del self._buffer[:start]

    def _prefix(self, start: int) -> tuple[int, int] | None:
        """Where the body begins and its length, or None if the prefix is incomplete."""
        length = 0
        for index in range(_MAX_PREFIX_BYTES):
            if start + index >= len(self._buffer):
                return None
            byte = self._buffer[start + index]
            length |= (byte & 0x7F) << (7 * index)
            if byte < _MORE:
                break
        else:
            raise RemoteProtocolError("frame_prefix_malformed")
        if length > self._limit_bytes:
            raise RemoteProtocolError("frame_oversized", f"{length} bytes")
        return start + index + 1, length
