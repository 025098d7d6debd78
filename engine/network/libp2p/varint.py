"""Unsigned varints of multiformats: seven bits a byte, least significant group first.

The spec (multiformats/unsigned-varint) limits them to nine bytes and requires the shortest form.
multistream-select, multihashes and multiaddrs use them.
"""

from engine.core.errors import LocalProtocolError, RemoteProtocolError

MAX_VARINT_BYTES = 9
_CONTINUATION = 0x80


def encode_varint(value: int) -> bytes:
    if not 0 <= value < 1 << 63:
        raise LocalProtocolError(f"{value} does not fit an unsigned varint")
    encoded = bytearray()
    while value >= _CONTINUATION:
        encoded.append(value & 0x7F | _CONTINUATION)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, offset: int = 0) -> tuple[int, int]:
    """Value, and offset of what follows it.

    Raises RemoteProtocolError ("varint_truncated", "varint_too_long", "varint_not_minimal").
    """
    value = 0
    for position in range(MAX_VARINT_BYTES):
        if offset + position >= len(data):
            raise RemoteProtocolError("varint_truncated")
        byte = data[offset + position]
        value |= (byte & 0x7F) << (7 * position)
        if byte < _CONTINUATION:
            if byte == 0 and position > 0:
                raise RemoteProtocolError("varint_not_minimal")
            return value, offset + position + 1
    raise RemoteProtocolError("varint_too_long")
