"""Service nodes and edge nodes on loopback, all stopped at the end."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Protocol, Self

from msgspec.structs import replace

from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.network.edge.edge_node import EdgeNode
from engine.network.edge.settings import EdgePace, EdgeSettings
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.transport import Transport, TransportLevel, TransportStatus
from engine.network.waku.topics import Sharding
from tests.network.edge.faulty_nodes import ScriptedNode, Wire
from tests.patience import PATIENCE_S

TOPIC = ContentTopic("/causerie/1/tests/proto")
SERVING = replace(all_services(), store=None)
QUICK = EdgePace(
    request_timeout_s=10.0,  # a busy machine must not make a good node look slow
    hedge_s=5.0,
    unheard_grace_s=0.2,
    refresh_first_s=0.2,
    rest_first_s=0.1,
    busy_rest_s=0.11,
    rest_cap_s=0.4,
    filter_interval_s=0.1,
)


def message(number: int, topic: ContentTopic = TOPIC, *, ephemeral: bool = True) -> WakuMessage:
    return WakuMessage(payload=b"%d" % number, content_topic=topic, ephemeral=ephemeral)


class Listening:
    """A transport, what it heard on ``TOPIC``, and how to wait for it."""

    def __init__(self, transport: Transport) -> None:
        self.inbox: list[int] = []
        self.told: list[TransportStatus] = []
        self.news = asyncio.Event()
        self._transport = transport
        self.unsubscribe = transport.subscribe(TOPIC, self._take)
        transport.on_status(self._note)

    def _take(self, heard: WakuMessage, waku_hash: bytes) -> None:
        del waku_hash
        self.inbox.append(int(heard.payload))
        self.news.set()

    def _note(self, status: TransportStatus) -> None:
        self.told.append(status)
        self.news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.news.clear()
                with suppress(TimeoutError):  # not everything that is waited for is told
                    async with asyncio.timeout(0.01):
                        await self.news.wait()

    async def until_level(self, level: TransportLevel) -> None:
        await self.until(lambda: self._transport.status().level is level)

    async def until_peers(self, count: int) -> None:
        await self.until(lambda: self._transport.status().peers == count)

    async def until_heard(self, count: int) -> None:
        await self.until(lambda: len(self.inbox) >= count)


class EdgeNet:
    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self._count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def new_key(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(32, "big")

    async def service_node(
        self,
        *,
        services: ServiceSettings = SERVING,
        peers: Sequence[str] = (),
        cluster: int = 42,
        websocket: bool = False,
    ) -> EmbeddedNode:
        settings = NodeSettings(
            network_key=self.new_key(),
            services=services,
            sharding=Sharding(cluster_id=cluster),
            websocket_port=0 if websocket else None,
        )
        node = EmbeddedNode(settings)
        node.add_peers(peers)
        await node.start()
        self.stack.push_async_callback(node.stop)
        return node

    async def service_nodes(self, count: int) -> list[EmbeddedNode]:
        """Each knows all that came before it."""
        nodes: list[EmbeddedNode] = []
        for _ in range(count):
            nodes.append(await self.service_node(peers=addresses(*nodes)))
        return nodes

    async def edge(
        self, service_nodes: Sequence[str], *, pace: EdgePace = QUICK
    ) -> tuple[EdgeNode, Listening]:
        settings = EdgeSettings(
            network_key=self.new_key(), service_nodes=tuple(service_nodes), pace=pace
        )
        edge = EdgeNode(settings, random=Random(self._count))
        listening = Listening(edge)
        await edge.start()
        self.stack.push_async_callback(edge.stop)
        return edge, listening

    async def good_edge(self, service_nodes: Sequence[str]) -> tuple[EdgeNode, Listening]:
        """One that is connected through two of them."""
        edge, listening = await self.edge(service_nodes)
        await listening.until_level(TransportLevel.GOOD)
        return edge, listening

    async def relaying(self, peers: Sequence[str]) -> tuple[EmbeddedNode, Listening]:
        node = EmbeddedNode(NodeSettings(network_key=self.new_key()))
        listening = Listening(node)
        node.add_peers(peers)
        await node.start()
        self.stack.push_async_callback(node.stop)
        return node, listening

    async def scripted_node(self, *, cluster: int = 42) -> ScriptedNode:
        node = ScriptedNode(self.new_key(), cluster=cluster)
        await node.host.start()
        self.stack.push_async_callback(node.host.stop)
        return node

    async def wire(self, node: EmbeddedNode) -> tuple[Wire, str]:
        """The node's address behind a wire that can be frozen."""
        wire = Wire(node.addresses()[0])
        address = await wire.start()
        self.stack.push_async_callback(wire.stop)
        return wire, address


class _Addressed(Protocol):
    def addresses(self) -> Sequence[str]: ...


def addresses(*nodes: _Addressed) -> list[str]:
    return [address for node in nodes for address in node.addresses()]
