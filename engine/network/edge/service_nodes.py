"""The known service nodes: which are connected, what each offers, and which rest after a failure.

Addresses with the same peer id are one node.  A node that fails at a service rests from it, longer
each time, with jitter.  Nodes are ranked by failures, then by the user's order.  The reason why a
node cannot be used now is kept as a sentence, and logged once.  Filter and lightpush are handled
elsewhere in this package.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never

from engine.core.counters import Counters
from engine.core.errors import AddressError, AddressFlaw, OwnWords
from engine.core.ids import UnixMs
from engine.core.problems import (
    AnswersWrongly,
    NodeFailed,
    NodeProblem,
    OffersNo,
    OtherCluster,
    Unreachable,
)
from engine.network.edge.settings import EdgePace
from engine.network.libp2p.link_log import system_ms
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.libp2p.ports import Host, PeerId, ProtocolId, RemotePeer
from engine.network.waku.protocols import (
    FILTER_SUBSCRIBE_PROTOCOL,
    LEGACY_LIGHTPUSH_PROTOCOL,
    LIGHTPUSH_PROTOCOL,
)
from engine.network_views import ServiceNodeView, ServiceResult

MAX_SERVICE_NODES: Final = 16
MAX_ADDRESSES: Final = 4
"""Per service node."""
MAX_RESULTS: Final = 32
"""Likewise."""
_MAX_LOGGED: Final = 200
_JITTER: Final = 0.25
_MAX_DOUBLINGS: Final = 20

_LOGGER = logging.getLogger(__name__)


class Service(StrEnum):
    FILTER = "filter"
    LIGHTPUSH = "lightpush"


_PROTOCOLS: Final = {
    Service.FILTER: (FILTER_SUBSCRIBE_PROTOCOL,),
    Service.LIGHTPUSH: (LIGHTPUSH_PROTOCOL, LEGACY_LIGHTPUSH_PROTOCOL),
}


def offers(protocols: Collection[ProtocolId], service: Service) -> bool:
    return any(protocol in protocols for protocol in _PROTOCOLS[service])


def service_address(text: str) -> Multiaddr:
    """A multiaddr that names its peer.  Raises AddressError."""
    address = parse_multiaddr(text)
    if address.peer_id is None:
        raise AddressError(AddressFlaw.PEER_NOT_NAMED, shown=str(address))
    return address


def _logged(problem: NodeProblem) -> str:
    """Without the node's own words."""
    match problem:
        case NodeFailed(fault=fault, service=service, cause=cause):
            return " ".join(filter(None, (fault, service, cause)))
        case OffersNo(services=services):
            return f"offers no {', '.join(services)}"
        case Unreachable(fault=fault, detail=detail):
            return f"unreachable ({' '.join(filter(None, (fault, detail)))})"
        case OtherCluster(theirs=theirs, ours=ours):
            return f"it is in cluster {theirs}, this node in cluster {ours}"
        case AnswersWrongly(detail=detail):
            return f"answers wrongly ({detail})"
        case _:
            assert_never(problem)


@dataclass(slots=True)
class _Rest:
    failures: int = 0
    until_s: float = 0.0
    served_s: float | None = None
    """When it last fulfilled a request."""


@dataclass(slots=True, eq=False)
class ServiceNode:
    """``problem``: why it cannot be used, or not fully; None if all is well."""

    peer_id: PeerId
    order: int
    addresses: list[Multiaddr] = field(default_factory=list)
    problem: NodeProblem | None = None
    in_flight: int = 0
    """Pushes that wait for its answer."""
    in_doubt: int = 0
    """Pushes that it has answered, and may have accepted although it says otherwise."""
    results: deque[ServiceResult] = field(default_factory=lambda: deque(maxlen=MAX_RESULTS))
    """What became of the last requests, oldest first."""
    rests: dict[Service, _Rest] = field(default_factory=lambda: {each: _Rest() for each in Service})

    @property
    def name(self) -> str:
        """For users: its address without the long peer id."""
        address = self.addresses[0]
        host = f"[{address.host}]" if ":" in address.host else address.host
        return f"{host}:{address.port}"


class ServiceNodes:
    """``changed`` is called when the choice of nodes may change."""

    def __init__(
        self,
        pace: EdgePace,
        *,
        random: Callable[[], float],
        now_s: Callable[[], float],
        counters: Counters,
        changed: Callable[[], None],
    ) -> None:
        self._pace = pace
        self._random = random
        self._now_s = now_s
        self._counters = counters
        self._changed = changed
        self._nodes: dict[PeerId, ServiceNode] = {}
        self._remotes: Callable[[], Sequence[RemotePeer]] = lambda: ()
        self._logged: set[str] = set()

    def add(self, texts: Sequence[str]) -> list[str]:
        """Return the new nodes.  Unusable addresses are counted, logged once and skipped."""
        fresh: list[str] = []
        for text in texts:
            try:
                address = service_address(text)
            except AddressError as error:
                self._counters.add("edge.service_node_unusable")
                self._log_once(f"left out: {error}")
                continue
            if address.peer_id is not None and self._add(address.peer_id, address):
                fresh.append(str(address))
        return fresh

    def _add(self, peer_id: PeerId, address: Multiaddr) -> bool:
        node = self._nodes.get(peer_id)
        if node is None:
            if len(self._nodes) >= MAX_SERVICE_NODES:
                self._counters.add("edge.too_many_service_nodes")
                return False
            node = self._nodes[peer_id] = ServiceNode(peer_id=peer_id, order=len(self._nodes))
        if address in node.addresses:
            return False
        if len(node.addresses) >= MAX_ADDRESSES:
            self._counters.add("edge.too_many_addresses")
            return False
        node.addresses.append(address)
        return True

    def replace(self, texts: Sequence[str]) -> list[PeerId]:
        """Use only these.  Return the nodes that are gone or have other addresses now."""
        before, self._nodes = self._nodes, {}
        self.add(texts)
        for peer_id, node in self._nodes.items():
            known = before.get(peer_id)
            if known is not None and known.addresses == node.addresses:
                known.order = node.order
                self._nodes[peer_id] = known
        return [each for each, node in before.items() if self._nodes.get(each) is not node]

    def watch(self, host: Host | None) -> None:
        """Count the connections of this host from now on; None: none."""
        self._remotes = (lambda: ()) if host is None else host.peers
        for node in self._nodes.values():
            node.problem, node.in_flight, node.in_doubt = None, 0, 0
            node.rests = {each: _Rest() for each in Service}

    # --- who there is ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._nodes)

    def find(self, peer_id: PeerId) -> ServiceNode | None:
        return self._nodes.get(peer_id)

    def all(self) -> Sequence[ServiceNode]:
        return sorted(self._nodes.values(), key=lambda node: node.order)

    def texts(self) -> list[str]:
        return [str(address) for node in self.all() for address in node.addresses]

    def connected(self) -> dict[PeerId, RemotePeer]:
        return {
            remote.peer_id: remote for remote in self._remotes() if remote.peer_id in self._nodes
        }

    def offering(self, service: Service) -> list[ServiceNode]:
        """Connected nodes with the service, resting or not, best first."""
        remotes = self.connected()
        found = [
            self._nodes[peer_id]
            for peer_id, remote in remotes.items()
            if offers(remote.protocols, service)
        ]
        return sorted(found, key=lambda node: (node.rests[service].failures, node.order))

    def usable(self, service: Service) -> list[ServiceNode]:
        """Connected nodes with the service that do not rest, best first."""
        now_s = self._now_s()
        return [node for node in self.offering(service) if node.rests[service].until_s <= now_s]

    def next_usable_s(self, service: Service) -> float | None:
        """When the next resting node may be asked again; None if none rests."""
        now_s = self._now_s()
        waits = (node.rests[service].until_s for node in self.offering(service))
        return min((until_s for until_s in waits if until_s > now_s), default=None)

    # --- what became of it ----------------------------------------------------------------------

    def came(self, node: ServiceNode, remote: RemotePeer) -> None:
        """It has connected again; its failures are forgotten."""
        node.problem = None
        missing = [service for service in Service if not offers(remote.protocols, service)]
        if missing:
            self.troubled(node, OffersNo(tuple(missing)))

    def succeeded(self, node: ServiceNode, service: Service) -> None:
        rest = node.rests[service]
        was_failing = rest.failures > 0 or node.problem is not None
        rest.failures, rest.until_s, rest.served_s = 0, 0.0, self._now_s()
        self._note(node, service, None)
        if was_failing:
            if not any(each.failures for each in node.rests.values()):
                node.problem = None
            self._changed()

    def failed(
        self,
        node: ServiceNode,
        service: Service,
        problem: NodeProblem,
        *,
        busy: bool = False,
    ) -> None:
        """It rests from this service.

        ``busy``: it says that it is asked too often.  Its first rest then counts from when it last
        served, without jitter: earlier is useless, and much later leaves it idle.
        """
        rest = node.rests[service]
        now_s = self._now_s()
        self._note(node, service, problem)
        if rest.until_s <= now_s:  # simultaneous failures count once
            rest.failures += 1
            rest.until_s = now_s + self._rest_s(rest.failures)
            if busy and rest.failures == 1 and rest.served_s is not None:
                next_s = rest.served_s + self._pace.busy_rest_s
                rest.until_s = next_s if next_s > now_s else rest.until_s
        self._counters.add(f"edge.{service}_failed")
        self.troubled(node, problem)

    def _note(self, node: ServiceNode, service: Service, problem: NodeProblem | None) -> None:
        at_ms = UnixMs(system_ms())
        node.results.append(ServiceResult(at_ms=at_ms, service=service.value, problem=problem))

    def view(self, node: ServiceNode, *, holds_subscriptions: bool) -> ServiceNodeView:
        until_s = max(rest.until_s for rest in node.rests.values())
        return ServiceNodeView(
            peer_id=node.peer_id,
            name=node.name,
            is_connected=node.peer_id in self.connected(),
            holds_subscriptions=holds_subscriptions,
            problem=node.problem,
            rests_ms=max(0, round((until_s - self._now_s()) * 1_000)),
            results=tuple(node.results),
        )

    def troubled(self, node: ServiceNode, problem: NodeProblem) -> None:
        node.problem = problem
        self._log_once(f"{node.name}: {_logged(problem)}")
        self._changed()

    def _rest_s(self, failures: int) -> float:
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        rest_s = min(self._pace.rest_first_s * 2**doublings, self._pace.rest_cap_s)
        return self.jittered(rest_s)

    def jittered(self, seconds: float) -> float:
        return seconds * (1 - _JITTER + 2 * _JITTER * self._random())

    def _log_once(self, text: str) -> None:
        if text not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(text)
            _LOGGER.warning("a service node gives trouble", extra={"problem": OwnWords(text)})
