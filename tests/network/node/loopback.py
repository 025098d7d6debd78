"""Real nodes on loopback, all stopped at the end."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Self

from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.settings import NodeSettings
from engine.network.waku.store.intake import Archive
from tests.patience import PATIENCE_S

TOPIC = ContentTopic("/causerie/1/tests/proto")


def settings_of(
    number: int, *, port: int | None = None, remembered_port: int | None = None
) -> NodeSettings:
    return NodeSettings(
        network_key=number.to_bytes(32, "big"), port=port, remembered_port=remembered_port
    )


def message(number: int, *, size: int = 0, topic: ContentTopic = TOPIC) -> WakuMessage:
    payload = b"%d " % number + b"x" * size
    return WakuMessage(payload=payload, content_topic=topic, timestamp_ns=number)


class Node:
    """An embedded node, what it heard, and how to wait for it."""

    def __init__(self, settings: NodeSettings, archive: Archive | None = None) -> None:
        self.node = EmbeddedNode(settings, archive=archive)
        self.inbox: list[int] = []
        self.hashes: list[WakuHash] = []
        self.news = asyncio.Event()
        self.node.subscribe(TOPIC, self._take)
        self.node.on_status(lambda _: self.news.set())

    def _take(self, heard: WakuMessage, waku_hash: WakuHash) -> None:
        self.inbox.append(int(heard.payload.split()[0]))
        self.hashes.append(waku_hash)
        self.news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def until_peers(self, count: int) -> None:
        await self.until(lambda: self.node.status().peers == count)

    async def until_heard(self, count: int) -> None:
        await self.until(lambda: len(self.inbox) >= count)


class Loopback:
    """``async with Loopback() as net``: nodes that are gone without a trace afterwards."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def node(
        self,
        *,
        peers: Sequence[str] = (),
        settings: NodeSettings | None = None,
        archive: Archive | None = None,
    ) -> Node:
        self._count += 1
        node = Node(settings or settings_of(self._count), archive)
        node.node.add_peers(peers)
        await node.node.start()
        self._stack.push_async_callback(node.node.stop)
        return node

    async def joined(self, links: Sequence[tuple[int, int]], count: int) -> list[Node]:
        """Nodes connected as ``links`` say (the first dials), and all aware of it."""
        nodes = [await self.node() for _ in range(count)]
        degree = [0] * count
        for dialler, listener in links:
            nodes[dialler].node.add_peers(nodes[listener].node.addresses())
            degree[dialler] += 1
            degree[listener] += 1
        for node, peers in zip(nodes, degree, strict=True):
            await node.until_peers(peers)
        return nodes
