"""What a pair's ratchet keeps: the keys of both and the Olm sessions, as values.

Pickles are of vodozemac, encrypted with ``pickle_key``.  The state changes with every message and
is written in the transaction of what it goes with; ``engine.session.pair.ratchet`` is the machine.
"""

from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from engine.core.ids import ConversationId, InstanceId, UnixMs

MAX_ONE_TIME_KEYS: Final = 10
_NEVER: Final = UnixMs(0)


class KeyBundle(Struct, frozen=True, kw_only=True):
    """What the other needs to begin sessions, raw.  Whoever hands it over has to authenticate it.

    Only the fallback key may be used more than once, so only it may be public.
    """

    number: int
    """A later bundle of the same person has a higher one."""
    identity_key: bytes
    one_time_keys: tuple[bytes, ...]
    fallback_key: bytes


class KeyNumbers:
    """Numbers of this profile's bundles: times, but always higher than those before.

    One for all pairs, as somebody may be removed and come back, of whom nothing was kept.
    """

    def __init__(self, newest: int) -> None:
        self.newest = newest

    def next(self, clock_ms: UnixMs) -> int:
        self.newest = max(clock_ms, self.newest + 1)
        return self.newest


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession:
    generation: int
    session_id: str
    pickle: str = field(repr=False)
    heard: bool = False
    """Whether the other has it: something came in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatchetState:
    """All that is kept of one pair's ratchet."""

    stay: InstanceId
    """Of this profile's stay with the other; another one means that it came from a backup."""
    pickle_key: bytes = field(repr=False)
    account: str = field(repr=False)
    ours: KeyBundle
    """Our newest keys for the other."""
    theirs: KeyBundle | None = None
    """The other's newest keys, without the one-time keys that we used."""
    told: int = 0
    """The number of the bundle of ours that the other has, as it said."""
    answered: int = 0
    """Sessions that the other began since we made our newest keys."""
    sessions: tuple[KeptSession, ...] = ()
    """The best first."""
    heard: tuple[bytes, ...] = ()
    """Hashes of what was decrypted, oldest first."""
    highest: int = 0
    """The highest generation that the other proved, or that we began."""
    sent_ms: UnixMs = _NEVER
    """Of the newest that we sealed; grows with each."""
    heard_ms: UnixMs = _NEVER
    """Of the newest that we opened, by the other's clock."""
    since_ms: UnixMs | None = None
    """Since when the other speaks Olm to us with the keys we know, by our clock; None: not yet."""
    unanswered: int = 0
    """How many we sealed since we opened one."""
    failures: int = 0
    renewed_ms: UnixMs | None = None
    must_renew: bool = False


class SaveRatchet(Struct, frozen=True, kw_only=True):
    """A write of the profile's store: all of a pair's ratchet, in place of what was there."""

    conversation_id: ConversationId
    state: RatchetState
