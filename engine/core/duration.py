"""How long something is, in words: one number and one unit, as people say it.

Not for timers: it rounds down, and what is shorter than a minute is one.
"""

from typing import Final

_MINUTE_MS: Final = 60_000
_UNITS: Final = (("min", 1, 2 * 60), ("h", 60, 2 * 24), ("days", 24 * 60, 2 * 365))
"""Name, minutes in one, and from how many on the next larger unit is said."""


def duration_words(length_ms: int) -> str:
    """`"12 min"`, `"3 h"`, `"4 days"`, `"5 years"`."""
    minutes = max(1, length_ms // _MINUTE_MS)
    for name, length, too_many in _UNITS:
        if minutes // length < too_many:
            return f"{minutes // length} {name}"
    return f"{minutes // (365 * 24 * 60)} years"
