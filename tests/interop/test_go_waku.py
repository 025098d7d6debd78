"""A real go-waku node and ours: each service both ways, as its code judges.

go-waku's own code does everything on its side (``go_waku/main.go``): it relays, serves filter,
lightpush and store, and is the client of ours.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from msgspec import structs

from engine.codec.waku_metadata import Metadata
from engine.core.counters import Counters
from engine.core.ids import ContentTopic
from engine.core.problems import OtherCluster, PeerRefusal
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryError, HistoryIndex, HistoryQuery
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.node.services import all_services
from engine.network.waku.filter.client import FilterClient, Pushed
from engine.network.waku.lightpush.client import LightpushClient
from engine.network.waku.message_hash import message_hash
from engine.network.waku.metadata import WakuMetadata
from engine.network.waku.protocols import LEGACY_LIGHTPUSH_PROTOCOL, LIGHTPUSH_PROTOCOL
from engine.network.waku.store.client import StoreClient
from engine.network.waku.topics import Sharding, parse_pubsub_topic
from engine.persistence.archive_thread import ThreadedArchive
from tests.interop.go_waku import GoWaku, Seen, go_waku
from tests.interop.json_lines import PeerNodeError
from tests.network.node.loopback import TOPIC, Loopback, Node, settings_of
from tests.network.node.test_node_services import patient
from tests.patience import PATIENCE_S

SHARDING = Sharding()
SHARD = SHARDING.pubsub_topic(TOPIC)
OTHER_TOPIC = ContentTopic("/causerie/1/other/proto")
LIMITLESS = "-requests=1000"


def fresh(number: int, *, size: int = 0, topic: ContentTopic = TOPIC) -> WakuMessage:
    return WakuMessage(
        payload=b"%d " % number + b"x" * size,
        content_topic=topic,
        timestamp_ns=time.time_ns(),
    )


def numbers(seen: list[Seen]) -> list[int]:
    return [each.number for each in seen]


BATCH = 16
"""go-waku keeps 32 messages waiting for validation and drops the others of a burst."""


async def relay_to_go(ours: Node, go: GoWaku, messages: Sequence[WakuMessage]) -> None:
    """No faster than go-waku takes them."""
    before = len(await go.seen("relayed", 0))
    for start in range(0, len(messages), BATCH):
        batch = messages[start : start + BATCH]
        for message in batch:
            await ours.node.publish(message)
        before += len(batch)
        assert len(await go.seen("relayed", before)) == before


@asynccontextmanager
async def service_node(place: Path) -> AsyncIterator[tuple[Loopback, Node, PeerId]]:
    """Ours, with all services on."""
    archive = await ThreadedArchive.open(place / "archive.db")
    try:
        async with Loopback() as loopback:
            settings = replace(settings_of(90), services=patient(all_services()))
            service = await loopback.node(settings=settings, archive=archive)
            yield loopback, service, peer_id_in(service.node.addresses()[0])
    finally:
        await archive.close()


def peer_id_in(address: str) -> PeerId:
    return PeerId(address.rsplit("/", 1)[1])


class LightNode:
    """A host of ours with the clients of all services, connected to one go-waku node."""

    def __init__(self, number: int = 80, cluster: int = SHARDING.cluster_id) -> None:
        self.host = TcpHost(number.to_bytes(32, "big"), [])
        self.counters = Counters()
        self.inbox: list[Pushed] = []
        self.refused: list[PeerRefusal] = []
        ids = itertools.count(1)
        self._news = asyncio.Event()
        self._metadata = WakuMetadata(
            self.host,
            lambda: Metadata(cluster_id=cluster, shards=(parse_pubsub_topic(SHARD).shard,)),
            counters=self.counters,
            observer=self,
        )
        self.filter = FilterClient(
            self.host,
            new_request_id=lambda: f"filter {next(ids)}",
            deliver=self._take,
            counters=self.counters,
        )
        self.lightpush = LightpushClient(self.host, new_request_id=lambda: f"push {next(ids)}")
        self.store = StoreClient(self.host)

    def peer_refused(self, _peer_id: PeerId, reason: PeerRefusal, /) -> None:
        self.refused.append(reason)

    def _take(self, pushed: Pushed) -> None:
        self.inbox.append(pushed)
        self._news.set()

    async def until_offered(self, peer_id: PeerId, protocol: ProtocolId) -> None:
        """What go-libp2p says of itself when asked can be older than its last handler."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                peer = self.host.peer(peer_id)
                if peer is not None and protocol in peer.protocols:
                    return
                await asyncio.sleep(0.05)

    async def until_pushed(self, count: int) -> list[Pushed]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.inbox) < count:
                self._news.clear()
                await self._news.wait()
        return self.inbox

    async def __aenter__(self) -> Self:
        self._metadata.start()
        self.filter.start()
        await self.host.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._metadata.stop()
        await self.host.stop()


@asynccontextmanager
async def light_at_go(*options: str) -> AsyncIterator[tuple[LightNode, GoWaku]]:
    async with go_waku(*options) as go, LightNode() as light:
        await light.host.connect(go.address)
        await light.until_offered(go.peer_id, LEGACY_LIGHTPUSH_PROTOCOL)
        yield light, go


# --- relay and metadata -------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["tcp", "websocket"])
async def test_both_relay_to_each_other_and_agree_on_every_hash(transport: str) -> None:
    async with Loopback() as loopback, go_waku() as go:
        ours = await loopback.node(peers=[go.address if transport == "tcp" else go.websocket])
        await ours.until_peers(1)
        await go.until_subscribed(peer_id_in(ours.node.addresses()[0]), SHARD)
        sent = [
            structs.replace(fresh(number), meta=b"meta" if number % 2 else None)
            for number in range(50)
        ]
        await relay_to_go(ours, go, sent)
        relayed = await go.seen("relayed", 50)
        assert sorted(numbers(relayed)) == list(range(50))
        assert {each.waku_hash for each in relayed} == {message_hash(SHARD, m) for m in sent}
        assert {each.pubsub_topic for each in relayed} == {SHARD}
        theirs = [
            await go.publish(
                SHARD, structs.replace(fresh(number), meta=b"meta" if number % 2 else None)
            )
            for number in range(50, 100)
        ]
        await ours.until_heard(50)
        assert sorted(ours.inbox) == list(range(50, 100))
        assert set(ours.hashes) == set(theirs)


async def test_two_of_ours_meet_through_go_alone() -> None:
    async with Loopback() as loopback, go_waku() as go:
        one = await loopback.node(peers=[go.address])
        two = await loopback.node(peers=[go.address])
        for node in (one, two):
            await node.until_peers(1)
            await go.until_subscribed(peer_id_in(node.node.addresses()[0]), SHARD)
        await relay_to_go(one, go, [fresh(number, size=1_000) for number in range(200)])
        await two.until_heard(200)
        assert sorted(two.inbox) == list(range(200))
        await two.node.publish(fresh(200, size=140_000))
        await one.until_heard(1)
        assert one.inbox == [200]


async def test_go_dials_us_and_keeps_us(tmp_path: Path) -> None:
    async with service_node(tmp_path) as (_, ours, own_id), go_waku() as go:
        await go.ask("dial", address=ours.node.addresses()[0])
        await ours.until_peers(1)
        await go.until_subscribed(own_id, SHARD)
        await go.publish(SHARD, fresh(1))
        await ours.until_heard(1)
        assert (await go.ask("peers", pubsub=SHARD))["connected"] == [own_id]


async def test_a_go_node_of_another_cluster_does_not_stay() -> None:
    async with go_waku("-cluster=7") as go, LightNode() as light:
        await light.host.connect(go.address)
        async with asyncio.timeout(PATIENCE_S):
            while light.host.peers():  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.05)
            while (await go.ask("peers"))["connected"]:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.05)
        assert set(light.refused) <= {OtherCluster(7, 42)}


# --- filter -------------------------------------------------------------------------------------


async def test_go_pushes_to_our_filter_client_what_it_asked_for() -> None:
    async with Loopback() as loopback, light_at_go(LIMITLESS) as (light, go):
        ours = await loopback.node(peers=[go.address])
        await ours.until_peers(1)
        assert (await light.filter.ping(go.peer_id)).status_code == 404
        assert (await light.filter.subscribe(go.peer_id, SHARD, [TOPIC])).accepted
        assert (await light.filter.ping(go.peer_id)).accepted
        sent = [fresh(number) for number in range(20)]
        for message in sent:
            await ours.node.publish(fresh(999, topic=OTHER_TOPIC))
            await ours.node.publish(message)
            await light.until_pushed(sent.index(message) + 1)
        assert [each.message_hash for each in light.inbox] == [
            message_hash(SHARD, message) for message in sent
        ]
        assert (await light.filter.unsubscribe(go.peer_id, SHARD, [TOPIC])).accepted
        assert (await light.filter.ping(go.peer_id)).status_code == 404


async def test_a_burst_that_go_pushes_on_a_stream_each_is_whole() -> None:
    async with Loopback() as loopback, light_at_go() as (light, go):
        ours = await loopback.node(peers=[go.address])
        await ours.until_peers(1)
        await light.filter.subscribe(go.peer_id, SHARD, [TOPIC])
        await relay_to_go(ours, go, [fresh(number, size=1_000) for number in range(300)])
        pushed = await light.until_pushed(300)
        assert sorted(int(each.message.payload.split()[0]) for each in pushed) == list(range(300))


async def test_what_we_push_reaches_a_go_filter_client_whole(tmp_path: Path) -> None:
    async with service_node(tmp_path) as (_, ours, own_id), go_waku() as go:
        await go.ask("dial", address=ours.node.addresses()[0])
        with pytest.raises(PeerNodeError, match="404"):
            await go.ask("ping", peer=own_id)
        await go.subscribe(own_id, SHARD, TOPIC)
        await go.ask("ping", peer=own_id)
        sent = [fresh(number) for number in range(40)]
        for message in sent:
            await ours.node.publish(message)
        filtered = await go.seen("filtered", 40)
        assert sorted(numbers(filtered)) == list(range(40))
        assert {each.waku_hash for each in filtered} == {message_hash(SHARD, m) for m in sent}
        await go.ask("unsubscribe", peer=own_id, pubsub=SHARD, topics=[TOPIC])
        with pytest.raises(PeerNodeError, match="404"):
            await go.ask("ping", peer=own_id)


# --- lightpush ----------------------------------------------------------------------------------


async def test_our_lightpush_reaches_go_and_whom_it_relays_to() -> None:
    async with Loopback() as loopback, light_at_go(LIMITLESS) as (light, go):
        ours = await loopback.node(peers=[go.address])
        await ours.until_peers(1)
        for number in range(10):
            answered = await light.lightpush.push(go.peer_id, SHARD, fresh(number))
            assert answered.status_code == 200
        await ours.until_heard(10)
        assert sorted(ours.inbox) == list(range(10))
        spoken: set[ProtocolId] = set()
        for peer in light.host.peers():
            spoken.update(peer.protocols)
        assert LEGACY_LIGHTPUSH_PROTOCOL in spoken
        assert LIGHTPUSH_PROTOCOL not in spoken, "then try version 3 as well"


async def test_go_says_that_it_was_asked_too_often() -> None:
    async with light_at_go() as (light, go):
        pushes = [await light.lightpush.push(go.peer_id, SHARD, fresh(n)) for n in range(3)]
        assert [each.status_code for each in pushes] == [200, 429, 429]
        asked = [await light.filter.ping(go.peer_id) for _ in range(2)]
        assert [each.status_code for each in asked] == [404, 429]


async def test_go_says_that_nobody_is_there_to_relay_it_to() -> None:
    async with light_at_go("-min-peers=1") as (light, go):
        refused = await light.lightpush.push(go.peer_id, SHARD, fresh(1))
        assert refused.status_code == 500
        assert "not enough peers" in refused.status_desc


async def test_what_go_pushes_is_relayed_archived_and_refused_by_our_rules(tmp_path: Path) -> None:
    async with service_node(tmp_path) as (loopback, ours, own_id), go_waku() as go:
        await go.ask("dial", address=ours.node.addresses()[0])
        leaf = await loopback.node(peers=ours.node.addresses()[:1])
        await leaf.until_peers(1)
        await ours.until_peers(2)  # It relays only to whom it knows to listen.
        message = fresh(7)
        assert await go.push(own_id, SHARD, message) == message_hash(SHARD, message)
        await leaf.until_heard(1)
        assert leaf.hashes == [message_hash(SHARD, message)]
        old = structs.replace(fresh(8), timestamp_ns=time.time_ns() - 60 * 10**9)
        with pytest.raises(PeerNodeError, match="lightpush error"):
            await go.push(own_id, SHARD, old)


# --- store --------------------------------------------------------------------------------------


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "backward"])
async def test_our_client_reads_what_go_archived_page_by_page(forward: bool) -> None:
    async with Loopback() as loopback, light_at_go() as (light, go):
        ours = await loopback.node(peers=[go.address])
        await ours.until_peers(1)
        sent = [fresh(number) for number in range(45)]
        others = [fresh(999, topic=OTHER_TOPIC), structs.replace(fresh(998), ephemeral=True)]
        await relay_to_go(ours, go, [*sent, *others])
        assert len(await go.seen("archived", 46)) == 46
        pages: list[tuple[WakuMessage, ...]] = []
        cursor: HistoryIndex | None = None
        while not pages or cursor is not None:
            query = HistoryQuery(
                request_id=f"query {len(pages)}",
                pubsub_topic=SHARD,
                content_topics=(TOPIC,),
                page_size=20,
                cursor=cursor,
                forward=forward,
            )
            page = await light.store.query_history(go.peer_id, query)
            assert page.succeeded
            assert not page.refused
            pages.append(page.messages)
            cursor = page.cursor
        assert [len(page) for page in pages] == [20, 20, 5]
        read = [m for page in (pages if forward else reversed(pages)) for m in page]
        assert [message_hash(SHARD, m) for m in read] == [message_hash(SHARD, m) for m in sent]
        unknown = HistoryIndex(
            digest=bytes(32), receiver_time_ns=1, sender_time_ns=1, pubsub_topic=SHARD
        )
        lost = await light.store.query_history(
            go.peer_id, HistoryQuery(request_id="lost", cursor=unknown)
        )
        assert lost.error == HistoryError.INVALID_CURSOR


@pytest.mark.parametrize("version_3", [False, True], ids=["2.0.0-beta4", "3.0.0"])
@pytest.mark.parametrize("forward", [True, False], ids=["forward", "backward"])
async def test_go_reads_our_archive_page_by_page(
    tmp_path: Path, forward: bool, version_3: bool
) -> None:
    async with service_node(tmp_path) as (_, ours, own_id), go_waku() as go:
        await go.ask("dial", address=ours.node.addresses()[0])
        sent = [fresh(number) for number in range(45)]
        for message in sent:
            await ours.node.publish(message)
        await ours.node.publish(fresh(999, topic=OTHER_TOPIC))
        await ours.node.publish(structs.replace(fresh(998), ephemeral=True))
        pages = await go.history(
            own_id, SHARD, TOPIC, limit=20, forward=forward, version_3=version_3
        )
        assert [len(page) for page in pages] == [20, 20, 5]
        read = [each for page in (pages if forward else reversed(pages)) for each in page]
        assert [message_hash(SHARD, each.message) for each in read] == [
            message_hash(SHARD, message) for message in sent
        ]


async def test_go_finds_a_message_in_our_archive_by_its_hash_and_no_other(tmp_path: Path) -> None:
    async with service_node(tmp_path) as (_, ours, own_id), go_waku() as go:
        await go.ask("dial", address=ours.node.addresses()[0])
        sent = [fresh(number) for number in range(3)]
        for message in sent:
            await ours.node.publish(message)
        wanted = message_hash(SHARD, sent[1])
        (found,) = await go.find(own_id, wanted)
        assert (found.pubsub_topic, found.message, found.waku_hash) == (SHARD, sent[1], wanted)
        assert await go.find(own_id, message_hash(SHARD, fresh(9))) == []
