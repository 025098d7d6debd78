"""py-libp2p's side of the network benchmark; see ``network_ours.py`` for what each command means.

Runs in the environment of scripts/interop_python.py, with tests/interop/py_libp2p on its path: its
gossipsub needs the same replacements there and here.
"""

import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

import trio
from libp2p import create_yamux_muxer_option, new_host
from libp2p.abc import IHost, INetStream
from libp2p.custom_types import TProtocol
from libp2p.io.utils import read_exactly
from libp2p.network.stream.exceptions import StreamEOF
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.pubsub import Pubsub
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr
from waku_gossip import publish, waku_gossip

ECHO, ANSWER = TProtocol("/bench/echo/1"), TProtocol("/bench/answer/1")
COUNT = TProtocol("/bench/count/1")
TOPIC = "/waku/2/rs/42/4"
LISTEN = Multiaddr("/ip4/127.0.0.1/tcp/0")
PING_BYTES, REQUEST_BYTES, MESSAGE_BYTES, PIECE = 32, 100, 1_024, 65_536

Answer = dict[str, Any]
Action = Callable[..., Awaitable[Answer]]


async def read_some(stream: INetStream) -> bytes:
    try:
        piece: bytes = await stream.read(PIECE)
    except StreamEOF:
        return b""
    return piece


async def read_to_end(stream: INetStream) -> bytes:
    pieces = []
    while piece := await read_some(stream):
        pieces.append(piece)
    return b"".join(pieces)


async def echo(stream: INetStream) -> None:
    while piece := await read_some(stream):
        await stream.write(piece)
    await stream.close()


async def answer(stream: INetStream) -> None:
    await stream.write(await read_to_end(stream))
    await stream.close()


async def count(stream: INetStream) -> None:
    messages, size = 0, int.from_bytes(await read_exactly(stream, 4), "big")
    while messages < size:
        await read_exactly(stream, MESSAGE_BYTES)
        messages += 1
    rest = 0
    while piece := await read_some(stream):
        rest += len(piece)
    await stream.write(f"{messages} {rest}".encode())
    await stream.close()


def make_host() -> IHost:
    return new_host(muxer_opt={TProtocol(YAMUX): create_yamux_muxer_option()[TProtocol(YAMUX)]})


class Leaf:
    def __init__(self) -> None:
        self.heard = 0
        self.latencies_ms: list[float] = []
        self.last_ns = 0

    def take(self, data: bytes) -> None:
        self.last_ns = time.monotonic_ns()
        self.heard += 1
        self.latencies_ms.append((self.last_ns - int.from_bytes(data[:8], "big")) / 1e6)


class Program:
    """Every public method is a command."""

    def __init__(self, host: IHost, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        self._host = host
        self._stack = stack
        self._nursery = nursery
        self._hub: Pubsub | None = None
        self._leaves: list[Leaf] = []

    async def connect(self, address: str, times: int) -> Answer:
        info, taken = info_from_p2p_addr(Multiaddr(address)), []
        for _ in range(times):
            began = time.perf_counter()
            stream = await self._open(address, ECHO)
            await stream.write(bytes(PING_BYTES))
            await read_exactly(stream, PING_BYTES)
            taken.append(time.perf_counter() - began)
            await self._host.disconnect(info.peer_id)
        return {"ms": median(taken) * 1e3}

    async def rtt(self, address: str, times: int) -> Answer:
        stream, taken = await self._open(address, ECHO), []
        for _ in range(times):
            began = time.perf_counter()
            await stream.write(bytes(PING_BYTES))
            await read_exactly(stream, PING_BYTES)
            taken.append(time.perf_counter() - began)
        await stream.reset()
        return {"ms": median(taken) * 1e3}

    async def requests(self, address: str, times: int) -> Answer:
        info = info_from_p2p_addr(Multiaddr(address))
        await self._host.connect(info)
        began = time.perf_counter()
        for _ in range(times):
            stream = await self._host.new_stream(info.peer_id, [ANSWER])
            await stream.write(bytes(REQUEST_BYTES))
            await stream.close_write()
            assert len(await read_to_end(stream)) == REQUEST_BYTES  # noqa: S101
            await stream.close()
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

    async def _counted(self, stream: INetStream, expected: str) -> None:
        await stream.close_write()
        told = (await read_to_end(stream)).decode()
        await stream.close()
        if told != expected:
            raise RuntimeError(f"{expected} were sent and {told} came")

    async def _open(self, address: str, protocol: TProtocol) -> INetStream:
        info = info_from_p2p_addr(Multiaddr(address))
        await self._host.connect(info)
        return await self._host.new_stream(info.peer_id, [protocol])

    # --- gossip ---------------------------------------------------------------------------------

    async def hub(self) -> Answer:
        host, self._hub = await self._gossiping()
        await self._hub.subscribe(TOPIC)
        return {"address": str(host.get_addrs()[0])}

    async def leaves(self, address: str, number: int) -> Answer:
        for _ in range(number):
            host, pubsub = await self._gossiping()
            leaf = Leaf()
            self._leaves.append(leaf)
            self._nursery.start_soon(self._listen, await pubsub.subscribe(TOPIC), leaf)
            await host.connect(info_from_p2p_addr(Multiaddr(address)))
        return {}

    async def meshed(self, number: int) -> Answer:
        assert self._hub is not None  # noqa: S101
        with trio.fail_after(30):
            while len(self._hub.peer_topics.get(TOPIC, ())) < number:  # noqa: ASYNC110
                await trio.sleep(0.05)
            await trio.sleep(3)  # until the heartbeat has filled the mesh
        return {}

    async def publish(self, times: int, pace_ms: float) -> Answer:
        assert self._hub is not None  # noqa: S101
        began_ns = time.monotonic_ns()
        for _ in range(times):
            payload = time.monotonic_ns().to_bytes(8, "big") + os.urandom(MESSAGE_BYTES - 8)
            await publish(self._hub, TOPIC, payload)
            await trio.sleep(pace_ms / 1e3)
        return {"began_ns": began_ns}

    async def heard(self, expected: int, quiet_s: float) -> Answer:
        quiet_since, before = time.monotonic(), -1
        while time.monotonic() - quiet_since < quiet_s:
            now = sum(leaf.heard for leaf in self._leaves)
            if now != before:
                quiet_since, before = time.monotonic(), now
            if now >= expected * len(self._leaves):
                break
            await trio.sleep(0.02)
        told = {
            "counts": [leaf.heard for leaf in self._leaves],
            "last_ns": max(leaf.last_ns for leaf in self._leaves),
            "latency_ms": median(ms for leaf in self._leaves for ms in leaf.latencies_ms or [0.0]),
        }
        for leaf in self._leaves:
            leaf.heard = 0
            leaf.latencies_ms.clear()
        return told

    async def _gossiping(self) -> tuple[IHost, Pubsub]:
        host = make_host()
        pubsub, router = waku_gossip(host)
        await self._stack.enter_async_context(host.run(listen_addrs=[LISTEN]))
        for service in (pubsub, router):
            await self._stack.enter_async_context(background_trio_service(service))
        await pubsub.wait_until_ready()
        return host, pubsub

    async def _listen(self, subscription: Any, leaf: Leaf) -> None:  # noqa: ANN401 -- theirs
        while True:
            leaf.take((await subscription.get()).data)


async def main() -> None:
    host = make_host()
    for protocol, handler in ((ECHO, echo), (ANSWER, answer), (COUNT, count)):
        host.set_stream_handler(protocol, handler)
    async with (
        host.run(listen_addrs=[LISTEN]),
        trio.open_nursery() as nursery,
        AsyncExitStack() as stack,
    ):
        program = Program(host, stack, nursery)
        print(json.dumps({"address": str(host.get_addrs()[0])}), flush=True)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            fields = json.loads(line)
            action: Action = getattr(program, fields.pop("command"))
            try:
                told = await action(**fields)
            except Exception as error:  # noqa: BLE001 -- whatever it is, the figure is not made
                told = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(told), flush=True)
        os._exit(0)


if __name__ == "__main__":
    trio.run(main)
