"""Admission of inbound connections: handshakes, and which connections stay when all are taken.

Addresses are scarce and peer ids are not, so room is shared by *origin*: an IPv4 address, or the
IPv6 /48 that one customer is given.  Each origin has a share, handshakes included, wide enough for
a team behind one address.

When all room is taken, peers that misbehaved go first.  After that the origin with most connections
gives way to a smaller one, so a few addresses cannot keep others out.  Half of the room is reserved
for peers that behaved, the longest known first, and lent to others while they are away, so a crowd
from many addresses does not push them out either.

Our own dials do not use this room.  Handshakes and messages are opaque here.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from engine.network.libp2p.connection import Connection
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.pipe import Pipe
from engine.network.libp2p.ports import PeerId

_CUSTOMER_BITS = 48
"""RIPE-690: a customer has a /48 or a /56.  By /64 one of them would be 65 536 origins."""
_UNIQUE_LOCAL = ipaddress.IPv6Network("fc00::/7")


def origin_of(address: Multiaddr) -> str:
    """The address space one party is likely to have.  In private networks, the single device."""
    ip = ipaddress.ip_address(address.host)
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    if isinstance(ip, ipaddress.IPv4Address) or ip.is_link_local or ip in _UNIQUE_LOCAL:
        return str(ip)
    return str(ipaddress.ip_network((ip, _CUSTOMER_BITS), strict=False))


class Handshakes:
    """The pipes that are in handshake, ours and others'."""

    def __init__(self, limits: HostLimits) -> None:
        self._limits = limits
        self._inbound: dict[Pipe, str] = {}
        """With their origins, oldest first."""
        self._outbound: set[Pipe] = set()

    def __len__(self) -> int:
        return len(self._inbound) + len(self._outbound)

    def __iter__(self) -> Iterator[Pipe]:
        return iter((*self._inbound, *self._outbound))

    @property
    def outbound(self) -> int:
        return len(self._outbound)

    def refusal(self, pipe: Pipe, *, connected: int) -> str | None:
        """Why an inbound pipe is refused, as a counter's name; None if it is admitted.

        ``connected``: the connections that its origin already has.
        """
        crowds = Counter(self._inbound.values())
        here = crowds[origin_of(pipe.remote_address)]
        if connected + here >= self._limits.max_inbound_per_address:
            return "connections_per_address_limit"
        if here >= self._limits.max_handshakes_per_address:
            return "handshakes_per_address_limit"
        is_full = len(self._inbound) >= self._limits.max_handshakes
        if is_full and max(crowds.values(), default=0) <= here + 1:
            return "handshakes_limit"
        return None

    def add_inbound(self, pipe: Pipe) -> Pipe | None:
        """Return the pipe that gives way, if any: the oldest of the largest origin.

        A peer that means to finish does not take that long.
        """
        oldest: Pipe | None = None
        if len(self._inbound) >= self._limits.max_handshakes:
            ((crowd, _),) = Counter(self._inbound.values()).most_common(1)
            oldest = next(each for each, origin in self._inbound.items() if origin == crowd)
            del self._inbound[oldest]
        self._inbound[pipe] = origin_of(pipe.remote_address)
        return oldest

    def add_outbound(self, pipe: Pipe) -> None:
        self._outbound.add(pipe)

    def discard(self, pipe: Pipe) -> None:
        self._inbound.pop(pipe, None)
        self._outbound.discard(pipe)

    def clear(self) -> None:
        self._inbound.clear()
        self._outbound.clear()


class _Known(Struct, frozen=True):
    since: float
    origin: str


class InboundRoom:
    """The inbound connections, and the peers that behaved, including those that are away.

    A peer behaved if it did something good (a score above 0), or nothing bad for long enough.
    """

    def __init__(
        self,
        limits: HostLimits,
        *,
        is_kept: Callable[[PeerId], bool],
        now: Callable[[], float],
    ) -> None:
        """``is_kept``: peers that we dial ourselves always count as behaved."""
        self.score: Callable[[PeerId], float] = lambda _peer: 0.0
        self._limits = limits
        self._is_kept = is_kept
        self._now = now
        self._origins: dict[Connection, str] = {}
        self._crowds: Counter[str] = Counter()
        self._known: dict[PeerId, _Known] = {}
        """When each peer that behaved first came; the last one seen is at the end."""

    def __len__(self) -> int:
        return len(self._origins)

    def connected_from(self, address: Multiaddr) -> int:
        return self._crowds[origin_of(address)]

    def add(self, connection: Connection) -> None:
        origin = self._origins[connection] = origin_of(connection.remote_address)
        self._crowds[origin] += 1

    def discard(self, connection: Connection) -> None:
        """Call it before the peer is forgotten."""
        if connection in self._origins:
            self._judge(connection)
            origin = self._origins.pop(connection)
            self._crowds[origin] -= 1
            if not self._crowds[origin]:
                del self._crowds[origin]

    def worse_than(self, peer_id: PeerId, address: Multiaddr) -> Connection | None:
        """The connection that gives way to this newcomer; None: the newcomer is refused."""
        for connection in self._origins:
            self._judge(connection)
        own = [each for each in self._origins if each.peer_id == peer_id]
        if own:
            return min(own, key=lambda each: each.established_at)  # it may be half dead
        reserved = self._reserved()
        others = [each for each in self._origins if each not in reserved]
        if not others:
            return None
        crowds = Counter(self._origins[each] for each in others)

        def rank(connection: Connection) -> tuple[float, int, float, float]:
            """Lowest first: misbehaved, then of a large origin, then of little use, then new."""
            score = self.score(connection.peer_id)
            crowd = crowds[self._origins[connection]]
            return min(score, 0.0), -crowd, score, -connection.established_at

        worst = min(others, key=rank)
        if self._has_reserved_room(peer_id, reserved):
            return worst
        newcomer = (min(self.score(peer_id), 0.0), -crowds[origin_of(address)] - 1)
        return worst if rank(worst)[:2] < newcomer else None

    # --- peers that behaved ---------------------------------------------------------------------

    def _reserved(self) -> set[Connection]:
        """Connections of peers that behaved, the longest known first, up to half of the room."""
        behaved = [each for each in self._origins if self._since(each.peer_id) is not None]
        behaved.sort(key=lambda each: (self._since(each.peer_id) or 0.0, each.established_at))
        return set(behaved[: self._limits.reserved_inbound])

    def _has_reserved_room(self, peer_id: PeerId, reserved: Collection[Connection]) -> bool:
        since = self._since(peer_id)
        if since is None:
            return False
        longer = sum((self._since(each.peer_id) or 0.0) <= since for each in reserved)
        return longer < self._limits.reserved_inbound

    def _since(self, peer_id: PeerId) -> float | None:
        """Since when a peer is known to behave; None if it is not."""
        if self.score(peer_id) < 0:
            return None
        if self._is_kept(peer_id):
            return 0.0
        known = self._known.get(peer_id)
        return None if known is None else known.since

    def _judge(self, connection: Connection) -> None:
        peer_id, score = connection.peer_id, self.score(connection.peer_id)
        known = self._known.pop(peer_id, None)
        age_s = self._now() - connection.established_at
        if score < 0 or (known is None and score == 0 and age_s * 1_000 < self._limits.behaved_ms):
            return
        since = connection.established_at if known is None else known.since
        self._known[peer_id] = _Known(since, self._origins[connection])
        if len(self._known) > self._limits.max_behaved:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forget the peer of the largest origin that was seen longest ago."""
        ((crowd, _),) = Counter(each.origin for each in self._known.values()).most_common(1)
        del self._known[next(p for p, known in self._known.items() if known.origin == crowd)]
