"""Who brought a message, for whatever is shared out among sources.

A peer id costs nothing, an address little, so peers are counted together by the network that one
subscriber is commonly given: /24 of IPv4, /48 of IPv6.  Names are pseudonyms that last as long as
the node runs: what is stored of them tells nobody who it was.
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
        """Before the host starts.  ``key``: random, for pseudonyms."""
        self._key = key
        self._connected: dict[PeerId, Source] = {}
        host.on_peer_connected(self._met)
        host.on_peer_disconnected(self._lost)

    def of(self, peer_id: PeerId) -> Source:
        """Of a peer that is just gone the network is not known any more."""
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
    """A name that a proxy looked up is a network of its own."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    bits = _IPV4_BITS if isinstance(ip, ipaddress.IPv4Address) else _IPV6_BITS
    return str(ipaddress.ip_network((ip, bits), strict=False))
