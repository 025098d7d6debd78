"""Times online: sessions and absences of exponentially distributed length, from a seed.

It begins at a random point of the rhythm: the probability to be online at first is the share of
time online.
"""

from collections.abc import Iterator
from math import log

from engine.core.faults import SeededRandom


def exponential(mean: float, random: SeededRandom) -> float:
    return -mean * log(1 - random())


def absence_ms(offline: float, session_ms: float) -> float:
    """Mean length of an absence that makes ``offline`` the share of absences."""
    return session_ms * offline / max(1 - offline, 1e-9)


def sessions(
    random: SeededRandom, start_ms: int, end_ms: int, *, offline: float, session_ms: float
) -> Iterator[tuple[int, bool]]:
    """Yield (time, whether online from then on), for changes only; online again at ``end_ms``.

    Raises ValueError if ``offline`` is not from 0 to less than 1, or ``session_ms`` not above 0.
    """
    if not 0 <= offline < 1 or not session_ms > 0:
        raise ValueError("offline is from 0 to less than 1, and a session lasts")
    if not offline:
        return
    off_ms, at_ms = absence_ms(offline, session_ms), float(start_ms)
    online = random() >= offline
    if not online:
        yield start_ms, False
    while True:
        at_ms += exponential(session_ms if online else off_ms, random)
        if at_ms >= end_ms:
            break
        online = not online
        yield int(at_ms), online
    if not online:
        yield end_ms, True
