"""Names the source of a message, for sharing resources fairly among sources.

A peer id costs nothing and an address little, so peers are grouped by the network that one
subscriber commonly gets: a /24 of IPv4, a /48 of IPv6.  Names are pseudonyms that last as long as
the node runs, so stored names identify no peer.
"""

import hashlib
import ipaddress
from typing import Final

from engine.core.waku_archive import Source
from engine.network.libp2p.ports import Host, PeerId, RemotePeer

_IPV4_BITS: Final = 24
_IPV6_BITS: Final = 48
_PSEUDONYM_BYTES: Final = 8


class Sources:
    def __init__(self, host: Host, key: bytes) -> None:
        """Create before the host starts.  ``key`` is random and makes the pseudonyms."""
        self._key = key
        self._connected: dict[PeerId, Source] = {}
        host.on_peer_connected(self._met)
        host.on_peer_disconnected(self._lost)

    def of(self, peer_id: PeerId) -> Source:
        """The source of a peer.  The network of a peer that just disconnected is unknown."""
        return self._connected.get(peer_id) or self._named("", peer_id)

    def _met(self, peer: RemotePeer) -> None:
        self._connected[peer.peer_id] = self._named(network_of(peer.host), peer.peer_id)

    def _lost(self, peer_id: PeerId) -> None:
        self._connected.pop(peer_id, None)

    def _named(self, network: str, peer_id: PeerId) -> Source:
        return Source(self._pseudonym(network), self._pseudonym(peer_id))

    def _pseudonym(self, name: str) -> str:
        digest = hashlib.blake2b(name.encode(), key=self._key, digest_size=_PSEUDONYM_BYTES)
        return digest.hexdigest()


def network_of(host: str) -> str:
    """The network of an address.  A name that a proxy resolved is a network of its own."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    bits = _IPV4_BITS if isinstance(ip, ipaddress.IPv4Address) else _IPV6_BITS
    return str(ipaddress.ip_network((ip, bits), strict=False))
