"""The settings of an embedded node: its identity, where it listens, which shards it relays."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.core.errors import ConfigError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.proxy import Proxy
from engine.network.node.services import ServiceSettings
from engine.network.waku.gossip.vocabulary import HUB
from engine.network.waku.relay.relay import RelaySettings
from engine.network.waku.topics import Shard, Sharding

MAX_PORT = 65_535
_ANY_OF_OURS = ContentTopic("/causerie/1/any/proto")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """``port`` is the user's; None lets the system choose, trying ``remembered_port`` first.

    The relay is a hub by default, because all members of a young group depend on the node whose
    address is in their invitation.
    """

    network_key: bytes = field(repr=False)
    """Raw Ed25519 private key, 32 bytes. It is the libp2p identity, not the participant's."""
    listen_host: str | None = "127.0.0.1"
    """None: the node does not listen and only dials."""
    proxy: Proxy | None = None
    """All dials go through it."""
    connections_per_address: int = 64
    """Limit on inbound connections from one IPv4 address or one /48 of IPv6."""
    limits: HostLimits = field(default_factory=HostLimits)
    """Those of the sockets, except for ``connections_per_address``."""
    websocket_port: int | None = None
    """None: no WebSocket; 0: any free one."""
    port: int | None = None
    remembered_port: int | None = None
    sharding: Sharding = field(default_factory=Sharding)
    relay: RelaySettings = field(default_factory=lambda: RelaySettings(gossipsub=HUB))
    relayed_content_topics: tuple[ContentTopic, ...] = (_ANY_OF_OURS,)
    """Their shards are relayed from the start; others once there is a subscriber."""
    relayed_shards: tuple[int, ...] = ()
    """More shards relayed from the start, by number."""
    services: ServiceSettings = field(default_factory=ServiceSettings)
    """What the node does for others. A Store also needs an archive."""
    now_ns: Callable[[], int] = time.time_ns
    """The clock against which the times of messages are checked."""

    def __post_init__(self) -> None:
        for port in (self.port, self.remembered_port, self.websocket_port):
            if port is not None and not 0 <= port <= MAX_PORT:
                raise ConfigError(f"port {port}: allowed are 0 to {MAX_PORT}")

        for shard in self.relayed_shards:
            if not 0 <= shard < self.sharding.shard_count:
                raise ConfigError(f"shard {shard}: there are {self.sharding.shard_count}")

    def relayed_topics(self) -> set[PubsubTopic]:
        sharding = self.sharding
        return {
            *(sharding.pubsub_topic(topic) for topic in self.relayed_content_topics),
            *(
                Shard(cluster_id=sharding.cluster_id, shard=shard).pubsub_topic
                for shard in self.relayed_shards
            ),
        }

    def listen_multiaddr(self, port: int) -> str:
        """Empty if the node does not listen."""
        if self.listen_host is None:
            return ""
        kind = "ip6" if ":" in self.listen_host else "ip4"
        return f"/{kind}/{self.listen_host}/tcp/{port}"

    def listen_websocket(self) -> str | None:
        if self.websocket_port is None or self.listen_host is None:
            return None
        return f"{self.listen_multiaddr(self.websocket_port)}/ws"
