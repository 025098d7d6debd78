"""Real js-waku light nodes against our node: filter, lightpush and store, as their code judges.

The light nodes are the library's own, dialling our node's WebSocket; beside them a node of ours
relays, so that what passes has crossed gossip as well.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.network.node.services import all_services
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL
from engine.network.waku.topics import Sharding, parse_pubsub_topic
from engine.persistence.archive_thread import ThreadedArchive
from tests.interop.js_waku import JsWaku, js_waku
from tests.network.node.loopback import TOPIC, Loopback, Node, settings_of
from tests.network.node.test_node_services import patient
from tests.patience import PATIENCE_S

SHARDING = Sharding()
SHARD = SHARDING.pubsub_topic(TOPIC)


@dataclass
class Net:
    service: Node
    leaf: Node
    js: JsWaku

    def websocket(self) -> str:
        (found,) = [each for each in self.service.node.addresses() if "/ws/" in each]
        return found

    async def start(self, *, cluster: int = SHARDING.cluster_id) -> None:
        await self.js.ask(
            "start",
            address=self.websocket(),
            cluster=cluster,
            shardCount=SHARDING.shard_count,
            shard=parse_pubsub_topic(SHARD).shard,
            topic=TOPIC,
        )

    async def light(self) -> None:
        await self.start()
        ready = await self.js.ask("ready", topic=TOPIC)
        assert ready["pubsubTopic"] == SHARD


def fresh(number: int, *, size: int = 0, topic: ContentTopic = TOPIC) -> WakuMessage:
    return WakuMessage(
        payload=b"%d " % number + b"x" * size,
        content_topic=topic,
        timestamp_ns=time.time_ns(),
    )


@asynccontextmanager
async def net_with(generation: str, place: Path) -> AsyncIterator[Net]:
    archive = await ThreadedArchive.open(place / "archive.db")
    try:
        async with Loopback() as loopback:
            settings = replace(settings_of(90), services=patient(all_services()), websocket_port=0)
            service = await loopback.node(settings=settings, archive=archive)
            leaf = await loopback.node(peers=service.node.addresses()[:1])
            await leaf.until_peers(1)
            await service.until_peers(1)
            async with js_waku(generation) as js:
                yield Net(service=service, leaf=leaf, js=js)
    finally:
        await archive.close()


async def test_what_we_relay_is_pushed_to_js_on_one_stream(tmp_path: Path) -> None:
    async with net_with("current", tmp_path) as net:
        await net.light()
        assert (await net.js.ask("subscribe"))["accepted"] is True
        for number in range(300):
            await net.leaf.node.publish(fresh(number))
        heard = (await net.js.ask("heard", count=300))["pushed"]
        assert [int(payload) for payload in heard] == list(range(300))
        looked = await net.js.ask("look")
        assert looked["streams"][FILTER_PUSH_PROTOCOL] == 1
        assert looked["connections"] == 1
        assert (await net.js.ask("unsubscribe"))["accepted"] is True
        await net.leaf.node.publish(fresh(999))
        await net.service.until_heard(301)
        assert len((await net.js.ask("heard", count=300))["pushed"]) == 300


async def test_a_burst_of_large_messages_reaches_js_whole(tmp_path: Path) -> None:
    async with net_with("current", tmp_path) as net:
        await net.light()
        await net.js.ask("subscribe")
        for number in range(20):
            await net.service.node.publish(fresh(number, size=40_000))
        heard = (await net.js.ask("heard", count=20))["pushed"]
        assert [payload.rstrip("x") for payload in heard] == [f"{n} " for n in range(20)]
        assert {len(payload) for payload in heard} <= {40_002, 40_003}


async def test_what_js_pushes_reaches_everybody(tmp_path: Path) -> None:
    """By either version of lightpush."""
    async with net_with("current", tmp_path) as net:
        await net.light()
        await net.js.ask("subscribe")
        for count, (number, use_legacy) in enumerate(((7, False), (8, True)), start=1):
            payload = f"{number} from js"
            pushed = await net.js.ask("push", payload=payload, useLegacy=use_legacy)
            assert pushed == {"successes": 1, "failures": []}
            await net.leaf.until_heard(count)
            assert net.leaf.inbox == net.service.inbox == [7, 8][:count]
            assert (await net.js.ask("heard", count=count))["pushed"][-1] == payload
            stored = await net.js.ask("query", forward=True, limit=20)
            assert stored["pages"] == [["7", "8"][:count]]


async def test_js_is_told_when_a_message_reaches_nobody(tmp_path: Path) -> None:
    """By either version of lightpush."""
    async with net_with("current", tmp_path) as net:
        await net.light()
        await net.leaf.node.stop()
        await net.service.until_peers(0)
        for use_legacy in (False, True):
            refused = await net.js.ask(
                "push", payload="7 from js", useLegacy=use_legacy, ephemeral=True
            )
            assert refused["successes"] == 0
            assert len(refused["failures"]) == 1


@pytest.mark.parametrize("generation", ["current", "legacy"], ids=["3.0.0", "2.0.0-beta4"])
async def test_js_reads_the_whole_history_once(tmp_path: Path, generation: str) -> None:
    """In both directions, and whether or not the last page is a full one."""
    async with net_with(generation, tmp_path) as net:
        await net.start()
        if generation == "current":
            await net.js.ask("ready", topic=TOPIC)
        for start, count in ((0, 40), (40, 45)):
            for number in range(start, count):
                await net.leaf.node.publish(fresh(number))
                await net.leaf.node.publish(
                    fresh(5_000 + number, topic=ContentTopic("/causerie/1/other/proto"))
                )
            await net.service.until_heard(count)
            for forward in (True, False):
                pages = (await net.js.ask("query", forward=forward, limit=20))["pages"]
                full, rest = divmod(count, 20)
                assert [len(page) for page in pages] == [20] * full + [5] * (rest > 0)
                ordered = pages if forward else pages[::-1]
                assert [int(n) for page in ordered for n in page] == list(range(count))


async def test_an_older_js_filters_and_pushes_too(tmp_path: Path) -> None:
    async with net_with("legacy", tmp_path) as net:
        await net.start()
        assert (await net.js.ask("subscribe"))["accepted"] is True
        await net.leaf.node.publish(fresh(1))
        pushed = await net.js.ask("push", payload="2 from js")
        assert pushed == {"successes": 1, "failures": []}
        await net.leaf.until_heard(1)
        heard = (await net.js.ask("heard", count=2))["pushed"]
        assert sorted(heard) == ["1 ", "2 from js"]


async def test_js_reads_pages_that_were_cut_by_their_bytes(tmp_path: Path) -> None:
    async with net_with("current", tmp_path) as net:
        for number in range(40):
            await net.service.node.publish(fresh(number, size=140_000))
        await net.light()
        pages = (await net.js.ask("query", forward=True, limit=100))["pages"]
        assert len(pages) == 2
        assert [int(n) for page in pages for n in page] == list(range(40))


async def test_js_looks_messages_up_by_our_hashes(tmp_path: Path) -> None:
    async with net_with("current", tmp_path) as net:
        sent = [fresh(number) for number in range(5)]
        for message in sent:
            await net.service.node.publish(message)
        await net.light()
        hashes = [message_hash(SHARD, sent[2]).hex()]
        assert (await net.js.ask("lookUp", hashes=hashes))["found"] == ["2 "]


async def test_js_of_another_cluster_does_not_stay(tmp_path: Path) -> None:
    async with net_with("current", tmp_path) as net:
        await net.start(cluster=7)
        counters = net.service.node.counters
        async with asyncio.timeout(PATIENCE_S):
            while not counters().get("node.peer_refused"):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.05)
            while (await net.js.ask("look"))["connections"]:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.05)
