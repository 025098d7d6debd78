"""A libp2p host in memory: ports.Host and ports.Stream for tests that break things on purpose.

Streams have a window, so a reader that does not read stops its writer.  ``Wire`` is the network:
it knows every host by its address and can freeze or break what runs between two of them.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from engine.core.errors import TransportError
from engine.core.problems import PeerRefusal
from engine.network.libp2p.ports import (
    DialFailedHandler,
    JudgeCopy,
    PeerId,
    ProtocolId,
    RemotePeer,
    Stream,
    StreamHandler,
)
from engine.network_views import NetworkFacts

WINDOW_BYTES = 64 * 1024


class Lane:
    """Bytes in one direction."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False
        self.broken = False
        self.frozen = False
        self.changed = asyncio.Condition()

    async def put(self, data: bytes) -> None:
        async with self.changed:
            await self.changed.wait_for(
                lambda: self.broken or (len(self.data) < WINDOW_BYTES and not self.frozen)
            )
            if self.broken or self.ended:
                raise TransportError("the stream is broken")
            self.data += data
            self.changed.notify_all()

    async def get(self, limit: int) -> bytes:
        async with self.changed:
            await self.changed.wait_for(
                lambda: self.broken or ((self.data or self.ended) and not self.frozen)
            )
            if self.broken:
                raise TransportError("the stream is broken")
            taken = bytes(self.data[:limit])
            del self.data[:limit]
            self.changed.notify_all()
            return taken

    async def read_up_to_here(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.broken or not (self.data or self.frozen))
            if self.broken:
                raise TransportError("the stream is broken")

    async def set(self, **flags: bool) -> None:
        async with self.changed:
            for name, value in flags.items():
                setattr(self, name, value)
            self.changed.notify_all()


class MemoryStream:
    returns_window = True

    def __init__(self, peer_id: PeerId, protocol: ProtocolId, inward: Lane, outward: Lane) -> None:
        self.peer_id = peer_id
        self.protocol = protocol
        self.inward = inward
        self.outward = outward

    async def read_some(self, limit: int, /) -> bytes:
        return await self.inward.get(limit)

    async def read_exactly(self, count: int, /) -> bytes:
        data = b""
        while len(data) < count:
            if not (more := await self.inward.get(count - len(data))):
                raise TransportError("the stream ended early")
            data += more
        return data

    async def write(self, data: bytes, /) -> None:
        for start in range(0, len(data), WINDOW_BYTES):
            await self.outward.put(data[start : start + WINDOW_BYTES])

    async def confirm(self) -> None:
        await self.outward.read_up_to_here()

    async def close_write(self) -> None:
        await self.outward.set(ended=True)

    async def reset(self) -> None:
        await self.inward.set(broken=True)
        await self.outward.set(broken=True)


class MemoryHost:
    def __init__(self, wire: "Wire", name: str) -> None:
        self.peer_id = PeerId(name)
        self.wire = wire
        self.ip = ""
        self.judge_copy: JudgeCopy | None = None
        self.links: dict[PeerId, MemoryHost] = {}
        self.dialled: set[PeerId] = set()
        self.streams: list[MemoryStream] = []
        self.handlers: dict[ProtocolId, StreamHandler] = {}
        self._connected: list[Callable[[RemotePeer], None]] = []
        self._disconnected: list[Callable[[PeerId], None]] = []
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self.wire.hosts[self.peer_id] = self

    async def stop(self) -> None:
        self.wire.hosts.pop(self.peer_id, None)
        for peer_id in list(self.links):
            await self.disconnect(peer_id)
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def addresses(self) -> Sequence[str]:
        return (f"/memory/{self.peer_id}",)

    def set_stream_handler(self, protocol: ProtocolId, handler: StreamHandler, /) -> None:
        self.handlers[protocol] = handler

    async def new_stream(self, peer_id: PeerId, protocols: Sequence[ProtocolId], /) -> Stream:
        remote = self.links.get(peer_id)
        protocol = next((p for p in protocols if remote and p in remote.handlers), None)
        if remote is None or protocol is None:
            raise TransportError(f"no stream to {peer_id}")
        there, back = Lane(), Lane()
        ours = MemoryStream(peer_id, protocol, back, there)
        theirs = MemoryStream(self.peer_id, protocol, there, back)
        self.streams.append(ours)
        remote.serve(theirs)
        return ours

    def serve(self, stream: MemoryStream) -> None:
        async def run() -> None:
            await self.handlers[stream.protocol](stream)

        self.streams.append(stream)
        task = asyncio.create_task(run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def connect(self, multiaddr: str, /) -> RemotePeer:
        remote = self.wire.hosts.get(PeerId(multiaddr.removeprefix("/memory/")))
        if remote is None:
            raise TransportError(f"nobody at {multiaddr}")
        self.dialled.add(remote.peer_id)
        remote.meet(self)
        return self.meet(remote)

    def meet(self, remote: "MemoryHost") -> RemotePeer:
        peer = RemotePeer(
            peer_id=remote.peer_id,
            protocols=tuple(remote.handlers),
            listen_addresses=tuple(remote.addresses()),
            agent="memory",
            outbound=remote.peer_id in self.dialled,
            host=remote.ip,
        )
        if remote.peer_id not in self.links:
            self.links[remote.peer_id] = remote
            for handler in self._connected:
                handler(peer)
        return peer

    def keep_connected(self, multiaddrs: Sequence[str], /) -> None:
        raise NotImplementedError

    def cut_off(self, peers: Collection[PeerId], /) -> None:
        """Nobody is cut off here."""

    async def disconnect(self, peer_id: PeerId, why: PeerRefusal | None = None, /) -> None:
        del why
        remote = self.links.get(peer_id)
        if remote is not None:
            await self.lose(remote)
            await remote.lose(self)

    def facts(self) -> NetworkFacts:
        return NetworkFacts()

    async def lose(self, remote: "MemoryHost") -> None:
        if self.links.pop(remote.peer_id, None) is not None:
            for stream in [s for s in self.streams if s.peer_id == remote.peer_id]:
                self.streams.remove(stream)
                await stream.reset()
            for handler in self._disconnected:
                handler(remote.peer_id)

    def peers(self) -> Sequence[RemotePeer]:
        return [self.meet(remote) for remote in self.links.values()]

    def peer(self, peer_id: PeerId, /) -> RemotePeer | None:
        remote = self.links.get(peer_id)
        return None if remote is None else self.meet(remote)

    def on_peer_connected(self, handler: Callable[[RemotePeer], None], /) -> None:
        self._connected.append(handler)

    def on_peer_disconnected(self, handler: Callable[[PeerId], None], /) -> None:
        self._disconnected.append(handler)

    def on_dial_failed(self, handler: DialFailedHandler, /) -> None:
        raise NotImplementedError

    def judge_peers_by(self, score: Callable[[PeerId], float], /) -> None: ...

    def traffic(self) -> tuple[int, int]:
        return 0, 0

    def counters(self) -> Mapping[str, int]:
        return {}


class Wire:
    def __init__(self) -> None:
        self.hosts: dict[PeerId, MemoryHost] = {}

    def host(self, name: str) -> MemoryHost:
        return MemoryHost(self, name)
