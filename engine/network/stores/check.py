"""Tests Stores for the doctor, from a separate host with its own identity.

All are tested at the same time, each as on the window's page of Stores.  Nothing is subscribed or
published; the queries name the content topics of the profile's groups.
"""

import asyncio
import os
from collections.abc import Callable, Sequence

from engine.core.errors import ChatError
from engine.core.ids import ContentTopic
from engine.core.problems import unreachable
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.proxy import Proxy
from engine.network.stores.host_stores import HostStores
from engine.network.stores.port import TestedStore
from engine.network.waku.topics import Sharding


async def check_stores(  # noqa: PLR0913 - all that a doctor hands in
    addresses: Sequence[str],
    content_topics: Sequence[ContentTopic],
    *,
    sharding: Sharding,
    proxy: Proxy | None = None,
    timeout_s: float = 10.0,
    new_key: Callable[[], bytes] = lambda: os.urandom(32),
) -> list[TestedStore]:
    """Results in the order of ``addresses``.  Never raises because of a Store."""
    host = TcpHost(new_key(), [], proxy=proxy)
    await host.start()
    stores = HostStores(lambda: (host,), sharding)

    async def check(address: str) -> TestedStore:
        try:
            return await stores.test(address, content_topics, timeout_s=timeout_s)
        except ChatError as error:
            return TestedStore(problem=unreachable(error))

    try:
        return list(await asyncio.gather(*map(check, addresses)))
    finally:
        await host.stop()
