"""Back-off functions like the defaults, with other intervals, for parameter sweeps.

The core's own functions do not change; these build variants from two numbers.
"""

from msgspec.structs import replace

from engine.core.entropy import RandomUnit
from engine.core.mvds.config import JITTER, LOWER_BACK_OFF, BackOff
from engine.core.sds.config import SdsConfig

POSSIBLY: int = 3
"""A message named by a filter waits this many times longer, as in our SDS settings."""


def doubling(first_epochs: int, longest_epochs: int) -> BackOff:
    """MVDS: doubling from ``first_epochs`` to ``longest_epochs``, then again from a minute on."""
    first_waits = _waits(first_epochs, longest_epochs)
    later_waits = _waits(min(max(first_epochs, LOWER_BACK_OFF), longest_epochs), longest_epochs)

    def back_off(send_count: int, random_unit: RandomUnit) -> int:
        if send_count <= len(first_waits):
            wait = first_waits[send_count - 1]
        else:
            wait = later_waits[(send_count - len(first_waits) - 1) % len(later_waits)]
        return max(1, int(wait * (1 - JITTER + 2 * JITTER * random_unit()) + 0.5))

    return back_off


def with_resend(config: SdsConfig, first_ms: int, longest_ms: int) -> SdsConfig:
    """SDS: rebroadcast intervals of unacknowledged messages, and of those that a filter names."""
    return replace(
        config,
        resend_unacknowledged_ms=(first_ms, longest_ms),
        resend_possibly_ms=(POSSIBLY * first_ms, POSSIBLY * longest_ms),
    )


def _waits(first: int, longest: int) -> tuple[int, ...]:
    waits = [min(first, longest)]
    while waits[-1] < longest:
        waits.append(min(2 * waits[-1], longest))
    return tuple(waits)
