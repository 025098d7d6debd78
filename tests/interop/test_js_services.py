"""Our clients of lightpush 3.0.0 and store 3.0.0 and a server with js-waku's codecs.

No release of js-waku or go-waku serves these two; see ``js_services.mjs`` for what of the server is
theirs: the host, every encoding, the message hash.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_store import StoreQueryRequest
from engine.network.libp2p.host import TcpHost
from engine.network.libp2p.ports import PeerId
from engine.network.waku.lightpush.client import LightpushClient
from engine.network.waku.message_hash import message_hash
from engine.network.waku.store.client import StoreClient, StorePage
from scripts import interop
from tests.interop.json_lines import PeerNode, peer_node

SCRIPT = Path(__file__).with_name("js_services.mjs")
PUBSUB = PubsubTopic("/waku/2/rs/42/4")
TOPIC, OTHER = ContentTopic("/causerie/1/one/proto"), ContentTopic("/causerie/1/other/proto")
BEGAN_NS = 1_700_000_000_000_000_000


def message(number: int, topic: ContentTopic = TOPIC) -> WakuMessage:
    return WakuMessage(
        payload=b"message %d" % number,
        content_topic=topic,
        timestamp_ns=BEGAN_NS + number,
        meta=b"m" if number % 2 else None,
        version=0,
    )


class Clients:
    def __init__(self, server: PeerNode, host: TcpHost) -> None:
        numbers: Iterator[int] = count()
        self.server = server
        self.peer_id = PeerId(server.peer_id)
        self.push = LightpushClient(host, new_request_id=lambda: f"push {next(numbers)}")
        self.store = StoreClient(host)

    async def push_all(self, messages: list[WakuMessage]) -> list[WakuHash]:
        for each in messages:
            response = await self.push.push(self.peer_id, PUBSUB, each)
            assert (response.status_code, response.relay_peer_count) == (200, 3)
        return [message_hash(PUBSUB, each) for each in messages]

    async def query(self, request: StoreQueryRequest) -> StorePage:
        page = await self.store.query(self.peer_id, request)
        assert page.refused == ()
        return page


@asynccontextmanager
async def clients() -> AsyncIterator[Clients]:
    interop.ensure()
    host = TcpHost(b"o" * 32, ())
    await host.start()
    try:
        command = (str(interop.node()), str(SCRIPT), str(interop.modules()))
        async with peer_node(*command) as server:
            await host.connect(server.addresses[0])
            yield Clients(server, host)
    finally:
        await host.stop()


def run(scenario: Callable[[Clients], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with clients() as those:
            await scenario(those)

    asyncio.run(whole())


def test_what_we_push_is_what_they_read() -> None:
    async def scenario(those: Clients) -> None:
        await those.push_all([message(1)])
        (request,) = (await those.server.ask("requests"))["requests"]
        assert request["requestId"] == "push 0"
        assert request["pubsubTopic"] == PUBSUB
        assert bytes.fromhex(request["message"]["payload"]) == b"message 1"
        assert request["message"]["contentTopic"] == TOPIC
        assert int(request["message"]["timestamp"]) == BEGAN_NS + 1
        assert bytes.fromhex(request["message"]["meta"]) == b"m"

    run(scenario)


def test_a_refusal_of_a_push_is_read_with_its_words() -> None:
    async def scenario(those: Clients) -> None:
        await those.server.ask("refuse", statusCode=429, statusDesc="too many")
        response = await those.push.push(those.peer_id, PUBSUB, message(1))
        assert (response.status_code, response.status_desc) == (429, "too many")

    run(scenario)


def test_what_they_keep_is_found_and_bears_the_same_hash() -> None:
    async def scenario(those: Clients) -> None:
        messages = [message(number) for number in range(4)]
        hashes = await those.push_all([*messages, message(9, OTHER)])
        page = await those.query(
            StoreQueryRequest(
                request_id="q",
                include_data=True,
                pubsub_topic=PUBSUB,
                content_topics=(TOPIC,),
                pagination_forward=True,
            )
        )
        assert [each.message for each in page.messages] == messages
        assert [each.message_hash for each in page.messages] == hashes[:4]
        assert page.cursor is None
        in_time = await those.query(
            StoreQueryRequest(
                request_id="t",
                include_data=True,
                pubsub_topic=PUBSUB,
                content_topics=(TOPIC,),
                time_start_ns=BEGAN_NS + 1,
                time_end_ns=BEGAN_NS + 2,
            )
        )
        assert [each.message for each in in_time.messages] == messages[1:3]

    run(scenario)


def test_pages_and_their_cursors_go_both_ways() -> None:
    async def scenario(those: Clients) -> None:
        hashes = await those.push_all([message(number) for number in range(7)])
        for forward in (True, False):
            pages: list[list[WakuHash]] = []
            cursor: WakuHash | None = None
            for _ in range(3):
                page = await those.query(
                    StoreQueryRequest(
                        request_id="p",
                        include_data=True,
                        pubsub_topic=PUBSUB,
                        content_topics=(TOPIC,),
                        pagination_cursor=cursor,
                        pagination_forward=forward,
                        pagination_limit=3,
                    )
                )
                pages.append([each.message_hash for each in page.messages])
                cursor = page.cursor
            assert cursor is None
            ordered = pages if forward else pages[::-1]
            assert [each for one in ordered for each in one] == hashes

    run(scenario)


def test_presence_is_asked_by_hash_and_an_unknown_cursor_is_an_answer() -> None:
    async def scenario(those: Clients) -> None:
        hashes = await those.push_all([message(number) for number in range(3)])
        unknown = WakuHash(b"u" * 32)
        page = await those.query(
            StoreQueryRequest(request_id="h", message_hashes=(hashes[2], unknown))
        )
        assert [each.message_hash for each in page.messages] == [hashes[2]]
        assert page.messages[0].message is None
        lost = await those.query(
            StoreQueryRequest(request_id="c", include_data=True, pagination_cursor=unknown)
        )
        assert lost.status_code == 300

    run(scenario)
