"""The node alone, without an application on it: what ``causerie node`` runs.

Prints and logs nothing; whoever calls decides how to say what.
"""

import asyncio
from collections.abc import Callable, Sequence

from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings


async def run_node(
    settings: NodeSettings,
    *,
    ready: Callable[[Sequence[str]], None],
    stop: asyncio.Event,
    peers: Sequence[str] = (),
) -> None:
    """Run until ``stop`` is set; ``ready`` gets the addresses.  Raises TransportError."""
    node = EmbeddedNode(settings)
    node.add_peers(peers)
    try:
        await node.start()
        ready(node.addresses())
        await stop.wait()
    finally:
        await node.stop()
