"""Chooses a device's role, relay or edge, and changes it at run time behind one ``Transport``.

A relaying node meets others directly.  An edge node needs service nodes; it works where no direct
connection is possible, or where relays require proofs that only service nodes attach.

In automatic mode a device relays.  If there are service nodes and no peer has relayed for it for a
while, it becomes an edge node as well; it stops being one when peers have relayed for longer.  On
the public network it is an edge node from the start.

The new role connects before the old one ends, and each message is delivered once, whichever role
brings it.  ``embedded`` and ``edge`` implement the roles.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from engine.core.ids import ContentTopic, WakuHash
from engine.core.problems import ConnectionReason
from engine.core.waku import WakuMessage
from engine.network.blobs.host_blobs import HostBlobs
from engine.network.handlers import Listeners, TopicHandlers
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import Host, JudgeCopy, PeerId, ProtocolId
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.network.peers_by_protocol import Reached
from engine.network.stores.host_stores import HostStores
from engine.network.transport import (
    MessageHandler,
    PeerAddressHandler,
    Receipt,
    StatusHandler,
    Transport,
    TransportLevel,
    TransportRole,
    TransportStatus,
)
from engine.network.waku.gossip.cache import SeenCache
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.network_views import NetworkFacts

if TYPE_CHECKING:
    from engine.network.edge.edge_node import EdgeNode

PUBLIC_CLUSTER: Final = 1
MAX_GROUP_SERVICE_NODES: Final = 64
"""Addresses that came with groups.  The edge node limits how many it uses."""
_SEEN_TTL_MS: Final = 120_000
_MAX_SEEN: Final = 20_000
_BEST_LAST: Final = (TransportLevel.OFFLINE, TransportLevel.MINIMAL, TransportLevel.GOOD)

_LOGGER = logging.getLogger(__name__)


class Role(StrEnum):
    AUTO = "auto"
    RELAY = "relay"
    EDGE = "edge"


class RolePace(Struct, frozen=True, kw_only=True):
    alone_s: float = 20.0
    """After this long without relaying peers, service nodes are used."""
    together_s: float = 60.0
    """After this long with relaying peers, service nodes are no longer used."""
    handover_s: float = 10.0
    """How long the old role continues if the new one does not connect."""
    overlap_s: float = 3.0
    """How long it continues once the new one is connected: messages in transit arrive, and a mesh
    needs a heartbeat."""


class RoleSettings(Struct, frozen=True, kw_only=True):
    relay: NodeSettings
    role: Role = Role.AUTO
    service_nodes: tuple[str, ...] = ()
    pace: RolePace = field(default_factory=RolePace)


def make_edge_node(settings: NodeSettings) -> "EdgeNode":
    # Imported when first needed: most devices relay, and their windows should not wait for it.
    from engine.network.edge.edge_node import EdgeNode  # noqa: PLC0415
    from engine.network.edge.settings import EdgeSettings, edge_key  # noqa: PLC0415

    return EdgeNode(
        EdgeSettings(
            network_key=edge_key(settings.network_key),
            sharding=settings.sharding,
            proxy=settings.proxy,
        )
    )


class RoleTransport:
    """See ``engine.network.transport.Transport`` for the contract of each method."""

    def __init__(
        self,
        settings: RoleSettings,
        *,
        make_relay: Callable[[NodeSettings], EmbeddedNode] = EmbeddedNode,
        make_edge: "Callable[[NodeSettings], EdgeNode]" = make_edge_node,
    ) -> None:
        self._settings = settings
        self._role = settings.role
        self._own_nodes = tuple(settings.service_nodes)
        self._group_nodes: dict[str, None] = {}
        self._counters = Counters()
        self._handlers = TopicHandlers()
        self._topics: dict[ContentTopic, dict[Transport, Callable[[], None]]] = {}
        self._seen = SeenCache(ttl_ms=_SEEN_TTL_MS, max_entries=_MAX_SEEN)
        self._refused = SeenCache(ttl_ms=_SEEN_TTL_MS, max_entries=_MAX_SEEN)
        """The seen messages that failed the precheck, whichever role brought them."""
        self._status_listeners = Listeners[TransportStatus]()
        self._make_edge = make_edge
        self._relay = make_relay(settings.relay)
        self._relay.on_status(self._status_changed)
        self._relay.add_service_nodes(self._own_nodes)
        self._edge: EdgeNode | None = None
        self._cut_off: Collection[str] = ()
        self._judge_copy: JudgeCopy | None = None
        self._up: list[Transport] = []
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        self._steering: asyncio.Task[None] | None = None
        self._relay_since_s = 0.0
        self._had_relay_peers = False
        self._last_status = self.status()

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._steering is not None:
            raise LocalProtocolError("the transport has been started already")
        async with self._turn:
            self._relay_since_s, self._had_relay_peers = _now_s(), False
            for transport in self._wanted():
                await self._bring_up(transport)
        self._steering = asyncio.create_task(self._steer(), name="roles")
        self._tell_status()

    async def stop(self) -> None:
        steering, self._steering = self._steering, None
        self._news.set()
        if steering is not None:
            steering.cancel()
            await asyncio.gather(steering, return_exceptions=True)
        async with self._turn:
            for transport in tuple(self._up):
                await self._take_down(transport)
        self._tell_status()

    # --- roles ----------------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return self._role

    async def set_role(self, role: Role) -> None:
        """Return when the role is active.  Raises TransportError; then nothing has changed."""
        async with self._turn:
            before, self._role = self._role, role
            if self._steering is None:
                return
            try:
                await self._change()
            except BaseException:
                self._role = before
                raise
        self._news.set()

    async def set_service_nodes(self, multiaddrs: Sequence[str]) -> None:
        """Replace the user's own service nodes.  Those from groups stay, after the user's."""
        async with self._turn:
            self._own_nodes = tuple(multiaddrs)
            self._relay.add_service_nodes(self._own_nodes)
            if self._edge is not None:
                await self._edge.set_service_nodes(self._service_nodes())
        self._news.set()

    def _service_nodes(self) -> tuple[str, ...]:
        return (*self._own_nodes, *self._group_nodes)

    def _wanted(self) -> list[Transport]:
        """The transports that should run now in the current role."""
        is_public = self._settings.relay.sharding.cluster_id == PUBLIC_CLUSTER
        match self._role:
            case Role.RELAY:
                return [self._relay]
            case Role.AUTO if not is_public:
                edge = self._edge
                return (
                    [self._relay, edge] if edge is not None and edge in self._up else [self._relay]
                )
            case Role.AUTO | Role.EDGE:
                return [self._edge_node()]
            case _:
                assert_never(self._role)

    def _edge_node(self) -> "EdgeNode":
        if self._edge is None:
            self._edge = self._make_edge(self._settings.relay)
            self._edge.add_service_nodes(self._service_nodes())
            self._edge.on_status(self._status_changed)
            self._edge.cut_off(self._cut_off)
            self._edge.judge_copies_by(self._judge_copy)
            for content_topic, undo in self._topics.items():
                undo[self._edge] = self._edge.subscribe(content_topic, self._arrived)
        return self._edge

    async def _change(self) -> None:
        """Change to the roles that should run: start the new ones, then stop the old."""
        wanted = self._wanted()
        fresh = [transport for transport in wanted if transport not in self._up]
        stale = [transport for transport in self._up if transport not in wanted]
        for transport in fresh:
            await self._bring_up(transport)
        if stale and fresh:
            await self._connected(fresh)
        for transport in stale:
            await self._take_down(transport)
        self._relay_since_s, self._had_relay_peers = _now_s(), False
        self._tell_status()

    async def _bring_up(self, transport: Transport) -> None:
        await transport.start()
        self._up.append(transport)

    async def _take_down(self, transport: Transport) -> None:
        self._up.remove(transport)
        await transport.stop()

    async def _connected(self, transports: Sequence[Transport]) -> None:
        """Wait until connected and a while more, or until the time limit or a stop."""
        pace = self._settings.pace
        await self._wait(pace.handover_s, lambda: any(each.status().peers for each in transports))
        await self._wait(pace.overlap_s, lambda: False)

    async def _wait(self, at_most_s: float, ready: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                while self._steering and not ready():
                    self._news.clear()
                    await self._news.wait()

    async def _steer(self) -> None:
        while True:
            self._news.clear()
            async with self._turn:
                due_s = await self._step() if self._role is Role.AUTO else None
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due_s):
                    await self._news.wait()

    async def _step(self) -> float | None:
        """Start or stop using service nodes.  Return when to check again."""
        if self._relay not in self._up:
            return None
        now_s, has_peers = _now_s(), self._relay.status().peers > 0
        if has_peers != self._had_relay_peers:
            self._relay_since_s, self._had_relay_peers = now_s, has_peers
        edge_up = self._edge is not None and self._edge in self._up
        if edge_up != has_peers or not (edge_up or self._service_nodes()):
            return None  # nothing to change, or nothing that can be changed
        pace = self._settings.pace
        due_s = self._relay_since_s + (pace.together_s if edge_up else pace.alone_s)
        if now_s < due_s:
            return due_s
        if edge_up:
            _LOGGER.info("others relay for this device again; service nodes are not needed")
            await self._take_down(self._edge_node())
        else:
            _LOGGER.info("nobody relays for this device; it uses service nodes")
            await self._bring_up(self._edge_node())
        self._counters.add("roles.changed")
        self._tell_status()
        return None

    # --- messages -------------------------------------------------------------------------------

    async def publish(self, message: WakuMessage, /) -> Receipt:
        self._note_own(message)
        running = tuple(self._up)
        if not running:
            return await self._relay.publish(message)
        if len(running) > 1:  # a relay without peers reports only that it has none
            running = tuple(each for each in running if each.status().peers) or running[-1:]
        receipts = await asyncio.gather(*(each.publish(message) for each in running))
        said = any(receipt.peers and receipt.taken is None for receipt in receipts)
        return replace(
            receipts[0],
            peers=sum(receipt.peers for receipt in receipts),
            taken=None if said else next((each.taken for each in receipts if each.taken), None),
            written=next((each.written for each in receipts if each.written), None),
            role=receipts[0].role if len({each.role for each in receipts}) == 1 else None,
        )

    def _note_own(self, message: WakuMessage) -> None:
        """A message published by one role may come back by the other."""
        with suppress(RemoteProtocolError):
            topic = self._settings.relay.sharding.pubsub_topic(message.content_topic)
            self._is_new(message_hash(topic, message))

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        if content_topic not in self._handlers:
            self._topics[content_topic] = {
                transport: transport.subscribe(content_topic, self._arrived)
                for transport in (self._relay, self._edge)
                if transport is not None
            }
        remove = self._handlers.add(content_topic, handler)

        def unsubscribe() -> None:
            remove()
            if content_topic not in self._handlers:
                for undo in self._topics.pop(content_topic, {}).values():
                    undo()

        return unsubscribe

    def _arrived(self, message: WakuMessage, waku_hash: WakuHash) -> bool:
        if self._is_new(waku_hash) and not self._handlers.deliver(message, waku_hash):
            self._refused.add(waku_hash, now_ms=int(_now_s() * 1_000))
        return waku_hash not in self._refused

    def _is_new(self, waku_hash: WakuHash) -> bool:
        now_ms = int(_now_s() * 1_000)
        self._seen.expire(now_ms=now_ms)
        self._refused.expire(now_ms=now_ms)
        is_new = waku_hash not in self._seen
        self._seen.add(waku_hash, now_ms=now_ms)
        return is_new

    # --- peers and status -----------------------------------------------------------------------

    def add_peers(self, multiaddrs: Sequence[str], /) -> None:
        self._relay.add_peers(multiaddrs)

    def try_peers(self, multiaddrs: Sequence[str], /) -> None:
        self._relay.try_peers(multiaddrs)

    def add_service_nodes(self, multiaddrs: Sequence[str], /) -> None:
        """Add service nodes of a group; the user's own come first."""
        for text in multiaddrs:
            if len(self._group_nodes) < MAX_GROUP_SERVICE_NODES:
                self._group_nodes[text] = None
            else:
                self._counters.add("roles.too_many_service_nodes")
        self._relay.add_service_nodes(multiaddrs)
        if self._edge is not None:
            self._edge.add_service_nodes(multiaddrs)
        self._news.set()

    def reach(self, protocols: Collection[ProtocolId], /) -> tuple[Reached, ...]:
        """Connected peers that speak one of ``protocols``, service nodes first, best first."""
        edge = () if self._edge is None else self._edge.reach(protocols)
        return (*edge, *self._relay.reach(protocols))

    @property
    def sharding(self) -> Sharding:
        return self._settings.relay.sharding

    def addresses(self) -> Sequence[str]:
        return self._relay.addresses()

    def status(self) -> TransportStatus:
        statuses = [each.status() for each in self._up] or [self._idle_status()]
        best = max(
            statuses, key=lambda s: (_BEST_LAST.index(s.level), s.role is TransportRole.EDGE)
        )
        return replace(
            best,
            bytes_in=sum(status.bytes_in for status in statuses),
            bytes_out=sum(status.bytes_out for status in statuses),
        )

    def _idle_status(self) -> TransportStatus:
        return TransportStatus(
            level=TransportLevel.OFFLINE, peers=0, reason=ConnectionReason.NOT_STARTED
        )

    def on_status(self, handler: StatusHandler, /) -> Callable[[], None]:
        return self._status_listeners.add(handler)

    def on_peer_address(self, handler: PeerAddressHandler, /) -> Callable[[], None]:
        return self._relay.on_peer_address(handler)

    def stores(self) -> HostStores:
        return HostStores(self._hosts, self._settings.relay.sharding)

    def blobs(self) -> HostBlobs:
        return HostBlobs(
            self._hosts,
            self._relay.serve_chunks,
            give_way=self._relay.slow_files_down,
            preferred=self._service_node_peers,
        )

    def _service_node_peers(self) -> frozenset[PeerId]:
        """Those of the user and of groups, whose addresses name them."""
        peers: set[PeerId] = set()
        for text in self._service_nodes():
            with suppress(ConfigError):
                peer_id = parse_multiaddr(text).peer_id
                if peer_id is not None:
                    peers.add(peer_id)
        return frozenset(peers)

    def _hosts(self) -> tuple[Host, ...]:
        """The running hosts, that of the edge role first."""
        edge = () if self._edge is None else self._edge.hosts()
        return (*edge, *self._relay.hosts())

    def cut_off(self, peers: Collection[str], /) -> None:
        self._cut_off = tuple(peers)
        for role in (self._relay, self._edge):
            if role is not None:
                role.cut_off(self._cut_off)

    def judge_copies_by(self, judge: JudgeCopy | None, /) -> None:
        self._judge_copy = judge
        for role in (self._relay, self._edge):
            if role is not None:
                role.judge_copies_by(judge)

    def counters(self) -> Mapping[str, int]:
        total = Counters()
        of_edge = {} if self._edge is None else self._edge.counters()
        for counted in (self._relay.counters(), of_edge, self._counters.snapshot()):
            for name, amount in counted.items():
                total.add(name, amount)
        return total.snapshot()

    def facts(self) -> NetworkFacts:
        """Of both roles; the service nodes first, and what happened merged by time."""
        each = [one.facts() for one in (self._edge, self._relay) if one is not None]
        events = (event for facts in each for event in facts.events)
        return NetworkFacts(
            peers=tuple(peer for facts in each for peer in facts.peers),
            service_nodes=tuple(node for facts in each for node in facts.service_nodes),
            events=tuple(sorted(events, key=lambda event: event.at_ms, reverse=True)),
        )

    def _status_changed(self, status: TransportStatus) -> None:
        del status
        self._news.set()
        self._tell_status()

    def _tell_status(self) -> None:
        """Notify of a new status, unless only byte counts changed."""
        status, last = self.status(), self._last_status
        self._last_status = status
        if replace(status, bytes_in=0, bytes_out=0) != replace(last, bytes_in=0, bytes_out=0):
            self._status_listeners.call(status)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
