"""What happened to a host's connections, for whoever looks at the network: two short lists.

Refusals and vain dials have a list of their own, where the same one again only counts: strangers
who knock all day push out nothing that happened to peers.  Nothing is written to disk or logged.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.core.errors import (
    ChatError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.core.ids import UnixMs
from engine.core.problems import LinkEnded, LinkReason, PeerRefusal, Unreachable, unreachable
from engine.network.libp2p.multiaddr import Multiaddr
from engine.network.libp2p.ports import PeerId
from engine.network_views import LinkEvent, LinkEventKind

MOST_EVENTS: Final = 128
"""In each of the two lists."""
_NS_PER_MS: Final = 1_000_000
_REFUSALS: Final = {
    "connections_per_address_limit": LinkReason.TOO_MANY_AT_ADDRESS,
    "handshakes_per_address_limit": LinkReason.TOO_MANY_HANDSHAKES,
    "handshakes_limit": LinkReason.TOO_MANY_HANDSHAKES,
}


def system_ms() -> int:
    return time.time_ns() // _NS_PER_MS


class LinkLog:
    def __init__(self, now_ms: Callable[[], int] = system_ms) -> None:
        self._now_ms = now_ms
        self._happened: deque[LinkEvent] = deque(maxlen=MOST_EVENTS)
        self._in_vain: dict[tuple[object, ...], LinkEvent] = {}
        """By what makes two of them the same; who happened last stands last."""
        self._since_ms: dict[PeerId, UnixMs] = {}

    def since_ms(self, peer_id: PeerId) -> UnixMs:
        """Since when a connected peer has been connected."""
        return self._since_ms.get(peer_id, UnixMs(self._now_ms()))

    def events(self) -> tuple[LinkEvent, ...]:
        """Newest first."""
        every = (*reversed(self._happened), *reversed(self._in_vain.values()))
        return tuple(sorted(every, key=lambda event: event.at_ms, reverse=True))

    def connected(self, peer_id: PeerId, address: Multiaddr, *, outbound: bool) -> None:
        event = self._event(LinkEventKind.CONNECTED, peer_id, address, outbound=outbound)
        self._since_ms[peer_id] = event.at_ms
        self._happened.append(event)

    def closed(
        self,
        peer_id: PeerId,
        address: Multiaddr,
        problem: LinkEnded | PeerRefusal,
        *,
        outbound: bool,
    ) -> None:
        """The peer's last connection ended."""
        self._since_ms.pop(peer_id, None)
        event = self._event(LinkEventKind.CLOSED, peer_id, address, problem, outbound=outbound)
        self._happened.append(event)

    def not_admitted(self, address: Multiaddr, counted_as: str) -> None:
        """An incoming connection was not let in; ``counted_as``: the counter's name for it."""
        reason = _REFUSALS.get(counted_as, LinkReason.NO_ROOM)
        self._refused(address, LinkEnded(reason))

    def handshake_failed(self, address: Multiaddr, error: ChatError) -> None:
        if isinstance(error, RemoteProtocolError):
            self._refused(address, LinkEnded(LinkReason.BROKE_PROTOCOL, error.reason))
        elif isinstance(error, TransportError) and error.fault is TransportFault.CUT_OFF:
            self._refused(address, LinkEnded(LinkReason.CUT_OFF))
        else:
            self._refused(address, LinkEnded(LinkReason.HANDSHAKE_FAILED))

    def _refused(self, address: Multiaddr, ended: LinkEnded) -> None:
        kind = LinkEventKind.REFUSED
        event = self._event(kind, PeerId(""), address, ended, outbound=False)
        # The port is chance, and each try has another one.
        self._count((event.kind, address.host, ended), event)

    def not_reached(self, address: Multiaddr, error: ChatError) -> None:
        peer_id = address.peer_id or PeerId("")
        problem = unreachable(error)
        kind = LinkEventKind.NOT_REACHED
        event = self._event(kind, peer_id, address, problem, outbound=True)
        self._count((event.kind, event.address, problem), event)

    def _count(self, key: tuple[object, ...], event: LinkEvent) -> None:
        before = self._in_vain.pop(key, None)
        if before is not None:
            event = replace(event, times=before.times + 1, first_ms=before.first_ms)
        elif len(self._in_vain) >= MOST_EVENTS:
            del self._in_vain[next(iter(self._in_vain))]
        self._in_vain[key] = event

    def _event(
        self,
        kind: LinkEventKind,
        peer_id: PeerId,
        address: Multiaddr,
        problem: LinkEnded | PeerRefusal | Unreachable | None = None,
        *,
        outbound: bool,
    ) -> LinkEvent:
        at_ms = UnixMs(self._now_ms())
        return LinkEvent(
            kind=kind,
            at_ms=at_ms,
            peer_id=peer_id,
            address=str(address),
            outbound=outbound,
            problem=problem,
            first_ms=at_ms,
        )
