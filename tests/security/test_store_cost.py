"""What asking a Store may cost it: bytes of answers, and time to find them."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.core.waku_archive import ArchivedMessage, ArchiveQuery
from engine.core.waku_store import HistoryQuery, StoreQueryRequest, StoreStatus
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId
from engine.network.node.services import all_services
from engine.network.waku.store.client import StoreClient
from engine.network.waku.store.server import StoreSettings
from engine.persistence.archive_pages import ArchiveReader
from engine.persistence.archive_thread import PAGE_DEADLINE_S, ThreadedArchive
from tests.network.node.loopback import Loopback, Node, settings_of
from tests.persistence.archive_examples import NOW_NS, SHARD, TOPIC, OpenArchive, archived, query
from tests.runtime.history.history_stage import Person, StoreNode, say_in_a_group
from tests.security.stage import figure

MIB: Final = 2**20
KIB: Final = 2**10
STEPS_A_LOOK: Final = 1_000


@dataclass
class Served:
    service: Node
    archive: ThreadedArchive
    client: StoreClient
    peer: PeerId

    async def ask(self, *, limit: int = 100) -> tuple[int, int]:
        """The status, and the bytes of messages."""
        page = await self.client.query(self.peer, everything(limit))
        return page.status_code, sum(
            len(each.message.payload) for each in page.messages if each.message
        )


def everything(limit: int) -> StoreQueryRequest:
    return StoreQueryRequest(request_id="all", include_data=True, pagination_limit=limit)


@asynccontextmanager
async def served(
    place: Path, settings: StoreSettings, clock_s: "Clock | None" = None
) -> AsyncIterator[Served]:
    archive = await ThreadedArchive.open(place / "archive.db", clock_s=clock_s or time.monotonic)
    host = TcpHost(b"C" * 32, [])
    try:
        async with Loopback() as net:
            services = structs.replace(all_services(), store=settings)
            service = await net.node(
                settings=replace(settings_of(90), services=services), archive=archive
            )
            await host.start()
            peer = await host.connect(service.node.addresses()[0])
            yield Served(service, archive, StoreClient(host), peer.peer_id)
            await host.stop()
    finally:
        await archive.close()


# --- bytes --------------------------------------------------------------------------------------


async def test_one_peer_gets_so_many_bytes_of_answers(tmp_path: Path) -> None:
    budget, asked_times = 6 * MIB, 40

    settings = StoreSettings(answer_bytes=budget, answer_period_s=60)
    async with served(tmp_path, settings) as net:
        await net.service.node.publish(_own(0))
        for number in range(1, 30):
            await net.service.node.publish(_own(number))
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        answers = [await net.ask() for _ in range(asked_times)]
        took_s = loop.time() - begun_s
        got = sum(size for _, size in answers)
        refused = [status for status, _ in answers if status == StoreStatus.TOO_MANY_REQUESTS]
        counted = net.service.node.counters()["store.answers_over_budget"]
        legacy = await net.client.query_history(net.peer, HistoryQuery(request_id="old"))
        figure(
            f"{asked_times} pages asked for by one peer: {got / MIB:.1f} MiB given of "
            f"{budget / MIB:.0f} a minute, {len(refused)} refused; before 114.4 MiB and 0"
        )
        assert got <= budget * (1 + took_s / 60) + settings.max_page_bytes
        assert counted == len(refused) > 0
        assert legacy.error == StoreStatus.TOO_MANY_REQUESTS


async def test_a_newcomer_waits_and_gets_all_of_a_long_past(tmp_path: Path) -> None:
    """Many times what is given at once: the client backs off by itself, and nobody asks it to."""
    count, given_at_once = 400, 32 * KIB

    node = StoreNode(tmp_path, "store")
    settings = StoreSettings(answer_bytes=given_at_once, answer_period_s=0.2)
    address = await node.start(services=structs.replace(all_services(), store=settings))
    past = await say_in_a_group(tmp_path, count, node)
    newcomer = await Person("Bob", tmp_path, peers=(address,)).start()
    await newcomer.until_online()
    await newcomer.engine.groups.join(past.link)
    await newcomer.until_told(past.group, count)
    assert await newcomer.has_once(past.group, past.said)
    assert node.node is not None
    refused = node.node.counters()["store.answers_over_budget"]
    figure(
        f"a newcomer with {given_at_once // KIB} KiB at once: "
        f"{len(newcomer.texts(past.group))} of {count} messages after {refused} refusals"
    )
    assert refused > 0
    await newcomer.stop()
    await node.stop()


# --- time ---------------------------------------------------------------------------------------


class Clock:
    """Counts how often it is looked at; can go fast, or keep a reader's thread waiting."""

    def __init__(self) -> None:
        self.looks = 0
        self.now_s = 0.0
        self.step_s = 0.0
        self._here = threading.get_ident()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self) -> float:
        self.looks += 1
        if threading.get_ident() != self._here:
            self.may_go_on.wait()
        self.now_s += self.step_s
        return self.now_s


QUERIES: Final = {
    "all, older version": query(by_digest=True, limit=100),
    "a shard, older version": query(by_digest=True, pubsub_topic=SHARD, limit=100),
    "a shard, backwards": query(by_digest=True, pubsub_topic=SHARD, limit=100, forward=False),
    "a topic, older version": query(by_digest=True, content_topics=(TOPIC,), limit=100),
    "a topic of a shard": query(pubsub_topic=SHARD, content_topics=(TOPIC,), limit=100),
    "all": query(limit=100),
    "from a cursor, late in a time range": query(
        by_digest=True, pubsub_topic=SHARD, limit=100, time_start_ns=NOW_NS, time_end_ns=2**62
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_costs_the_same_however_much_there_is(tmp_path: Path, name: str) -> None:
    """A topic for each message, as somebody makes them who means harm; one in a hundred is ours."""
    cost: list[int] = []
    for count in (1_000, 12_000):
        archive = OpenArchive(tmp_path / f"{count}.db")
        for first in range(0, count, 1_000):
            archive.append([_one_of_many(number) for number in range(first, first + 1_000)])
        asked = QUERIES[name]
        if "cursor" in name:
            late = structs.replace(asked, time_start_ns=NOW_NS + count - 300, limit=1)
            asked = structs.replace(asked, cursor=archive.query(late).rows[0].index)
        archive.close()
        clock = Clock()
        reader = ArchiveReader.open(tmp_path / f"{count}.db", clock_s=clock)
        found = reader.query(asked, deadline_s=1.0)
        assert len(found.page.rows) >= 10
        reader.close()
        cost.append(clock.looks * STEPS_A_LOOK)
    figure(f"a page of {name}: {cost[0]} steps among 1 000 messages, {cost[1]} among 12 000")
    assert cost[1] <= max(2 * cost[0], 20 * STEPS_A_LOOK)


async def test_whoever_asks_keeps_nothing_from_being_archived(tmp_path: Path) -> None:
    clock = Clock()
    archive = await ThreadedArchive.open(tmp_path / "archive.db", clock_s=clock)
    await archive.append([_one_of_many(number) for number in range(1_000)])
    clock.may_go_on.clear()
    stuck = asyncio.create_task(archive.query(ArchiveQuery(limit=100, max_bytes=MIB)))
    await asyncio.sleep(0)  # It is asked.
    added = await archive.append([_one_of_many(number) for number in range(1_000, 1_100)])
    assert not stuck.done()
    clock.may_go_on.set()
    assert len((await stuck).rows) == 100
    assert added.added == 100
    await archive.close()


async def test_a_page_that_takes_too_long_is_given_up_and_counted(tmp_path: Path) -> None:
    clock = Clock()
    async with served(tmp_path, StoreSettings(), clock) as net:
        await net.service.node.publish(_own(1))
        assert await net.ask() == (StoreStatus.SUCCESS, len(_own(1).payload))
        clock.step_s = PAGE_DEADLINE_S
        status, _ = await net.ask()
        assert status == StoreStatus.SERVICE_UNAVAILABLE
        assert net.service.node.counters()["store.query_too_slow"] == 1


def _own(number: int) -> WakuMessage:
    payload = number.to_bytes(4, "big") * 25_000
    return WakuMessage(payload=payload, content_topic=TOPIC, timestamp_ns=time.time_ns())


def _one_of_many(number: int) -> ArchivedMessage:
    ours = number % 100 == 0
    topic = TOPIC if ours else ContentTopic(f"/causerie/1/{number}/proto")
    return archived(number, timestamp_ns=NOW_NS + number, content_topic=topic)
