"""Injected randomness: the system's in the application, seeded in tests, simulator and demo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Returns this many random bytes, for keys, salts and nonces."""

RandomUnit: TypeAlias = Callable[[], float]
"""Uniform in [0, 1): for timers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy:
    random_bytes: RandomBytes
    random_unit: RandomUnit
