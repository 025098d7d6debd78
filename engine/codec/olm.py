"""What is under version 3 of a pair's envelope ↔ bytes: Olm, or what bypasses MVDS.

Version, kind, generation, the sender's time, proof, ciphertext: all but the ciphertext has a fixed
length, so an envelope has one form only.  The proof covers the rest; ``engine.crypto.pair_proof``
makes and checks it before anything is decrypted.  The plaintext of an Olm message is a number and
an MVDS payload, which may be empty: the number of the newest keys of the receiver that the sender
has.
"""

from typing import Final

from msgspec import Struct

from engine.core.content import MAX_SAFE_INTEGER
from engine.core.errors import RemoteProtocolError
from engine.core.ids import UnixMs
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES

VERSION: Final = 1
PRE_KEY, NORMAL = 0, 1
"""The kinds of Olm: a message that can begin a session, and one that cannot."""
UNHELD: Final = 2
"""An ephemeral content, sealed with a key of the two and no ratchet; its generation is 0."""
PROOF_BYTES: Final = 32
_GENERATION_BYTES: Final = 4
_TIME_BYTES: Final = 8
MAX_GENERATION: Final = 2**32 - 1
_HEAD_BYTES: Final = 2 + _GENERATION_BYTES + _TIME_BYTES + PROOF_BYTES
_NUMBER_BYTES: Final = 8


class OlmEnvelope(Struct, frozen=True, kw_only=True):
    kind: int
    generation: int
    """Of the session: each new one has a higher one than all that its maker knew."""
    sent_ms: UnixMs
    """By the sender's clock; of Olm messages of one sender it always grows."""
    proof: bytes
    ciphertext: bytes


class OlmPlaintext(Struct, frozen=True, kw_only=True):
    known: int
    """The number of the newest bundle of the receiver's keys that the sender has; 0: none."""
    payload: bytes
    """Encoded; b"" if the message only begins a session."""


def encode_olm_envelope(envelope: OlmEnvelope) -> bytes:
    generation = envelope.generation.to_bytes(_GENERATION_BYTES, "big")
    sent_ms = envelope.sent_ms.to_bytes(_TIME_BYTES, "big")
    head = bytes((VERSION, envelope.kind)) + generation + sent_ms
    return head + envelope.proof + envelope.ciphertext


def decode_olm_envelope(data: bytes) -> OlmEnvelope:
    """Raises RemoteProtocolError ``oversized``, ``malformed`` or ``unsupported_version``."""
    if len(data) > MAX_WAKU_MESSAGE_BYTES:
        raise RemoteProtocolError("oversized")
    if len(data) <= _HEAD_BYTES or data[1] not in {PRE_KEY, NORMAL, UNHELD}:
        raise RemoteProtocolError("malformed", "olm envelope")
    if data[0] != VERSION:
        raise RemoteProtocolError("unsupported_version")
    time_at = 2 + _GENERATION_BYTES
    proof_at = time_at + _TIME_BYTES
    envelope = OlmEnvelope(
        kind=data[1],
        generation=int.from_bytes(data[2:time_at], "big"),
        sent_ms=UnixMs(int.from_bytes(data[time_at:proof_at], "big")),
        proof=data[proof_at:_HEAD_BYTES],
        ciphertext=data[_HEAD_BYTES:],
    )
    if envelope.sent_ms > MAX_SAFE_INTEGER or (envelope.kind == UNHELD and envelope.generation):
        raise RemoteProtocolError("malformed", "olm envelope")
    return envelope


def encode_olm_plaintext(plaintext: OlmPlaintext) -> bytes:
    return plaintext.known.to_bytes(_NUMBER_BYTES, "big") + plaintext.payload


def decode_olm_plaintext(data: bytes) -> OlmPlaintext:
    """Raises RemoteProtocolError ``malformed``."""
    if len(data) < _NUMBER_BYTES:
        raise RemoteProtocolError("malformed", "olm plaintext")
    known = int.from_bytes(data[:_NUMBER_BYTES], "big")
    return OlmPlaintext(known=known, payload=data[_NUMBER_BYTES:])
