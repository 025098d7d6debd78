"""Floods of everything at once, from one address and from two hundred of 127.0.0.0/8.

The node offers all services, as ``causerie node`` does, with an archive that the flood could fill
several times.  Honest members are on it before, talk while it lasts, and read history from it
afterwards.  A flood is counted and not timed: so many rounds of everything from each attacker.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.errors import ChatError
from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.core.waku_store import StoreQueryRequest
from engine.network.libp2p.multiaddr import Multiaddr, parse_multiaddr
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import all_services
from engine.network.node.settings import NodeSettings
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive
from tests.network.node.loopback import TOPIC, Loopback, Node, settings_of
from tests.network.node.test_node_services import SHARD, Light, fresh, light_node
from tests.patience import PATIENCE_S
from tests.security.crowd import Crowd, until_peers
from tests.security.stage import figure
from ui.refusals import refusal_sentences

ARCHIVE_BYTES = 4 * 1024 * 1024
JUNK_BYTES = 100_000
JUNK_TOPICS = 7
ROUNDS = 3
"""Of everything, by each attacker who relays and asks."""
WORKERS = 5
SOCKETS = 400
HONEST = 8
TEXTS = 40
ONE = ("127.7.0.1",)
MANY = tuple(f"127.7.{number}.1" for number in range(200))
"""Each in a network of its own."""


class Passage:
    """What dials this comes to the node from an address of our choosing."""

    def __init__(self, target: str, source: str) -> None:
        self._target: Multiaddr = parse_multiaddr(target)
        self._source = source
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"/ip4/127.0.0.1/tcp/{port}/p2p/{self._target.peer_id}"

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(
                self._target.host, self._target.port, local_addr=(self._source, 0)
            )
            for source, sink in ((reader, far_writer), (far_reader, writer)):
                task = asyncio.create_task(_pour(source, sink))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            return
        writer.close()

    async def close(self) -> None:
        self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()


BEGUN_NS = time.time_ns()
"""By the node's clock it stays that, however long a text takes to reach its archive."""


def text(number: int) -> WakuMessage:
    return replace(fresh(number), timestamp_ns=BEGUN_NS + number)


class Town:
    """The node, its honest members, and the way in for attackers."""

    def __init__(self, node: Node, members: Sequence[Node]) -> None:
        self.node = node.node
        self.members = members

    @property
    def address(self) -> str:
        return self.node.addresses()[0]

    async def talk(self, first: int) -> None:
        """Everybody says one thing after the other, and hears it all from the others."""
        before = [len(member.inbox) for member in self.members]
        for number in range(TEXTS):
            speaker = self.members[number % len(self.members)]
            await speaker.node.publish(text(first + number))
        for member, heard in zip(self.members, before, strict=True):
            own = len(range(self.members.index(member), TEXTS, len(self.members)))
            await member.until_heard(heard + TEXTS - own)


@asynccontextmanager
async def town(place: Path) -> AsyncIterator[Town]:
    archive = await ThreadedArchive.open(place / "archive.db", Retention(max_bytes=ARCHIVE_BYTES))
    try:
        async with Loopback() as net:
            settings = NodeSettings(
                network_key=os.urandom(32), services=all_services(), now_ns=lambda: BEGUN_NS
            )
            node = await net.node(settings=settings, archive=archive)
            members = [
                await net.node(peers=node.node.addresses()[:1], settings=settings_of(2 + number))
                for number in range(HONEST)
            ]
            await node.until_peers(HONEST)
            yield Town(node, members)
    finally:
        await archive.close()


def junk(number: int) -> WakuMessage:
    """What any outsider can make."""
    return WakuMessage(
        payload=os.urandom(JUNK_BYTES),
        content_topic=ContentTopic(f"/causerie/1/junk-{number % JUNK_TOPICS}/proto"),
        timestamp_ns=BEGUN_NS,
    )


async def flood(it: Town, sources: Sequence[str]) -> None:
    """Everything at once: sockets, handshakes, junk by relay and lightpush, queries, filters."""
    async with AsyncExitStack() as stack:
        working = [
            await _enters(it, number, sources[number * len(sources) // WORKERS], stack)
            for number in range(WORKERS)
        ]
        crowd = Crowd(it.address)
        stack.push_async_callback(crowd.leave)
        await asyncio.gather(
            *(_relay(node, number) for number, (node, _) in enumerate(working)),
            *(_ask(light, number) for number, (_, light) in enumerate(working)),
            crowd.connect([each for each in sources for _ in range(SOCKETS // len(sources))]),
            half_open(crowd, sources),
        )


async def half_open(crowd: Crowd, sources: Sequence[str]) -> None:
    for number in range(SOCKETS // 2):
        with contextlib.suppress(OSError):
            await crowd.socket(sources[number % len(sources)])


async def _enters(
    it: Town, number: int, source: str, stack: AsyncExitStack
) -> tuple[EmbeddedNode, Light]:
    """Somebody who is in the mesh and a client of all services, by the time it begins."""
    passage = Passage(it.address, source)
    stack.push_async_callback(passage.close)
    address = await passage.open()
    node = EmbeddedNode(NodeSettings(network_key=(5_000 + number).to_bytes(32, "big")))
    node.add_peers([address])
    await node.start()
    stack.push_async_callback(node.stop)
    await until_peers(node, 1)
    key = (6_000 + number).to_bytes(32, "big")
    return node, await stack.enter_async_context(light_node(address, key=key))


async def _relay(node: EmbeddedNode, number: int) -> None:
    for _ in range(ROUNDS * 10):
        with contextlib.suppress(ChatError):
            await node.publish(junk(number))


async def _ask(light: Light, number: int) -> None:
    """By lightpush, Store and filter; whoever is refused asks again."""
    for turn in range(ROUNDS):
        await asyncio.gather(*(_once(light, number, turn * 10 + each) for each in range(10)))


async def _once(light: Light, number: int, turn: int) -> None:
    everything = StoreQueryRequest(request_id=f"{number} {turn}", include_data=True)
    topics = [ContentTopic(f"/causerie/1/{number}-{turn}-{each}/proto") for each in range(20)]
    for asked in (
        light.lightpush.push(light.service, SHARD, junk(number)),
        light.store.query(light.service, everything),
        light.filter.subscribe(light.service, SHARD, topics),
    ):
        with contextlib.suppress(ChatError):
            await asked


async def history(it: Town) -> int:
    """How many of the honest texts a newcomer reads from the archive."""
    request = StoreQueryRequest(
        request_id="newcomer",
        include_data=True,
        pubsub_topic=SHARD,
        content_topics=(TOPIC,),
        pagination_forward=True,
        pagination_limit=100,
    )
    found = 0
    async with light_node(it.address, key=b"N" * 32) as light:
        while True:
            page = await light.store.query(light.service, request)
            found += len(page.messages)
            if page.cursor is None:
                return found
            request = replace(request, pagination_cursor=page.cursor)


async def until_kept(it: Town, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await history(it) < count:  # noqa: ASYNC110 - another node's archive
            await asyncio.sleep(0.2)  # A Store answers ten times a second.


@pytest.mark.parametrize("sources", [ONE, MANY], ids=["one address", "200 addresses"])
async def test_a_flood_of_everything_cuts_off_nobody_honest(
    tmp_path: Path, sources: Sequence[str]
) -> None:
    async with town(tmp_path) as it:
        await it.talk(0)
        await until_kept(it, TEXTS)  # Somebody asks for it, as members do.
        attack = asyncio.create_task(flood(it, sources))
        turns = 1
        while not attack.done():
            await it.talk(turns * TEXTS)
            turns += 1
        await attack
        assert all(member.node.status().peers for member in it.members)
        await it.talk(turns * TEXTS)
        said = (turns + 1) * TEXTS
        await until_kept(it, said)
        sentences = refusal_sentences(it.node.counters())
        figure(f"{len(sources)} addresses: {said} texts heard by all and kept; {sentences}")
        assert sentences
