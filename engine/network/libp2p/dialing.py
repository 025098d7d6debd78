"""Keeps peers connected: redials them, with back-off and jitter, when they are lost.

The first retry comes soon, because a restarting peer is back soon.  The wait then doubles up to a
cap that is low on this machine and network and high elsewhere.  A connection that held for a while
resets the count.  One that is lost immediately does not; otherwise two nodes that refuse each other
would spin.  The caller supplies ``dial``.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from engine.core.counters import Counters
from engine.core.errors import ChatError
from engine.network.libp2p.handshake import WrongPeerError
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.ports import PeerId, RemotePeer

HELD_S = 10.0
_JITTER = 0.25
_MAX_DOUBLINGS = 20


def retry_delay_ms(failures: int, *, is_near: bool, limits: HostLimits, random: float) -> int:
    """Wait before the next dial after ``failures`` (≥ 1) in a row; ``random`` is in [0, 1)."""
    cap_ms = limits.retry_cap_near_ms if is_near else limits.retry_cap_far_ms
    doublings = min(failures - 1, _MAX_DOUBLINGS)
    delay_ms = min(limits.retry_first_ms << doublings, cap_ms)
    return round(delay_ms * (1 - _JITTER + 2 * _JITTER * random))


def is_mistaken(error: BaseException) -> bool:
    """Whether another peer answered a dial, so the address is wrong and not just unreachable."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, WrongPeerError | ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__
    return False


@dataclass(slots=True, eq=False)
class KeptPeer:
    """One peer, or one address whose peer is not known beforehand."""

    peer_id: PeerId | None
    addresses: list[Multiaddr] = field(default_factory=list)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class KeptPeers:
    """``dial`` returns an existing connection if there is one."""

    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        *,
        dial: Callable[[Multiaddr], Awaitable[RemotePeer]],
        spawn: Callable[[Coroutine[object, object, None]], asyncio.Task[None]],
        is_connected: Callable[[PeerId], bool],
        random: Callable[[], float],
        failed: Callable[[Multiaddr, ChatError], None],
        limits: HostLimits,
        counters: Counters,
    ) -> None:
        self._dial = dial
        self._spawn = spawn
        self._is_connected = is_connected
        self._random = random
        self._failed = failed
        self._limits = limits
        self._counters = counters
        self._kept: dict[str, KeptPeer] = {}
        self._running = False

    def __contains__(self, peer_id: PeerId) -> bool:
        return any(kept.peer_id == peer_id for kept in self._kept.values())

    def add(self, addresses: Sequence[Multiaddr]) -> None:
        for address in addresses:
            key = address.peer_id or str(address)
            kept = self._kept.get(key)
            if kept is None:
                if len(self._kept) >= self._limits.max_kept_peers:
                    self._counters.add("libp2p.kept_peers_limit")
                    continue
                kept = self._kept[key] = KeptPeer(address.peer_id)
            if address in kept.addresses:
                continue
            if len(kept.addresses) >= self._limits.max_kept_addresses:
                del kept.addresses[-1]  # the oldest: newly learned addresses go first
                self._counters.add("libp2p.kept_addresses_limit")
            kept.addresses.insert(0, address)
            self._ensure_running(kept)

    def start(self) -> None:
        self._running = True
        for kept in self._kept.values():
            self._ensure_running(kept)

    def peer_lost(self, peer_id: PeerId) -> None:
        for kept in self._kept.values():
            if kept.peer_id == peer_id:
                kept.lost.set()

    def try_now(self, peer_id: PeerId) -> None:
        """Dial a peer that is kept and not connected, however often that failed before."""
        for kept in self._kept.values():
            if kept.peer_id == peer_id and kept.task is not None:
                kept.task.cancel()
                kept.task = None
                self._ensure_running(kept)

    def remove(self, peer_id: PeerId) -> None:
        for key in [key for key, kept in self._kept.items() if kept.peer_id == peer_id]:
            task = self._kept.pop(key).task
            if task is not None:
                task.cancel()

    def _ensure_running(self, kept: KeptPeer) -> None:
        if self._running and kept.task is None:
            kept.task = self._spawn(self._keep(kept))

    async def _keep(self, kept: KeptPeer) -> None:
        now = asyncio.get_running_loop().time
        failures = 0
        while True:
            kept.lost.clear()
            connected_at = now()
            if await self._dial_any(kept):
                await self._wait_until_lost(kept)
                if now() - connected_at >= HELD_S:
                    failures = 0
            failures += 1
            delay_ms = retry_delay_ms(
                failures,
                is_near=any(address.is_near for address in kept.addresses),
                limits=self._limits,
                random=self._random(),
            )
            await asyncio.sleep(delay_ms / 1_000)

    async def _wait_until_lost(self, kept: KeptPeer) -> None:
        while kept.peer_id is not None and self._is_connected(kept.peer_id):
            kept.lost.clear()
            await kept.lost.wait()

    async def _dial_any(self, kept: KeptPeer) -> bool:
        for address in tuple(kept.addresses):
            try:
                remote = await self._dial(address)
            except ChatError as error:  # counted by the host; another address or another time
                self._failed(address, error)
                continue
            if kept.peer_id is None:
                kept.peer_id = remote.peer_id
            return True
        return False
