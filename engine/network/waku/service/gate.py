"""Admission to a service: a token bucket for each peer, and bounds on concurrent requests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from engine.core.errors import ConfigError
from engine.network.libp2p.ports import PeerId
from engine.network.waku.token_buckets import MAX_PEERS, TokenBuckets


class GateLimits(Struct, frozen=True, kw_only=True):
    """One peer may make ``per_second`` requests in the long run, and ``burst`` at once."""

    per_second: float = 10.0
    burst: int = 60
    at_once_per_peer: int = 8
    at_once: int = 64
    max_peers: int = MAX_PEERS

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ConfigError("a rate limit must let something through")


class ServiceGate:
    def __init__(self, limits: GateLimits, clock_s: Callable[[], float]) -> None:
        self._limits = limits
        self._buckets = TokenBuckets(
            per_second=limits.per_second,
            burst=limits.burst,
            max_peers=limits.max_peers,
            clock_s=clock_s,
        )
        self._running: dict[PeerId, int] = {}
        self._running_total = 0

    def take(self, peer_id: PeerId) -> bool:
        """Spend a token of the peer's; False if none is left."""
        return self._buckets.take(peer_id)

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
