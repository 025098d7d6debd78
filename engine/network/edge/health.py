"""How well an edge node is connected, as a level and the reason for it."""

from msgspec import Struct

from engine.core.problems import ConnectionReason
from engine.network.transport import TransportLevel


class EdgeHealth(Struct, frozen=True, kw_only=True):
    running: bool
    known: int
    """Number of service nodes."""
    connected: int
    receiving: int
    """Number of nodes that hold all our subscriptions."""
    sending: int
    """Number of nodes that may be asked to publish."""


def edge_level(  # noqa: PLR0911 - a table of cases
    health: EdgeHealth,
) -> tuple[TransportLevel, ConnectionReason]:
    if not health.running:
        return TransportLevel.OFFLINE, ConnectionReason.NOT_STARTED
    if not health.known:
        return TransportLevel.OFFLINE, ConnectionReason.NO_SERVICE_NODE
    if not health.connected:
        return TransportLevel.OFFLINE, ConnectionReason.NO_NODE_ANSWERS
    if not health.receiving and not health.sending:
        return TransportLevel.OFFLINE, ConnectionReason.NO_NODE_SERVES
    if not health.receiving:
        return TransportLevel.MINIMAL, ConnectionReason.ONLY_SENDING
    if not health.sending:
        return TransportLevel.MINIMAL, ConnectionReason.ONLY_RECEIVING
    if min(health.receiving, health.sending) == 1:
        return TransportLevel.MINIMAL, ConnectionReason.ONE_SERVICE_NODE
    return TransportLevel.GOOD, ConnectionReason.SERVICE_NODES
