"""Service nodes that go wrong on purpose: real hosts that answer what they are told to answer.

``freeze`` cuts the wire in the middle without closing it: a TCP proxy that stops passing bytes.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.codec.waku_filter import (
    FilterSubscribeResponse,
    FilterSubscribeType,
    MessagePush,
    decode_filter_request,
    encode_filter_response,
    encode_message_push,
)
from engine.codec.waku_lightpush import (
    PushRequest,
    PushResponse,
    PushStatus,
    decode_push_request,
    encode_push_response,
)
from engine.codec.waku_metadata import Metadata, encode_metadata
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.multiaddr import parse_multiaddr
from engine.network.libp2p.ports import PeerId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.protocols import (
    FILTER_PUSH_PROTOCOL,
    FILTER_SUBSCRIBE_PROTOCOL,
    LIGHTPUSH_PROTOCOL,
    METADATA_PROTOCOL,
)
from engine.network.waku.service.exchange import answer, read_request
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from engine.core.ids import ContentTopic

OK = 200
TOO_MANY_REQUESTS = 429


class ScriptedNode:
    """Says to everything what ``filter_status`` and ``push_status`` say at that moment."""

    def __init__(self, key: bytes, *, cluster: int = 42) -> None:
        self.filter_status = OK
        self.filter_allowance: int | None = None
        """So many filter requests are accepted; the next ones get 429."""
        self.push_status: int = PushStatus.SUCCESS
        self.cluster = cluster
        self.asked: list[FilterSubscribeType] = []
        self.topics: set[ContentTopic] = set()
        self.pushed = 0
        self.echoes = False
        """Whether it pushes what it is given back to its giver, a subscriber; nwaku without relay
        peers does, and says 505."""
        self.echo_freed = asyncio.Event()
        """If it is not set by then, the echo comes after the answer, once it is."""
        self.news = asyncio.Event()
        self.host = TcpHost(key, ["/ip4/127.0.0.1/tcp/0"])
        self.host.set_stream_handler(FILTER_SUBSCRIBE_PROTOCOL, self._filter)
        self.host.set_stream_handler(LIGHTPUSH_PROTOCOL, self._lightpush)
        self.host.set_stream_handler(METADATA_PROTOCOL, self._metadata)

    async def until_asked(self, kind: FilterSubscribeType, count: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.asked.count(kind) < count:
                self.news.clear()
                await self.news.wait()

    async def _filter(self, stream: Stream) -> None:
        request = decode_filter_request(await _request(stream))
        status = self.filter_status
        if self.filter_allowance is not None and len(self.asked) >= self.filter_allowance:
            status = TOO_MANY_REQUESTS
        self.asked.append(request.filter_subscribe_type)
        if status == OK and request.filter_subscribe_type is FilterSubscribeType.SUBSCRIBE:
            self.topics |= set(request.content_topics)
        if status == OK and request.filter_subscribe_type is FilterSubscribeType.UNSUBSCRIBE:
            self.topics -= set(request.content_topics)
        self.news.set()
        response = FilterSubscribeResponse(
            request_id=request.request_id, status_code=status, status_desc="as told"
        )
        await answer(stream, encode_filter_response(response), timeout_s=5)

    async def _lightpush(self, stream: Stream) -> None:
        request = decode_push_request(await _request(stream))
        self.pushed += 1
        self.news.set()
        echo_first = self.echo_freed.is_set()
        if self.echoes and echo_first:
            await self._push_back(stream.peer_id, request)
        response = PushResponse(
            request_id=request.request_id, status_code=self.push_status, status_desc="as told"
        )
        await answer(stream, encode_push_response(response), timeout_s=5)
        if self.echoes and not echo_first:
            await self.echo_freed.wait()
            await self._push_back(stream.peer_id, request)

    async def _push_back(self, peer_id: PeerId, request: PushRequest) -> None:
        push = MessagePush(data=request.data, pubsub_topic=request.pubsub_topic)
        stream = await self.host.new_stream(peer_id, [FILTER_PUSH_PROTOCOL])
        await stream.write(encode_frame(encode_message_push(push)))
        await stream.close_write()

    async def _metadata(self, stream: Stream) -> None:
        await _request(stream)
        metadata = Metadata(cluster_id=self.cluster, shards=(0,))
        await answer(stream, encode_metadata(metadata), timeout_s=5)


async def _request(stream: Stream) -> bytes:
    first = await stream.read_some(65_536)
    return await read_request(stream, first, max_bytes=1_000_000, timeout_s=5)


class Wire:
    """Passes bytes between a new port and an address until it is frozen or cut."""

    def __init__(self, multiaddr: str) -> None:
        self._target = parse_multiaddr(multiaddr)
        self._flows = asyncio.Event()
        self._flows.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"/ip4/127.0.0.1/tcp/{port}/p2p/{self._target.peer_id}"

    def freeze(self) -> None:
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._target.host, self._target.port)
        self._writers |= {writer, there[1]}
        for source, sink in ((reader, there[1]), (there[0], writer)):
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(65_536):
                await self._flows.wait()
                sink.write(chunk)
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.transport.abort()


def peerless(addresses: Sequence[str]) -> list[str]:
    return [address.partition("/p2p/")[0] for address in addresses]
