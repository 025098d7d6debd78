"""Padding under a seal, so that its length reveals little about the content.

Padmé (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and Communication with
PURBs", 2019, section 4): a length keeps as many leading bits as its exponent needs, so that a
length up to L takes one of O(log log L) values and grows by 12 % at most.  Small lengths all become
256.  The padded form is the plaintext's length in 4 bytes, big-endian, the plaintext, zeros.  A
plaintext has exactly one padded form, and all of it is checked, so nothing can be hidden in it.
"""

from typing import Final

from engine.core.errors import LocalProtocolError, RemoteProtocolError

LEAST_PADDED_BYTES: Final = 256
MAX_PADDED_BYTES: Final = 151_552
"""The largest of Padmé's lengths that fits into a Waku message."""
_LENGTH_BYTES: Final = 4
MAX_PLAINTEXT_BYTES: Final = MAX_PADDED_BYTES - _LENGTH_BYTES


def pad(plaintext: bytes) -> bytes:
    """Raises LocalProtocolError if it has more than MAX_PLAINTEXT_BYTES."""
    size = len(plaintext)
    if size > MAX_PLAINTEXT_BYTES:
        raise LocalProtocolError(f"a plaintext of {size} bytes is too large")
    prefixed = size.to_bytes(_LENGTH_BYTES, "big") + plaintext
    return prefixed.ljust(_padded_size(len(prefixed)), b"\0")


def unpad(padded: bytes) -> bytes:
    """The plaintext.  Raises RemoteProtocolError ``bad_padding``."""
    end = _LENGTH_BYTES + int.from_bytes(padded[:_LENGTH_BYTES], "big")
    # A length beyond the end would require another size.
    if len(padded) > MAX_PADDED_BYTES or len(padded) != _padded_size(end):
        raise RemoteProtocolError("bad_padding")
    if not padded.endswith(bytes(len(padded) - end)):
        raise RemoteProtocolError("bad_padding")
    return padded[_LENGTH_BYTES:end]


def _padded_size(size: int) -> int:
    if size <= LEAST_PADDED_BYTES:
        return LEAST_PADDED_BYTES
    exponent = size.bit_length() - 1
    rounded_up = (1 << exponent - exponent.bit_length()) - 1
    return (size + rounded_up) & ~rounded_up
