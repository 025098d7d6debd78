"""Tracks which service node has pushed which message, to remove duplicates and detect losses.

A node that has not pushed a message some time after another did may have lost our subscription
without telling us.  Our own messages count as known from the start, and must come back from every
node with our subscription.  The record is bounded in number and age.  The caller acts on missed
messages; topics and contents play no part here.
"""

from collections import deque
from collections.abc import Collection, Iterator

from msgspec import Struct, field

from engine.core.ids import WakuHash
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.cache import SeenCache

SEEN_TTL_MS = 120_000
MAX_SEEN = 20_000
MAX_WATCHED = 2_000


class _Watched(Struct, frozen=True):
    since_s: float
    waku_hash: WakuHash
    by: set[PeerId] = field(default_factory=set)


class PushRecord:
    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._seen = SeenCache(ttl_ms=SEEN_TTL_MS, max_entries=MAX_SEEN)
        self._watched: deque[_Watched] = deque()
        self._by_hash: dict[WakuHash, _Watched] = {}

    def note_own(self, waku_hash: WakuHash, *, now_s: float) -> None:
        """Call before publishing a message that comes back."""
        self._remember(waku_hash, now_s)

    def expect_no_more(self, waku_hash: WakuHash) -> None:
        """No node needs to push this message."""
        watched = self._by_hash.pop(waku_hash, None)
        if watched is not None:
            self._watched.remove(watched)

    def note(self, waku_hash: WakuHash, peer_id: PeerId, *, now_s: float) -> bool:
        """Return whether the message is new."""
        self._seen.expire(now_ms=int(now_s * 1_000))
        is_new = waku_hash not in self._seen
        if is_new:
            self._remember(waku_hash, now_s)
        watched = self._by_hash.get(waku_hash)
        if watched is not None:
            watched.by.add(peer_id)
        return is_new

    def _remember(self, waku_hash: WakuHash, now_s: float) -> None:
        self._seen.add(waku_hash, now_ms=int(now_s * 1_000))
        if len(self._watched) < MAX_WATCHED and waku_hash not in self._by_hash:
            watched = _Watched(now_s, waku_hash)
            self._watched.append(watched)
            self._by_hash[waku_hash] = watched

    def next_due_s(self) -> float | None:
        return self._watched[0].since_s + self._grace_s if self._watched else None

    def overdue(self, *, now_s: float) -> Iterator[tuple[float, Collection[PeerId]]]:
        """Yield messages whose grace is over: since when each was expected, and who pushed it."""
        while self._watched and self._watched[0].since_s + self._grace_s <= now_s:
            watched = self._watched.popleft()
            del self._by_hash[watched.waku_hash]
            yield watched.since_s, watched.by
