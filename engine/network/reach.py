"""Connected peers that speak a protocol, for clients that ask one of them something.

History is fetched from Stores by whoever knows how, over the connections that a transport has; this
is how it gets at them.
"""

from collections.abc import Collection
from dataclasses import dataclass

from engine.network.libp2p.ports import Host, ProtocolId, RemotePeer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """``host`` is connected to ``peer`` now; both may be gone at the next await."""

    host: Host
    peer: RemotePeer


def reached(host: Host, protocols: Collection[ProtocolId]) -> tuple[Reached, ...]:
    return tuple(
        Reached(host=host, peer=peer)
        for peer in host.peers()
        if any(protocol in peer.protocols for protocol in protocols)
    )
