"""How well a relaying node is connected, in a level and one sentence for people."""

from engine.network.transport import TransportLevel


def connection_level(*, running: bool, peers: int, meshed: int) -> tuple[TransportLevel, str]:
    """``peers`` relay our topic; ``meshed`` of them pass every message on to us at once."""
    if not running:
        return TransportLevel.OFFLINE, "not started"
    if peers == 0:
        return TransportLevel.OFFLINE, "nobody is connected yet"
    if peers == 1:
        return TransportLevel.MINIMAL, "connected to one peer: everything depends on it"
    if meshed == 0:
        return TransportLevel.MINIMAL, f"connected to {peers} peers, none passes messages on yet"
    return TransportLevel.GOOD, f"connected to {peers} peers"
