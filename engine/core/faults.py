"""What a bad network does to a transmission: lose, delay, duplicate or reorder it.

This is only the policy: a description (``FaultSpec``), its text form (``parse_fault_spec``) and
seeded decisions (``FaultPlan``).  The deterministic simulator and the asyncio fault layer use the
same plan, so they misbehave alike.  The module knows nothing of transmissions, clocks or waiting.

The generator is splitmix64 (Steele, Lea, Flood 2014), written out so that a seed gives the same run
on every platform and Python version.
"""

import hashlib
import re

from msgspec import Struct

from engine.core.errors import ConfigError

MAX_DELAY_MS = 60_000
MAX_SEED = 2**63 - 1
_HELD_BACK_AT_LEAST_MS = 50
"""The least delay of a reordered transmission, so that later ones overtake it even if the plain
delay is constant."""

_MASK = 2**64 - 1
_ALLOWED = (
    "allowed: loss, dup, reorder and reset from 0 to 1, delay like 50..400ms "
    f"(at most {MAX_DELAY_MS} ms), seed a whole number"
)
_DELAY = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?ms", re.ASCII)
_PROBABILITY = re.compile(r"\d{0,3}(?:\.\d{1,12})?", re.ASCII)
_SEED = re.compile(r"\d{1,19}", re.ASCII)


class FaultSpec(Struct, frozen=True, kw_only=True):
    """Probabilities in [0, 1] per transmission and receiver; ``delay_ms`` is (lowest, highest)."""

    loss: float = 0.0
    delay_ms: tuple[int, int] = (0, 0)
    dup: float = 0.0
    reorder: float = 0.0
    reset: float = 0.0
    """Of requests for chunks of files: the probability that one breaks off."""
    seed: int = 0

    def __post_init__(self) -> None:
        for key in ("loss", "dup", "reorder", "reset"):
            value = getattr(self, key)
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"faults: {key}={value} is out of range; {_ALLOWED}")
        low, high = self.delay_ms
        if not 0 <= low <= high <= MAX_DELAY_MS:
            raise ConfigError(f"faults: delay={low}..{high}ms is out of range; {_ALLOWED}")
        if not 0 <= self.seed <= MAX_SEED:
            raise ConfigError(f"faults: seed={self.seed} is out of range; {_ALLOWED}")


class SeededRandom:
    """Uniform numbers in [0, 1) from a seed: satisfies the core's ``RandomUnit``."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, stream: str = "") -> None:
        digest = hashlib.sha256(f"{seed}/{stream}".encode()).digest()
        self._state = int.from_bytes(digest[:8], "big")

    def __call__(self) -> float:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return float(((mixed ^ (mixed >> 31)) >> 11) / (1 << 53))

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self() * (high - low + 1))


class FaultPlan:
    """Decides what happens to each transmission to one receiver, in turn.

    Give every link its own ``stream`` name; then traffic on one link does not change the fate of
    another's.
    """

    __slots__ = ("_random", "_resets", "spec")

    def __init__(self, spec: FaultSpec, stream: str = "") -> None:
        self.spec = spec
        self._random = SeededRandom(spec.seed, stream)
        self._resets = SeededRandom(spec.seed, f"{stream}/resets")

    def delays_ms(self) -> tuple[int, ...]:
        """When each copy arrives, in ms from now; empty = lost."""
        spec = self.spec
        if self._random() < spec.loss:
            return ()
        copies = 2 if self._random() < spec.dup else 1
        return tuple(self._delay_ms() for _ in range(copies))

    def resets(self) -> bool:
        """Whether the next request for chunks breaks off."""
        return self._resets() < self.spec.reset

    def _delay_ms(self) -> int:
        low, high = self.spec.delay_ms
        delay = self._random.between(low, high)
        if self._random() < self.spec.reorder:
            delay += self._random.between(
                _HELD_BACK_AT_LEAST_MS, max(2 * high, 2 * _HELD_BACK_AT_LEAST_MS)
            )
        return delay


def parse_fault_spec(text: str) -> FaultSpec:
    """Read ``loss=0.3,delay=50..400ms,dup=0.05,reorder=0.1,seed=7``; every key is optional.

    Raises ConfigError naming the key and what is allowed.
    """
    values: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in ("loss", "delay", "dup", "reorder", "reset", "seed"):
            raise ConfigError(f"faults: unknown key {key[:40]!r}; {_ALLOWED}")
        if key in values:
            raise ConfigError(f"faults: {key} is given twice; {_ALLOWED}")
        values[key] = value
    return FaultSpec(
        loss=_probability("loss", values),
        delay_ms=_delay(values.get("delay", "0ms")),
        dup=_probability("dup", values),
        reorder=_probability("reorder", values),
        reset=_probability("reset", values),
        seed=_seed(values.get("seed", "0")),
    )


def _probability(key: str, values: dict[str, str]) -> float:
    text = values.get(key, "0")
    if not text or not _PROBABILITY.fullmatch(text):
        raise ConfigError(f"faults: {key}={text[:40]} is not a number; {_ALLOWED}")
    return float(text)


def _delay(text: str) -> tuple[int, int]:
    match = _DELAY.fullmatch(text)
    if match is None:
        raise ConfigError(f"faults: delay={text[:40]} is not a range in ms; {_ALLOWED}")
    low = int(match[1])
    return low, int(match[2]) if match[2] else low


def _seed(text: str) -> int:
    if not _SEED.fullmatch(text):
        raise ConfigError(f"faults: seed={text[:40]} is not a whole number; {_ALLOWED}")
    return int(text)
