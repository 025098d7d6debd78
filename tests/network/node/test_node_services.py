"""Services on real nodes over loopback: everything a node learns reaches all who want it, once."""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import structs

from engine.core.counters import Counters
from engine.core.errors import ConfigError, TransportError
from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryQuery, StoreQueryRequest
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.node.embedded import EmbeddedNode
from engine.network.node.services import ServiceSettings, all_services
from engine.network.node.settings import NodeSettings
from engine.network.waku.filter.client import FilterClient, Pushed
from engine.network.waku.filter.server import FilterSettings
from engine.network.waku.lightpush.client import LightpushClient
from engine.network.waku.lightpush.server import LightpushSettings
from engine.network.waku.message_hash import message_hash
from engine.network.waku.metadata import WakuMetadata
from engine.network.waku.protocols import (
    FILTER_SUBSCRIBE_PROTOCOL,
    LEGACY_LIGHTPUSH_PROTOCOL,
    LEGACY_STORE_PROTOCOL,
    LIGHTPUSH_PROTOCOL,
    METADATA_PROTOCOL,
    STORE_QUERY_PROTOCOL,
)
from engine.network.waku.service.exchange import ExchangeLimits, ask
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings as ServedSettings
from engine.network.waku.store.client import StoreClient
from engine.network.waku.store.intake import IntakeSettings
from engine.network.waku.store.server import StoreSettings
from engine.network.waku.topics import Sharding
from engine.persistence.archive_thread import ThreadedArchive
from tests.network.node.loopback import TOPIC, Loopback, Node, settings_of
from tests.patience import PATIENCE_S

SHARD = Sharding().pubsub_topic(TOPIC)
SECOND_NS = 10**9
EVERYTHING = StoreQueryRequest(request_id="1", include_data=True)
ALL_SERVICES_BUT_STORE = structs.replace(all_services(), store=None)


@dataclass
class Light:
    """A light node: no relay, only clients."""

    host: TcpHost
    filter: FilterClient
    lightpush: LightpushClient
    store: StoreClient
    inbox: list[Pushed]
    news: asyncio.Event
    service: PeerId

    async def until_pushed(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.inbox) < count:
                self.news.clear()
                await self.news.wait()


@dataclass
class Served:
    """A service node, a relaying leaf and a light node."""

    service: Node
    leaf: Node
    far: Node
    """Another leaf, not connected to anybody yet."""
    light: Light


def fresh(number: int, *, ephemeral: bool | None = None) -> WakuMessage:
    return WakuMessage(
        payload=b"%d " % number,
        content_topic=TOPIC,
        timestamp_ns=time.time_ns(),
        ephemeral=ephemeral,
    )


@asynccontextmanager
async def light_node(address: str, *, key: bytes = b"L" * 32) -> AsyncIterator[Light]:
    numbers = itertools.count(1)
    inbox: list[Pushed] = []
    news = asyncio.Event()

    def deliver(pushed: Pushed) -> None:
        inbox.append(pushed)
        news.set()

    def new_request_id() -> str:
        return f"light {next(numbers)}"

    host = TcpHost(key, [])
    client = FilterClient(host, new_request_id=new_request_id, deliver=deliver, counters=Counters())
    client.start()
    await host.start()
    try:
        peer = await host.connect(address)
        yield Light(
            host=host,
            filter=client,
            lightpush=LightpushClient(host, new_request_id=new_request_id),
            store=StoreClient(host),
            inbox=inbox,
            news=news,
            service=peer.peer_id,
        )
    finally:
        await host.stop()


def patient(services: ServiceSettings) -> ServiceSettings:
    """Whoever asks gets what was archived before, however slow the disk is."""
    return structs.replace(services, intake=IntakeSettings(patience_s=PATIENCE_S))


@asynccontextmanager
async def served(place: Path, services: ServiceSettings | None = None) -> AsyncIterator[Served]:
    archive = await ThreadedArchive.open(place / "archive.db")
    try:
        async with Loopback() as net:
            settings = replace(
                settings_of(90), services=patient(services or all_services()), websocket_port=0
            )
            service = await net.node(settings=settings, archive=archive)
            leaf = await net.node(peers=service.node.addresses()[:1])
            await leaf.until_peers(1)
            await service.until_peers(1)
            async with light_node(service.node.addresses()[0]) as light:
                yield Served(service=service, leaf=leaf, far=await net.node(), light=light)
    finally:
        await archive.close()


async def test_what_is_relayed_is_pushed_and_archived(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        light = net.light
        assert (await light.filter.subscribe(light.service, SHARD, [TOPIC])).accepted
        sent = [fresh(number) for number in range(20)]
        for message in sent:
            await net.leaf.node.publish(message)
        await light.until_pushed(20)
        assert [pushed.message for pushed in light.inbox] == sent
        request = StoreQueryRequest(
            request_id="1",
            include_data=True,
            pubsub_topic=SHARD,
            content_topics=(TOPIC,),
            pagination_forward=True,
        )
        page = await light.store.query(light.service, request)
        assert [entry.message for entry in page.messages] == sent
        history = HistoryQuery(request_id="2", pubsub_topic=SHARD, forward=True)
        legacy = await light.store.query_history(light.service, history)
        assert list(legacy.messages) == sent


async def test_what_is_pushed_reaches_relays_filters_the_archive_and_the_node_itself(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as net:
        light = net.light
        await light.filter.subscribe(light.service, SHARD, [TOPIC])
        message = fresh(7)
        response = await light.lightpush.push(light.service, SHARD, message)
        assert (response.status_code, response.relay_peer_count) == (200, 1)
        await net.leaf.until_heard(1)
        await light.until_pushed(1)
        assert net.service.inbox == net.leaf.inbox == [7]
        wanted = (message_hash(SHARD, message),)
        found = await light.store.query(
            light.service, StoreQueryRequest(request_id="1", message_hashes=wanted)
        )
        assert [entry.message_hash for entry in found.messages] == list(wanted)


@pytest.mark.parametrize(
    ("off_ns", "ephemeral", "counter"),
    [
        (0, True, "store.refused_ephemeral"),
        (-21 * SECOND_NS, None, "store.refused_clock"),
        (40 * SECOND_NS, None, "store.refused_clock"),
    ],
    ids=["ephemeral", "from the past", "from the future"],
)
async def test_what_is_not_archived_is_relayed_and_pushed_all_the_same(
    tmp_path: Path, off_ns: int, ephemeral: bool | None, counter: str
) -> None:
    """From one leaf through the node to another leaf, to who filters, and into no archive."""
    async with served(tmp_path) as net:
        light, service = net.light, net.service
        assert (await light.filter.subscribe(light.service, SHARD, [TOPIC])).accepted
        net.far.node.add_peers(service.node.addresses()[:1])
        await service.until_peers(2)
        await net.far.until_peers(1)
        timestamp_ns = time.time_ns() + off_ns
        odd = structs.replace(fresh(5), timestamp_ns=timestamp_ns, ephemeral=ephemeral)
        await net.leaf.node.publish(odd)
        await net.leaf.node.publish(fresh(6))
        await net.far.until_heard(2)
        await light.until_pushed(2)
        assert net.far.inbox == [5, 6]
        assert light.inbox[0].message == odd
        found = await light.store.query(light.service, EVERYTHING)
        assert [entry.message and entry.message.payload for entry in found.messages] == [b"6 "]
        legacy = await light.store.query_history(light.service, HistoryQuery(request_id="2"))
        assert [each.payload for each in legacy.messages] == [b"6 "]
        assert service.node.counters()[counter] == 1


async def test_what_the_node_itself_says_is_pushed_and_archived_too(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        light = net.light
        await light.filter.subscribe(light.service, SHARD, [TOPIC])
        await net.service.node.publish(fresh(1))
        await net.service.node.publish(fresh(2, ephemeral=True))
        await light.until_pushed(2)
        page = await light.store.query(
            light.service, StoreQueryRequest(request_id="1", include_data=True)
        )
        assert [entry.message.payload for entry in page.messages if entry.message] == [b"1 "]


async def test_without_anybody_else_the_archive_is_enough(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        await net.leaf.node.stop()
        await net.service.until_peers(0)
        pushed = await net.light.lightpush.push(net.light.service, SHARD, fresh(1))
        assert (pushed.status_code, pushed.relay_peer_count) == (200, 0)
        nobody = await net.light.lightpush.push(net.light.service, SHARD, fresh(2, ephemeral=True))
        assert nobody.status_code == 505


async def test_the_archive_is_there_after_a_restart(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        await net.leaf.node.publish(fresh(1))
        await net.service.until_heard(1)
    async with served(tmp_path) as net:
        page = await net.light.store.query(
            net.light.service, StoreQueryRequest(request_id="1", include_data=True)
        )
        assert [entry.message.payload for entry in page.messages if entry.message] == [b"1 "]


async def test_a_websocket_address_serves_as_well(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        plain, websocket = net.service.node.addresses()
        assert "/ws/" in websocket
        assert "/ws/" not in plain
        host = TcpHost(b"W" * 32, [])
        await host.start()
        peer = await host.connect(websocket)
        assert STORE_QUERY_PROTOCOL in peer.protocols
        page = await StoreClient(host).query(peer.peer_id, StoreQueryRequest(request_id="1"))
        assert page.succeeded
        await host.stop()


def test_services_that_are_off_are_not_offered() -> None:
    async def scenario() -> None:
        async with Loopback() as net:
            plain = await net.node()
            async with light_node(plain.node.addresses()[0]) as light:
                (peer,) = light.host.peers()
                assert METADATA_PROTOCOL in peer.protocols
                assert not {LIGHTPUSH_PROTOCOL, STORE_QUERY_PROTOCOL, LEGACY_STORE_PROTOCOL} & set(
                    peer.protocols
                )

    asyncio.run(scenario())
    settings = replace(settings_of(1), services=ServiceSettings(store=all_services().store))
    with pytest.raises(ConfigError, match="archive"):
        asyncio.run(EmbeddedNode(settings).start())


async def test_a_node_for_everybody_relays_every_shard() -> None:
    async with Loopback() as net:
        settings = replace(settings_of(90), relayed_shards=tuple(range(8)))
        service = await net.node(settings=replace(settings, services=ALL_SERVICES_BUT_STORE))
        other = ContentTopic("/another/2/tests/proto")
        async with light_node(service.node.addresses()[0]) as light:
            shard = Sharding().pubsub_topic(other)
            assert shard != SHARD
            await light.filter.subscribe(light.service, shard, [other])
            message = structs.replace(fresh(1), content_topic=other)
            pushed = await light.lightpush.push(light.service, shard, message)
            assert pushed.status_code == 200
            await light.until_pushed(1)
    with pytest.raises(ConfigError, match="shard 8: there are 8"):
        replace(settings_of(1), relayed_shards=(8,))


async def test_nodes_of_different_clusters_do_not_stay_connected() -> None:
    async with Loopback() as net:
        ours = await net.node()
        other = await net.node(
            settings=NodeSettings(network_key=b"o" * 32, sharding=Sharding(cluster_id=7))
        )
        other.node.add_peers(ours.node.addresses())
        async with asyncio.timeout(PATIENCE_S):
            while not (  # noqa: ASYNC110 - a counter has no event
                other.node.counters().get("node.peer_refused")
                or ours.node.counters().get("node.peer_refused")
            ):
                await asyncio.sleep(0.01)
        await ours.until_peers(0)


async def test_a_message_pushed_twice_or_gossiped_before_is_passed_on_once(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        light = net.light
        await light.filter.subscribe(light.service, SHARD, [TOPIC])
        gossiped, pushed, last = fresh(1), fresh(2), fresh(3)
        await net.leaf.node.publish(gossiped)
        await light.until_pushed(1)
        for message in (gossiped, pushed, pushed, last):
            response = await light.lightpush.push(light.service, SHARD, message)
            assert response.status_code == 200
        await light.until_pushed(3)
        assert [heard.message for heard in light.inbox] == [gossiped, pushed, last]
        assert net.service.inbox == [1, 2, 3]


async def test_a_burst_through_gossip_reaches_filter_and_archive_whole(tmp_path: Path) -> None:
    async with served(tmp_path) as net:
        light, count = net.light, 3_000
        await light.filter.subscribe(light.service, SHARD, [TOPIC])
        for number in range(count):
            await net.leaf.node.publish(fresh(number))
        await light.until_pushed(count)
        numbers = [int(pushed.message.payload) for pushed in light.inbox]
        assert numbers == list(range(count))
        counters = net.service.node.counters()
        assert counters.get("filter.push_dropped", 0) == 0
        assert counters.get("store.dropped_queue_full", 0) == 0


SERVED_PROTOCOLS = (
    METADATA_PROTOCOL,
    FILTER_SUBSCRIBE_PROTOCOL,
    LIGHTPUSH_PROTOCOL,
    LEGACY_LIGHTPUSH_PROTOCOL,
    STORE_QUERY_PROTOCOL,
    LEGACY_STORE_PROTOCOL,
)


ONE_AT_A_TIME = ServedSettings(
    max_request_bytes=64 * 1024, gate=GateLimits(per_second=0.001, burst=1)
)
STRICT = ServiceSettings(
    filter=FilterSettings(service=ONE_AT_A_TIME),
    lightpush=LightpushSettings(service=ONE_AT_A_TIME),
    store=StoreSettings(service=ONE_AT_A_TIME, legacy_service=ONE_AT_A_TIME),
)


@pytest.mark.parametrize("protocol", SERVED_PROTOCOLS)
async def test_every_service_limits_each_peer_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: ProtocolId
) -> None:
    """The second request of one peer is refused, and the first of another is not."""
    monkeypatch.setattr(WakuMetadata, "settings", ONE_AT_A_TIME)

    async def ask_once(light: Light) -> None:
        await ask(light.host, light.service, protocol, b"", ExchangeLimits())

    async with served(tmp_path, STRICT) as net:
        address = net.service.node.addresses()[0]
        before = Counters()
        for name, amount in net.service.node.counters().items():
            before.add(name, amount)

        def counted(what: str) -> int:
            now = net.service.node.counters()
            return sum(
                amount - before[name] for name, amount in now.items() if name.endswith(f".{what}")
            )

        await ask_once(net.light)
        assert (counted("served"), counted("rate_limited")) == (1, 0)
        await ask_once(net.light)
        assert (counted("served"), counted("rate_limited")) == (1, 1)
        async with light_node(address, key=b"M" * 32) as other:
            await ask_once(other)
        assert (counted("served"), counted("rate_limited")) == (2, 1)


async def test_junk_at_every_service_costs_its_stream_and_no_more(tmp_path: Path) -> None:
    chance = random.Random(7)

    async def throw(host: TcpHost, peer: PeerId, protocol: ProtocolId) -> None:
        junk = chance.randbytes(chance.choice([0, 1, 5, 300]))
        framed = chance.choice([junk, bytes([len(junk) & 0x7F]) + junk])
        stream = await host.new_stream(peer, [protocol])
        with suppress(TransportError):
            await stream.write(framed)
            await stream.close_write()
            while await stream.read_some(65_536):
                pass
        await stream.reset()

    async with served(tmp_path) as net:
        light, counters = net.light, net.service.node.counters
        for protocol in SERVED_PROTOCOLS:
            for _ in range(40):
                async with asyncio.timeout(PATIENCE_S):
                    await throw(light.host, light.service, protocol)
        assert counters().get("libp2p.stream_handler_failed", 0) == 0
        pushed = await light.lightpush.push(light.service, SHARD, fresh(1))
        assert pushed.status_code == 200
        found = await light.store.query(light.service, StoreQueryRequest(request_id="1"))
        assert len(found.messages) == 1
