"""Single dials, to addresses that are worth a try but not worth remembering.

One task per peer tries that peer's addresses until one answers.  The number of tasks is bounded.
Excess attempts are counted and dropped: the source of the addresses will announce them again.  Any
source will do.
"""

from asyncio import Future
from collections.abc import Sequence
from functools import partial

from engine.core.counters import Counters
from engine.core.errors import ChatError, ConfigError
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.ports import Host, PeerId
from engine.network.owned_tasks import OwnedTasks

MAX_ATTEMPTS = 16
"""Peers that are being dialled at the same time."""


class Attempts:
    """Running attempts.  ``peer_id in attempts``: this peer is being tried now."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._tasks = OwnedTasks(counters, failed="node.task_failed")
        self._trying: set[PeerId] = set()

    def __contains__(self, peer_id: PeerId) -> bool:
        return peer_id in self._trying

    def begin(self, host: Host, multiaddrs: Sequence[str]) -> None:
        connected = {peer.peer_id for peer in host.peers()} | {host.peer_id}
        for peer_id, addresses in self._by_peer(multiaddrs).items():
            if peer_id in connected or peer_id in self._trying:
                continue
            if len(self._trying) >= MAX_ATTEMPTS:
                self._counters.add("node.too_many_attempts")
                continue
            self._trying.add(peer_id)
            task = self._tasks.spawn(self._try(host, addresses))
            task.add_done_callback(partial(self._ended, peer_id))

    async def stop(self) -> None:
        await self._tasks.cancel_all()

    def _ended(self, peer_id: PeerId, task: Future[None]) -> None:
        del task
        self._trying.discard(peer_id)

    def _by_peer(self, multiaddrs: Sequence[str]) -> dict[PeerId, list[Multiaddr]]:
        found: dict[PeerId, list[Multiaddr]] = {}
        for text in multiaddrs:
            try:
                address = parse_multiaddr(text)
            except ConfigError:
                self._counters.add("node.peer_address_unusable")
                continue
            if address.peer_id is None:
                self._counters.add("node.peer_address_without_peer")
                continue
            found.setdefault(address.peer_id, []).append(address)
        return found

    async def _try(self, host: Host, addresses: Sequence[Multiaddr]) -> None:
        for address in addresses:
            try:
                await host.connect(str(address))
            except ChatError:
                continue  # counted by the host
            self._counters.add("node.attempts_connected")
            return
        self._counters.add("node.attempts_failed")
