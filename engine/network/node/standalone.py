"""The node alone, without an application: what ``causerie node`` runs.

Prints and logs nothing; the caller reports.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from engine.core.counters import Counters
from engine.core.errors import StorageError
from engine.network.discovery.discovery import Discovery, Surface
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.metrics import Measured, MetricsServer
from engine.network.node.settings import NodeSettings
from engine.network.owned_tasks import OwnedTasks
from engine.network.waku.store.intake import Archive
from engine.persistence.kept_chunks import KeptChunks

ALARMING: Final = (
    "store.dropped_queue_full",
    "libp2p.connection_gave_way",
    "store.evicted",
    "libp2p.task_failed",
    "metadata.task_failed",
    "metrics.task_failed",
    "blob.expiry_failed",
    "libp2p.stream_handler_failed",
    "blob.rate_limited",
)
"""Shown from the start, at 0: Prometheus sees no increase in a counter that begins at 1."""


async def run_node(  # noqa: PLR0913 - each is a different thing, and all are needed
    settings: NodeSettings,
    *,
    ready: Callable[[Sequence[str]], None],
    stop: asyncio.Event,
    peers: Sequence[str] = (),
    archive: Archive | None = None,
    keeper: KeptChunks | None = None,
    metrics_port: int | None = None,
    metrics_ready: Callable[[int], None] = lambda _port: None,
    discover: bool = False,
) -> None:
    """Run until ``stop`` is set; ``ready`` gets the addresses.  Raises TransportError.

    The caller owns ``archive`` and closes it; ``keeper`` is open.  ``metrics_port`` None: no
    metrics.  ``discover``: announce the node on the local network, and find others.
    """
    node = EmbeddedNode(settings, archive=archive, keeper=keeper)
    node.add_peers(peers)
    found = Counters()
    async with AsyncExitStack() as running:
        if metrics_port is not None:
            metrics = MetricsServer(
                metrics_port, lambda: _measure(node, archive, keeper, found), counters=found
            )
            await metrics.start()
            running.push_async_callback(metrics.stop)
            metrics_ready(metrics.port)
        running.push_async_callback(node.stop)
        await node.start()
        if discover and settings.listen_host is not None:
            surface = Surface(addresses=node.addresses, try_peers=node.try_peers)
            discovery = Discovery(surface, listen_host=settings.listen_host, counters=found)
            running.push_async_callback(discovery.stop)
            discovery.start()
        if keeper is not None:
            tasks = OwnedTasks(found, failed="blob.expiry_failed")
            tasks.spawn(keeper.remove_expired_for_ever(), name="expiry")
            running.push_async_callback(tasks.cancel_all)
        ready(node.addresses())
        await stop.wait()


async def _measure(
    node: EmbeddedNode, archive: Archive | None, keeper: KeptChunks | None, found: Counters
) -> Measured:
    gauges = dict(node.gauges())
    status = node.status()
    counters = {
        **dict.fromkeys(ALARMING, 0),
        **node.counters(),
        **found.snapshot(),
        "network.bytes_in": status.bytes_in,
        "network.bytes_out": status.bytes_out,
    }
    if keeper is not None:
        gauges["kept_blob_chunks"] = keeper.chunks
        gauges["kept_blob_bytes"] = keeper.used_bytes
    if archive is not None:
        try:
            statistics = await archive.statistics()
        except StorageError:
            gauges["archive_failing"] = 1
        else:
            gauges["archive_messages"] = statistics.messages
            gauges["archive_used_bytes"] = statistics.used_bytes
    return Measured(counters=counters, gauges=gauges)
