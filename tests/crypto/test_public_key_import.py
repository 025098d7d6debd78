"""Small-order and malformed public keys: found by arithmetic here, refused by the code there."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from engine.core.errors import CryptoError
from engine.crypto.identity import Identity, verify
from engine.crypto.keys import require_encryption_key, require_public_key

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int]
NEUTRAL: Point = (0, 1)


def add(a: Point, b: Point) -> Point:
    """The complete addition law of the twisted Edwards curve -x² + y² = 1 + d·x²·y²."""
    product = D * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, P - 2, P) % P
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, P - 2, P) % P
    return x, y


def multiply(point: Point, scalar: int) -> Point:
    result = NEUTRAL
    for bit in f"{scalar:b}":
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def point_with_y(y: int) -> Point | None:
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    root = pow(square, (P + 3) // 8, P)
    for x in (root, root * pow(2, (P - 1) // 4, P) % P):
        if x * x % P == square:
            return x, y
    return None


def small_order_points() -> set[Point]:
    """The 8 points whose order divides 8: multiples of one of order 8."""
    y = 2
    while True:
        point = point_with_y(y)
        y += 1
        if point is None:
            continue
        torsion = multiply(point, ORDER)
        if multiply(torsion, 4) != NEUTRAL:
            return {multiply(torsion, times) for times in range(8)}


def encodings(point: Point) -> set[bytes]:
    """Every 32 bytes that a lenient decoder takes for the point."""
    x, y = point
    signs = {0, 1} if x == 0 else {x & 1}
    ys = [y] + ([y + P] if y + P < 2**255 else [])
    return {(value | sign << 255).to_bytes(32, "little") for value in ys for sign in signs}


SMALL_ORDER_POINTS = small_order_points()
SMALL_ORDER_KEYS = sorted(set().union(*map(encodings, SMALL_ORDER_POINTS)))
FITS_EVERYTHING = (1).to_bytes(32, "little") + bytes(32)


def test_the_arithmetic_found_all_of_them() -> None:
    assert len(SMALL_ORDER_POINTS) == 8
    assert len(SMALL_ORDER_KEYS) == 14


def test_the_library_accepts_a_signature_that_nobody_made() -> None:
    """Why the check exists: under the identity element this fits every message."""
    identity_element = (1).to_bytes(32, "little")
    library_key = Ed25519PublicKey.from_public_bytes(identity_element)
    library_key.verify(FITS_EVERYTHING, b"one thing")
    library_key.verify(FITS_EVERYTHING, b"another")
    with pytest.raises(CryptoError) as refusal:
        verify(identity_element, FITS_EVERYTHING, b"one thing")
    assert refusal.value.reason == "small_order_key"


@pytest.mark.parametrize("key", SMALL_ORDER_KEYS, ids=bytes.hex)
def test_every_encoding_of_a_small_order_key_is_refused(key: bytes) -> None:
    for _ in range(2):  # a refusal must not be remembered as anything else
        with pytest.raises(CryptoError) as refusal:
            require_public_key(key)
        assert refusal.value.reason == "small_order_key"


@pytest.mark.parametrize("y", range(2, 19))
@pytest.mark.parametrize("sign", [0, 1])
def test_keys_that_are_not_canonical_are_refused(y: int, sign: int) -> None:
    key = (y + P | sign << 255).to_bytes(32, "little")
    with pytest.raises(CryptoError) as refusal:
        require_public_key(key)
    assert refusal.value.reason == "bad_public_key"


def test_keys_are_accepted_if_and_only_if_they_are_on_the_curve() -> None:
    on_curve = 0
    for y in range(2, 200):
        key = y.to_bytes(32, "little")
        if point_with_y(y) is None:
            with pytest.raises(CryptoError, match="not on the curve"):
                require_public_key(key)
        else:
            on_curve += 1
            require_public_key(key)
    assert 60 < on_curve < 140


@pytest.mark.parametrize("length", [0, 31, 33])
def test_keys_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(CryptoError) as refusal:
        require_public_key(bytes([9] * length))
    assert refusal.value.reason == "bad_public_key"
    with pytest.raises(CryptoError) as refusal:
        require_encryption_key(bytes([9] * length))
    assert refusal.value.reason == "bad_encryption_key"


def test_real_keys_are_accepted(alice: Identity) -> None:
    require_public_key(alice.public_key)
    require_encryption_key(alice.encryption_public_key)


def montgomery_u(point: Point) -> int:
    """Map to u = (1 + y) / (1 - y), the same point on curve25519; infinity is written as 0."""
    return (1 + point[1]) * pow(1 - point[1], P - 2, P) % P


SMALL_ORDER_U = sorted({montgomery_u(point) for point in SMALL_ORDER_POINTS} | {P - 1})


def test_small_order_encryption_keys_give_no_secret_and_are_refused() -> None:
    private = X25519PrivateKey.from_private_bytes(bytes(range(32)))
    refused = 0
    for u in SMALL_ORDER_U:
        for value in (u, u + P):
            for high_bit in (0, 1):
                if value >= 2**255:
                    continue
                key = (value | high_bit << 255).to_bytes(32, "little")
                with pytest.raises(ValueError, match=r".*"):
                    private.exchange(X25519PublicKey.from_public_bytes(key))
                with pytest.raises(CryptoError) as refusal:
                    require_encryption_key(key)
                assert refusal.value.reason == "small_order_key"
                refused += 1
    assert refused == 14


def test_encryption_keys_that_are_not_canonical_are_refused() -> None:
    for number in (P + 9, 9 | 1 << 255):
        with pytest.raises(CryptoError) as refusal:
            require_encryption_key(number.to_bytes(32, "little"))
        assert refusal.value.reason == "bad_encryption_key"
