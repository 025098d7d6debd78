"""Relays on streams in memory, with everything between router and stream that a node has."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Self

from engine.codec.waku import encode_waku_message
from engine.core.counters import Counters
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import Host
from engine.network.waku.gossip.vocabulary import MessageDelivered
from engine.network.waku.relay.relay import RelaySettings, WakuRelay
from tests.network.waku.memory_host import MemoryHost, Wire
from tests.patience import PATIENCE_S

TOPIC = PubsubTopic("/waku/2/rs/42/4")


def waku_data(number: int, size: int = 0) -> bytes:
    payload = b"%d " % number + b"x" * size
    return encode_waku_message(WakuMessage(payload=payload, content_topic=ContentTopic("/a/1/b/c")))


@dataclass
class Node:
    host: MemoryHost
    relay: WakuRelay
    counters: Counters
    inbox: list[int] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def message_delivered(self, delivered: MessageDelivered, /) -> None:
        self.inbox.append(int(delivered.message.payload.split()[0]))
        self.news.set()

    def membership_changed(self) -> None:
        self.news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def until_meshed(self, count: int) -> None:
        await self.until(lambda: len(self.relay.mesh_peers(TOPIC)) == count)


class Net:
    """Relays on one wire, all stopped at the end."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.nodes: list[Node] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            await node.relay.stop()
            await node.host.stop()
        leftovers = asyncio.all_tasks() - {asyncio.current_task()}
        assert leftovers == set()

    async def node(self, name: str, settings: RelaySettings | None = None, *, ip: str = "") -> Node:
        host = self.wire.host(name)
        host.ip = ip
        node = Node(host=host, relay=_unset(host), counters=Counters())
        node.relay = WakuRelay(
            host,
            settings=settings or RelaySettings(),
            random=Random(1),
            counters=node.counters,
            observer=node,
        )
        node.relay.start()
        node.relay.join(TOPIC)
        await host.start()
        self.nodes.append(node)
        return node

    async def pair(self, settings: RelaySettings | None = None) -> tuple[Node, Node]:
        one, other = await self.node("one", settings), await self.node("other", settings)
        await one.host.connect("/memory/other")
        await one.until_meshed(1)
        await other.until_meshed(1)
        return one, other


def _unset(host: Host) -> WakuRelay:
    """A relay that is replaced before it is used: node and relay need each other."""
    return WakuRelay(
        host, settings=RelaySettings(), random=Random(0), counters=Counters(), observer=_Nobody()
    )


class _Nobody:
    def message_delivered(self, delivered: MessageDelivered, /) -> None: ...

    def membership_changed(self) -> None: ...
