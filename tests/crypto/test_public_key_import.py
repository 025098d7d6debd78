"""Malformed public keys, and those of small or mixed order: found by arithmetic, and refused.

The code asks X25519 one question and does no arithmetic on points; here is all of it, in
plain integers: the Edwards curve, its 8 small-order points, and the ladder, which works on the
twist as well.
"""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import CryptoError
from engine.crypto.identity import Identity, verify
from engine.crypto.keys import require_encryption_key, require_public_key

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int]
Projective = tuple[int, int, int]
NEUTRAL: Point = (0, 1)


def add(a: Point, b: Point) -> Point:
    """The complete addition law of the twisted Edwards curve -x² + y² = 1 + d·x²·y²."""
    product = D * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, P - 2, P) % P
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, P - 2, P) % P
    return x, y


def multiply(point: Point, scalar: int) -> Point:
    """In projective coordinates, which need one division only."""

    def sum_of(one: Projective, other: Projective) -> Projective:
        x, y, z = (a * b % P for a, b in zip(one, other, strict=True))
        mixed = (one[0] + one[1]) * (other[0] + other[1]) - x - y
        squared, product = z * z, D * x * y
        less, more = squared - product, squared + product
        return z * less * mixed % P, z * more * (y + x) % P, less * more % P

    result: Projective = (*NEUTRAL, 1)
    for bit in f"{scalar:b}":
        result = sum_of(result, result)
        if bit == "1":
            result = sum_of(result, (*point, 1))
    inverse = pow(result[2], P - 2, P)
    return result[0] * inverse % P, result[1] * inverse % P


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


def outcome_of_signing_key(key: bytes) -> str:
    try:
        require_public_key(key)
    except CryptoError as error:
        return error.reason
    return "accepted"


def outcome_of_encryption_key(u: int) -> str:
    try:
        require_encryption_key(u.to_bytes(32, "little"))
    except CryptoError as error:
        return error.reason
    return "accepted"


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


def test_keys_are_accepted_if_and_only_if_they_are_points_of_prime_order() -> None:
    outcomes = {"bad_public_key": 0, "mixed_order_key": 0, "accepted": 0}
    for y in range(2, 400):
        point = point_with_y(y)
        if point is None:
            expected = "bad_public_key"
        elif multiply(point, ORDER) == NEUTRAL:
            expected = "accepted"
        else:
            expected = "mixed_order_key"
        assert outcome_of_signing_key(y.to_bytes(32, "little")) == expected
        outcomes[expected] += 1
    assert outcomes["bad_public_key"] > 150
    assert outcomes["accepted"] > 10, "one in 16"
    assert outcomes["mixed_order_key"] > 100


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


# --- mixed order ----------------------------------------------------------------------------------

SECRETS = st.binary(min_size=32, max_size=32)


def point_of(key: bytes) -> Point:
    number = int.from_bytes(key, "little")
    point = point_with_y(number & (2**255 - 1))
    assert point is not None
    x, y = point
    return (x, y) if x & 1 == number >> 255 else (P - x, y)


def encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


@settings(max_examples=20)
@given(SECRETS)
def test_of_the_8_translates_of_a_key_7_are_refused(secret: bytes) -> None:
    genuine = Identity(signing_key=secret, encryption_key=secret)
    point = point_of(genuine.public_key)
    assert multiply(point, ORDER) == NEUTRAL
    translates = [add(point, torsion) for torsion in SMALL_ORDER_POINTS]
    assert len(set(translates)) == 8
    outcomes = [outcome_of_signing_key(encoded(translate)) for translate in translates]
    assert sorted(outcomes) == ["accepted"] + ["mixed_order_key"] * 7
    assert outcomes[translates.index(point)] == "accepted"
    outcomes = [outcome_of_encryption_key(montgomery_u(translate)) for translate in translates]
    assert sorted(outcomes) == ["accepted"] + ["mixed_order_key"] * 7
    assert outcomes[translates.index(point)] == "accepted"


def test_why_a_translate_is_refused_it_is_another_name_for_the_same_key(alice: Identity) -> None:
    """Whoever seals to it reaches Alice, and a signature of hers may fit it, too."""
    own = alice.decryption_key
    genuine = int.from_bytes(alice.encryption_public_key, "little")
    y = (genuine - 1) * pow(genuine + 1, P - 2, P) % P
    point = point_with_y(y)
    assert point is not None
    other = X25519PrivateKey.from_private_bytes(bytes(range(32)))
    shared = own.exchange(other.public_key())
    for torsion in SMALL_ORDER_POINTS - {NEUTRAL}:
        alias = montgomery_u(add(point, torsion)).to_bytes(32, "little")
        assert alias != alice.encryption_public_key
        assert other.exchange(X25519PublicKey.from_public_bytes(alias)) == shared


@given(SECRETS)
def test_honest_keys_are_accepted(secret: bytes) -> None:
    honest = Identity(signing_key=secret, encryption_key=secret)
    require_public_key(honest.public_key)
    require_encryption_key(honest.encryption_public_key)


def ladder(u: int, scalar: int) -> int | None:
    """The u of so many times the point with this u, on the curve or its twist; None: infinity."""
    ahead, here = (u, 1), (1, 0)
    for bit in f"{scalar:b}":
        total, apart = (sum(ahead) % P, (ahead[0] - ahead[1]) % P)
        here_total, here_apart = (sum(here) % P, (here[0] - here[1]) % P)
        one, two = apart * here_total, total * here_apart
        between = ((one + two) ** 2 % P, u * (one - two) ** 2 % P)
        if bit == "1":
            here, ahead = between, doubled(total, apart)
        else:
            here, ahead = doubled(here_total, here_apart), between
    return here[0] * pow(here[1], P - 2, P) % P if here[1] else None


def doubled(total: int, apart: int) -> tuple[int, int]:
    square, other = total * total % P, apart * apart % P
    difference = square - other
    return square * other % P, difference * (other + 121666 * difference) % P


def is_on_the_curve(u: int) -> bool:
    return pow(u * (u * u + 486662 * u + 1), (P - 1) // 2, P) in {0, 1}


TWIST_ORDER = 2 * (P + 1) - 8 * ORDER


def test_every_point_of_the_twist_is_refused() -> None:
    refused = 0
    for u in range(2, 200):
        if is_on_the_curve(u):
            continue
        assert ladder(u, TWIST_ORDER) is None
        # Of the twist's own prime order, and of mixed order there.
        for point in (u, ladder(u, 2), ladder(u, 4)):
            assert point is not None
            assert outcome_of_encryption_key(point) == "bad_encryption_key"
            refused += 1
    assert refused > 200


@settings(max_examples=50)
@given(st.integers(2, P - 1))
def test_an_encryption_key_is_accepted_if_and_only_if_it_has_order_l(u: int) -> None:
    if (u in SMALL_ORDER_U) or not is_on_the_curve(u):
        assert outcome_of_encryption_key(u) in {"small_order_key", "bad_encryption_key"}
        return
    expected = "accepted" if ladder(u, ORDER) is None else "mixed_order_key"
    assert outcome_of_encryption_key(u) == expected
    of_order_l = ladder(u, 8)
    assert of_order_l is not None
    assert outcome_of_encryption_key(of_order_l) == "accepted"


def test_the_scalar_is_left_as_it_is_and_does_what_it_should() -> None:
    scalar = 5 * ORDER - 1
    assert (scalar % 8, scalar.bit_length()) == (0, 255), "what clamping would make of it"
    assert scalar % ORDER == ORDER - 1
    on_the_curve = [small * large for small in (1, 2, 4, 8) for large in (1, ORDER)]
    on_the_twist = [small * large for small in (1, 2, 4) for large in (1, TWIST_ORDER // 4)]
    for order in on_the_curve + on_the_twist:
        is_kept = (5 * ORDER) % order == 0 or (5 * ORDER - 2) % order == 0
        assert is_kept == (order in {1, ORDER})
