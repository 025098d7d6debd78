"""Store in both versions over a real archive: pages, cursors, presence, times and refusals.

What is archived at all is another module's, and so is a Store that lies to its client.
"""

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.codec.waku_history import decode_history_response, encode_history_query
from engine.codec.waku_store import decode_store_response, encode_store_request
from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku_store import HistoryError, HistoryIndex, HistoryQuery, StoreQueryRequest
from engine.network.waku.message_hash import message_hash
from engine.network.waku.protocols import LEGACY_STORE_PROTOCOL, STORE_QUERY_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings
from engine.network.waku.store.server import StoreSettings
from tests.network.waku.service_net import OTHER_TOPIC, SHARD, TOPIC
from tests.network.waku.store_net import NOW_NS, SOME_HASH, flat, message, numbers, store_net
from tests.network.waku.strict_reader import HISTORY_RESPONSE, STORE_RESPONSE, missing_fields

STOP_READING_BYTES = 4 * 1024 * 1024
"""Where it-length-prefixed, under js-waku, gives up."""


async def test_what_was_just_taken_in_is_found_at_once(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        first = message(1)
        assert net.add(first)
        page = await net.client.query(net.server.peer_id, net.request())
        (entry,) = page.messages
        assert entry.message == first
        assert (entry.message_hash, entry.pubsub_topic) == (message_hash(SHARD, first), SHARD)
        assert page.cursor is None


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


async def test_page_sizes_have_a_default_and_a_maximum(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        for number in range(150):
            net.add(message(number))
        peer = net.server.peer_id
        for asked, given_ in ((None, 20), (0, 20), (7, 7), (100, 100), (2**64 - 1, 100)):
            request = replace(net.request(), pagination_limit=asked)
            assert len((await net.client.query(peer, request)).messages) == given_
            history = HistoryQuery(request_id="1", page_size=asked or 0)
            assert len((await net.client.query_history(peer, history)).messages) == given_


async def test_large_messages_make_short_pages_that_every_client_can_read(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        for number in range(60):
            net.add(message(number, size=140_000))
        request = replace(
            net.request(),
            pubsub_topic=SHARD,
            content_topics=(TOPIC,),
            pagination_limit=100,
            pagination_forward=True,
        )
        raw = await net.by_hand(STORE_QUERY_PROTOCOL, encode_store_request(request))
        assert 2_000_000 < len(raw) < STOP_READING_BYTES
        assert decode_store_response(raw).pagination_cursor is not None
        assert numbers(flat(await net.all_pages(request))) != []
        assert sorted(numbers(flat(await net.all_pages(request)))) == list(range(60))
        legacy = await net.all_history_pages(
            HistoryQuery(request_id="1", page_size=100, forward=True)
        )
        assert sorted(numbers(flat(legacy))) == list(range(60))


async def test_presence_is_answered_with_hashes_alone(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        for number in range(5):
            net.add(message(number))
        wanted = (message_hash(SHARD, message(2)), WakuHash(bytes(32)))
        request = StoreQueryRequest(request_id="1", message_hashes=wanted)
        for asked in (request, replace(request, pubsub_topic=SHARD)):
            page = await net.client.query(net.server.peer_id, asked)
            assert [entry.message_hash for entry in page.messages] == [wanted[0]]
            assert page.messages[0].message is None


async def test_times_are_inclusive(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        for number in range(12):
            net.add(message(number))
        start, end = NOW_NS + 1_000, NOW_NS + 2_000
        request = replace(net.request(), time_start_ns=start, time_end_ns=end)
        found = flat(await net.all_pages(request))
        assert sorted(numbers(found)) == [3, 4, 5, 6, 7, 8]
        legacy = HistoryQuery(request_id="1", start_time_ns=start, end_time_ns=end)
        assert sorted(numbers(flat(await net.all_history_pages(legacy)))) == [3, 4, 5, 6, 7, 8]


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
async def test_a_bad_request_is_answered_with_400(tmp_path: Path, name: str) -> None:
    async with store_net(tmp_path) as net:
        raw = await net.by_hand(STORE_QUERY_PROTOCOL, encode_store_request(BAD_REQUESTS[name]))
        response = decode_store_response(raw)
        assert (response.status_code, response.request_id) == (400, "r")
        assert response.status_desc


async def test_junk_is_answered_in_both_versions(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        raw = await net.by_hand(STORE_QUERY_PROTOCOL, b"\xff\xff")
        assert decode_store_response(raw).status_code == 400
        raw = await net.by_hand(LEGACY_STORE_PROTOCOL, b"\xff\xff")
        assert decode_history_response(raw).error == HistoryError.INVALID_CURSOR


async def test_an_unknown_cursor_is_an_error_in_both_versions(tmp_path: Path) -> None:
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
        history = await net.client.query_history(peer, HistoryQuery(request_id="1", cursor=index))
        assert (history.error, history.succeeded) == (HistoryError.INVALID_CURSOR, False)


async def test_a_history_answer_states_what_it_holds(tmp_path: Path) -> None:
    async with store_net(tmp_path) as net:
        for number in range(5):
            net.add(message(number))
        for forward in (True, False):
            query = HistoryQuery(request_id="q", page_size=3, forward=forward)
            raw = await net.by_hand(LEGACY_STORE_PROTOCOL, encode_history_query(query))
            response = decode_history_response(raw)
            assert (response.page_size, len(response.messages)) == (3, 3)
            assert response.forward is forward
            assert response.request_id == "q"
            assert response.cursor is not None


async def test_whoever_asks_too_often_is_told_429(tmp_path: Path) -> None:
    service = ServiceSettings(max_request_bytes=65_536, gate=GateLimits(per_second=0.001, burst=1))
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


async def test_a_strict_reader_can_read_every_answer(tmp_path: Path) -> None:
    service = ServiceSettings(max_request_bytes=65_536, gate=GateLimits(per_second=0.001, burst=4))
    limited = StoreSettings(service=service, legacy_service=service)
    async with store_net(tmp_path, limited) as net:
        for number in range(3):
            net.add(message(number))
        page = StoreQueryRequest(request_id="r", include_data=True, pagination_limit=2)
        bad = replace(page, request_id="", pagination_cursor=SOME_HASH)
        requests = [
            encode_store_request(page),
            encode_store_request(bad),
            encode_store_request(BAD_REQUESTS["hashes and topics"]),
            b"\xff\xff",
            encode_store_request(page),
            b"\xff\xff",
        ]
        answers = [await net.by_hand(STORE_QUERY_PROTOCOL, each) for each in requests]
        assert [missing_fields(each, STORE_RESPONSE) for each in answers] == [[]] * 6
        ids = [decode_store_response(each).request_id for each in answers]
        assert ids == ["r", "", "r", "N/A", "r", "N/A"]

        history = HistoryQuery(request_id="r", page_size=2)
        unknown = HistoryIndex(
            digest=bytes(32), receiver_time_ns=1, sender_time_ns=1, pubsub_topic=SHARD
        )
        requests = [
            encode_history_query(history),
            encode_history_query(replace(history, request_id="", cursor=unknown)),
            b"\xff\xff",
            encode_history_query(replace(history, forward=False)),
            encode_history_query(history),
            b"\xff\xff",
        ]
        answers = [await net.by_hand(LEGACY_STORE_PROTOCOL, each) for each in requests]
        assert [missing_fields(each, HISTORY_RESPONSE) for each in answers] == [[]] * 6
        ids = [decode_history_response(each).request_id for each in answers]
        assert ids == ["r", "", "N/A", "r", "r", "N/A"]
