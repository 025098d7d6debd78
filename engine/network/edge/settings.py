"""The settings of an edge node: its identity, its service nodes, and its timing."""

import hashlib
from dataclasses import dataclass, field

from msgspec import Struct

from engine.network.libp2p.proxy import Proxy
from engine.network.waku.topics import Sharding


class EdgePace(Struct, frozen=True, kw_only=True):
    """Times in seconds. Every repeated wait gets ± 25 % of jitter."""

    redundancy: int = 2
    """How many service nodes to subscribe at and to publish to."""
    request_timeout_s: float = 5.0
    """For the whole answer to a filter or lightpush request."""
    hedge_s: float = 1.0
    """A node that has not answered a push by then is slow, and another is asked as well."""
    echo_s: float = 2.0
    """For a node without relay peers to push back a message of ours, to which we are subscribed."""
    publish_timeout_s: float = 10.0
    """For a message that no node accepts yet, because nodes are busy or full."""
    ping_interval_s: float = 60.0
    pings_per_renewal: int = 10
    """After this many pings everything is subscribed again, because a ping answers only for all
    topics together."""
    unheard_grace_s: float = 3.0
    """A message that one node has pushed, and another not by then, is missing there."""
    refresh_first_s: float = 10.0
    refresh_cap_s: float = 600.0
    """Longest pause between new subscriptions at a node that did not push messages."""
    rest_first_s: float = 1.0
    rest_cap_s: float = 60.0
    """Longest rest of a node that failed at a service; rests double."""
    busy_rest_s: float = 1.02
    """A node that answers 429 is asked again this long after its last success; some accept one a
    second."""
    filter_burst: int = 8
    """Filter requests to one node at once.  After that one goes in ``filter_interval_s``, with all
    the topics that came meanwhile, unless a request is full."""
    filter_interval_s: float = 3.0
    """nwaku accepts 30 requests a minute; these make 28, and a ping or two."""
    refused_again_s: float = 300.0
    """Until a node of another cluster is dialled again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings:
    network_key: bytes = field(repr=False)
    """Raw Ed25519 private key, 32 bytes."""
    service_nodes: tuple[str, ...] = ()
    """Multiaddrs with /p2p/, the preferred ones first."""
    sharding: Sharding = field(default_factory=Sharding)
    proxy: Proxy | None = None
    """All dials go through it."""
    pace: EdgePace = field(default_factory=EdgePace)


def edge_key(network_key: bytes) -> bytes:
    """Another identity than the relaying node's, so that both may be connected to one peer."""
    return hashlib.sha256(b"causerie edge role" + network_key).digest()
