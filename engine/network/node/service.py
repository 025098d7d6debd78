"""The node alone, without an application on it: what ``causerie node`` runs.

Prints and logs nothing; whoever calls decides how to say what.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from engine.core.errors import StorageError
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.metrics import Measured, MetricsServer
from engine.network.node.settings import NodeSettings
from engine.network.waku.store_archive import Archive


async def run_node(  # noqa: PLR0913 - each is a different thing, and all are needed
    settings: NodeSettings,
    *,
    ready: Callable[[Sequence[str]], None],
    stop: asyncio.Event,
    peers: Sequence[str] = (),
    archive: Archive | None = None,
    metrics_port: int | None = None,
    metrics_ready: Callable[[int], None] = lambda _port: None,
) -> None:
    """Run until ``stop`` is set; ``ready`` gets the addresses.  Raises TransportError.

    ``archive`` is the caller's, who closes it.  ``metrics_port`` None: no metrics.
    """
    node = EmbeddedNode(settings, archive=archive)
    node.add_peers(peers)
    async with AsyncExitStack() as running:
        if metrics_port is not None:
            metrics = MetricsServer(metrics_port, lambda: _measure(node, archive))
            await metrics.start()
            running.push_async_callback(metrics.stop)
            metrics_ready(metrics.port)
        running.push_async_callback(node.stop)
        await node.start()
        ready(node.addresses())
        await stop.wait()


async def _measure(node: EmbeddedNode, archive: Archive | None) -> Measured:
    gauges = dict(node.gauges())
    status = node.status()
    counters = {
        **node.counters(),
        "network.bytes_in": status.bytes_in,
        "network.bytes_out": status.bytes_out,
    }
    if archive is not None:
        try:
            statistics = await archive.statistics()
        except StorageError:
            gauges["archive_failing"] = 1
        else:
            gauges["archive_messages"] = statistics.messages
            gauges["archive_used_bytes"] = statistics.used_bytes
    return Measured(counters=counters, gauges=gauges)
