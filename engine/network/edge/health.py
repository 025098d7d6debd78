"""How well an edge node is connected, as a level and one sentence for users."""

from dataclasses import dataclass

from engine.network.transport import TransportLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeHealth:
    running: bool
    known: int
    """Number of service nodes."""
    connected: int
    receiving: int
    """Number of nodes that hold all our subscriptions."""
    sending: int
    """Number of nodes that may be asked to publish."""
    problem: str = ""
    """The most informative problem, a sentence without its full stop."""


def edge_level(health: EdgeHealth) -> tuple[TransportLevel, str]:
    level, words = _level(health)
    because = f": {health.problem}" if health.problem and level is not TransportLevel.GOOD else ""
    return level, f"{words}{because}"


def _level(health: EdgeHealth) -> tuple[TransportLevel, str]:  # noqa: PLR0911 - a table of cases
    if not health.running:
        return TransportLevel.OFFLINE, "not started"
    if not health.known:
        return TransportLevel.OFFLINE, "no service node is set, and without relaying one is needed"
    if not health.connected:
        return TransportLevel.OFFLINE, "no service node answers"
    if not health.receiving and not health.sending:
        return TransportLevel.OFFLINE, "no service node serves this device"
    if not health.receiving:
        return TransportLevel.MINIMAL, "messages can be sent but not received"
    if not health.sending:
        return TransportLevel.MINIMAL, "messages can be received but not sent"
    if min(health.receiving, health.sending) == 1:
        return TransportLevel.MINIMAL, "everything depends on one service node"
    return TransportLevel.GOOD, f"connected through {health.receiving} service nodes"
