"""A duration in words: one number and one unit.

Not for timers: it rounds down, and anything shorter than a minute is one minute.
"""

from typing import Final

_MINUTE_MS: Final = 60_000
_UNITS: Final = (("min", 1, 2 * 60), ("h", 60, 2 * 24), ("days", 24 * 60, 2 * 365))
"""Name, minutes per unit, and the number of minutes from which the next unit is used."""


def duration_words(length_ms: int) -> str:
    """`"12 min"`, `"3 h"`, `"4 days"`, `"5 years"`."""
    minutes = max(1, length_ms // _MINUTE_MS)
    for name, length, too_many in _UNITS:
        if minutes // length < too_many:
            return f"{minutes // length} {name}"
    return f"{minutes // (365 * 24 * 60)} years"
