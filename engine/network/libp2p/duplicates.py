"""Closes second connections to a peer, after a moment and once no stream is open on them.

Two nodes that dial each other at the same moment get two connections.  Both prefer the same one
(``peers.py``), so new streams go there and the other becomes idle.
"""

import asyncio

from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.peers import PeerTable
from engine.network.libp2p.ports import PeerId


class Duplicates:
    def __init__(self, table: PeerTable, limits: HostLimits) -> None:
        self._table = table
        self._limits = limits
        self._prunings: dict[PeerId, asyncio.TimerHandle] = {}

    def found(self, peer_id: PeerId) -> None:
        """The peer has one more connection than it needs."""
        surplus = self._table.connections(peer_id)[self._limits.max_connections_per_peer :]
        for each in surplus:
            each.drop("connections_per_peer_limit")
        self._prune_later(peer_id)

    def stop(self) -> None:
        for pruning in self._prunings.values():
            pruning.cancel()
        self._prunings.clear()

    def _prune_later(self, peer_id: PeerId) -> None:
        if peer_id not in self._prunings:
            delay = self._limits.duplicate_grace_ms / 1_000
            loop = asyncio.get_running_loop()
            self._prunings[peer_id] = loop.call_later(delay, self._prune, peer_id)

    def _prune(self, peer_id: PeerId) -> None:
        del self._prunings[peer_id]
        second_best = self._table.connections(peer_id)[1:]
        for connection in second_best:
            if connection.stream_count == 0:
                connection.close()
        if any(connection.usable for connection in second_best):
            self._prune_later(peer_id)
