"""Injected randomness: the system's in the application, seeded in tests, simulator and demo."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns this many random bytes, for keys, salts and nonces."""

RandomUnit: TypeAlias = Callable[[], float]
"""Uniform in [0, 1): for timers."""


class Entropy(Struct, frozen=True, kw_only=True):
    random_bytes: RandomBytes
    random_unit: RandomUnit
