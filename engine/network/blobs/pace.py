"""How fast the bytes of files go out, of all requests together: a bucket below the relay.

Every piece waits for its turn, in the order in which they came.  While people talk here there is
much less: sealing, sending and storing a file take the processor and the disks of both sides, and a
text waits for those, not for the line.
"""

from collections.abc import Callable

from msgspec import Struct

_MIB = 1024 * 1024


class PaceLimits(Struct, frozen=True, kw_only=True):
    bytes_per_s: int = 128 * _MIB
    beside_texts_per_s: int = 16 * _MIB
    """For ``quiet_s`` after each."""
    quiet_s: float = 0.1
    burst_s: float = 0.01
    """What was not used for so long may be sent at once."""


class Turn(Struct, frozen=True):
    wait_s: float
    """Before the bytes are written."""
    takes_s: float
    """How much later all that come after it are."""


class FilePace:
    def __init__(self, limits: PaceLimits, clock_s: Callable[[], float]) -> None:
        self._limits = limits
        self._clock_s = clock_s
        self._free_at_s = float("-inf")
        """When all that was admitted so far has gone out."""
        self._text_at_s = float("-inf")

    def give_way(self) -> None:
        self._text_at_s = self._clock_s()

    def admit(self, size: int) -> Turn:
        """Admit so many bytes, and say when they may be written."""
        limits, now_s = self._limits, self._clock_s()
        is_quiet = now_s - self._text_at_s > limits.quiet_s
        per_s = limits.bytes_per_s if is_quiet else limits.beside_texts_per_s
        begins_s = max(self._free_at_s, now_s - limits.burst_s)
        self._free_at_s = begins_s + size / per_s
        return Turn(max(0.0, begins_s - now_s), size / per_s)

    def give_back(self, turn: Turn) -> None:
        """It was not used: those who come later need not wait for it."""
        self._free_at_s -= turn.takes_s
