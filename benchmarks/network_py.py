"""py-libp2p's side of the network benchmark: what ``network_side.py`` measures, by py-libp2p.

Runs in the environment of scripts/interop_python.py, with tests/interop/py_libp2p on its path: its
gossipsub needs the same replacements there and here.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import trio
from libp2p import create_yamux_muxer_option, new_host
from libp2p.abc import IHost, INetStream
from libp2p.custom_types import TProtocol
from libp2p.io.utils import read_exactly
from libp2p.network.stream.exceptions import StreamEOF
from libp2p.peer.peerinfo import PeerInfo, info_from_p2p_addr
from libp2p.pubsub.pubsub import Pubsub
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr
from waku_gossip import publish, waku_gossip

from benchmarks.network_side import HANDLERS, Answer, Heard, NetworkSide, Stream, serve

TOPIC = "/waku/2/rs/42/4"
LISTEN = Multiaddr("/ip4/127.0.0.1/tcp/0")


class PyStream:
    """Their stream by our names."""

    def __init__(self, stream: INetStream) -> None:
        self._stream = stream
        self.write: Callable[[bytes], Awaitable[None]] = stream.write
        self.close_write: Callable[[], Awaitable[None]] = stream.close_write
        self.reset: Callable[[], Awaitable[None]] = stream.reset
        self.close: Callable[[], Awaitable[None]] = stream.close

    async def read_some(self, limit: int) -> bytes:
        try:
            piece: bytes = await self._stream.read(limit)
        except StreamEOF:
            return b""
        return piece

    async def read_exactly(self, count: int) -> bytes:
        piece: bytes = await read_exactly(self._stream, count)
        return piece


def serving(handler: Callable[[Stream], Awaitable[None]]) -> Callable[[INetStream], Any]:
    async def handle(stream: INetStream) -> None:
        await handler(PyStream(stream))
        await stream.close()

    return handle


def make_host() -> IHost:
    return new_host(muxer_opt={TProtocol(YAMUX): create_yamux_muxer_option()[TProtocol(YAMUX)]})


class Program(NetworkSide[PeerInfo]):
    def __init__(self, host: IHost, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        super().__init__()
        self._host = host
        self._stack = stack
        self._nursery = nursery
        self._hub: Pubsub | None = None

    async def _connect(self, address: str) -> PeerInfo:
        peer = info_from_p2p_addr(Multiaddr(address))
        await self._host.connect(peer)
        return peer

    async def _open(self, peer: PeerInfo, protocol: str) -> Stream:
        return PyStream(await self._host.new_stream(peer.peer_id, [TProtocol(protocol)]))

    async def _finish(self, stream: Stream) -> None:
        assert isinstance(stream, PyStream)  # noqa: S101
        await stream.close()

    async def _disconnect(self, peer: PeerInfo) -> None:
        await self._host.disconnect(peer.peer_id)

    async def _publish(self, payload: bytes) -> None:
        assert self._hub is not None  # noqa: S101
        await publish(self._hub, TOPIC, payload)

    async def _sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def hub(self) -> Answer:
        host, self._hub = await self._gossiping()
        await self._hub.subscribe(TOPIC)
        return {"address": str(host.get_addrs()[0])}

    async def leaves(self, address: str, number: int) -> Answer:
        for _ in range(number):
            host, pubsub = await self._gossiping()
            leaf = Heard()
            self._heard.append(leaf)
            self._nursery.start_soon(self._listen, await pubsub.subscribe(TOPIC), leaf)
            await host.connect(info_from_p2p_addr(Multiaddr(address)))
        return {}

    async def meshed(self, number: int) -> Answer:
        """Of the hub: wait until so many are its peers, and its heartbeat has filled the mesh."""
        assert self._hub is not None  # noqa: S101
        with trio.fail_after(30):
            while len(self._hub.peer_topics.get(TOPIC, ())) < number:  # noqa: ASYNC110
                await trio.sleep(0.05)
            await trio.sleep(3)
        return {}

    async def _gossiping(self) -> tuple[IHost, Pubsub]:
        host = make_host()
        pubsub, router = waku_gossip(host)
        await self._stack.enter_async_context(host.run(listen_addrs=[LISTEN]))
        for service in (pubsub, router):
            await self._stack.enter_async_context(background_trio_service(service))
        await pubsub.wait_until_ready()
        return host, pubsub

    async def _listen(self, subscription: Any, leaf: Heard) -> None:  # noqa: ANN401 -- theirs
        while True:
            leaf.take((await subscription.get()).data)


async def next_line() -> str:
    """Of the commands; "" at their end."""
    line: str = await trio.to_thread.run_sync(sys.stdin.readline)
    return line


async def main() -> None:
    host = make_host()
    for protocol, handler in HANDLERS.items():
        host.set_stream_handler(TProtocol(protocol), serving(handler))
    async with (
        host.run(listen_addrs=[LISTEN]),
        trio.open_nursery() as nursery,
        AsyncExitStack() as stack,
    ):
        print(json.dumps({"address": str(host.get_addrs()[0])}), flush=True)
        await serve(Program(host, stack, nursery), next_line)
        os._exit(0)


if __name__ == "__main__":
    trio.run(main)
