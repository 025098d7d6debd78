"""Decides which addresses that peers claim as their own are worth remembering.

Addresses of a peer that we dialled are believed, because it was there.  A peer that dialled us may
lie, and may come in numbers.  Of its addresses, only those at which it is seen count: a few for
each peer, for each place and in all.  A neighbour with a thousand names then cannot displace good
addresses from the book, which holds the newest ``MAX_KNOWN_PEERS``.  Counts last for one run of the
node; good addresses move to the front again at every start, when they are dialled.  The caller
stores them.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from engine.core.counters import Counters
from engine.core.errors import ConfigError
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import RemotePeer

MAX_OF_A_PEER: Final = 4
MAX_OF_A_PLACE: Final = 8
"""Inbound, from one IPv4 address or one /64 of IPv6: perhaps a family, perhaps one liar."""
MAX_INBOUND: Final = 24
_IPV6_HOST_BITS: Final = 64


class Introductions:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._inbound: dict[str, str] = {}
        """Believed addresses and the place each came from."""

    def worth_remembering(self, peer: RemotePeer) -> Sequence[str]:
        if peer.outbound:
            return peer.listen_addresses[:MAX_OF_A_PEER]
        believed = [text for text in peer.listen_addresses if _host(text) == peer.host]
        if len(believed) < len(peer.listen_addresses):
            self._counters.add("node.peer_addresses_elsewhere")
        place = _place(peer.host)
        return [text for text in believed[:MAX_OF_A_PEER] if self._has_room(text, place)]

    def _has_room(self, text: str, place: str) -> bool:
        if text in self._inbound:
            return True
        from_there = sum(each == place for each in self._inbound.values())
        if from_there >= MAX_OF_A_PLACE or len(self._inbound) >= MAX_INBOUND:
            self._counters.add("node.too_many_introductions")
            return False
        self._inbound[text] = place
        return True


def _host(text: str) -> str | None:
    try:
        return parse_multiaddr(text).host
    except ConfigError:
        return None


def _place(host: str) -> str:
    """The place of an address.  An IPv6 host has a whole /64."""
    try:
        network = ipaddress.IPv6Network((host, _IPV6_HOST_BITS), strict=False)
    except ValueError:
        return host
    return str(network)
