"""Token buckets, one for each peer: how much of something a peer may have, and how fast.

When too many peers are known, the one unseen longest is forgotten.  A stranger with many identities
gains only full buckets, and connections are bounded elsewhere.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from engine.network.libp2p.ports import PeerId

MAX_PEERS = 1_024


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


class TokenBuckets:
    """Each bucket holds ``burst`` tokens, is full at first, and gains ``per_second``."""

    def __init__(
        self,
        *,
        per_second: float,
        burst: float,
        clock_s: Callable[[], float],
        max_peers: int = MAX_PEERS,
        longest_wait_s: float = math.inf,
    ) -> None:
        """``longest_wait_s``: what is overdrawn beyond it is forgiven."""
        self._most_owed = longest_wait_s * per_second
        self._per_second = per_second
        self._burst = burst
        self._max_peers = max_peers
        self._clock_s = clock_s
        self._buckets: OrderedDict[PeerId, _Bucket] = OrderedDict()

    def take(self, peer_id: PeerId) -> bool:
        """Spend one token; False if none is left."""
        bucket = self._filled(peer_id)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def has_some(self, peer_id: PeerId) -> bool:
        return self._filled(peer_id).tokens > 0

    def spend(self, peer_id: PeerId, tokens: float) -> None:
        """Spend tokens, also more than there are: what is missing is gained first."""
        bucket = self._filled(peer_id)
        bucket.tokens = max(bucket.tokens - tokens, -self._most_owed)

    def wait_s(self, peer_id: PeerId) -> float:
        """Seconds until the bucket is no longer overdrawn; 0 if it is not."""
        return max(0.0, -self._filled(peer_id).tokens / self._per_second)

    def _filled(self, peer_id: PeerId) -> _Bucket:
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
