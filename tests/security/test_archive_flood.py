"""What outsiders may take of a node's archive: floods of its disk, from one place and from many.

Real nodes on loopback.  Who dials in comes from 127.0.0.1, as people behind one NAT do; an attacker
is dialled where it listens, and so comes from a network of its own.
"""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.core.waku_store import StoreQueryRequest
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import Host, PeerId
from engine.network.node.services import all_services
from engine.network.node.settings import NodeSettings
from engine.network.waku.lightpush.client import LightpushClient
from engine.network.waku.message_hash import message_hash
from engine.network.waku.store.client import StoreClient
from engine.network.waku.topics import Sharding
from engine.persistence.archive import MAX_LOG_BYTES, Retention
from engine.persistence.archive_thread import ThreadedArchive
from tests.network.node.loopback import Loopback, Node, settings_of
from tests.patience import PATIENCE_S
from tests.security.stage import figure

MIB: Final = 2**20
ROOM: Final = 2 * MIB
FLOOD: Final = 5 * ROOM
"""160 MB against 32 MiB were five times, too.  Of a peer a node takes less than 3 MiB a second."""
GROUP: Final = ContentTopic("/causerie/1/tests/proto")
SHARD: Final = Sharding().pubsub_topic(GROUP)
PEOPLE: Final = 50
BESIDES: Final = 2 * MIB
"""What comes in before room is made, pages that are not full, and indexes: less than the flood."""


def text(number: int, *, topic: ContentTopic = GROUP, size: int = 1_000) -> WakuMessage:
    payload = b"%d " % number + os.urandom(size)
    return WakuMessage(payload=payload, content_topic=topic, timestamp_ns=time.time_ns())


def junk(number: int, size: int) -> WakuMessage:
    """Of a topic that nobody else uses."""
    return text(number, topic=ContentTopic(f"/causerie/1/junk-{number}/proto"), size=size)


class Person:
    """Behind the NAT: publishes by lightpush, and relays nothing."""

    def __init__(self, host: TcpHost, service: PeerId) -> None:
        self.host = host
        self.service = service
        numbers = itertools.count(1)
        self._lightpush = LightpushClient(host, new_request_id=lambda: f"push {next(numbers)}")

    async def say(self, message: WakuMessage) -> bool:
        response = await self._lightpush.push(self.service, SHARD, message)
        return response.status_code == 200


@dataclass
class Flooded:
    """A service node, its archive, and people behind one NAT."""

    place: Path
    service: Node
    archive: ThreadedArchive
    people: list[Person]
    net: Loopback
    largest: int = 0
    """What the archive's database ever was."""
    largest_log: int = 0

    def look(self) -> None:
        database, log = self.place / "archive.db", self.place / "archive.db-wal"
        self.largest = max(self.largest, database.stat().st_size)
        self.largest_log = max(self.largest_log, log.stat().st_size)

    def assert_small(self) -> None:
        assert self.largest <= ROOM + BESIDES
        assert self.largest_log <= MAX_LOG_BYTES

    async def attacker(self, number: int, address: str | None) -> Node:
        """The service node dials it, so that it comes from where it listens; None: it dials."""
        settings = NodeSettings(network_key=number.to_bytes(32, "big"), listen_host=address)
        node = await self.net.node(settings=settings)
        self.service.node.add_peers(node.node.addresses())
        if address is None:
            node.node.add_peers(self.service.node.addresses())
        await node.until_peers(1)
        return node

    async def flood(self, attackers: Sequence[Node], made: Callable[[int], WakuMessage]) -> int:
        """Publish ``FLOOD`` bytes, all attackers together; how many."""
        sent = 0
        for number in itertools.count():
            message = made(number)
            await attackers[number % len(attackers)].node.publish(message)
            sent += len(message.payload)
            self.look()
            if sent >= FLOOD:
                return sent
        raise AssertionError

    async def taken_in(self, sent: WakuMessage) -> None:
        """Until the service node has heard this one, which was sent last."""
        async with asyncio.timeout(PATIENCE_S):
            while not (await self.kept([sent])):  # noqa: ASYNC110 - another node's archive
                await asyncio.sleep(0.2)  # A Store answers ten times a second.

    async def sweep(self) -> None:
        """What happens once a minute."""
        while await self.archive.retain():
            pass
        self.look()

    async def kept(self, messages: Sequence[WakuMessage]) -> int:
        """How many of these a client can get."""
        person = self.people[0]
        asked = StoreQueryRequest(
            request_id="kept",
            message_hashes=tuple(message_hash(SHARD, message) for message in messages),
            pagination_limit=100,
        )
        page = await StoreClient(person.host).query(person.service, asked)
        assert page.succeeded
        return len(page.messages)


@asynccontextmanager
async def flooded(place: Path, people: int = PEOPLE) -> AsyncIterator[Flooded]:
    async with AsyncExitStack() as stack:
        archive = await ThreadedArchive.open(place / "archive.db", Retention(max_bytes=ROOM))
        stack.push_async_callback(archive.close)
        net = await stack.enter_async_context(Loopback())
        settings = replace(settings_of(90), services=all_services())
        service = await net.node(settings=settings, archive=archive)
        made: list[Person] = []
        for number in range(people):
            host = TcpHost((1_000 + number).to_bytes(32, "big"), [])
            await host.start()
            stack.push_async_callback(host.stop)
            peer = await host.connect(service.node.addresses()[0])
            made.append(Person(host, peer.peer_id))
        yield Flooded(place=place, service=service, archive=archive, people=made, net=net)


@pytest.mark.parametrize(
    ("size", "from_where"),
    [(100_000, "elsewhere"), (4_000, "elsewhere"), (4_000, "behind the same NAT")],
)
async def test_a_flood_takes_no_honest_message_and_no_more_disk(
    tmp_path: Path, size: int, from_where: str
) -> None:
    """Fifty people behind one address lose nothing, also to a neighbour there who floods."""
    async with flooded(tmp_path) as at:
        address = "127.0.2.1" if from_where == "elsewhere" else None
        attacker = await at.attacker(1, address)
        before = [text(number) for number in range(PEOPLE)]
        for person, message in zip(at.people, before, strict=True):
            assert await person.say(message)
        flood = asyncio.create_task(at.flood([attacker], lambda number: junk(number, size)))
        meanwhile: list[WakuMessage] = []
        for number, person in enumerate(at.people):
            message = text(number)
            if await person.say(message):
                meanwhile.append(message)
        sent = await flood
        last = text(0)
        assert await at.people[0].say(last)
        await at.taken_in(last)
        await at.sweep()
        kept = await at.kept(before), await at.kept(meanwhile)
        figure(
            f"{sent / MIB:.0f} MiB in {size} byte messages from {from_where} into "
            f"{ROOM / MIB:.0f} MiB: {kept[0]} of {PEOPLE} earlier messages kept, {kept[1]} of "
            f"{PEOPLE} said meanwhile; at most {at.largest / MIB:.1f} MiB on disk and "
            f"{at.largest_log / MIB:.1f} MiB of log; before 0 and 0, and 28 MiB"
        )
        assert kept == (PEOPLE, PEOPLE)
        at.assert_small()


async def test_floods_from_many_networks_leave_what_was_asked_for(tmp_path: Path) -> None:
    """A group that said more than any attacker: it has all of it, in the half for such."""
    async with flooded(tmp_path, people=1) as at:
        person = at.people[0]
        said = [text(number, size=100_000) for number in range(8)]
        for message in said:
            assert await person.say(message)
        asked = StoreQueryRequest(request_id="asked", pubsub_topic=SHARD, content_topics=(GROUP,))
        assert (await StoreClient(person.host).query(person.service, asked)).succeeded
        attackers = [await at.attacker(n, f"127.0.{n + 1}.1") for n in range(1, 9)]
        sent = await at.flood(attackers, lambda number: junk(number, 20_000))
        last = text(0)
        assert await person.say(last)
        await at.taken_in(last)
        await at.sweep()
        kept = await at.kept(said)
        figure(
            f"{sent / MIB:.0f} MiB from {len(attackers)} networks into {ROOM / MIB:.0f} MiB: "
            f"{kept} of {len(said)} messages kept of a topic that was asked for; before 0 of 15"
        )
        assert kept == len(said)
        at.assert_small()


@pytest.mark.parametrize("from_where", ["elsewhere", "behind the same NAT"])
async def test_who_asks_for_junk_takes_nothing_of_what_others_asked_for(
    tmp_path: Path, from_where: str
) -> None:
    """It comes through the group's own neighbour, in topics of one message each."""
    async with flooded(tmp_path, people=2) as at:
        person = at.people[0]
        relay = await at.attacker(1, "127.0.2.1")
        elsewhere = await at.attacker(2, "127.0.3.1")
        asker: Host = at.people[1].host
        if from_where == "elsewhere":
            (asker,) = elsewhere.node.hosts()
        said = [text(number, size=10_000) for number in range(50)]
        for message in said:
            await relay.node.publish(message)
        await at.taken_in(said[-1])
        await ask_for([GROUP], person.host, person.service)
        sent = 0
        while sent < FLOOD:
            made = [junk(sent + number, 10_000) for number in range(50)]
            for message in made:
                await relay.node.publish(message)
            await at.taken_in(made[-1])
            await ask_for([each.content_topic for each in made], asker, person.service)
            sent += sum(len(message.payload) for message in made)
        await at.sweep()
        kept = await at.kept(said)
        figure(
            f"{sent / MIB:.0f} MiB into {ROOM / MIB:.0f} MiB, asked for from {from_where}: "
            f"{kept} of {len(said)} messages kept of a group that somebody else asked for; "
            f"before at most 1"
        )
        assert kept == len(said)


async def ask_for(topics: Sequence[ContentTopic], host: Host, service: PeerId) -> None:
    asked = StoreQueryRequest(
        request_id="asked", pubsub_topic=SHARD, content_topics=tuple(topics), pagination_limit=1
    )
    assert (await StoreClient(host).query(service, asked)).succeeded
