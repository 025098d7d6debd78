"""Who is served at once: so many requests in all, of a network, and of a peer.

Slow readers with many identities could hold every place.  So a request has an end, whatever comes
of it.  When there is no room, those with fewest places come first: the network with most of them,
and in it the peer with most, gives up its oldest request to somebody who has less.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from engine.core.counters import Counters
from engine.network.libp2p.ports import PeerId


class PlaceLimits(Struct, frozen=True, kw_only=True):
    at_once: int = 64
    at_once_per_network: int = 24
    at_once_per_peer: int = 8
    timeout_s: float = 120.0
    """From the opening of a stream to the last byte of the answer."""


class _Place(Struct, frozen=True, eq=False):
    peer_id: PeerId
    network: str
    patience: asyncio.Timeout


class Places:
    def __init__(self, limits: PlaceLimits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self._taken: OrderedDict[_Place, None] = OrderedDict()
        """Oldest first."""
        self._of_network: Counter[str] = Counter()
        self._of_peer: Counter[PeerId] = Counter()

    @asynccontextmanager
    async def enter(self, peer_id: PeerId, network: str) -> AsyncIterator[bool]:
        """Yield whether there is room for one more request.  The place is held until exit.

        Raises TimeoutError if it took too long, or gave way to another.
        """
        async with asyncio.timeout(self._limits.timeout_s) as patience:
            place = _Place(peer_id, network, patience)
            if not self._has_room(place):
                yield False
                return
            self._add(place)
            try:
                yield True
            finally:
                self._remove(place)

    def _has_room(self, place: _Place) -> bool:
        limits = self._limits
        if self._of_peer[place.peer_id] >= limits.at_once_per_peer:
            return False
        if self._of_network[place.network] >= limits.at_once_per_network:
            return self._gives_way(place.network, place)
        if len(self._taken) >= limits.at_once:
            [(network, most)] = self._of_network.most_common(1)
            return self._of_network[place.network] + 1 < most and self._gives_way(network, place)
        return True

    def _gives_way(self, network: str, place: _Place) -> bool:
        """End the oldest request of the peer of ``network`` that has most, unless we have most."""
        found = [each for each in self._taken if each.network == network]
        most = max(self._of_peer[each.peer_id] for each in found)
        if network == place.network and self._of_peer[place.peer_id] + 1 >= most:
            return False
        oldest = next(each for each in found if self._of_peer[each.peer_id] == most)
        self._remove(oldest)
        if not oldest.patience.expired():
            oldest.patience.reschedule(asyncio.get_running_loop().time())
        self._counters.add("blob.gave_way")
        return True

    def _add(self, place: _Place) -> None:
        self._taken[place] = None
        self._of_network[place.network] += 1
        self._of_peer[place.peer_id] += 1

    def _remove(self, place: _Place) -> None:
        if place in self._taken:
            del self._taken[place]
            self._of_network[place.network] -= 1
            self._of_peer[place.peer_id] -= 1
            self._of_network += Counter()  # Without those that have none.
            self._of_peer += Counter()
