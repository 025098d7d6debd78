"""Keccak-256 as Ethereum has it: what node records (EIP-778) are signed over.

FIPS 202 made SHA3-256 of Keccak by another padding, so neither ``hashlib`` nor ``cryptography``
has the older function, and the libraries that do bring Ethereum along.  The permutation is the
same: the tests give it SHA-3's padding and compare it with ``hashlib``.

For public data alone: nothing secret is ever hashed here.  A block takes a third of a millisecond.
Refuses to know node records.
"""

from typing import Final

_RATE_BYTES: Final = 136
_DIGEST_BYTES: Final = 32
_LANE_MASK: Final = 2**64 - 1
_ROUNDS: Final = 24
_PADDING: Final = 0x01
"""SHA-3 has 0x06."""


def keccak256(data: bytes) -> bytes:
    return _sponge(data, _PADDING)


def _sponge(data: bytes, padding: int) -> bytes:
    padded = bytearray(data)
    padded.append(padding)
    padded += bytes(-len(padded) % _RATE_BYTES)
    padded[-1] |= 0x80
    lanes = [0] * 25
    for start in range(0, len(padded), _RATE_BYTES):
        for index in range(_RATE_BYTES // 8):
            at = start + 8 * index
            lanes[index] ^= int.from_bytes(padded[at : at + 8], "little")
        lanes = _permuted(lanes)
    squeezed = b"".join(lane.to_bytes(8, "little") for lane in lanes[: _DIGEST_BYTES // 8])
    return squeezed[:_DIGEST_BYTES]


def _permuted(lanes: list[int]) -> list[int]:
    """Keccak-f[1600]; lane (x, y) is at x + 5 y."""
    for constant in _ROUND_CONSTANTS:
        # theta
        columns = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        mixed = [columns[x - 1] ^ _rotated(columns[(x + 1) % 5], 1) for x in range(5)]
        # rho and pi
        moved = [0] * 25
        for source, target, turn in _MOVES:
            moved[target] = _rotated(lanes[source] ^ mixed[source % 5], turn)
        # chi
        lanes = [
            moved[at] ^ ~moved[row + (at + 1) % 5] & moved[row + (at + 2) % 5]
            for row in range(0, 25, 5)
            for at in range(row, row + 5)
        ]
        # iota
        lanes[0] ^= constant
    return lanes


def _rotated(lane: int, turn: int) -> int:
    return (lane << turn | lane >> (64 - turn)) & _LANE_MASK


def _round_constants() -> tuple[int, ...]:
    """Bits of a linear-feedback shift register, at places 2^j - 1."""
    register, constants = 1, []
    for _ in range(_ROUNDS):
        constant = 0
        for power in range(7):
            if register & 1:
                constant |= 1 << ((1 << power) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return tuple(constants)


def _moves() -> tuple[tuple[int, int, int], ...]:
    """From where, to where, and by how many bits each lane is turned."""
    moves = [(0, 0, 0)]
    x, y, turn = 1, 0, 0
    for step in range(24):
        turn += step + 1
        moves.append((x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), turn % 64))
        x, y = y, (2 * x + 3 * y) % 5
    return tuple(moves)


_ROUND_CONSTANTS: Final = _round_constants()
_MOVES: Final = _moves()
