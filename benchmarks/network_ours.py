"""Our side of the network benchmark: one process of it serves, another measures.

``network_py.py`` and ``network_js.mjs`` do the same with the same commands and the same sizes.  A
line of JSON is a command, the next line of output its answer; the first line says where it listens.
Messages of the gossip part begin with the clock's nanoseconds, which all processes here share.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings

ECHO, ANSWER = ProtocolId("/bench/echo/1"), ProtocolId("/bench/answer/1")
COUNT = ProtocolId("/bench/count/1")
TOPIC = ContentTopic("/causerie/1/bench/proto")
PING_BYTES, REQUEST_BYTES, MESSAGE_BYTES, PIECE = 32, 100, 1_024, 65_536

Answer = dict[str, Any]
Action = Callable[..., Awaitable[Answer]]


async def echo(stream: Stream) -> None:
    while data := await stream.read_some(PIECE):
        await stream.write(data)


async def answer(stream: Stream) -> None:
    await stream.write(await read_to_end(stream))


async def count(stream: Stream) -> None:
    """Say how many messages came, each taken by itself, and how many bytes after them."""
    messages, size = 0, int.from_bytes(await stream.read_exactly(4), "big")
    while messages < size:
        await stream.read_exactly(MESSAGE_BYTES)
        messages += 1
    rest = 0
    while data := await stream.read_some(PIECE):
        rest += len(data)
    await stream.write(f"{messages} {rest}".encode())


async def read_to_end(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    while data := await stream.read_some(PIECE):
        pieces.append(data)
    return b"".join(pieces)


class Leaf:
    """A node that hears."""

    def __init__(self) -> None:
        self.node = EmbeddedNode(NodeSettings(network_key=os.urandom(32)))
        self.heard = 0
        self.latencies_ms: list[float] = []
        self.last_ns = 0
        self.node.subscribe(TOPIC, self._take)

    def _take(self, heard: WakuMessage, _: WakuHash) -> None:
        self.last_ns = time.monotonic_ns()
        self.heard += 1
        sent_ns = int.from_bytes(heard.payload[:8], "big")
        self.latencies_ms.append((self.last_ns - sent_ns) / 1e6)


class Program:
    """Every public method is a command."""

    def __init__(self, host: TcpHost) -> None:
        self._host = host
        # All leaves dial from one address.
        self._hub = EmbeddedNode(
            NodeSettings(network_key=os.urandom(32), connections_per_address=128)
        )
        self._leaves: list[Leaf] = []

    async def connect(self, address: str, times: int) -> Answer:
        """From the dial to the first answer on a stream."""
        taken: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            peer = (await self._host.connect(address)).peer_id
            stream = await self._host.new_stream(peer, [ECHO])
            await stream.write(bytes(PING_BYTES))
            await stream.read_exactly(PING_BYTES)
            taken.append(time.perf_counter() - began)
            await self._host.disconnect(peer)
        return {"ms": median(taken) * 1e3}

    async def rtt(self, address: str, times: int) -> Answer:
        stream = await self._open(address, ECHO)
        taken: list[float] = []
        for _ in range(times):
            began = time.perf_counter()
            await stream.write(bytes(PING_BYTES))
            await stream.read_exactly(PING_BYTES)
            taken.append(time.perf_counter() - began)
        await stream.reset()
        return {"ms": median(taken) * 1e3}

    async def requests(self, address: str, times: int) -> Answer:
        """One after another, each on a new stream."""
        peer = await self._peer(address)
        began = time.perf_counter()
        for _ in range(times):
            stream = await self._host.new_stream(peer, [ANSWER])
            await stream.write(bytes(REQUEST_BYTES))
            await stream.close_write()
            assert len(await read_to_end(stream)) == REQUEST_BYTES  # noqa: S101
        return {"per_second": times / (time.perf_counter() - began)}

    async def messages(self, address: str, times: int) -> Answer:
        stream = await self._open(address, COUNT)
        began = time.perf_counter()
        await stream.write(times.to_bytes(4, "big"))
        for _ in range(times):
            await stream.write(bytes(MESSAGE_BYTES))
        await self._counted(stream, f"{times} 0")
        return {"per_second": times / (time.perf_counter() - began)}

    async def bulk(self, address: str, mib: int) -> Answer:
        stream = await self._open(address, COUNT)
        began = time.perf_counter()
        await stream.write(bytes(4))
        for _ in range(mib * 16):
            await stream.write(bytes(PIECE))
        await self._counted(stream, f"0 {mib * 2**20}")
        return {"mb_per_second": mib * 2**20 / 1e6 / (time.perf_counter() - began)}

    async def _counted(self, stream: Stream, expected: str) -> None:
        await stream.close_write()
        told = (await read_to_end(stream)).decode()
        if told != expected:
            raise RuntimeError(f"{expected} were sent and {told} came")

    async def _peer(self, address: str) -> PeerId:
        return (await self._host.connect(address)).peer_id

    async def _open(self, address: str, protocol: ProtocolId) -> Stream:
        return await self._host.new_stream(await self._peer(address), [protocol])

    # --- gossip ---------------------------------------------------------------------------------

    async def hub(self) -> Answer:
        await self._hub.start()
        return {"address": self._hub.addresses()[0]}

    async def leaves(self, address: str, number: int) -> Answer:
        self._leaves = [Leaf() for _ in range(number)]
        for leaf in self._leaves:
            leaf.node.add_peers([address])
            await leaf.node.start()
        return {}

    async def meshed(self, number: int) -> Answer:
        """Of the hub: wait until so many are its peers."""
        async with asyncio.timeout(30):
            while self._hub.status().peers < number:  # noqa: ASYNC110 -- not measured
                await asyncio.sleep(0.05)
        return {}

    async def publish(self, times: int, pace_ms: float) -> Answer:
        began_ns = time.monotonic_ns()
        for _ in range(times):
            payload = time.monotonic_ns().to_bytes(8, "big") + os.urandom(MESSAGE_BYTES - 8)
            await self._hub.publish(
                WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=time.time_ns())
            )
            if pace_ms:
                await asyncio.sleep(pace_ms / 1e3)
        return {"began_ns": began_ns}

    async def heard(self, expected: int, quiet_s: float) -> Answer:
        """Of the leaves: when each has all, or nothing has come for a while; then forget it."""
        quiet_since, before = time.monotonic(), -1
        while time.monotonic() - quiet_since < quiet_s:
            now = sum(leaf.heard for leaf in self._leaves)
            if now != before:
                quiet_since, before = time.monotonic(), now
            if now >= expected * len(self._leaves):
                break
            await asyncio.sleep(0.02)
        told = {
            "counts": [leaf.heard for leaf in self._leaves],
            "last_ns": max(leaf.last_ns for leaf in self._leaves),
            "latency_ms": median(ms for leaf in self._leaves for ms in leaf.latencies_ms or [0.0]),
        }
        for leaf in self._leaves:
            leaf.heard = 0
            leaf.latencies_ms.clear()
        return told


async def serve(program: object) -> None:
    """Answer commands, one after another, until there are no more."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        fields = json.loads(line)
        action: Action = getattr(program, fields.pop("command"))
        try:
            told = await action(**fields)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the figure is not made
            told = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)


async def main() -> None:
    host = TcpHost(os.urandom(32), ("/ip4/127.0.0.1/tcp/0",))
    for protocol, handler in ((ECHO, echo), (ANSWER, answer), (COUNT, count)):
        host.set_stream_handler(protocol, handler)
    await host.start()
    print(json.dumps({"address": host.addresses()[0]}), flush=True)
    await serve(Program(host))
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
