"""Injected randomness: the system's in life, a seed's in tests, the simulator and the demo."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy:
    """Bytes for keys, salts and nonces; numbers in [0, 1) for timers."""

    random_bytes: Callable[[int], bytes]
    random_unit: Callable[[], float]
