"""Injected randomness: the system's in life, a seed's in tests, the simulator and the demo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

RandomBytes: TypeAlias = Callable[[int], bytes]
"""So many bytes for keys, salts and nonces."""

RandomUnit: TypeAlias = Callable[[], float]
"""Uniform in [0, 1): for timers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy:
    random_bytes: RandomBytes
    random_unit: RandomUnit
