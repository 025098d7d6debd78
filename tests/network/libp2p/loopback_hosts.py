"""Real hosts on loopback, what can stand between two of them, and peers that speak to them by hand.

For tests of libp2p that need sockets; what a host should make of all this is for them to say.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Self

from msgspec.structs import replace

from engine.network.libp2p.handshake import SecuredPipe
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.keys import IdentityKey
from engine.network.libp2p.limits import HostLimits
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from engine.network.libp2p.tcp import TcpTransport, Traffic
from engine.network.libp2p.upgrade import ALL_MUXERS, upgrade

LOOPBACK = "/ip4/127.0.0.1/tcp/0"
TEST = ProtocolId("/test/1")
SOMEBODY = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"


@asynccontextmanager
async def running_hosts(
    count: int,
    *,
    limits: HostLimits | None = None,
    layer: str = "",
    muxers: Sequence[ProtocolId] = ALL_MUXERS,
) -> AsyncIterator[list[TcpHost]]:
    """Hosts that listen; at the end all are stopped and not one task is left."""
    before = asyncio.all_tasks()
    hosts = [
        TcpHost(bytes([number + 1]) * 32, [LOOPBACK + layer], limits=limits, muxers=muxers)
        for number in range(count)
    ]
    try:
        for host in hosts:
            await host.start()
        yield hosts
    finally:
        await asyncio.gather(*(host.stop() for host in hosts))
    assert asyncio.all_tasks() <= before
    assert [host.connection_count() for host in hosts] == [0] * count


class Proxy:
    """A wire between two hosts that can be frozen (both ends stay open) or cut."""

    def __init__(self, target: str) -> None:
        self._target = parse_multiaddr(target)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._passed = 0
        self._moved = asyncio.Condition()
        self.closed = asyncio.Event()
        """Set when one of the two ends has closed."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return str(replace(self._target, port=port))

    def freeze(self) -> None:
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    async def more_bytes(self, count: int) -> None:
        """Until so many more have passed, both ways together."""
        goal = self._passed + count
        async with self._moved:
            await self._moved.wait_for(lambda: self._passed >= goal)

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._target.host, self._target.port)
        self._writers += (writer, far_writer)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._forward(source, sink))
            self._tasks.add(task)

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                while data := await source.read(65_536):
                    await self._flowing.wait()
                    sink.write(data)
                    await sink.drain()
                    async with self._moved:
                        self._passed += len(data)
                        self._moved.notify_all()
            self.closed.set()
            await self._flowing.wait()  # Nor does a frozen wire tell that an end has closed.
        finally:
            sink.close()


RunningHosts = Callable[..., AbstractAsyncContextManager[list[TcpHost]]]


@asynccontextmanager
async def wired_hosts(
    *,
    limits: HostLimits | None = None,
    layer: str = "",
    muxers: Sequence[ProtocolId] = ALL_MUXERS,
) -> AsyncIterator[tuple[TcpHost, TcpHost, Proxy]]:
    """Two hosts, and a wire at whose address the first reaches the second."""
    async with (
        running_hosts(2, limits=limits, layer=layer, muxers=muxers) as (near, far),
        Proxy(far.addresses()[0]) as wire,
    ):
        yield near, far, wire


async def echo(stream: Stream) -> None:
    while data := await stream.read_some(65_536):
        await stream.write(data)


async def read_to_end(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    while data := await stream.read_some(65_536):
        pieces.append(data)
    return b"".join(pieces)


async def lost_peer(host: TcpHost) -> asyncio.Future[PeerId]:
    lost: asyncio.Future[PeerId] = asyncio.get_running_loop().create_future()
    host.on_peer_disconnected(lambda peer: None if lost.done() else lost.set_result(peer))
    await asyncio.sleep(0)
    return lost


async def send_raw(host: TcpHost, data: bytes, *, end: bool = True) -> bytes:
    """What the listener answers before it closes."""
    address = parse_multiaddr(host.addresses()[0])
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(data)
    if end:
        writer.write_eof()
    try:
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    return answer


async def rogue(host: TcpHost) -> SecuredPipe:
    """A peer that finishes the handshake and then does what the test wants."""
    address = parse_multiaddr(host.addresses()[0])
    upgraded = await upgrade(
        await TcpTransport(Traffic()).dial(address),
        initiator=True,
        identity=IdentityKey(b"r" * 32),
        expected_peer=host.peer_id,
        entropy=os.urandom,
        limits=HostLimits(),
    )
    return upgraded.pipe
