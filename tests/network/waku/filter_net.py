"""A filter server, its clients, and subscribers of another make, on hosts in memory.

Every client keeps what it was pushed in an inbox; what breaks is broken by the test.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from engine.codec.waku import encode_waku_message
from engine.codec.waku_filter import (
    FilterSubscribeRequest,
    FilterSubscribeResponse,
    FilterSubscribeType,
    decode_filter_response,
    encode_filter_request,
)
from engine.core.ids import PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import StreamHandler
from engine.network.waku.filter.client import FilterClient, Pushed
from engine.network.waku.filter.push import PushSettings
from engine.network.waku.filter.server import FilterServer, FilterSettings
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL, FILTER_SUBSCRIBE_PROTOCOL
from engine.network.waku.send_queue import SendQueueLimits
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import PATIENT, SHARD, TOPIC, ServiceNet, exchange

OTHER_SHARD = PubsubTopic("/waku/2/rs/42/1")
IMPATIENT = FilterSettings(
    push=PushSettings(
        queue=SendQueueLimits(soft_bytes=50_000, message_bytes=100_000, write_bytes=8_000),
        write_timeout_s=1.0,  # a busy machine must not make the reader look stuck
        pause_s=0.01,
    )
)
SUBSCRIBE = FilterSubscribeRequest(
    request_id="1",
    filter_subscribe_type=FilterSubscribeType.SUBSCRIBE,
    pubsub_topic=SHARD,
    content_topics=(TOPIC,),
)


@dataclass
class Net:
    net: ServiceNet
    server: FilterServer
    server_host: MemoryHost
    hosts: list[MemoryHost] = field(default_factory=list)

    async def client(self) -> tuple[FilterClient, list[Pushed]]:
        host = await self.net.host(f"client {len(self.hosts)}")
        inbox: list[Pushed] = []
        made = FilterClient(
            host,
            new_request_id=self.net.new_request_id,
            deliver=inbox.append,
            counters=self.net.counters,
            limits=PATIENT,
        )
        made.start()
        self.hosts.append(host)
        await host.connect("/memory/server")
        return made, inbox

    async def subscriber(self) -> tuple[FilterClient, list[Pushed]]:
        client, inbox = await self.client()
        await client.subscribe(self.server_host.peer_id, SHARD, [TOPIC])
        return client, inbox

    def push(self, message: WakuMessage, shard: PubsubTopic = SHARD) -> int:
        return self.server.push(shard, message.content_topic, encode_waku_message(message))


@asynccontextmanager
async def filter_net(settings: FilterSettings | None = None) -> AsyncIterator[Net]:
    async with ServiceNet() as net:
        host = await net.host("server")
        server = FilterServer(host, settings or FilterSettings(), counters=net.counters)
        server.start()
        try:
            yield Net(net=net, server=server, server_host=host)
        finally:
            await server.stop()


async def ask_by_hand(net: Net, host: MemoryHost, request: bytes) -> FilterSubscribeResponse:
    answer = await exchange(host, net.server_host.peer_id, FILTER_SUBSCRIBE_PROTOCOL, request)
    return decode_filter_response(answer)


async def subscribe_by_hand(net: Net, serve: StreamHandler) -> MemoryHost:
    """A subscriber of another make."""
    host = await net.net.host("another")
    await host.connect("/memory/server")
    host.set_stream_handler(FILTER_PUSH_PROTOCOL, serve)
    await ask_by_hand(net, host, encode_filter_request(SUBSCRIBE))
    return host
