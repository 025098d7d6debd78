"""Prekeys: keys that epoch keys are sealed to, and that are forgotten on purpose.

A member makes one each week for each group.  The private half lives until the next one is 30 days
old, so that wraps on their way still open, and longer while history is incomplete, up to a bound.
Whoever takes the device after that opens nothing that was sealed to it.  All times are our own
clock's; making keys and sealing are ``engine.crypto.epochs``'s.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from engine.core.ids import ParticipantId, UnixMs

_DAY_MS: Final = 24 * 3_600_000
PREKEY_EVERY_MS: Final = 7 * _DAY_MS
PREKEY_KEPT_MS: Final = 30 * _DAY_MS
MAX_OWN_PREKEYS: Final = 16
"""Also while history is incomplete; a wrap that is then too old is asked for again."""


class OwnPrekey(Struct, frozen=True, kw_only=True):
    number: int
    private_key: bytes
    made_ms: UnixMs

    def __repr__(self) -> str:
        return f"OwnPrekey(number={self.number}, made_ms={self.made_ms})"


class TheirPrekey(Struct, frozen=True, kw_only=True):
    """Verified to be by ``author``."""

    author: ParticipantId
    number: int
    key: bytes
    signed: bytes
    """As received."""


def is_prekey_due(own: Sequence[OwnPrekey], *, now_ms: UnixMs) -> bool:
    """``own`` ascends by number.  One that is dated ahead of a clock set back is replaced."""
    return not own or not own[-1].made_ms <= now_ms < own[-1].made_ms + PREKEY_EVERY_MS


def next_number(own: Sequence[OwnPrekey], *, now_ms: UnixMs) -> int:
    """Higher than any before, also than those that a restored backup does not know of."""
    return max(now_ms, own[-1].number + 1 if own else 1)


def prekeys_to_forget(
    own: Sequence[OwnPrekey], *, now_ms: UnixMs, is_history_complete: bool
) -> tuple[OwnPrekey, ...]:
    """Those whose private half is to be erased now; never the newest."""
    beyond = max(0, len(own) - MAX_OWN_PREKEYS)
    return tuple(
        old
        for place, (old, successor) in enumerate(pairwise(own))
        if place < beyond or (is_history_complete and successor.made_ms + PREKEY_KEPT_MS <= now_ms)
    )


def newer(known: TheirPrekey | None, other: TheirPrekey) -> TheirPrekey:
    """The one to seal to, whichever came first.  Two of one number only harm their author."""
    if known is None or (other.number, other.key) > (known.number, known.key):
        return other
    return known
