"""What an edge node is told: who it is, which service nodes there are, how patient it is."""

import hashlib
from dataclasses import dataclass, field

from engine.network.libp2p.proxy import Proxy
from engine.network.waku.topics import Sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgePace:
    """Times in seconds; every wait that repeats gets ± 25 % of chance."""

    redundancy: int = 2
    """Service nodes subscribed at, and published to."""
    request_timeout_s: float = 5.0
    """For the whole answer of a filter or lightpush request."""
    hedge_s: float = 1.0
    """A node that has not answered a push by then is slow: another is asked as well."""
    publish_timeout_s: float = 10.0
    """For a message that no node takes yet, because they refuse for want of patience or room."""
    ping_interval_s: float = 60.0
    pings_per_renewal: int = 10
    """After so many everything is subscribed again: a ping tells of all or nothing."""
    unheard_grace_s: float = 3.0
    """A message that one node pushed and another has not by then is missing there."""
    refresh_first_s: float = 10.0
    refresh_cap_s: float = 600.0
    """Between two times that a node is subscribed at again for messages it did not push."""
    rest_first_s: float = 1.0
    rest_cap_s: float = 60.0
    """How long a node that failed at a service is not asked for it, doubling."""
    busy_rest_s: float = 1.02
    """After it served, until a node that says 429 is asked again: some take one a second."""
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
