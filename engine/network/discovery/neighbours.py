"""The neighbours heard on the local network, and when to try which of them.  Without I/O.

The network may be hostile, so all is bounded: a table of 64, a budget for dials, and a waiting room
of 256 for when the table is full.  Neighbours that were tried give their place to waiting ones, and
wait in turn.  A flood of names that nobody answers for thus delays a real neighbour but does not
shut it out.

When two nodes hear each other at once, the one with the smaller peer id dials first, so that their
dials do not cross.  The other follows soon, in case only one direction works.  Trying a connected
neighbour costs nothing, so a neighbour is tried again, ever more rarely, for as long as it is
heard.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from engine.core.counters import Counters
from engine.network.discovery.announcement import Announced
from engine.network.libp2p.ports import PeerId

MAX_NEIGHBOURS: Final = 64
MAX_WAITING: Final = 256
KEPT_MS: Final = 75 * 60_000
"""Unless it is heard again.  The lifetime of an mDNS record (RFC 6762)."""
YIELD_MS: Final = 1_500
RETRY_FIRST_MS: Final = 2_000
RETRY_CAP_MS: Final = 120_000
DIAL_BURST: Final = 16
DIAL_EVERY_MS: Final = 500
"""One more dial per interval, after a burst: two a second in the long run."""
_JITTER: Final = 0.25
_MAX_DOUBLINGS: Final = 10


@dataclass(slots=True)
class _Neighbour:
    announced: Announced
    heard_ms: int
    due_ms: int
    tries: int = 0


class Neighbours:
    """Times are of any monotonic clock."""

    def __init__(self, own: PeerId, *, random: Random, counters: Counters) -> None:
        self._own = own
        self._random = random
        self._counters = counters
        self._known: dict[str, _Neighbour] = {}
        self._waiting: dict[str, _Neighbour] = {}
        self._budget = float(DIAL_BURST)
        self._budget_ms: int | None = None

    def __len__(self) -> int:
        return len(self._known)

    def heard(self, name: str, announced: Announced, *, now_ms: int) -> None:
        """``name`` is the instance's.  The same name with other addresses has moved."""
        if announced.peer_id == self._own:
            return
        known = self._known.get(name) or self._waiting.get(name)
        if known is not None and known.announced == announced:
            known.heard_ms = now_ms
            return
        wait_ms = 0 if self._own < announced.peer_id else YIELD_MS
        if known is not None:  # changing addresses must not bring more dials
            wait_ms = max(wait_ms, known.due_ms - now_ms, RETRY_FIRST_MS)
        tries = 0 if known is None else known.tries
        neighbour = _Neighbour(announced, now_ms, now_ms + wait_ms, tries)
        if name in self._known or len(self._known) < MAX_NEIGHBOURS:
            self._known[name] = neighbour
        else:
            self._let_wait(name, neighbour)
        if known is None:
            self._counters.add("discovery.heard")

    def gone(self, name: str) -> None:
        self._known.pop(name, None)
        self._waiting.pop(name, None)

    def take_due(self, *, now_ms: int) -> list[Announced]:
        """Neighbours to try now.  Each becomes due again later."""
        self._forget_old(now_ms)
        self._refill(now_ms)
        self._change_places()
        due: list[Announced] = []
        for neighbour in sorted(self._known.values(), key=lambda each: each.due_ms):
            if neighbour.due_ms > now_ms:
                break
            if self._budget < 1:
                self._counters.add("discovery.dials_put_off")
                break
            self._budget -= 1
            neighbour.tries += 1
            neighbour.due_ms = now_ms + self._retry_ms(neighbour.tries)
            due.append(neighbour.announced)
        return due

    def next_due_ms(self) -> int | None:
        """When to call ``take_due`` next."""
        if not self._known:
            return None
        due_ms = min(neighbour.due_ms for neighbour in self._known.values())
        if self._budget < 1 and self._budget_ms is not None:
            return max(due_ms, self._budget_ms + DIAL_EVERY_MS)
        return due_ms

    def _retry_ms(self, tries: int) -> int:
        delay_ms = min(RETRY_FIRST_MS << min(tries - 1, _MAX_DOUBLINGS), RETRY_CAP_MS)
        return round(delay_ms * (1 - _JITTER + 2 * _JITTER * self._random.random()))

    def _refill(self, now_ms: int) -> None:
        if self._budget_ms is None:
            self._budget_ms = now_ms
        earned = (now_ms - self._budget_ms) / DIAL_EVERY_MS
        self._budget = min(self._budget + earned, float(DIAL_BURST))
        self._budget_ms = now_ms

    def _forget_old(self, now_ms: int) -> None:
        for table in (self._known, self._waiting):
            for name in [n for n, each in table.items() if now_ms - each.heard_ms > KEPT_MS]:
                del table[name]

    def _let_wait(self, name: str, neighbour: _Neighbour) -> None:
        if name not in self._waiting and len(self._waiting) >= MAX_WAITING:
            self._counters.add("discovery.too_many_neighbours")
            del self._waiting[self._random.choice(list(self._waiting))]
        self._waiting[name] = neighbour

    def _change_places(self) -> None:
        """Swap those tried most often with those that have waited longest."""
        tried = sorted(
            (name for name, each in self._known.items() if each.tries),
            key=lambda name: self._known[name].tries,
        )
        while self._waiting and (tried or len(self._known) < MAX_NEIGHBOURS):
            name = next(iter(self._waiting))
            if len(self._known) >= MAX_NEIGHBOURS:
                other = tried.pop()
                if self._waiting[name].tries >= self._known[other].tries:
                    break
                self._waiting[other] = self._known.pop(other)
            self._known[name] = self._waiting.pop(name)
