"""The embedded node: a ``Transport`` that relays.

It has one host and one relay, for the shards of the subscribed topics.  The port is the user's
choice, else the last one used, else any free one.  Only a taken port of the user's choice is an
error, because others can learn a new address from invitations and from each other.  ``services``
holds what the node does for others besides relaying.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.core.counters import Counters
from engine.core.errors import (
    ChatError,
    ConfigError,
    LocalProtocolError,
    OwnWords,
    RemoteProtocolError,
    StorageError,
    TransportError,
    TransportFault,
)
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.problems import PeerRefusal
from engine.core.waku import WakuMessage
from engine.network.blobs.host_blobs import HostBlobs
from engine.network.handlers import Listeners, TopicHandlers
from engine.network.libp2p.dialing import is_mistaken
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import Host, JudgeCopy, PeerId, ProtocolId, RemotePeer
from engine.network.node.attempts import Attempts
from engine.network.node.introductions import Introductions
from engine.network.node.services import NodeServices, ServiceContext
from engine.network.node.settings import NodeSettings
from engine.network.peers_by_protocol import Reached, reached
from engine.network.stores.host_stores import HostStores
from engine.network.transport import (
    MessageHandler,
    PeerAddressHandler,
    Receipt,
    StatusHandler,
    TransportStatus,
    connection_level,
)
from engine.network.waku.gossip.vocabulary import MessageDelivered
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import RELAY_PROTOCOL
from engine.network.waku.relay.relay import WakuRelay
from engine.network.waku.relay.taken import Progress
from engine.network.waku.topics import Sharding
from engine.network_views import NetworkFacts

if TYPE_CHECKING:
    from engine.network.blobs.port import ChunkKeeper, ChunkShelf
    from engine.network.waku.store.intake import Archive

    OpenArchive = Callable[[], Awaitable[Archive]]

_LOGGER = logging.getLogger(__name__)

HostFactory = Callable[[NodeSettings, str], Host]
"""Makes a host that will listen on the multiaddr.  Called once per attempt."""

MAX_KNOWN_PEERS = 50
SOURCE_KEY_BYTES = 16
_MAX_LOGGED_PEERS = 100
_NS_PER_MS = 1_000_000


def tcp_host(settings: NodeSettings, listen: str) -> Host:
    """Raises ConfigError if the listen host is not an IP address."""
    addresses = [address for address in (listen, settings.listen_websocket()) if address]
    limits = replace(settings.limits, max_inbound_per_address=settings.connections_per_address)
    return TcpHost(
        settings.network_key,
        addresses,
        limits=limits,
        proxy=settings.proxy,
        now_ms=lambda: settings.now_ns() // _NS_PER_MS,
    )


class EmbeddedNode:
    """See ``engine.network.transport.Transport`` for the contract of each method."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        settings: NodeSettings,
        *,
        archive: "Archive | None" = None,
        open_archive: "OpenArchive | None" = None,
        keeper: "ChunkKeeper | None" = None,
        make_host: HostFactory = tcp_host,
        random: Random | None = None,
    ) -> None:
        """``archive`` is for the Store service; the caller opens and closes it.

        ``open_archive`` instead opens one at the start, and the node closes it at the end.  If the
        disk refuses, the node runs without an archive and keeps nothing for others.  ``keeper``:
        where it keeps chunks of others' files; the caller opens and closes it.
        """
        self._settings = settings
        self._archive = archive
        self._open_archive = open_archive
        self._keeper = keeper
        self._shelf: ChunkShelf | None = None
        self._make_host = make_host
        self._random = random or SystemRandom()
        self._counters = Counters()
        self._subscriptions = TopicHandlers()
        self._status_listeners = Listeners[TransportStatus]()
        self._address_listeners = Listeners[str]()
        self._known_peers: dict[str, None] = {}
        self._topics: set[PubsubTopic] = settings.relayed_topics()
        self._cut_off: Collection[str] = ()
        self._judge_copy: JudgeCopy | None = None
        self._host: Host | None = None
        self._relay: WakuRelay | None = None
        self._services: NodeServices | None = None
        self._logged_peers: set[str] = set()
        self._attempts = Attempts(self._counters)
        self._introductions = Introductions(self._counters)
        self._last_status = self.status()

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._host is not None:
            raise LocalProtocolError("the node has been started already")
        await self._prepare_archive()
        try:
            await self._listen()
        except BaseException:
            await self._close_archive()
            raise
        self._tell_status()

    async def _prepare_archive(self) -> None:
        if self._open_archive is None:
            return
        try:
            self._archive = await self._open_archive()
        except StorageError as error:
            self._counters.add("node.archive_not_opened")
            _LOGGER.warning("nothing is kept for others: %s", error)

    async def _close_archive(self) -> None:
        if self._open_archive is not None and self._archive is not None:
            archive, self._archive = self._archive, None
            with suppress(StorageError):
                await archive.close()

    async def _listen(self) -> None:
        settings = self._settings
        if settings.port is not None:
            await self._listen_on(settings.port)
            return
        if settings.remembered_port:
            try:
                await self._listen_on(settings.remembered_port)
            except TransportError:
                self._counters.add("node.remembered_port_taken")
            else:
                return
        await self._listen_on(0)

    async def _listen_on(self, port: int) -> None:
        host = self._make_host(self._settings, self._settings.listen_multiaddr(port))
        relay = WakuRelay(
            host,
            settings=self._settings.relay,
            random=self._random,
            counters=self._counters,
            observer=self,
            room_beyond=self._room_beyond,
        )
        services = self._make_services(host, relay)
        relay.start()
        services.start()
        host.on_peer_connected(self._peer_connected)
        host.on_dial_failed(self._dial_failed)
        for topic in sorted(self._topics):
            relay.join(topic)
        host.cut_off(tuple(map(PeerId, self._cut_off)))
        host.judge_copy = self._judge_copy
        try:
            await host.start()
        except BaseException:
            await _stop(host, relay, services)
            raise
        self._host, self._relay, self._services = host, relay, services
        if self._known_peers:
            host.keep_connected(tuple(self._known_peers))

    def _make_services(self, host: Host, relay: WakuRelay) -> NodeServices:
        around = ServiceContext(
            host=host,
            relay=relay,
            sharding=self._settings.sharding,
            topics=self._topics,
            deliver=self._deliver,
            source_key=self._random.randbytes(SOURCE_KEY_BYTES),
            observer=self,
            counters=self._counters,
            now_ns=self._settings.now_ns,
        )
        services = self._settings.services
        if self._open_archive is not None and self._archive is None:
            services = replace(services, store=None)
        made = NodeServices(around, services, self._archive, self._keeper)
        if self._keeper is None:
            made.serve_chunks(self._shelf)
        return made

    async def stop(self) -> None:
        host, relay, services = self._host, self._relay, self._services
        self._host = self._relay = self._services = None
        await self._attempts.stop()
        if host is not None and relay is not None and services is not None:
            await _stop(host, relay, services)
            for name, amount in host.counters().items():
                self._counters.add(name, amount)  # Counts outlive the host.
        await self._close_archive()
        self._tell_status()

    # --- messages -------------------------------------------------------------------------------

    async def publish(self, message: WakuMessage, /) -> Receipt:
        try:
            data = encode_waku_message(message)
            topic = self._settings.sharding.pubsub_topic(message.content_topic)
        except (LocalProtocolError, RemoteProtocolError) as error:
            text = f"this message cannot be published: {error}"
            raise TransportError(text, TransportFault.NOT_PUBLISHABLE) from error
        if self._services is not None:
            is_own = message.content_topic in self._subscriptions
            self._services.take(topic, message, data, is_own=is_own)
        peers, progress = 0, Progress()
        if self._relay is not None:
            peers = await self._relay.publish(topic, data, progress=progress)
        await self._room_beyond()
        self._counters.add("node.published" if peers else "node.published_to_nobody")
        return Receipt(
            waku_hash=message_hash(topic, message),
            peers=peers,
            taken=progress.taken,
            written=progress.written if peers else None,
        )

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        try:
            topic = self._settings.sharding.pubsub_topic(content_topic)
        except RemoteProtocolError as error:
            raise LocalProtocolError(f"no content topic: {content_topic}") from error
        if topic not in self._topics:
            self._topics.add(topic)
            if self._relay is not None:
                self._relay.join(topic)
        return self._subscriptions.add(content_topic, handler)

    def message_delivered(self, delivered: MessageDelivered, /) -> None:
        """Called by the relay for each message."""
        is_own = self._deliver(delivered.topic, delivered.message)
        if self._services is not None:
            self._services.take(
                delivered.topic,
                delivered.message,
                delivered.data,
                is_own=is_own,
                brought_by=delivered.received_from,
            )

    async def _room_beyond(self, brought_by: PeerId | None = None) -> None:
        if self._services is not None:
            await self._services.wait_for_room(brought_by)

    def _deliver(self, topic: PubsubTopic, message: WakuMessage) -> bool:
        if message.content_topic not in self._subscriptions:
            return False
        return self._subscriptions.deliver(message, message_hash(topic, message))

    # --- peers and status -----------------------------------------------------------------------

    def add_peers(self, multiaddrs: Sequence[str], /) -> None:
        fresh: list[str] = []
        for text in multiaddrs:
            try:
                address = parse_multiaddr(text)
            except ConfigError:
                self._counters.add("node.peer_address_unusable")
                continue
            if address.peer_id is None:
                self._counters.add("node.peer_address_without_peer")
            elif len(self._known_peers) >= MAX_KNOWN_PEERS:
                self._counters.add("node.too_many_peer_addresses")
            elif text not in self._known_peers:
                self._known_peers[text] = None
                fresh.append(text)
        if fresh and self._host is not None:
            self._host.keep_connected(fresh)

    def try_peers(self, multiaddrs: Sequence[str], /) -> None:
        if self._host is not None:
            self._attempts.begin(self._host, multiaddrs)

    def cut_off(self, peers: Collection[str], /) -> None:
        self._cut_off = tuple(peers)
        if self._host is not None:
            self._host.cut_off(tuple(map(PeerId, peers)))

    def judge_copies_by(self, judge: JudgeCopy | None, /) -> None:
        self._judge_copy = judge
        if self._host is not None:
            self._host.judge_copy = judge

    def add_service_nodes(self, multiaddrs: Sequence[str], /) -> None:
        """Dial them as peers: they relay too, and a Store must be connected to be queried."""
        self.add_peers(multiaddrs)

    def reach(self, protocols: Collection[ProtocolId], /) -> tuple[Reached, ...]:
        """Connected peers that speak one of ``protocols``, for the Store client."""
        return () if self._host is None else reached(self._host, protocols)

    @property
    def sharding(self) -> Sharding:
        return self._settings.sharding

    def addresses(self) -> Sequence[str]:
        return () if self._host is None else self._host.addresses()

    def status(self) -> TransportStatus:
        peers = meshed = 0
        if self._relay is not None:
            for topic in self._topics:
                peers = max(peers, len(self._relay.topic_peers(topic)))
                meshed = max(meshed, len(self._relay.mesh_peers(topic)))
        running = self._host is not None
        level, reason = connection_level(running=running, peers=peers, meshed=meshed)
        bytes_in, bytes_out = (0, 0) if self._host is None else self._host.traffic()
        return TransportStatus(
            level=level, peers=peers, reason=reason, bytes_in=bytes_in, bytes_out=bytes_out
        )

    def on_status(self, handler: StatusHandler, /) -> Callable[[], None]:
        return self._status_listeners.add(handler)

    def on_peer_address(self, handler: PeerAddressHandler, /) -> Callable[[], None]:
        return self._address_listeners.add(handler)

    def stores(self) -> HostStores:
        return HostStores(self.hosts, self._settings.sharding)

    def blobs(self) -> HostBlobs:
        return HostBlobs(self.hosts, self.serve_chunks, give_way=self.slow_files_down)

    def slow_files_down(self) -> None:
        """For a moment: somebody talks here."""
        if self._services is not None:
            self._services.slow_files_down()

    def serve_chunks(self, shelf: "ChunkShelf | None") -> None:
        self._shelf = shelf
        if self._services is not None:
            self._services.serve_chunks(shelf)

    def hosts(self) -> tuple[Host, ...]:
        return () if self._host is None else (self._host,)

    def counters(self) -> Mapping[str, int]:
        total = Counters()
        of_host = {} if self._host is None else self._host.counters()
        for counted in (self._counters.snapshot(), of_host):
            for name, amount in counted.items():
                total.add(name, amount)
        return total.snapshot()

    def membership_changed(self) -> None:
        """The relay's peers changed."""
        self._tell_status()

    def peer_refused(self, peer_id: PeerId, reason: PeerRefusal, /) -> None:
        """The peer's cluster is another one.  Logged once per peer."""
        self._counters.add("node.peer_refused")
        self._log_once(peer_id, f"disconnected {peer_id}: {reason}")

    def _dial_failed(self, multiaddr: str, error: ChatError) -> None:
        """An unanswered dial is normal.  An answer from another peer is logged once per address."""
        if is_mistaken(error):
            self._log_once(multiaddr, str(error))

    def _log_once(self, key: str, text: str) -> None:
        if key not in self._logged_peers and len(self._logged_peers) < _MAX_LOGGED_PEERS:
            self._logged_peers.add(key)
            _LOGGER.warning("a peer cannot be used", extra={"problem": OwnWords(text)})

    def facts(self) -> NetworkFacts:
        host, relay = self._host, self._relay
        if host is None or relay is None:
            return NetworkFacts()
        facts = host.facts()
        peers = (
            replace(peer, relay=relay.view(PeerId(peer.peer_id), self._topics))
            for peer in facts.peers
        )
        return replace(facts, peers=tuple(peers))

    def gauges(self) -> Mapping[str, float]:
        """Values that go up and down, for metrics."""
        status, services = self.status(), self._services
        return {
            "relay_peers": status.peers,
            "connected_peers": 0 if self._host is None else len(self._host.peers()),
            "filter_subscribers": 0 if services is None else services.filter_subscribers,
            "archive_failing": services is not None and services.archive_failing,
            "archive_clock_suspect": services is not None and services.archive_clock_suspect,
        }

    def _tell_status(self) -> None:
        """Notify of a new status, unless only byte counts changed."""
        status, last = self.status(), self._last_status
        self._last_status = status
        if (status.level, status.peers, status.reason) != (last.level, last.peers, last.reason):
            self._status_listeners.call(status)

    def _peer_connected(self, peer: RemotePeer) -> None:
        if RELAY_PROTOCOL in peer.protocols and peer.peer_id not in self._attempts:
            for address in self._introductions.worth_remembering(peer):
                self._address_listeners.call(address)


async def _stop(host: Host, relay: WakuRelay, services: NodeServices) -> None:
    await services.stop()
    await relay.stop()
    await host.stop()
    await services.finish()
