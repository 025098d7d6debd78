"""Numbers and times as people read them.  What there is none of is a dash."""

from datetime import UTC, datetime
from math import isfinite
from typing import Final

NOTHING: Final = "\u2013"
_ALMOST: Final = 0.9999


def ms_text(value: object) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    if not isfinite(value):
        return "never"
    for limit, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f} ms"


def utc_text(at_ms: int) -> str:
    """A clock may be off by more than any calendar has."""
    try:
        return datetime.fromtimestamp(at_ms / 1_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "a time that no calendar has"


def share_text(value: object) -> str:
    """Never 100 % unless it is all, never 0 % unless it is nothing."""
    if not isinstance(value, int | float):
        return NOTHING
    if _ALMOST < value < 1:
        return "99.99 %"
    if 0 < value < 1 - _ALMOST:
        return "0.01 %"
    return f"{100 * value:.4g} %"


def amount_text(value: object) -> str:
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else NOTHING


def bytes_text(value: object) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f} B"
