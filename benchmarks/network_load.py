"""What our node costs and withstands: idle, many connections, churn, bursts.

One process of it is measured, another holds the other ends, except for a burst, where one process
holds all nodes.  Commands and answers as in ``network_side.py``.
"""

import asyncio
import contextlib
import gc
import json
import os
import resource
import sys
import time
from itertools import combinations
from pathlib import Path

from benchmarks.network_ours import TOPIC, Leaf, Program, next_line
from benchmarks.network_side import MESSAGE_BYTES, Answer, serve
from engine.core.waku import WakuMessage
from engine.network.libp2p.host import TcpHost
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings

BURST_TIMEOUT_S = 120.0
LEAVES = 10


def links_of(topology: str) -> list[tuple[int, int]]:
    """Who dials whom: node 0 speaks, the others hear; a star has a hub besides."""
    match topology:
        case "star":
            return [(leaf, LEAVES + 1) for leaf in range(LEAVES + 1)]
        case "line":
            return [(leaf, leaf + 1) for leaf in range(LEAVES)]
        case "mesh":
            return list(combinations(range(LEAVES + 1), 2))
        case _:
            raise ValueError(topology)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


class Load(Program):
    async def idle(self, seconds: float) -> Answer:
        """The share of a processor that this process takes while nothing happens."""
        began, used = time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        return {"share": (time.process_time() - used) / (time.perf_counter() - began)}

    async def held(self) -> Answer:
        """What this process holds, once the hub has nothing left to do."""
        for _ in range(50):
            gc.collect()
            await asyncio.sleep(0.02)
        return {
            "tasks": len(asyncio.all_tasks()),
            "files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 -- of a file system that is none
            "bytes": resident_bytes(),
        }

    async def churn(self, address: str, times: int) -> Answer:
        """Connect and be gone: a relay that says goodbye, a bare host that does not, in turns."""
        for number in range(times):
            await (self._polite(address) if number % 2 else self._rude(address))
        return {}

    async def _polite(self, address: str) -> None:
        node = EmbeddedNode(NodeSettings(network_key=os.urandom(32), listen_host=None))
        changed = asyncio.Event()
        node.on_status(lambda _: changed.set())
        node.add_peers([address])
        await node.start()
        async with asyncio.timeout(30):
            while not node.status().peers:
                changed.clear()
                await changed.wait()
        await node.stop()

    async def _rude(self, address: str) -> None:
        host = TcpHost(os.urandom(32), ())
        await host.start()
        await host.connect(address)
        for connection in host.connections():
            connection.drop("bench")
        await host.stop()

    async def alone(self) -> Answer:
        """Of the hub: wait until all are gone."""
        async with asyncio.timeout(30):
            while self._hub.gauges()["connected_peers"]:  # noqa: ASYNC110 -- not measured
                await asyncio.sleep(0.05)
        return {}

    async def burst(self, topology: str, times: int) -> Answer:
        links = links_of(topology)
        nodes = [Leaf() for _ in range(1 + max(max(link) for link in links))]
        for leaf in nodes:
            await leaf.node.start()
        for dialler, listener in links:
            nodes[dialler].node.add_peers(nodes[listener].node.addresses())
        for index, leaf in enumerate(nodes):
            degree = sum(index in link for link in links)
            while leaf.node.status().peers < degree:  # noqa: ASYNC110 -- not measured
                await asyncio.sleep(0.02)
        before = peak_bytes()
        began = time.perf_counter()
        for number in range(times):
            payload = time.monotonic_ns().to_bytes(8, "big") + bytes(MESSAGE_BYTES - 8)
            await nodes[0].node.publish(
                WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=number + 1)
            )
        ears = nodes[1 : LEAVES + 1]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BURST_TIMEOUT_S):
                while any(leaf.messages < times for leaf in ears):  # noqa: ASYNC110 -- costs little
                    await asyncio.sleep(0.01)
        dropped = sum(leaf.node.counters().get("relay.dropped_queue_full", 0) for leaf in nodes)
        return {
            "fewest": min(leaf.messages for leaf in ears),
            "most": max(leaf.messages for leaf in ears),
            "dropped": dropped,
            "seconds": time.perf_counter() - began,
            "bytes_per_node": (peak_bytes() - before) / len(nodes),
        }


async def main() -> None:
    host = TcpHost(os.urandom(32), ("/ip4/127.0.0.1/tcp/0",))
    await host.start()
    print(json.dumps({"address": host.addresses()[0]}), flush=True)
    await serve(Load(host), next_line)
    os._exit(0)


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("the load figures are read from /proc")
    asyncio.run(main())
