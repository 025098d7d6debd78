"""The transport port: broadcast of Waku messages by content topic.

Adapters: the embedded libp2p node (``engine.network.node``), the edge node
(``engine.network.edge``), the in-memory network for tests, and a fault layer that wraps any of
them.  Sessions and runners know only this port.  Payloads are opaque here.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from engine.core.ids import ContentTopic, WakuHash
from engine.core.problems import ConnectionReason, NodeTrouble
from engine.core.waku import WakuMessage
from engine.network.blobs.port import BlobNetwork
from engine.network.libp2p.ports import JudgeCopy
from engine.network.stores.port import StoreNetwork
from engine.network.waku.topics import Sharding
from engine.network_views import NetworkFacts


class TransportLevel(StrEnum):
    OFFLINE = "offline"
    MINIMAL = "minimal"
    GOOD = "good"


class TransportRole(StrEnum):
    RELAY = "relay"
    EDGE = "edge"


class TransportStatus(Struct, frozen=True, kw_only=True):
    level: TransportLevel
    peers: int
    """Peers that relay for us now, or the service nodes of an edge node."""
    reason: ConnectionReason
    trouble: NodeTrouble | None = None
    """The most informative problem of a service node, unless the level is good."""
    role: TransportRole = TransportRole.RELAY
    bytes_in: int = 0
    bytes_out: int = 0


class Receipt(Struct, frozen=True, kw_only=True):
    """``peers`` were handed the copy with this deterministic hash; 0 means that none were."""

    waku_hash: WakuHash
    peers: int
    taken: asyncio.Future[None] | None = None
    """Done once one of them has shown that it read the copy; None: they have said so already.

    It may never be done, or be cancelled.
    """
    written: asyncio.Future[None] | None = None
    """Done once the copy was written to the connection of one of them; None: that is over.

    It is never done if no peer takes the copy.
    """
    role: TransportRole | None = TransportRole.RELAY
    """By which way; None: by both, while one takes over from the other."""


MessageHandler = Callable[[WakuMessage, WakuHash], bool | None]
"""False: the message failed the precheck, so a node need not keep it for others."""
StatusHandler = Callable[[TransportStatus], None]
PeerAddressHandler = Callable[[str], None]


class Transport(Protocol):
    """Handlers are called on the loop, must not block, and must not raise."""

    async def start(self) -> None:
        """Raises TransportError, for example if the port that the user chose is taken."""

    async def stop(self) -> None:
        """Close everything; no task, socket or callback survives."""

    async def publish(self, message: WakuMessage, /) -> Receipt:
        """Raises TransportError only for our own errors (oversized); offline, ``peers`` is 0."""

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        """Return a function that unsubscribes.  Own publications are not delivered."""

    def status(self) -> TransportStatus: ...

    def on_status(self, handler: StatusHandler, /) -> Callable[[], None]: ...

    def on_peer_address(self, handler: PeerAddressHandler, /) -> Callable[[], None]:
        """A peer's own dialable multiaddr (with /p2p/) became known and is worth remembering."""

    def add_peers(self, multiaddrs: Sequence[str], /) -> None:
        """Keep connections to these, with back-off; unusable ones are counted and skipped."""

    def try_peers(self, multiaddrs: Sequence[str], /) -> None:
        """Connect to these once, unless connected, and remember nothing about them.

        For unverified addresses, such as those heard on the local network.
        """

    def add_service_nodes(self, multiaddrs: Sequence[str], /) -> None:
        """Nodes that serve filter, lightpush and Store for one of our groups; kept like peers."""

    @property
    def sharding(self) -> Sharding:
        """The cluster, and which shard each content topic is on."""

    def addresses(self) -> Sequence[str]:
        """Where others can reach this node, for invitations."""

    def cut_off(self, peers: Collection[str], /) -> None:
        """Have no connection with these peers, on purpose, until they are left out again."""

    def judge_copies_by(self, judge: JudgeCopy | None, /) -> None:
        """Who decides, on purpose, which messages to single peers and from them go on; None: all.

        While nothing is done to any peer, there is nobody to ask.
        """

    def stores(self) -> StoreNetwork | None:
        """How to query Store nodes; None if there are none."""

    def blobs(self) -> BlobNetwork | None:
        """How to get and give chunks of files; None if that is not possible."""

    def counters(self) -> Mapping[str, int]: ...

    def facts(self) -> NetworkFacts:
        """Peers, service nodes and what happened, for whoever looks; made when it is called."""


def connection_level(
    *, running: bool, peers: int, meshed: int
) -> tuple[TransportLevel, ConnectionReason]:
    """``peers`` relay our topic; ``meshed`` of them send us every message immediately."""
    if not running:
        return TransportLevel.OFFLINE, ConnectionReason.NOT_STARTED
    if peers == 0:
        return TransportLevel.OFFLINE, ConnectionReason.NOBODY_CONNECTED
    if peers == 1:
        return TransportLevel.MINIMAL, ConnectionReason.ONE_PEER
    if meshed == 0:
        return TransportLevel.MINIMAL, ConnectionReason.NO_MESH
    return TransportLevel.GOOD, ConnectionReason.PEERS
