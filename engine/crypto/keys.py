"""Checks public keys on import.

Libraries accept nearly any 32 bytes as a public key, and some accept signatures that nobody made
under a small-order Ed25519 key: under the identity element one signature fits every message.  A
small-order X25519 key makes every shared secret zero.  A key of *mixed order*, a genuine one plus a
small-order point, is a second name of the same private key: a message sealed for one opens for the
other, and every eighth signature fits both.

A key is therefore refused before use if it has the wrong length, is not canonical (y or u not below
p, or a "negative zero"), is not on the curve, or has small or mixed order.  All others generate the
group of prime order l.  These are public values, so nothing here needs constant time.
"""

from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from engine.core.errors import CryptoError
from engine.core.ids import KEY_BYTES

_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P) % _P
_SIGN_BIT: Final = 1 << 255
_L: Final = 2**252 + 27742317777372353535851937790883648493
_A: Final = 486662
# 5·l - 1 is a multiple of 8 with bit 254 as the highest, so X25519 uses it unchanged.  P times that
# has the u of P if and only if the order of P divides 5·l or 5·l - 2 (the result is -P or P).  On
# the curve orders divide 8·l, so it is 1 or l; on the twist they divide 4 times a prime that
# divides neither, so it is 1.
_MINUS_ONE: Final = X25519PrivateKey.from_private_bytes((5 * _L - 1).to_bytes(KEY_BYTES, "little"))

# Doubling a point of order 8 gives y = 0, which needs x² = -y²; on the curve: d·y⁴ + 2·y² = 1.
_Y_OF_ORDER_8: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER_Y: Final = frozenset({0, 1, _P - 1, _Y_OF_ORDER_8, _P - _Y_OF_ORDER_8})
_SMALL_ORDER_U: Final = frozenset(
    {
        0,
        1,
        _P - 1,
        0xB8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
        0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
    }
)


@lru_cache(maxsize=4096)
def require_public_key(public_key: bytes) -> None:
    """Check an Ed25519 key for verifying signatures.

    Raises CryptoError ``bad_public_key``, ``small_order_key`` or ``mixed_order_key``.
    """
    if len(public_key) != KEY_BYTES:
        raise CryptoError("bad_public_key", "wrong length")
    number = int.from_bytes(public_key, "little")
    y = number & (_SIGN_BIT - 1)
    if y % _P in _SMALL_ORDER_Y:
        raise CryptoError("small_order_key")
    if y >= _P:
        raise CryptoError("bad_public_key", "not canonical")
    if not _has_prime_order((1 + y) * pow(1 - y, -1, _P) % _P):  # The same point on curve25519.
        if not _is_square((y * y - 1) * (_D * y * y + 1)):
            raise CryptoError("bad_public_key", "not on the curve")
        raise CryptoError("mixed_order_key")


@lru_cache(maxsize=4096)
def require_encryption_key(public_key: bytes) -> None:
    """Raises CryptoError ``bad_encryption_key``, ``small_order_key`` or ``mixed_order_key``."""
    if len(public_key) != KEY_BYTES:
        raise CryptoError("bad_encryption_key", "wrong length")
    number = int.from_bytes(public_key, "little")
    if (number & (_SIGN_BIT - 1)) % _P in _SMALL_ORDER_U:
        raise CryptoError("small_order_key")
    if number >= _P:
        raise CryptoError("bad_encryption_key", "not canonical")
    if not _has_prime_order(number):
        if not _is_square(number * (number * number + _A * number + 1)):
            raise CryptoError("bad_encryption_key", "not on the curve")
        raise CryptoError("mixed_order_key")


def _has_prime_order(u: int) -> bool:
    """For a point of curve25519 or its twist whose order is not small."""
    encoded = u.to_bytes(KEY_BYTES, "little")
    return _MINUS_ONE.exchange(X25519PublicKey.from_public_bytes(encoded)) == encoded


def _is_square(number: int) -> bool:
    """Whether u/v is a square, given u·v: the two differ by the square v²."""
    return pow(number % _P, (_P - 1) // 2, _P) in {0, 1}
