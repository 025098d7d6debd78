"""The edge node: a ``Transport`` whose messages are relayed by service nodes.

It listens nowhere and dials only its service nodes, so it works behind any router, and on networks
whose relays require proofs that a service node can attach.  It subscribes at two service nodes and
publishes to two; the others are spares.  Addresses of other peers are ignored.  The caller decides
which service nodes to use and when to be an edge node.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random, SystemRandom

from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.codec.waku_metadata import Metadata
from engine.core.counters import Counters
from engine.core.errors import (
    ChatError,
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.problems import NodeFailed, NodeFault, NodeTrouble, PeerRefusal, unreachable
from engine.core.waku import WakuMessage
from engine.network.blobs.host_blobs import HostBlobs
from engine.network.edge.health import EdgeHealth, edge_level
from engine.network.edge.running import EdgeParts, RunningEdge
from engine.network.edge.service_nodes import Service, ServiceNode, ServiceNodes
from engine.network.edge.settings import EdgeSettings
from engine.network.handlers import Listeners, TopicHandlers
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import Host, JudgeCopy, PeerId, ProtocolId, RemotePeer
from engine.network.peers_by_protocol import Reached, reached
from engine.network.stores.host_stores import HostStores
from engine.network.transport import (
    MessageHandler,
    PeerAddressHandler,
    Receipt,
    StatusHandler,
    TransportLevel,
    TransportRole,
    TransportStatus,
)
from engine.network.waku.filter.client import Pushed
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding, parse_pubsub_topic
from engine.network_views import NetworkFacts

HostFactory = Callable[[EdgeSettings], Host]


def dialling_host(settings: EdgeSettings) -> Host:
    return TcpHost(settings.network_key, [], proxy=settings.proxy)


class EdgeNode:
    """See ``engine.network.transport.Transport`` for the contract of each method."""

    def __init__(
        self,
        settings: EdgeSettings,
        *,
        make_host: HostFactory = dialling_host,
        random: Random | None = None,
    ) -> None:
        self._settings = settings
        self._make_host = make_host
        self._counters = Counters()
        self._topics: dict[ContentTopic, tuple[PubsubTopic, int]] = {}
        """Content topics with their subscription counts."""
        self._handlers = TopicHandlers()
        self._status_listeners = Listeners[TransportStatus]()
        chance = random or SystemRandom()
        self._nodes = ServiceNodes(
            settings.pace,
            random=chance.random,
            now_s=lambda: asyncio.get_running_loop().time(),
            counters=self._counters,
            changed=self.nodes_changed,
        )
        self._parts = EdgeParts(
            pace=settings.pace,
            nodes=self._nodes,
            counters=self._counters,
            deliver=self._deliver,
            own_metadata=self._own_metadata,
            new_request_id=lambda: chance.randbytes(16).hex(),
            observer=self,
        )
        self._up: RunningEdge | None = None
        self._cut_off: Collection[str] = ()
        self._judge_copy: JudgeCopy | None = None
        self._nodes.add(settings.service_nodes)
        self._last_status = self.status()

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._up is not None:
            raise LocalProtocolError("the edge node has been started already")
        host = self._make_host(self._settings)
        self._nodes.watch(host)
        up = self._up = RunningEdge(host, self._parts)
        up.start()
        host.on_peer_connected(self._peer_connected)
        host.on_peer_disconnected(self._peer_disconnected)
        host.on_dial_failed(self._dial_failed)
        host.cut_off(tuple(map(PeerId, self._cut_off)))
        host.judge_copy = self._judge_copy
        try:
            await host.start()
        except BaseException:
            await self.stop()
            raise
        up.subscriptions.start()
        self._want()
        host.keep_connected(self._nodes.texts())
        self._tell_status()

    async def stop(self) -> None:
        up, self._up = self._up, None
        if up is not None:
            await up.stop()
            self._nodes.watch(None)
            for name, amount in up.host.counters().items():
                self._counters.add(name, amount)  # Counts outlive the host.
        self._tell_status()

    # --- messages -------------------------------------------------------------------------------

    async def publish(self, message: WakuMessage, /) -> Receipt:
        try:
            encode_waku_message(message)
            topic = self._settings.sharding.pubsub_topic(message.content_topic)
        except (LocalProtocolError, RemoteProtocolError) as error:
            text = f"this message cannot be published: {error}"
            raise TransportError(text, TransportFault.NOT_PUBLISHABLE) from error
        waku_hash = message_hash(topic, message)
        up, peers = self._up, 0
        if up is not None:
            comes_back = message.content_topic in self._topics
            up.subscriptions.note_own(waku_hash, comes_back=comes_back)
            peers = await up.publishing.publish(
                topic, message, waku_hash=waku_hash, comes_back=comes_back
            )
            if not peers:
                up.subscriptions.note_kept(waku_hash)
        self._counters.add("edge.published" if peers else "edge.published_to_nobody")
        return Receipt(waku_hash=waku_hash, peers=peers, role=TransportRole.EDGE)

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        try:
            topic = self._settings.sharding.pubsub_topic(content_topic)
        except RemoteProtocolError as error:
            raise LocalProtocolError(f"no content topic: {content_topic}") from error
        _, count = self._topics.get(content_topic, (topic, 0))
        self._topics[content_topic] = (topic, count + 1)
        remove = self._handlers.add(content_topic, handler)
        if not count:
            self._want()
        subscribed = True

        def unsubscribe() -> None:
            nonlocal subscribed
            if subscribed:
                subscribed = False
                remove()
                self._forget(content_topic)

        return unsubscribe

    def _forget(self, content_topic: ContentTopic) -> None:
        topic, count = self._topics[content_topic]
        if count > 1:
            self._topics[content_topic] = (topic, count - 1)
        else:
            del self._topics[content_topic]
            self._want()

    def _want(self) -> None:
        if self._up is not None:
            self._up.subscriptions.want(
                {(topic, content_topic) for content_topic, (topic, _) in self._topics.items()}
            )

    def _deliver(self, pushed: Pushed) -> None:
        self._handlers.deliver(pushed.message, pushed.message_hash)

    # --- service nodes --------------------------------------------------------------------------

    def add_service_nodes(self, multiaddrs: Sequence[str], /) -> None:
        """Add to the present ones.  The user's come first if they were given first."""
        fresh = self._nodes.add(multiaddrs)
        if fresh and self._up is not None:
            self._up.host.keep_connected(fresh)
        self._tell_status()

    async def set_service_nodes(self, multiaddrs: Sequence[str]) -> None:
        """Use only these, the preferred ones first."""
        gone = self._nodes.replace(multiaddrs)
        if self._up is not None:
            host = self._up.host
            self.nodes_changed()
            await asyncio.gather(*(host.disconnect(peer_id) for peer_id in gone))
            host.keep_connected(self._nodes.texts())
        self._tell_status()

    def add_peers(self, multiaddrs: Sequence[str], /) -> None:
        """Ignored: peers that relay are of no use here.

        A service node learns its client's interests, so only nodes named as service nodes are used.
        """
        self._counters.add("edge.peers_left_alone", len(multiaddrs))

    def try_peers(self, multiaddrs: Sequence[str], /) -> None:
        """Ignored for the same reason."""
        self.add_peers(multiaddrs)

    def reach(self, protocols: Collection[ProtocolId], /) -> tuple[Reached, ...]:
        """Service nodes that speak one of ``protocols``, best first, for the Store client."""
        if self._up is None:
            return ()
        order = {node.peer_id: node.order for node in self._nodes.all()}
        found = [each for each in reached(self._up.host, protocols) if each.peer.peer_id in order]
        return tuple(sorted(found, key=lambda each: order[each.peer.peer_id]))

    def service_nodes(self) -> Sequence[ServiceNode]:
        return self._nodes.all()

    def peer_refused(self, peer_id: PeerId, reason: PeerRefusal, /) -> None:
        """The node's cluster is another one.  It is dialled again much later."""
        self._counters.add("edge.service_node_refused")
        node, up = self._nodes.find(peer_id), self._up
        if node is None or up is None:
            return
        self._nodes.troubled(node, reason)
        wait_s = self._nodes.jittered(self._settings.pace.refused_again_s)
        up.dial_again(peer_id, [str(address) for address in node.addresses], wait_s)

    def _peer_connected(self, peer: RemotePeer) -> None:
        node = self._nodes.find(peer.peer_id)
        if node is not None:
            self._nodes.came(node, peer)
        self.nodes_changed()

    def _peer_disconnected(self, peer_id: PeerId) -> None:
        node = self._nodes.find(peer_id)
        if node is not None and not node.problem:
            node.problem = NodeFailed(NodeFault.CLOSED)
        self.nodes_changed()

    def _dial_failed(self, multiaddr: str, error: ChatError) -> None:
        peer_id = parse_multiaddr(multiaddr).peer_id
        node = None if peer_id is None else self._nodes.find(peer_id)
        if node is not None:
            self._nodes.troubled(node, unreachable(error))

    # --- status ---------------------------------------------------------------------------------

    @property
    def sharding(self) -> Sharding:
        return self._settings.sharding

    def addresses(self) -> Sequence[str]:
        """None: an edge node cannot be dialled."""
        return ()

    def status(self) -> TransportStatus:
        up = self._up
        connected = self._nodes.connected() if up is not None else {}
        troubles = (
            NodeTrouble(node.name, node.problem)
            for node in self._nodes.all()
            if node.problem is not None
        )
        health = EdgeHealth(
            running=up is not None,
            known=len(self._nodes),
            connected=len(connected),
            receiving=0 if up is None else len(up.subscriptions.complete()),
            sending=0 if up is None else len(self._nodes.usable(Service.LIGHTPUSH)),
        )
        level, reason = edge_level(health)
        bytes_in, bytes_out = (0, 0) if up is None else up.host.traffic()
        return TransportStatus(
            level=level,
            peers=health.receiving,
            reason=reason,
            trouble=None if level is TransportLevel.GOOD else next(troubles, None),
            bytes_in=bytes_in,
            bytes_out=bytes_out,
            role=TransportRole.EDGE,
        )

    def on_status(self, handler: StatusHandler, /) -> Callable[[], None]:
        return self._status_listeners.add(handler)

    def on_peer_address(self, handler: PeerAddressHandler, /) -> Callable[[], None]:
        """Never called: the user names the service nodes."""
        del handler
        return lambda: None

    def stores(self) -> HostStores:
        return HostStores(self.hosts, self._settings.sharding)

    def blobs(self) -> HostBlobs:
        """Nobody can dial it, and its service nodes want no chunks: nothing is served."""
        return HostBlobs(self.hosts, lambda _: None)

    def cut_off(self, peers: Collection[str], /) -> None:
        self._cut_off = tuple(peers)
        for host in self.hosts():
            host.cut_off(tuple(map(PeerId, peers)))

    def judge_copies_by(self, judge: JudgeCopy | None, /) -> None:
        self._judge_copy = judge
        for host in self.hosts():
            host.judge_copy = judge

    def hosts(self) -> tuple[Host, ...]:
        return () if self._up is None else (self._up.host,)

    def counters(self) -> Mapping[str, int]:
        total = Counters()
        of_host = {} if self._up is None else self._up.host.counters()
        for counted in (self._counters.snapshot(), of_host):
            for name, amount in counted.items():
                total.add(name, amount)
        return total.snapshot()

    def facts(self) -> NetworkFacts:
        up = self._up
        if up is None:
            return NetworkFacts()
        complete = {node.peer_id for node in up.subscriptions.complete()}
        nodes = (
            self._nodes.view(node, holds_subscriptions=node.peer_id in complete)
            for node in self._nodes.all()
        )
        return replace(up.host.facts(), service_nodes=tuple(nodes))

    def nodes_changed(self) -> None:
        """Service nodes came, went, failed or recovered, or their subscriptions changed."""
        if self._up is not None:
            self._up.subscriptions.reconsider()
            self._up.publishing.reconsider()
            rests = (self._nodes.next_usable_s(service) for service in Service)
            rested_s = min((at_s for at_s in rests if at_s is not None), default=None)
            self._up.look_again(rested_s, self.nodes_changed)
        self._tell_status()

    def _tell_status(self) -> None:
        """Notify of a new status, unless only byte counts changed."""
        status, last = self.status(), self._last_status
        self._last_status = status
        if replace(status, bytes_in=0, bytes_out=0) != replace(last, bytes_in=0, bytes_out=0):
            self._status_listeners.call(status)

    def _own_metadata(self) -> Metadata:
        shards = sorted({parse_pubsub_topic(topic).shard for topic, _ in self._topics.values()})
        return Metadata(cluster_id=self._settings.sharding.cluster_id, shards=tuple(shards))
