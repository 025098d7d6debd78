"""A py-libp2p node behind JSON lines: a command per line in, an answer with its id per line out.

The node is the library's own; only the test protocols are ours:

  /test/echo/1    everything back as it comes, then close
  /test/answer/1  read to the end, then say how many bytes that were
  /test/abort/1   read 4 bytes, then reset
  /test/never/1   never read

Usage: python peer.py; it runs in an environment of its own, without anything of ours.
"""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import trio
from libp2p import create_yamux_muxer_option, new_host
from libp2p.abc import IHost, INetStream
from libp2p.custom_types import TProtocol
from libp2p.host.ping import PingService
from libp2p.network.stream.exceptions import StreamEOF
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.pubsub import Pubsub
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr
from waku_gossip import publish, waku_gossip

PIECE = 65_536
LISTEN = Multiaddr("/ip4/127.0.0.1/tcp/0")
Answer = dict[str, Any]


async def read_some(stream: INetStream) -> bytes:
    """b"" at the end."""
    try:
        piece: bytes = await stream.read(PIECE)
    except StreamEOF:
        return b""
    return piece


async def read_exactly(stream: INetStream, count: int) -> bytes:
    got = b""
    while len(got) < count:
        got += await stream.read(count - len(got))
    return got


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
    await stream.write(str(len(await read_to_end(stream))).encode())
    await stream.close()


async def abort(stream: INetStream) -> None:
    await read_exactly(stream, 4)
    await stream.reset()


async def never(_: INetStream) -> None:
    await trio.sleep_forever()


class Node:
    """What can be asked of it: every method is a command."""

    def __init__(self, host: IHost, pubsub: Pubsub, nursery: trio.Nursery) -> None:
        self._host = host
        self._pubsub = pubsub
        self._nursery = nursery
        self._ping = PingService(host)
        self._heard: list[str] = []
        for name, handler in (
            ("echo", echo),
            ("answer", answer),
            ("abort", abort),
            ("never", never),
        ):
            host.set_stream_handler(TProtocol(f"/test/{name}/1"), handler)

    async def dial(self, address: str) -> Answer:
        info = info_from_p2p_addr(Multiaddr(address))
        await self._host.connect(info)
        return {"peer": str(info.peer_id)}

    async def look(self) -> Answer:
        connections = self._host.get_network().get_connections()
        return {
            "connections": [
                {
                    "peer": str(each.muxed_conn.peer_id),
                    "muxer": type(each.muxed_conn).__name__,
                    "initiator": each.muxed_conn.is_initiator,
                    "streams": sorted(str(stream.get_protocol()) for stream in each.streams),
                }
                for each in connections
            ]
        }

    async def known(self, peer: str) -> Answer:
        """What identify has told."""
        store, peer_id = self._host.get_peerstore(), ID.from_base58(peer)
        return {
            "protocols": [str(each) for each in store.get_protocols(peer_id)],
            "addresses": [str(each) for each in store.addrs(peer_id)],
        }

    async def ping(self, peer: str, count: int) -> Answer:
        return {"times": await self._ping.ping(ID.from_base58(peer), count)}

    async def ask(self, peer: str, count: int, size: int, protocol: str) -> Answer:
        """``count`` streams at once; each sends ``size`` bytes, half-closes and reads to the end.

        What comes back is short, or is told by its length.
        """
        answers: list[str] = []

        async def one() -> None:
            stream = await self._host.new_stream(ID.from_base58(peer), [TProtocol(protocol)])
            async with trio.open_nursery() as both:
                both.start_soon(self._send, stream, size)
                back = await read_to_end(stream)
            answers.append(back.decode() if len(back) < 100 else str(len(back)))
            await stream.close()

        async with trio.open_nursery() as all_of_them:
            for _ in range(count):
                all_of_them.start_soon(one)
        return {"answers": answers}

    async def _send(self, stream: INetStream, size: int) -> None:
        for start in range(0, size, PIECE):
            await stream.write(bytes(min(PIECE, size - start)))
        await stream.close_write()

    async def subscribe(self, topic: str) -> Answer:
        subscription = await self._pubsub.subscribe(topic)

        async def listen() -> None:
            while True:
                self._heard.append((await subscription.get()).data.hex())

        self._nursery.start_soon(listen)
        return {}

    async def subscribers(self, topic: str) -> Answer:
        return {"peers": [str(each) for each in self._pubsub.peer_topics.get(topic, ())]}

    async def publish(self, topic: str, messages: list[str]) -> Answer:
        for message in messages:
            await publish(self._pubsub, topic, bytes.fromhex(message))
            await trio.sleep(0.002)  # its queue to a peer holds 32, and drops what comes on top
        return {}

    async def heard(self) -> Answer:
        return {"messages": self._heard}

    async def hang_up(self, peer: str) -> Answer:
        await self._host.disconnect(ID.from_base58(peer))
        return {}


def say(**fields: object) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


async def lines() -> AsyncIterator[bytes]:
    rest = b""
    async with trio.lowlevel.FdStream(os.dup(0)) as source:
        async for piece in source:
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line


async def serve(node: Node, line: bytes) -> None:
    fields = json.loads(line)
    number, command = fields.pop("id"), fields.pop("command")
    action: Callable[..., Awaitable[Answer]] = getattr(node, command)
    try:
        say(id=number, **await action(**fields))
    except Exception as error:  # noqa: BLE001 -- whatever it is, the test hears of it
        say(id=number, failed=_words(error))


def _words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_words(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"


@asynccontextmanager
async def running() -> AsyncIterator[tuple[IHost, Pubsub]]:
    host = new_host(muxer_opt={TProtocol(YAMUX): create_yamux_muxer_option()[TProtocol(YAMUX)]})
    pubsub, router = waku_gossip(host)
    async with (
        host.run(listen_addrs=[LISTEN]),
        background_trio_service(pubsub),
        background_trio_service(router),
    ):
        await pubsub.wait_until_ready()
        yield host, pubsub


async def main() -> None:
    async with running() as (host, pubsub), trio.open_nursery() as nursery:
        node = Node(host, pubsub, nursery)
        say(
            id=0,
            version=version("libp2p"),
            peer=str(host.get_id()),
            addresses=[str(each) for each in host.get_addrs()],
        )
        async for line in lines():
            nursery.start_soon(serve, node, line)
        os._exit(0)  # its services would take their time


if __name__ == "__main__":
    trio.run(main)
