"""Admission to a service: token buckets for each peer, and bounds on concurrent requests.

One bucket counts requests; another counts the bytes of answers, where answers are large.  When too
many peers are known, the one unseen longest is forgotten.  A stranger with many identities gains
only full buckets, and connections are bounded elsewhere.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.core.errors import ConfigError
from engine.network.libp2p.ports import PeerId


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """One peer may make ``per_second`` requests in the long run, and ``burst`` at once."""

    per_second: float = 10.0
    burst: int = 60
    at_once_per_peer: int = 8
    at_once: int = 64
    max_peers: int = 1_024

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ConfigError("a rate limit must let something through")


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


class _Buckets:
    """One bucket for each peer, full when the peer is first seen."""

    def __init__(
        self, *, per_second: float, burst: float, max_peers: int, clock_s: Callable[[], float]
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._max_peers = max_peers
        self._clock_s = clock_s
        self._buckets: OrderedDict[PeerId, _Bucket] = OrderedDict()

    def filled(self, peer_id: PeerId) -> _Bucket:
        now_s = self._clock_s()
        bucket = self._buckets.get(peer_id)
        if bucket is None:
            bucket = self._buckets[peer_id] = _Bucket(self._burst, now_s)
            if len(self._buckets) > self._max_peers:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(peer_id)
        gained = (now_s - bucket.filled_s) * self._per_second
        bucket.tokens = min(self._burst, bucket.tokens + gained)
        bucket.filled_s = now_s
        return bucket


class AnswerBudget:
    """``answer_bytes`` for each peer in ``period_s``, all of them at once after a pause.

    A peer with anything left gets its next answer whole; the excess is deducted later.
    """

    def __init__(
        self,
        answer_bytes: int,
        period_s: float,
        clock_s: Callable[[], float],
        *,
        max_peers: int = 1_024,
    ) -> None:
        self._buckets = _Buckets(
            per_second=answer_bytes / period_s,
            burst=answer_bytes,
            max_peers=max_peers,
            clock_s=clock_s,
        )

    def has_some(self, peer_id: PeerId) -> bool:
        return self._buckets.filled(peer_id).tokens > 0

    def spend(self, peer_id: PeerId, answer_bytes: int) -> None:
        self._buckets.filled(peer_id).tokens -= answer_bytes


class ServiceGate:
    def __init__(self, limits: GateLimits, clock_s: Callable[[], float]) -> None:
        self._limits = limits
        self._buckets = _Buckets(
            per_second=limits.per_second,
            burst=limits.burst,
            max_peers=limits.max_peers,
            clock_s=clock_s,
        )
        self._running: dict[PeerId, int] = {}
        self._running_total = 0

    def take(self, peer_id: PeerId) -> bool:
        """Spend a token of the peer's; False if none is left."""
        bucket = self._buckets.filled(peer_id)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    @contextmanager
    def enter(self, peer_id: PeerId) -> Iterator[bool]:
        """Yield whether there is room for one more request.  The place is held until exit."""
        limits = self._limits
        running = self._running.get(peer_id, 0)
        if running >= limits.at_once_per_peer or self._running_total >= limits.at_once:
            yield False
            return
        self._running[peer_id] = running + 1
        self._running_total += 1
        try:
            yield True
        finally:
            self._running_total -= 1
            self._running[peer_id] -= 1
            if not self._running[peer_id]:
                del self._running[peer_id]
