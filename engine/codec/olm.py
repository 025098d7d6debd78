"""The envelope of an Olm message of a pair ↔ bytes: version, kind, generation, proof, ciphertext.

All but the ciphertext has a fixed length, so an envelope has one form only.  The proof covers the
rest; ``engine.crypto.olm`` makes and checks it before anything is decrypted.
"""

from typing import Final

from msgspec import Struct

from engine.core.errors import RemoteProtocolError
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES

VERSION: Final = 1
PRE_KEY, NORMAL = 0, 1
"""The kinds of Olm: a message that can begin a session, and one that cannot."""
PROOF_BYTES: Final = 32
_GENERATION_BYTES: Final = 4
MAX_GENERATION: Final = 2**32 - 1
_HEAD_BYTES: Final = 2 + _GENERATION_BYTES + PROOF_BYTES


class OlmEnvelope(Struct, frozen=True, kw_only=True):
    kind: int
    generation: int
    """Of the session: each new one has a higher one than all that its maker knew."""
    proof: bytes
    ciphertext: bytes


def encode_olm_envelope(envelope: OlmEnvelope) -> bytes:
    generation = envelope.generation.to_bytes(_GENERATION_BYTES, "big")
    return bytes((VERSION, envelope.kind)) + generation + envelope.proof + envelope.ciphertext


def decode_olm_envelope(data: bytes) -> OlmEnvelope:
    """Raises RemoteProtocolError ``oversized``, ``malformed`` or ``unsupported_version``."""
    if len(data) > MAX_WAKU_MESSAGE_BYTES:
        raise RemoteProtocolError("oversized")
    if len(data) <= _HEAD_BYTES or data[1] not in {PRE_KEY, NORMAL}:
        raise RemoteProtocolError("malformed", "olm envelope")
    if data[0] != VERSION:
        raise RemoteProtocolError("unsupported_version")
    at = 2 + _GENERATION_BYTES
    return OlmEnvelope(
        kind=data[1],
        generation=int.from_bytes(data[2:at], "big"),
        proof=data[at:_HEAD_BYTES],
        ciphertext=data[_HEAD_BYTES:],
    )
