"""A network in memory: the transport port for tests and for many participants in one process.

Every message passes through the real codec and the real hash, and reaches every other online
transport on the next turn of the loop, in the order of publication and, for one publication, of
attachment.  It is perfect on purpose: ``engine.network.faults`` adds loss and delay.  A message
published while nobody else is online is gone, as on a real network without a Store.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

from engine.codec.waku import decode_waku_message, encode_waku_message
from engine.core.counters import Counters
from engine.core.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    TransportFault,
)
from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.network.blobs.port import BlobNetwork
from engine.network.handlers import Listeners, TopicHandlers
from engine.network.libp2p.ports import JudgeCopy
from engine.network.stores.port import StoreNetwork
from engine.network.transport import (
    MessageHandler,
    PeerAddressHandler,
    Receipt,
    StatusHandler,
    TransportStatus,
    connection_level,
)
from engine.network.waku.message_hash import message_hash
from engine.network.waku.topics import Sharding
from engine.network_views import NetworkFacts


class MemoryNetwork:
    """Every attached transport hears all others."""

    def __init__(self, *, sharding: Sharding | None = None) -> None:
        self.sharding = sharding or Sharding()
        self._transports: list[MemoryTransport] = []

    def attach(self, name: str = "") -> "MemoryTransport":
        """Return a new transport, offline until it is started.  ``name`` makes its address."""
        transport = MemoryTransport(self, name or f"node{len(self._transports) + 1}")
        self.join(transport)
        return transport

    def join(self, transport: "MemoryTransport") -> None:
        """Take in a transport of another kind, made for this network."""
        self._transports.append(transport)

    def others_online(self, transport: "MemoryTransport") -> list["MemoryTransport"]:
        return [other for other in self._transports if other is not transport and other.is_online]

    def connectivity_changed(self, changed: "MemoryTransport") -> None:
        """Notify ``changed`` and all online transports."""
        for transport in list(self._transports):
            if transport is changed or transport.is_online:
                transport.peers_changed()
        if changed.is_online:
            for other in self.others_online(changed):
                other.meet(changed)
                changed.meet(other)


class MemoryTransport:
    """One participant's view of a ``MemoryNetwork``."""

    def __init__(self, network: MemoryNetwork, name: str) -> None:
        self.name = name
        self._network = network
        self._started = False
        self._plugged_in = True
        self._subscriptions = TopicHandlers()
        self._status_listeners = Listeners[TransportStatus]()
        self._address_listeners = Listeners[str]()
        self._counters = Counters()
        self._arrived: deque[bytes] = deque()
        self._delivery: asyncio.Handle | None = None
        self._last_status = self.status()
        self.store_network: StoreNetwork | None = None
        """Set it before the start, if there are Stores."""
        self.blob_network: BlobNetwork | None = None
        """Set it before the start, if files can be exchanged."""

    @property
    def is_online(self) -> bool:
        return self._started and self._plugged_in

    def set_online(self, online: bool) -> None:
        """Connect or disconnect.  Messages in transit to a disconnected transport are lost."""
        if online != self._plugged_in:
            self._plugged_in = online
            self._lose_arrived()
            self._network.connectivity_changed(self)

    async def start(self) -> None:
        self._started = True
        self._network.connectivity_changed(self)

    async def stop(self) -> None:
        self._started = False
        self._lose_arrived()
        self._network.connectivity_changed(self)

    async def publish(self, message: WakuMessage, /) -> Receipt:
        try:
            data = encode_waku_message(message)
            topic = self._network.sharding.pubsub_topic(message.content_topic)
        except (LocalProtocolError, RemoteProtocolError) as error:
            text = f"this message cannot be published: {error}"
            raise TransportError(text, TransportFault.NOT_PUBLISHABLE) from error
        receivers = self._network.others_online(self) if self.is_online else []
        for receiver in receivers:
            receiver.arrive(data)
        self._counters.add("node.published" if receivers else "node.published_to_nobody")
        return Receipt(waku_hash=message_hash(topic, message), peers=len(receivers))

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        return self._subscriptions.add(content_topic, handler)

    def status(self) -> TransportStatus:
        peers = len(self._network.others_online(self)) if self.is_online else 0
        level, reason = connection_level(running=self._started, peers=peers, meshed=peers)
        return TransportStatus(level=level, peers=peers, reason=reason)

    def on_status(self, handler: StatusHandler, /) -> Callable[[], None]:
        return self._status_listeners.add(handler)

    def on_peer_address(self, handler: PeerAddressHandler, /) -> Callable[[], None]:
        return self._address_listeners.add(handler)

    def add_peers(self, multiaddrs: Sequence[str], /) -> None:
        """Nothing to do: all are connected."""

    def try_peers(self, multiaddrs: Sequence[str], /) -> None:
        """Nothing to do: all are connected."""

    def add_service_nodes(self, multiaddrs: Sequence[str], /) -> None:
        """Nothing to do: all are connected."""

    def cut_off(self, peers: Collection[str], /) -> None:
        """Nothing to do: there are no connections."""

    def judge_copies_by(self, judge: JudgeCopy | None, /) -> None:
        """Nothing to do: there are no single peers."""

    @property
    def sharding(self) -> Sharding:
        return self._network.sharding

    def addresses(self) -> Sequence[str]:
        return (f"/memory/{self.name}",) if self._started else ()

    def stores(self) -> StoreNetwork | None:
        return self.store_network

    def blobs(self) -> BlobNetwork | None:
        return self.blob_network

    def counters(self) -> Mapping[str, int]:
        return self._counters.snapshot()

    def facts(self) -> NetworkFacts:
        """None: nobody connects to anybody here."""
        return NetworkFacts()

    # --- for the network ------------------------------------------------------------------------

    def arrive(self, data: bytes) -> None:
        """Queue a copy for delivery on the next turn of the loop."""
        self._arrived.append(data)
        if self._delivery is None:
            self._delivery = asyncio.get_running_loop().call_soon(self._deliver)

    def meet(self, other: "MemoryTransport") -> None:
        for address in other.addresses():
            self._address_listeners.call(address)

    def peers_changed(self) -> None:
        status = self.status()
        if status != self._last_status:
            self._last_status = status
            self._status_listeners.call(status)

    def _deliver(self) -> None:
        """Deliver only what has arrived by now: handlers that reply must not starve the loop."""
        self._delivery = None
        arrived, self._arrived = self._arrived, deque()
        for data in arrived:
            if not self.is_online:  # A handler may have disconnected us.
                self._counters.add("memory.lost_offline")
                continue
            message = decode_waku_message(data)
            topic = self._network.sharding.pubsub_topic(message.content_topic)
            self._subscriptions.deliver(message, message_hash(topic, message))

    def _lose_arrived(self) -> None:
        if self._delivery is not None:
            self._delivery.cancel()
            self._delivery = None
        if self._arrived:
            self._counters.add("memory.lost_offline", len(self._arrived))
            self._arrived.clear()
