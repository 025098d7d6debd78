"""Which connections may begin: the bounds on sockets that have not proved yet who they are.

A handshake costs its opener nothing and us a slot for ten seconds.  So strangers have only so many
slots together, and one address only a part of those: whoever holds sockets half open from one place
keeps nobody else out.  An IPv6 host owns a whole /64, which therefore counts as one address.  Our
own dials take no slot of theirs.  Refuses to know what a handshake is.
"""

import ipaddress
from collections.abc import Iterator

from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.pipe import Pipe

_IPV6_HOST_BITS = 64


class Handshakes:
    """The pipes whose handshake goes on, ours and others'."""

    def __init__(self, limits: HostLimits) -> None:
        self._limits = limits
        self._inbound: dict[Pipe, int] = {}
        self._outbound: set[Pipe] = set()

    def __len__(self) -> int:
        return len(self._inbound) + len(self._outbound)

    def __iter__(self) -> Iterator[Pipe]:
        return iter((*self._inbound, *self._outbound))

    def refusal(self, pipe: Pipe, *, connections: int, inbound_connections: int) -> str | None:
        """Why an inbound pipe may not begin, as a counter's name; None if it may."""
        limits = self._limits
        if (
            connections + len(self) >= limits.max_connections
            or inbound_connections + len(self._inbound) >= limits.max_inbound_connections
            or len(self._inbound) >= limits.max_handshakes
        ):
            return "inbound_connections_limit"
        origin = _origin(pipe.remote_address)
        from_there = sum(each == origin for each in self._inbound.values())
        if from_there >= limits.max_handshakes_per_address:
            return "handshakes_per_address_limit"
        return None

    def add_inbound(self, pipe: Pipe) -> None:
        self._inbound[pipe] = _origin(pipe.remote_address)

    def add_outbound(self, pipe: Pipe) -> None:
        self._outbound.add(pipe)

    def discard(self, pipe: Pipe) -> None:
        self._inbound.pop(pipe, None)
        self._outbound.discard(pipe)

    def clear(self) -> None:
        self._inbound.clear()
        self._outbound.clear()


def _origin(address: Multiaddr) -> int:
    """A number for the address, or for the network that one IPv6 host owns."""
    ip = ipaddress.ip_address(address.host)
    return int(ip) if isinstance(ip, ipaddress.IPv4Address) else -(int(ip) >> _IPV6_HOST_BITS) - 1
