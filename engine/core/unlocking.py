"""How wrong passphrases are slowed: a few are free, then each makes the next one wait longer.

The wait is bounded, so nobody is locked out for ever, and it holds over a restart.  It slows down
whoever sits at this device; who has the files guesses elsewhere, and Argon2id slows that.
"""

from typing import Final

from msgspec import Struct

from engine.core.ids import UnixMs

FREE_TRIES: Final = 3
FIRST_WAIT_MS: Final = 2_000
LONGEST_WAIT_MS: Final = 60_000
MAX_COUNTED: Final = 1_000_000


class Attempts(Struct, frozen=True, kw_only=True):
    """Wrong passphrases since the last right one."""

    failures: int = 0
    last_ms: UnixMs = UnixMs(0)

    def failed(self, now_ms: UnixMs) -> "Attempts":
        return Attempts(failures=min(self.failures + 1, MAX_COUNTED), last_ms=now_ms)

    def wait_ms(self, now_ms: UnixMs) -> int:
        """How long no other may be tried; a clock that was set back makes nothing longer."""
        wait = delay_ms(self.failures)
        return max(0, min(wait, self.last_ms + wait - now_ms))

    def seen_at(self, now_ms: UnixMs) -> "Attempts":
        """With a clock that was set back: the wait counts from now."""
        if self.last_ms <= now_ms:
            return self
        return Attempts(failures=self.failures, last_ms=now_ms)


def delay_ms(failures: int) -> int:
    """After so many failures in a row."""
    beyond = failures - FREE_TRIES
    if beyond < 0:
        return 0
    return min(LONGEST_WAIT_MS, FIRST_WAIT_MS << min(beyond, 16))
