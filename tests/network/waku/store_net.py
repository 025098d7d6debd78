"""A Store over a real archive, a client that asks it, and messages whose times are known.

For tests of the service, of what it takes in, and of clients that are lied to; what is archived is
archived in a file, what is asked goes through hosts in memory.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.core.counters import Counters
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryQuery, StoreQueryRequest
from engine.network.libp2p.ports import ProtocolId
from engine.network.waku.store.client import StoreClient
from engine.network.waku.store.intake import Archive, ArchiveIntake, IntakeSettings
from engine.network.waku.store.server import StoreSettings, serve_store
from engine.persistence.archive_thread import ThreadedArchive
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import PATIENT, SHARD, TOPIC, ServiceNet, exchange, waku_message

NOW_NS = 1_800_000_000 * 10**9
SECOND_NS = 10**9
SOME_HASH = WakuHash(b"h" * 32)


def intake_into(
    archive: Archive, counters: Counters, settings: IntakeSettings | None = None
) -> ArchiveIntake:
    return ArchiveIntake(
        archive, settings or IntakeSettings(), now_ns=lambda: NOW_NS, counters=counters
    )


def offer(intake: ArchiveIntake, sent: WakuMessage, shard: PubsubTopic = SHARD) -> bool:
    """Whether it was taken in."""
    return intake.offer(shard, sent, encode_waku_message(sent))


@dataclass
class Net:
    net: ServiceNet
    intake: ArchiveIntake
    server: MemoryHost
    host: MemoryHost
    client: StoreClient

    def add(self, message: WakuMessage, shard: PubsubTopic = SHARD) -> bool:
        return offer(self.intake, message, shard)

    def request(self) -> StoreQueryRequest:
        return StoreQueryRequest(request_id=self.net.new_request_id(), include_data=True)

    async def by_hand(self, protocol: ProtocolId, request: bytes) -> bytes:
        return await exchange(self.host, self.server.peer_id, protocol, request)

    async def all_pages(self, request: StoreQueryRequest) -> list[list[WakuMessage]]:
        pages: list[list[WakuMessage]] = []
        while True:
            page = await self.client.query(self.server.peer_id, request)
            assert page.succeeded
            assert page.refused == ()
            pages.append([entry.message for entry in page.messages if entry.message])
            if page.cursor is None:
                return pages
            request = replace(
                request, pagination_cursor=page.cursor, request_id=self.net.new_request_id()
            )

    async def all_history_pages(self, query: HistoryQuery) -> list[list[WakuMessage]]:
        pages: list[list[WakuMessage]] = []
        while True:
            page = await self.client.query_history(self.server.peer_id, query)
            assert page.succeeded
            assert page.refused == ()
            pages.append(list(page.messages))
            if page.cursor is None:
                return pages
            query = replace(query, cursor=page.cursor)


@asynccontextmanager
async def store_net(
    place: Path,
    store_settings: StoreSettings | None = None,
    intake_settings: IntakeSettings | None = None,
) -> AsyncIterator[Net]:
    async with ServiceNet() as net:
        server, host = await net.host("server"), await net.host("client")
        archive = await ThreadedArchive.open(place / "archive.db", clock_ns=lambda: NOW_NS)
        intake = intake_into(archive, net.counters, intake_settings)
        intake.start()
        serve_store(
            server,
            lambda query, _peer: intake.query(query),
            store_settings or StoreSettings(),
            net.counters,
        )
        await host.connect("/memory/server")
        limits = replace(PATIENT, max_response_bytes=8 * 1024 * 1024)
        client = StoreClient(host, limits=limits)
        try:
            yield Net(net=net, intake=intake, server=server, host=host, client=client)
        finally:
            await intake.stop()
            await archive.close()


def message(number: int, *, topic: ContentTopic = TOPIC, size: int = 0) -> WakuMessage:
    """Every three share a time."""
    return waku_message(
        number, content_topic=topic, timestamp_ns=NOW_NS + number // 3 * 1_000, size=size
    )


def numbers(messages: Sequence[WakuMessage]) -> list[int]:
    return [int(found.payload.split()[0]) for found in messages]


def flat(pages: Sequence[list[WakuMessage]]) -> list[WakuMessage]:
    return [found for page in pages for found in page]
