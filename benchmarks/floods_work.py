"""The node that is flooded, and who floods it: ``… floods_work node DIR | attack ADDRESS SECONDS``.

The attackers are on addresses of 127.7.0.0/16: idle connections from each, junk of the largest size
as peers of the mesh, and clients that ask the Store for everything again and again.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.report import percentile
from engine.core.errors import ChatError
from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.core.waku_store import StoreQueryRequest
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import all_services
from engine.network.node.settings import NodeSettings
from engine.network.waku.store.client import StoreClient
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive

ARCHIVE_BYTES: Final = 32 * 1024 * 1024
TICK_S: Final = 0.002
ADDRESSES: Final = 200
RELAYS: Final = 3
ASKERS: Final = 3
JUNK_BYTES: Final = 100_000


async def node(place: str) -> None:
    archive = await ThreadedArchive.open(
        Path(place) / "archive.db", Retention(max_bytes=ARCHIVE_BYTES)
    )
    settings = NodeSettings(network_key=os.urandom(32), services=all_services())
    one = EmbeddedNode(settings, archive=archive)
    await one.start()
    print(json.dumps({"address": one.addresses()[0]}), flush=True)
    late_ms: list[float] = []
    watch = asyncio.create_task(_watch(late_ms))
    await asyncio.to_thread(sys.stdin.readline)
    watch.cancel()
    taken = sum(host.traffic()[0] for host in one.hosts())
    told = {"late_p99_ms": percentile(late_ms, 0.99), "taken_mib": taken / 2**20}
    print(json.dumps(told), flush=True)
    await one.stop()
    await archive.close()


async def _watch(late_ms: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + TICK_S
        await asyncio.sleep(TICK_S)
        late_ms.append(max(loop.time() - due_s, 0.0) * 1_000)


async def attack(address: str, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    relays = [EmbeddedNode(NodeSettings(network_key=os.urandom(32))) for _ in range(RELAYS)]
    askers = [TcpHost(os.urandom(32), []) for _ in range(ASKERS)]
    for relay in relays:
        relay.add_peers([address])
        await relay.start()
    for asker in askers:
        await asker.start()
    print("ready", flush=True)
    await asyncio.gather(
        *(_junk(relay, until_s) for relay in relays),
        *(_ask(asker, address, until_s) for asker in askers),
        *(_connect(address, number, until_s) for number in range(ADDRESSES)),
    )


async def _junk(relay: EmbeddedNode, until_s: float) -> None:
    topic = ContentTopic(f"/causerie/1/{os.urandom(4).hex()}/proto")
    while time.monotonic() < until_s:
        payload = os.urandom(JUNK_BYTES)
        with contextlib.suppress(ChatError):
            await relay.publish(
                WakuMessage(payload=payload, content_topic=topic, timestamp_ns=time.time_ns())
            )
        await asyncio.sleep(0)


async def _ask(asker: TcpHost, address: str, until_s: float) -> None:
    everything = StoreQueryRequest(request_id="everything", include_data=True)
    while time.monotonic() < until_s:
        with contextlib.suppress(ChatError):
            peer = await asker.connect(address)
            await StoreClient(asker).query(peer.peer_id, everything)
        await asyncio.sleep(0.01)


async def _connect(address: str, number: int, until_s: float) -> None:
    """Sockets that are opened and say nothing, again and again."""
    target = parse_multiaddr(address)
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(
                target.host, target.port, local_addr=(f"127.7.{number}.1", 0)
            )
            await asyncio.sleep(1)
            writer.close()


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "node":
        asyncio.run(node(arguments[0]))
    else:
        asyncio.run(attack(arguments[0], float(arguments[1])))
