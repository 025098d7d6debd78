"""A Store that lies: bad entries cost no page, broken rules refuse it, and the reason is named.

Both versions of the protocol; what an honest Store answers is tested beside the service.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from msgspec.structs import replace

from engine.codec.waku import encode_waku_message
from engine.codec.waku_history import encode_history_response
from engine.codec.waku_store import encode_store_response
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic
from engine.core.waku_store import (
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
from engine.network.waku.protocols import LEGACY_STORE_PROTOCOL, STORE_QUERY_PROTOCOL
from engine.network.waku.store.client import HistoryPage, StoreClient, StorePage
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import OTHER_TOPIC, PATIENT, SHARD, TOPIC, ServiceNet
from tests.network.waku.store_net import SOME_HASH, message

T = TypeVar("T")
INDEX = HistoryIndex(
    digest=bytes(32), receiver_time_ns=1, sender_time_ns=1, pubsub_topic=PubsubTopic("")
)
FILTERED = StoreQueryRequest(
    request_id="1", include_data=True, pubsub_topic=SHARD, content_topics=(TOPIC,)
)


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


async def queried(response: StoreQueryResponse, request: StoreQueryRequest = FILTERED) -> StorePage:
    return await answered(
        encode_store_response(response),
        STORE_QUERY_PROTOCOL,
        lambda client, server: client.query(server.peer_id, request),
    )


async def history_queried(response: HistoryResponse, query: HistoryQuery) -> HistoryPage:
    return await answered(
        encode_history_response(response),
        LEGACY_STORE_PROTOCOL,
        lambda client, server: client.query_history(server.peer_id, query),
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
async def test_one_bad_entry_costs_no_page(entry: StoreEntry, reason: str) -> None:
    response = StoreQueryResponse(request_id="1", messages=(good_entry(0), entry, good_entry(2)))

    page = await queried(response)
    assert page.refused == (reason,)
    assert len(page.messages) == 2


async def test_a_look_up_takes_no_message_that_it_did_not_name() -> None:
    response = StoreQueryResponse(request_id="1", messages=(good_entry(0), good_entry(1)))
    named = StoreQueryRequest(request_id="1", message_hashes=(good_entry(1).message_hash,))

    page = await queried(response, named)
    assert [entry.message_hash for entry in page.messages] == list(named.message_hashes)
    assert page.refused == ("store_entry_unasked",)


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
async def test_an_answer_that_breaks_the_rules_is_refused(
    response: StoreQueryResponse, reason: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        await queried(response, replace(FILTERED, pagination_cursor=SOME_HASH))


def test_a_meta_that_was_absent_may_come_back_empty() -> None:
    """From nwaku's archive; the hash is the same."""
    sent = message(1)
    kept = replace(sent, meta=b"")
    assert encode_waku_message(kept) != encode_waku_message(sent)
    entry = StoreEntry(
        message_hash=message_hash(SHARD, sent), data=encode_waku_message(kept), pubsub_topic=SHARD
    )
    response = StoreQueryResponse(request_id="1", status_code=200, messages=(entry,))
    page = asyncio.run(queried(response))
    assert page.refused == ()
    assert [found.message_hash for found in page.messages] == [message_hash(SHARD, sent)]


@pytest.mark.parametrize("request_id", ["", "N/A"])
async def test_an_error_may_bear_no_request_id(request_id: str) -> None:
    response = StoreQueryResponse(request_id=request_id, status_code=429, status_desc="slow down")

    assert (await queried(response)).status_code == 429


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (HistoryResponse(request_id="other"), "history_response_other_request"),
        (HistoryResponse(request_id="1", cursor=INDEX), "store_cursor_stuck"),
        (HistoryResponse(request_id="1", messages=(b"",) * 101), "history_page_too_long"),
    ],
)
async def test_a_history_answer_that_breaks_the_rules_is_refused(
    response: HistoryResponse, reason: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        await history_queried(response, HistoryQuery(request_id="1", cursor=INDEX))


async def test_bad_messages_of_a_history_are_left_out() -> None:
    good = encode_waku_message(message(1))
    unasked = encode_waku_message(message(1, topic=OTHER_TOPIC))
    response = HistoryResponse(request_id="1", messages=(b"\xff", good, unasked), page_size=3)

    page = await history_queried(response, HistoryQuery(request_id="1", content_topics=(TOPIC,)))
    assert page.refused == ("message_malformed", "store_entry_unasked")
    assert page.messages == (message(1),)
