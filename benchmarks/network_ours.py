"""Our side of the network benchmark: what ``network_side.py`` measures, by our host and node."""

import asyncio
import json
import os
import sys
import time

from benchmarks.network_side import HANDLERS, Answer, Heard, NetworkSide, serve
from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings

TOPIC = ContentTopic("/causerie/1/bench/proto")


class Leaf(Heard):
    """A node that hears."""

    def __init__(self) -> None:
        super().__init__()
        self.node = EmbeddedNode(NodeSettings(network_key=os.urandom(32)))
        self.node.subscribe(TOPIC, self._take)

    def _take(self, heard: WakuMessage, _: WakuHash) -> None:
        self.take(heard.payload)


class Program(NetworkSide[PeerId]):
    def __init__(self, host: TcpHost) -> None:
        super().__init__()
        self._host = host
        # All leaves dial from one address.
        self._hub = EmbeddedNode(
            NodeSettings(network_key=os.urandom(32), connections_per_address=128)
        )

    async def _connect(self, address: str) -> PeerId:
        return (await self._host.connect(address)).peer_id

    async def _open(self, peer: PeerId, protocol: str) -> Stream:
        return await self._host.new_stream(peer, [ProtocolId(protocol)])

    async def _disconnect(self, peer: PeerId) -> None:
        await self._host.disconnect(peer)

    async def _publish(self, payload: bytes) -> None:
        message = WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=time.time_ns())
        await self._hub.publish(message)

    async def _sleep(self, seconds: float) -> None:
        if seconds:  # Our hub needs no turn of the loop between two messages.
            await asyncio.sleep(seconds)

    async def hub(self) -> Answer:
        await self._hub.start()
        return {"address": self._hub.addresses()[0]}

    async def leaves(self, address: str, number: int) -> Answer:
        leaves = [Leaf() for _ in range(number)]
        self._heard += leaves
        for leaf in leaves:
            leaf.node.add_peers([address])
            await leaf.node.start()
        return {}

    async def meshed(self, number: int) -> Answer:
        """Of the hub: wait until so many are its peers."""
        async with asyncio.timeout(30):
            while self._hub.status().peers < number:  # noqa: ASYNC110 -- not measured
                await asyncio.sleep(0.05)
        return {}


async def next_line() -> str:
    """Of the commands; "" at their end."""
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def main() -> None:
    host = TcpHost(os.urandom(32), ("/ip4/127.0.0.1/tcp/0",))
    for protocol, handler in HANDLERS.items():
        host.set_stream_handler(ProtocolId(protocol), handler)
    await host.start()
    print(json.dumps({"address": host.addresses()[0]}), flush=True)
    await serve(Program(host), next_line)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
