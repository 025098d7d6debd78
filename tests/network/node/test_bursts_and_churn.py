"""Bursts through star, line and mesh, and connections that come and go: all of it, and no leak.

The long ones are what the benchmark measures; here only what must hold without a clock.
"""

import asyncio
import gc
import os
from itertools import combinations
from operator import le
from pathlib import Path

import pytest

from engine.network.libp2p.host import TcpHost
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.network.waku.send_queue import SendQueue, SendQueueLimits
from tests.network.node.loopback import Loopback, message, settings_of
from tests.patience import PATIENCE_S

LEAVES = 10
STAR = [(leaf, LEAVES + 1) for leaf in range(LEAVES + 1)]
LINE = [(leaf, leaf + 1) for leaf in range(LEAVES)]
MESH = list(combinations(range(LEAVES + 1), 2))
TOPOLOGIES = pytest.mark.parametrize("links", [STAR, LINE, MESH], ids=["star", "line", "mesh"])


@pytest.fixture
def fullest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much any queue to a peer ever held."""
    seen = [0]
    add_message = SendQueue.add_message

    def watched(self: SendQueue, frame: bytes) -> bool:
        taken = add_message(self, frame)
        seen[0] = max(seen[0], self.queued_bytes)
        return taken

    monkeypatch.setattr(SendQueue, "add_message", watched)
    return seen


async def burst(links: list[tuple[int, int]], count: int) -> None:
    """Node 0 speaks as fast as it can; in a star the hub is the last."""
    async with Loopback() as net:
        source, *others = await net.joined(links, 1 + max(max(link) for link in links))
        for number in range(count):
            await source.node.publish(message(number, size=1_000))
        for node in others:
            await node.until_heard(count)
            assert sorted(node.inbox) == list(range(count))
        assert source.inbox == []
        for node in (source, *others):
            assert node.node.counters().get("relay.dropped_queue_full", 0) == 0


@TOPOLOGIES
def test_a_burst_is_heard_by_all_exactly_once(
    links: list[tuple[int, int]], fullest: list[int]
) -> None:
    """With a queue to each peer that is bounded far below its hard limit: the source waits."""
    asyncio.run(burst(links, 500 if links == MESH else 2_000))  # in a mesh each has ten copies
    limits = SendQueueLimits()
    assert 0 < fullest[0] < limits.soft_bytes + limits.message_bytes // 4


@pytest.mark.long
@TOPOLOGIES
def test_a_burst_of_ten_thousand_is_heard_by_all_exactly_once(
    links: list[tuple[int, int]], fullest: list[int]
) -> None:
    asyncio.run(burst(links, 10_000))
    assert 0 < fullest[0] < SendQueueLimits().message_bytes


async def come_and_go(address: str, number: int) -> None:
    """A relay that says goodbye, and a host that is torn off, in turns."""
    if number % 2:
        node = EmbeddedNode(NodeSettings(network_key=os.urandom(32), listen_host=None))
        changed = asyncio.Event()
        node.on_status(lambda _: changed.set())
        node.add_peers([address])
        await node.start()
        while not node.status().peers:
            changed.clear()
            await changed.wait()
        await node.stop()
    else:
        host = TcpHost(os.urandom(32), ())
        await host.start()
        await host.connect(address)
        for connection in host.connections():
            connection.drop("torn off")
        await host.stop()


def held() -> tuple[int, int, int]:
    """Tasks, descriptors, and objects of ours.

    Not counted is what the services remember of each peer to limit its rate, which is bounded.
    """
    gc.collect()
    modules = (str(type(each).__module__) for each in gc.get_objects())  # C may say anything.
    ours = [name for name in modules if name.startswith("engine.") and "token_buckets" not in name]
    return len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir())), len(ours)


async def churn(count: int) -> None:
    async with Loopback() as net:
        hub = await net.node(settings=settings_of(1))
        (address,) = hub.node.addresses()

        async def some(times: int) -> None:
            for number in range(times):
                await come_and_go(address, number)
            async with asyncio.timeout(PATIENCE_S):
                while hub.node.gauges()["connected_peers"]:  # noqa: ASYNC110 -- the loop's next turn
                    await asyncio.sleep(0)

        await some(100)  # what grows once has grown: counters, caches of ids
        before = held()
        await some(count)
        async with asyncio.timeout(PATIENCE_S):  # The last one may have just gone.
            while not all(map(le, held(), before)):  # noqa: ASYNC110 -- the loop's next turn
                await asyncio.sleep(0)


def test_connections_that_come_and_go_leave_nothing_at_a_relay() -> None:
    asyncio.run(churn(200))


@pytest.mark.long
def test_ten_thousand_connections_that_come_and_go_leave_nothing_at_a_relay() -> None:
    asyncio.run(churn(10_000))
