"""Finds the connected peers that speak a protocol, for clients that query one of them.

History clients use this to reach Stores over a transport's connections.
"""

from collections.abc import Collection

from msgspec import Struct

from engine.network.libp2p.ports import Host, ProtocolId, RemotePeer


class Reached(Struct, frozen=True, kw_only=True):
    """``host`` is connected to ``peer`` now; both may be gone at the next await."""

    host: Host
    peer: RemotePeer


def reached(host: Host, protocols: Collection[ProtocolId]) -> tuple[Reached, ...]:
    return tuple(
        Reached(host=host, peer=peer)
        for peer in host.peers()
        if any(protocol in peer.protocols for protocol in protocols)
    )
