"""What 26/WAKU2-PAYLOAD encrypts: flags, length, payload, padding and perhaps a signature ↔ bytes.

The encryption around it is in ``engine.crypto.shared_key``.  We write what js-waku writes: no
signature, a length as short as it can be, and random padding to the next multiple of 256 bytes, a
whole 256 if nothing is left over.  We read padding of any size, as the specification allows it.  A
signature is cut off and not checked: it names a key that nobody here knows, so it would prove
nothing.
"""

from typing import Final

from engine.core.entropy import RandomBytes
from engine.core.errors import LocalProtocolError, RemoteProtocolError

MAX_PAYLOAD_BYTES: Final = 149 * 1024
"""So that whatever we accept can be sent again by us, with our padding, in 150 KiB."""
PADDED_TO: Final = 256
SIGNATURE_BYTES: Final = 65
_LENGTH_MASK: Final = 0b011
"""How many bytes the length has."""
_SIGNED: Final = 0b100


def encode_waku_payload(payload: bytes, random_bytes: RandomBytes) -> bytes:
    """Raises LocalProtocolError for a payload that is too long."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise LocalProtocolError(f"a payload of {len(payload)} bytes")
    length_bytes = max(1, (len(payload).bit_length() + 7) // 8)
    plain = bytes((length_bytes,)) + len(payload).to_bytes(length_bytes, "little") + payload
    return plain + random_bytes(PADDED_TO - len(plain) % PADDED_TO)


def decode_waku_payload(plain: bytes) -> bytes:
    """The payload.  Raises RemoteProtocolError: ``payload_flags``, ``payload_length``."""
    flags = plain[0] if plain else 0
    length_bytes = flags & _LENGTH_MASK
    if not length_bytes or flags & ~(_LENGTH_MASK | _SIGNED):
        raise RemoteProtocolError("payload_flags", f"{flags:#04x}")
    start = 1 + length_bytes
    end = start + int.from_bytes(plain[1:start], "little")
    room = len(plain) - (SIGNATURE_BYTES if flags & _SIGNED else 0)
    if start > room or end > room or end - start > MAX_PAYLOAD_BYTES:
        raise RemoteProtocolError("payload_length", f"{end - start} bytes in {len(plain)}")
    return plain[start:end]
