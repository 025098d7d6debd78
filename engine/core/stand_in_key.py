"""What a repair gives a group whose key is gone, so that its conversation can still be read.

Half of it is random, so that nobody else has it; the other half follows from the first, so that it
tells of itself that it stands for another.  A true key does that once in 2^128.
"""

import hashlib
from hmac import compare_digest
from typing import Final

STAND_IN_SEED_BYTES: Final = 16


def stand_in_key(seed: bytes) -> bytes:
    """``seed``: random bytes, ``STAND_IN_SEED_BYTES`` of them."""
    return seed + _following(seed)


def is_stand_in(key: bytes) -> bool:
    seed, rest = key[:STAND_IN_SEED_BYTES], key[STAND_IN_SEED_BYTES:]
    return compare_digest(rest, _following(seed))


def _following(seed: bytes) -> bytes:
    return hashlib.blake2b(seed, digest_size=16, person=b"lost group key").digest()
