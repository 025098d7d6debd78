"""Store in both versions over a real archive: pages, cursors, refusals, and a Store that lies."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.codec.waku import encode_waku_message
from engine.codec.waku_history import (
    decode_history_response,
    encode_history_query,
    encode_history_response,
)
from engine.codec.waku_store import (
    decode_store_response,
    encode_store_request,
    encode_store_response,
)
from engine.core.errors import RemoteProtocolError, StorageError
from engine.core.types import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_archive import (
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
    Ineligible,
    ineligibility,
)
from engine.core.waku_store import (
    HistoryError,
    HistoryIndex,
    HistoryQuery,
    HistoryResponse,
    StoreEntry,
    StoreQueryRequest,
    StoreQueryResponse,
)
from engine.network.libp2p.ports import ProtocolId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.message_hash import message_hash
from engine.network.waku.service_gate import GateLimits
from engine.network.waku.service_server import ServiceSettings
from engine.network.waku.store_archive import ArchiveIntake, IntakeSettings
from engine.network.waku.store_client import StoreClient
from engine.network.waku.store_server import (
    LEGACY_STORE_PROTOCOL,
    STORE_QUERY_PROTOCOL,
    StoreSettings,
    serve_store,
)
from engine.persistence.archive import Retention
from engine.persistence.archive_thread import ThreadedArchive
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import (
    PATIENT,
    SHARD,
    TOPIC,
    ServiceNet,
    exchange,
    until,
    waku_message,
)

NOW_NS = 1_800_000_000 * 10**9
SECOND_NS = 10**9
T = TypeVar("T")
OTHER_TOPIC = ContentTopic("/causerie/1/other/proto")
STOP_READING_BYTES = 4 * 1024 * 1024
"""Where it-length-prefixed, under js-waku, gives up."""


@dataclass
class Net:
    net: ServiceNet
    intake: ArchiveIntake
    server: MemoryHost
    host: MemoryHost
    client: StoreClient

    def add(self, message: WakuMessage, shard: PubsubTopic = SHARD) -> bool:
        return self.intake.offer(shard, message, encode_waku_message(message))

    def request(self) -> StoreQueryRequest:
        return StoreQueryRequest(request_id=self.net.new_request_id(), include_data=True)

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
        intake = ArchiveIntake(
            archive,
            intake_settings or IntakeSettings(),
            now_ns=lambda: NOW_NS,
            counters=net.counters,
        )
        intake.start()
        serve_store(server, intake.query, store_settings or StoreSettings(), net.counters)
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


def test_what_was_just_taken_in_is_found_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            first = message(1)
            assert net.add(first)
            page = await net.client.query(net.server.peer_id, net.request())
            (entry,) = page.messages
            assert entry.message == first
            assert (entry.message_hash, entry.pubsub_topic) == (message_hash(SHARD, first), SHARD)
            assert page.cursor is None

    asyncio.run(scenario())


@settings(max_examples=12, deadline=None)
@given(
    count=st.integers(0, 70),
    limit=st.integers(1, 30),
    forward=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_message_once_in_both_directions_and_versions(
    tmp_path_factory: pytest.TempPathFactory, count: int, limit: int, forward: bool, seed: int
) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path_factory.mktemp("store")) as net:
            stock = [message(number) for number in range(count)]
            for taken in random.Random(seed).sample(stock, count):
                assert net.add(taken)
                net.add(message(number=1_000 + numbers([taken])[0], topic=OTHER_TOPIC))
            pages = await net.all_pages(
                StoreQueryRequest(
                    request_id="1",
                    include_data=True,
                    pubsub_topic=SHARD,
                    content_topics=(TOPIC,),
                    pagination_forward=forward,
                    pagination_limit=limit,
                )
            )
            legacy = await net.all_history_pages(
                HistoryQuery(
                    request_id="1",
                    pubsub_topic=SHARD,
                    content_topics=(TOPIC,),
                    page_size=limit,
                    forward=forward,
                )
            )
        for found in (pages, legacy):
            assert sorted(numbers(flat(found))) == list(range(count))
            assert all(len(page) == limit for page in found[:-1])
            ordered = flat(found if forward else found[::-1])
            times = [taken.timestamp_ns or 0 for taken in ordered]
            assert times == sorted(times)

    asyncio.run(scenario())


def test_page_sizes_have_a_default_and_a_maximum(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            for number in range(150):
                net.add(message(number))
            peer = net.server.peer_id
            for asked, given_ in ((None, 20), (0, 20), (7, 7), (100, 100), (2**64 - 1, 100)):
                request = replace(net.request(), pagination_limit=asked)
                assert len((await net.client.query(peer, request)).messages) == given_
                history = HistoryQuery(request_id="1", page_size=asked or 0)
                assert len((await net.client.query_history(peer, history)).messages) == given_

    asyncio.run(scenario())


def test_large_messages_make_short_pages_that_every_client_can_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            for number in range(60):
                net.add(message(number, size=140_000))
            request = replace(net.request(), pagination_limit=100, pagination_forward=True)
            raw = await exchange(
                net.host,
                net.server.peer_id,
                STORE_QUERY_PROTOCOL,
                encode_store_request(request),
            )
            assert 2_000_000 < len(raw) < STOP_READING_BYTES
            assert decode_store_response(raw).pagination_cursor is not None
            assert numbers(flat(await net.all_pages(request))) != []
            assert sorted(numbers(flat(await net.all_pages(request)))) == list(range(60))
            legacy = await net.all_history_pages(
                HistoryQuery(request_id="1", page_size=100, forward=True)
            )
            assert sorted(numbers(flat(legacy))) == list(range(60))

    asyncio.run(scenario())


def test_presence_is_answered_with_hashes_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            for number in range(5):
                net.add(message(number))
            wanted = (message_hash(SHARD, message(2)), WakuHash(bytes(32)))
            request = StoreQueryRequest(request_id="1", message_hashes=wanted)
            for asked in (request, replace(request, pubsub_topic=SHARD)):
                page = await net.client.query(net.server.peer_id, asked)
                assert [entry.message_hash for entry in page.messages] == [wanted[0]]
                assert page.messages[0].message is None

    asyncio.run(scenario())


def test_times_are_inclusive(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            for number in range(12):
                net.add(message(number))
            start, end = NOW_NS + 1_000, NOW_NS + 2_000
            request = replace(net.request(), time_start_ns=start, time_end_ns=end)
            found = flat(await net.all_pages(request))
            assert sorted(numbers(found)) == [3, 4, 5, 6, 7, 8]
            legacy = HistoryQuery(request_id="1", start_time_ns=start, end_time_ns=end)
            assert sorted(numbers(flat(await net.all_history_pages(legacy)))) == [3, 4, 5, 6, 7, 8]

    asyncio.run(scenario())


SOME_HASH = WakuHash(b"h" * 32)
BAD_REQUESTS = {
    "hashes and topics": StoreQueryRequest(
        request_id="r", message_hashes=(SOME_HASH,), pubsub_topic=SHARD, content_topics=(TOPIC,)
    ),
    "hashes and times": StoreQueryRequest(
        request_id="r", message_hashes=(SOME_HASH,), time_start_ns=1
    ),
    "pubsub topic alone": StoreQueryRequest(request_id="r", pubsub_topic=SHARD),
    "content topics alone": StoreQueryRequest(request_id="r", content_topics=(TOPIC,)),
    "too many topics": StoreQueryRequest(
        request_id="r",
        pubsub_topic=SHARD,
        content_topics=tuple(ContentTopic(f"/a/1/{n}/b") for n in range(101)),
    ),
    "too many hashes": StoreQueryRequest(request_id="r", message_hashes=(SOME_HASH,) * 1_001),
    "cursor that is no hash": StoreQueryRequest(
        request_id="r", pagination_cursor=WakuHash(b"short")
    ),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_is_answered_with_400(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            raw = await exchange(
                net.host,
                net.server.peer_id,
                STORE_QUERY_PROTOCOL,
                encode_store_request(BAD_REQUESTS[name]),
            )
            response = decode_store_response(raw)
            assert (response.status_code, response.request_id) == (400, "r")
            assert response.status_desc

    asyncio.run(scenario())


def test_junk_is_answered_in_both_versions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            peer = net.server.peer_id
            raw = await exchange(net.host, peer, STORE_QUERY_PROTOCOL, b"\xff\xff")
            assert decode_store_response(raw).status_code == 400
            raw = await exchange(net.host, peer, LEGACY_STORE_PROTOCOL, b"\xff\xff")
            assert decode_history_response(raw).error == HistoryError.INVALID_CURSOR

    asyncio.run(scenario())


def test_an_unknown_cursor_is_an_error_in_both_versions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            net.add(message(1))
            peer = net.server.peer_id
            page = await net.client.query(
                peer, replace(net.request(), pagination_cursor=WakuHash(bytes(32)))
            )
            assert (page.status_code, page.succeeded, page.messages) == (300, False, ())
            index = HistoryIndex(
                digest=bytes(32), receiver_time_ns=1, sender_time_ns=1, pubsub_topic=SHARD
            )
            history = await net.client.query_history(
                peer, HistoryQuery(request_id="1", cursor=index)
            )
            assert (history.error, history.succeeded) == (HistoryError.INVALID_CURSOR, False)

    asyncio.run(scenario())


def test_a_history_answer_states_what_it_holds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            for number in range(5):
                net.add(message(number))
            for forward in (True, False):
                query = HistoryQuery(request_id="q", page_size=3, forward=forward)
                raw = await exchange(
                    net.host,
                    net.server.peer_id,
                    LEGACY_STORE_PROTOCOL,
                    encode_history_query(query),
                )
                response = decode_history_response(raw)
                assert (response.page_size, len(response.messages)) == (3, 3)
                assert response.forward is forward
                assert response.request_id == "q"
                assert response.cursor is not None

    asyncio.run(scenario())


def test_what_must_not_be_archived_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            late = NOW_NS - 21 * SECOND_NS
            assert not net.add(waku_message(1, timestamp_ns=NOW_NS, ephemeral=True))
            assert not net.add(waku_message(2))
            assert not net.add(waku_message(3, timestamp_ns=late))
            assert not net.add(waku_message(4, timestamp_ns=NOW_NS + 21 * SECOND_NS))
            assert (await net.client.query(net.server.peer_id, net.request())).messages == ()
            counters = net.net.counters
            assert counters["store.refused_ephemeral"] == 1
            assert counters["store.refused_no_timestamp"] == 1
            assert counters["store.refused_clock"] == 2

    asyncio.run(scenario())


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-30 * SECOND_NS, 30 * SECOND_NS))
@example(20 * SECOND_NS)
@example(-20 * SECOND_NS)
@example(20 * SECOND_NS + 1)
@example(-20 * SECOND_NS - 1)
def test_twenty_seconds_off_is_kept_and_no_more(offset_ns: int) -> None:
    verdict = ineligibility(waku_message(1, timestamp_ns=NOW_NS + offset_ns), now_ns=NOW_NS)
    if NOW_NS + offset_ns == 0:
        assert verdict is Ineligible.NO_TIMESTAMP
    else:
        assert (verdict is None) == (abs(offset_ns) <= 20 * SECOND_NS)
    ephemeral = waku_message(1, timestamp_ns=NOW_NS + offset_ns, ephemeral=True)
    assert ineligibility(ephemeral, now_ns=NOW_NS) is Ineligible.EPHEMERAL


def test_a_clock_that_refuses_everything_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with store_net(tmp_path) as net:
            suspected: list[bool] = []
            for number in range(25):
                net.add(waku_message(number, timestamp_ns=NOW_NS + 60 * SECOND_NS))
                net.add(waku_message(number, timestamp_ns=NOW_NS, ephemeral=True))
                suspected.append(net.intake.clock_suspect)
            assert suspected == [False] * 19 + [True] * 6
            assert net.add(message(1))
            assert not net.intake.clock_suspect

    asyncio.run(scenario())
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "clock: check it" in warning


def test_whoever_asks_too_often_is_told_429(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = ServiceSettings(
            max_request_bytes=65_536, gate=GateLimits(per_second=0.001, burst=1)
        )
        limited = StoreSettings(service=service, legacy_service=service)
        async with store_net(tmp_path, limited) as net:
            peer = net.server.peer_id
            assert (await net.client.query(peer, net.request())).status_code == 200
            refused = await net.client.query(peer, net.request())
            assert (refused.status_code, refused.succeeded) == (429, False)
            history = HistoryQuery(request_id="1")
            assert (await net.client.query_history(peer, history)).succeeded
            refused_history = await net.client.query_history(peer, history)
            assert refused_history.error == HistoryError.TOO_MANY_REQUESTS

    asyncio.run(scenario())


class BrokenArchive:
    """A disk that refuses as long as ``broken``."""

    def __init__(self) -> None:
        self.broken = True
        self.held: list[ArchivedMessage] = []

    def _check(self) -> None:
        if self.broken:
            raise StorageError("Cannot archive messages: the disk is full.")

    async def append(self, messages: Sequence[ArchivedMessage], /) -> int:
        self._check()
        self.held.extend(messages)
        return len(messages)

    async def query(self, _query: ArchiveQuery, /) -> ArchivePage:
        self._check()
        return ArchivePage()

    async def retain(self) -> int:
        self._check()
        return 0

    async def statistics(self) -> ArchiveStatistics:
        return ArchiveStatistics(messages=len(self.held), used_bytes=0)

    async def close(self) -> None: ...


def test_a_disk_that_refuses_loses_nothing_and_is_visible() -> None:
    async def scenario() -> None:
        async with ServiceNet() as net:
            server, host = await net.host("server"), await net.host("client")
            archive = BrokenArchive()
            intake = ArchiveIntake(
                archive,
                IntakeSettings(retry_s=0.01, batch=2),
                now_ns=lambda: NOW_NS,
                counters=net.counters,
            )
            serve_store(server, intake.query, StoreSettings(), net.counters)
            await host.connect("/memory/server")
            intake.start()
            sent = [message(number) for number in range(5)]
            for each in sent:
                assert intake.offer(SHARD, each, encode_waku_message(each))
            await until(lambda: intake.failing)
            client = StoreClient(host, limits=PATIENT)
            request = StoreQueryRequest(request_id="1")
            assert (await client.query(server.peer_id, request)).status_code == 503
            history = await client.query_history(server.peer_id, HistoryQuery(request_id="1"))
            assert history.error == HistoryError.SERVICE_UNAVAILABLE
            archive.broken = False
            await until(lambda: len(archive.held) == 5)
            assert [held.data for held in archive.held] == [encode_waku_message(m) for m in sent]
            assert not intake.failing
            await intake.stop()

    asyncio.run(scenario())


def test_the_queue_for_the_disk_is_bounded() -> None:
    async def scenario() -> None:
        async with ServiceNet() as net:
            for limits in (
                IntakeSettings(max_queued=3),
                IntakeSettings(max_queued_bytes=3 * 600),
            ):
                intake = ArchiveIntake(
                    BrokenArchive(), limits, now_ns=lambda: NOW_NS, counters=net.counters
                )
                taken = [
                    intake.offer(SHARD, message(n), encode_waku_message(message(n)))
                    for n in range(5)
                ]
                assert taken == [True] * 3 + [False] * 2
            assert net.counters["store.dropped_queue_full"] == 4

    asyncio.run(scenario())


def test_a_burst_waits_for_the_disk_and_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        small = IntakeSettings(max_queued=100, batch=20, patience_s=30)
        async with store_net(tmp_path, intake_settings=small) as net:
            for number in range(1_000):
                assert net.add(message(number))
                await net.intake.wait_for_room()
            assert net.net.counters["store.dropped_queue_full"] == 0

    asyncio.run(scenario())


def test_nobody_waits_for_a_disk_that_refuses() -> None:
    async def scenario() -> None:
        async with ServiceNet() as net:
            settings_ = IntakeSettings(max_queued=4, patience_s=30, retry_s=30)
            intake = ArchiveIntake(
                BrokenArchive(), settings_, now_ns=lambda: NOW_NS, counters=net.counters
            )
            intake.start()
            for number in range(8):
                intake.offer(SHARD, message(number), encode_waku_message(message(number)))
            await until(lambda: intake.failing)
            async with asyncio.timeout(10):
                await intake.wait_for_room()
            await intake.stop()

    asyncio.run(scenario())


def test_what_is_too_old_goes_while_the_node_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = [NOW_NS]
        archive = await ThreadedArchive.open(
            tmp_path / "archive.db",
            Retention(max_age_ns=60 * SECOND_NS),
            clock_ns=lambda: clock[0],
        )
        async with ServiceNet() as net:
            settings_ = IntakeSettings(retain_every_s=0.01)
            intake = ArchiveIntake(
                archive, settings_, now_ns=lambda: clock[0], counters=net.counters
            )
            intake.start()
            for number in range(5):
                intake.offer(SHARD, message(number), encode_waku_message(message(number)))
            await until(lambda: net.counters["store.archived"] == 5)
            clock[0] += 61 * SECOND_NS
            await until(lambda: net.counters["store.removed"] == 5)
            await intake.stop()
        assert (await archive.statistics()).messages == 0
        await archive.close()

    asyncio.run(scenario())


def test_stopping_writes_what_was_taken_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        archive = await ThreadedArchive.open(tmp_path / "archive.db", clock_ns=lambda: NOW_NS)
        async with ServiceNet() as net:
            intake = ArchiveIntake(
                archive, IntakeSettings(), now_ns=lambda: NOW_NS, counters=net.counters
            )
            intake.start()
            for number in range(1_200):
                intake.offer(SHARD, message(number), encode_waku_message(message(number)))
            await intake.stop()
            assert (await archive.statistics()).messages == 1_200
            assert net.counters["store.archived"] == 1_200
        await archive.close()

    asyncio.run(scenario())


# --- a Store that lies --------------------------------------------------------------------------


def good_entry(number: int) -> StoreEntry:
    sent = message(number)
    return StoreEntry(
        message_hash=message_hash(SHARD, sent), data=encode_waku_message(sent), pubsub_topic=SHARD
    )


async def answered(
    response: bytes, protocol: ProtocolId, ask: Callable[[StoreClient, MemoryHost], Awaitable[T]]
) -> T:
    async def lies(stream: Stream) -> None:
        await stream.write(encode_frame(response))
        await stream.close_write()

    async with ServiceNet() as net:
        server, host = await net.host("server"), await net.host("client")
        server.set_stream_handler(protocol, lies)
        await host.connect("/memory/server")
        return await ask(StoreClient(host, limits=PATIENT), server)


FILTERED = StoreQueryRequest(
    request_id="1", include_data=True, pubsub_topic=SHARD, content_topics=(TOPIC,)
)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (replace(good_entry(1), message_hash=SOME_HASH), "store_hash_mismatch"),
        (
            replace(good_entry(1), pubsub_topic=PubsubTopic("/waku/2/rs/42/9")),
            "store_hash_mismatch",
        ),
        (replace(good_entry(1), data=None), "store_entry_without_data"),
        (replace(good_entry(1), data=b"\xff"), "message_malformed"),
        (
            StoreEntry(
                message_hash=message_hash(SHARD, message(1, topic=OTHER_TOPIC)),
                data=encode_waku_message(message(1, topic=OTHER_TOPIC)),
                pubsub_topic=SHARD,
            ),
            "store_entry_unasked",
        ),
    ],
)
def test_one_bad_entry_costs_no_page(entry: StoreEntry, reason: str) -> None:
    response = encode_store_response(
        StoreQueryResponse(request_id="1", messages=(good_entry(0), entry, good_entry(2)))
    )

    async def scenario() -> None:
        page = await answered(
            response,
            STORE_QUERY_PROTOCOL,
            lambda client, server: client.query(server.peer_id, FILTERED),
        )
        assert page.refused == (reason,)
        assert len(page.messages) == 2

    asyncio.run(scenario())


def test_a_look_up_takes_no_message_that_it_did_not_name() -> None:
    response = encode_store_response(
        StoreQueryResponse(request_id="1", messages=(good_entry(0), good_entry(1)))
    )
    named = StoreQueryRequest(request_id="1", message_hashes=(good_entry(1).message_hash,))

    async def scenario() -> None:
        page = await answered(
            response,
            STORE_QUERY_PROTOCOL,
            lambda client, server: client.query(server.peer_id, named),
        )
        assert [entry.message_hash for entry in page.messages] == list(named.message_hashes)
        assert page.refused == ("store_entry_unasked",)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (StoreQueryResponse(request_id="other"), "store_response_other_request"),
        (StoreQueryResponse(request_id="1", pagination_cursor=SOME_HASH), "store_cursor_stuck"),
        (
            StoreQueryResponse(
                request_id="1", messages=(StoreEntry(message_hash=SOME_HASH),) * 101
            ),
            "store_page_too_long",
        ),
    ],
)
def test_an_answer_that_breaks_the_rules_is_refused(
    response: StoreQueryResponse, reason: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(RemoteProtocolError, match=reason):
            await answered(
                encode_store_response(response),
                STORE_QUERY_PROTOCOL,
                lambda client, server: client.query(
                    server.peer_id, replace(FILTERED, pagination_cursor=SOME_HASH)
                ),
            )

    asyncio.run(scenario())


@pytest.mark.parametrize("request_id", ["", "N/A"])
def test_an_error_may_bear_no_request_id(request_id: str) -> None:
    response = StoreQueryResponse(request_id=request_id, status_code=429, status_desc="slow down")

    async def scenario() -> None:
        page = await answered(
            encode_store_response(response),
            STORE_QUERY_PROTOCOL,
            lambda client, server: client.query(server.peer_id, FILTERED),
        )
        assert page.status_code == 429

    asyncio.run(scenario())


INDEX = HistoryIndex(
    digest=bytes(32), receiver_time_ns=1, sender_time_ns=1, pubsub_topic=PubsubTopic("")
)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (HistoryResponse(request_id="other"), "history_response_other_request"),
        (HistoryResponse(request_id="1", cursor=INDEX), "store_cursor_stuck"),
        (HistoryResponse(request_id="1", messages=(b"",) * 101), "history_page_too_long"),
    ],
)
def test_a_history_answer_that_breaks_the_rules_is_refused(
    response: HistoryResponse, reason: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(RemoteProtocolError, match=reason):
            await answered(
                encode_history_response(response),
                LEGACY_STORE_PROTOCOL,
                lambda client, server: client.query_history(
                    server.peer_id, HistoryQuery(request_id="1", cursor=INDEX)
                ),
            )

    asyncio.run(scenario())


def test_bad_messages_of_a_history_are_left_out() -> None:
    good = encode_waku_message(message(1))
    unasked = encode_waku_message(message(1, topic=OTHER_TOPIC))
    response = HistoryResponse(request_id="1", messages=(b"\xff", good, unasked), page_size=3)

    async def scenario() -> None:
        page = await answered(
            encode_history_response(response),
            LEGACY_STORE_PROTOCOL,
            lambda client, server: client.query_history(
                server.peer_id, HistoryQuery(request_id="1", content_topics=(TOPIC,))
            ),
        )
        refused = page.refused
        assert refused == ("message_malformed", "store_entry_unasked")
        assert page.messages == (message(1),)

    asyncio.run(scenario())
