"""The table of peers: the connections of each, and which of them new streams use.

Two nodes that dial each other at the same moment end with two connections, and both must choose the
same one without talking.  Of connections made within a few seconds of each other, the one dialled
by the smaller peer id wins.  Otherwise the newest wins, because the older one may be half dead.  A
peer counts as connected while it has an identified connection.
"""

from collections.abc import Sequence
from typing import Final

from engine.core.ids import UnixMs
from engine.network.libp2p.connection import Connection
from engine.network.libp2p.peer_id import peer_id_to_bytes
from engine.network.libp2p.ports import PeerId, RemotePeer
from engine.network_views import PeerView

SIMULTANEOUS_S = 5.0
_LONGEST_AGENT: Final = 120
_MOST_PROTOCOLS: Final = 64
_LONGEST_PROTOCOL: Final = 120


class PeerTable:
    def __init__(self, own_peer_id: PeerId) -> None:
        self._own_id_bytes = peer_id_to_bytes(own_peer_id)
        self._identified: dict[PeerId, dict[Connection, RemotePeer]] = {}

    def add(self, connection: Connection, remote: RemotePeer) -> bool:
        """Return whether this is the peer's first connection."""
        connections = self._identified.setdefault(connection.peer_id, {})
        connections[connection] = remote
        return len(connections) == 1

    def remove(self, connection: Connection) -> bool:
        """Return whether this was the peer's last identified connection."""
        connections = self._identified.get(connection.peer_id, {})
        if connections.pop(connection, None) is None or connections:
            return False
        del self._identified[connection.peer_id]
        return True

    def update(self, connection: Connection, remote: RemotePeer) -> None:
        """Has an effect only if the connection is still in the table."""
        connections = self._identified.get(connection.peer_id, {})
        if connection in connections:
            connections[connection] = remote

    def remote(self, connection: Connection) -> RemotePeer | None:
        return self._identified.get(connection.peer_id, {}).get(connection)

    def connections(self, peer_id: PeerId) -> list[Connection]:
        """Best first."""
        usable = [each for each in self._identified.get(peer_id, {}) if each.usable]
        if len(usable) <= 1:  # as nearly all peers have
            return usable
        newest_first = sorted(usable, key=lambda each: each.established_at, reverse=True)
        since = newest_first[0].established_at - SIMULTANEOUS_S
        # A stable sort: within a class the newest stays first.
        return sorted(
            newest_first, key=lambda each: each.established_at < since or not self._favoured(each)
        )

    def peer(self, peer_id: PeerId) -> RemotePeer | None:
        connections = self.connections(peer_id)
        return self.remote(connections[0]) if connections else None

    def peers(self) -> list[RemotePeer]:
        found = (self.peer(peer_id) for peer_id in self._identified)
        return [remote for remote in found if remote is not None]

    def _favoured(self, connection: Connection) -> bool:
        own_is_smaller = self._own_id_bytes < peer_id_to_bytes(connection.peer_id)
        return connection.outbound == own_is_smaller


def peer_view(
    remote: RemotePeer,
    connections: Sequence[Connection],
    *,
    since_ms: UnixMs,
    is_kept: bool,
    now_s: float,
) -> PeerView:
    """``connections``: best first, at least one."""
    best = connections[0]
    measured = [each for each in connections if each.round_trip_s is not None]
    last = max(measured, key=lambda each: each.measured_at, default=None)
    round_trip_s = None if last is None else last.round_trip_s
    return PeerView(
        peer_id=remote.peer_id,
        agent=remote.agent[:_LONGEST_AGENT],
        protocols=tuple(name[:_LONGEST_PROTOCOL] for name in remote.protocols[:_MOST_PROTOCOLS]),
        address=str(best.remote_address),
        outbound=best.outbound,
        is_kept=is_kept,
        since_ms=since_ms,
        silent_ms=max(0, _ms(now_s - max(each.received_at for each in connections))),
        bytes_in=sum(each.bytes_in for each in connections),
        bytes_out=sum(each.bytes_out for each in connections),
        connections=len(connections),
        round_trip_ms=None if round_trip_s is None else round_trip_s * 1_000,
        measured_ago_ms=None if last is None else max(0, _ms(now_s - last.measured_at)),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)
