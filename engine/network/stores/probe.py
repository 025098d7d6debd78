"""Tests whether a Store can be used: dials, identifies, asks for its cluster and for two messages.

Its oldest message of ours shows how far back it goes.  The newest, by 2.0.0-beta4, compares its
clock with the senders'.  The Store thereby learns which content topics interest us, as it does from
any query.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import Final

from engine.codec.waku_metadata import (
    MAX_METADATA_BYTES,
    Metadata,
    decode_metadata,
    encode_metadata,
)
from engine.core.errors import ChatError, ConfigError, RemoteProtocolError
from engine.core.history.queries import MAX_QUERY_TOPICS, StoreVersion
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs
from engine.core.problems import (
    KEEPS_NO_MESSAGES,
    AnswersWrongly,
    NoAnswer,
    OtherCluster,
    Refuses,
    StoreProblem,
    unreachable,
)
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryQuery, StoreQueryRequest
from engine.network.libp2p.ports import ProtocolId
from engine.network.peers_by_protocol import Reached
from engine.network.stores.port import TestedStore
from engine.network.waku.protocols import METADATA_PROTOCOL
from engine.network.waku.service.exchange import ExchangeLimits, ask
from engine.network.waku.store.client import StoreClient
from engine.network.waku.topics import Sharding

NS_PER_MS: Final = 1_000_000
_CLOCK_SAMPLES: Final = 3


async def test_store(
    reach: Callable[[], Awaitable[Reached]],
    *,
    sharding: Sharding,
    content_topics: Sequence[ContentTopic],
    timeout_s: float,
    versions_of: Callable[[Sequence[ProtocolId]], tuple[StoreVersion, ...]],
) -> TestedStore:
    """Never raises because of the Store."""
    try:
        async with asyncio.timeout(timeout_s / 2):
            reached = await reach()
    except TimeoutError:
        return TestedStore(problem=NoAnswer(timeout_s / 2))
    except ConfigError:
        raise
    except ChatError as error:
        return TestedStore(problem=unreachable(error))
    versions = versions_of(reached.peer.protocols)
    problem: StoreProblem
    try:
        async with asyncio.timeout(timeout_s / 2):
            cluster = await _cluster(reached, sharding.cluster_id)
            if cluster is not None and cluster != sharding.cluster_id:
                problem = OtherCluster(cluster, sharding.cluster_id)
            elif not versions:
                problem = KEEPS_NO_MESSAGES
            else:
                return await _asked(reached, versions, cluster, sharding, content_topics)
    except TimeoutError:
        problem, cluster = NoAnswer(timeout_s / 2), None
    except RemoteProtocolError as error:
        problem, cluster = AnswersWrongly(error.reason), None
    except ChatError as error:
        problem, cluster = unreachable(error), None
    return TestedStore(problem=problem, reachable=True, versions=versions, cluster=cluster)


async def _cluster(reached: Reached, own: int) -> int | None:
    """None: unknown."""
    if METADATA_PROTOCOL not in reached.peer.protocols:
        return None
    request = encode_metadata(Metadata(cluster_id=own))
    limits = ExchangeLimits(max_response_bytes=MAX_METADATA_BYTES)
    answer = await ask(reached.host, reached.peer.peer_id, METADATA_PROTOCOL, request, limits)
    return decode_metadata(answer).cluster_id


async def _asked(
    reached: Reached,
    versions: tuple[StoreVersion, ...],
    cluster: int | None,
    sharding: Sharding,
    content_topics: Sequence[ContentTopic],
) -> TestedStore:
    """Raises ChatError."""
    some = tuple(content_topics) or (ContentTopic("/causerie/1/none/proto"),)
    shard = sharding.pubsub_topic(some[0])  # Open channels may be on others.
    topics = tuple(topic for topic in some if sharding.pubsub_topic(topic) == shard)
    asking = _Asking(reached, shard, topics[:MAX_QUERY_TOPICS])
    now_s = asyncio.get_running_loop().time
    begun_s = now_s()
    is_v3 = StoreVersion.V3 in versions
    problem, oldest = await (asking.oldest_of_v3() if is_v3 else asking.oldest_of_v2())
    round_trip_ms = round((now_s() - begun_s) * 1_000)
    clock_ahead_ms = None
    if not problem and StoreVersion.V2 in versions:
        clock_ahead_ms = await asking.clock_ahead_ms()
    return TestedStore(
        problem=problem,
        reachable=True,
        versions=versions,
        cluster=cluster,
        round_trip_ms=round_trip_ms,
        clock_ahead_ms=clock_ahead_ms,
        oldest_ms=_sent_ms(oldest),
    )


class _Asking:
    """Queries for pages of one message."""

    def __init__(
        self, reached: Reached, pubsub_topic: PubsubTopic, topics: tuple[ContentTopic, ...]
    ) -> None:
        self._client = StoreClient(reached.host)
        self._peer_id = reached.peer.peer_id
        self._pubsub_topic = pubsub_topic
        self._topics = topics

    async def oldest_of_v3(self) -> tuple[Refuses | None, WakuMessage | None]:
        request = StoreQueryRequest(
            request_id="test",
            include_data=True,
            pubsub_topic=self._pubsub_topic,
            content_topics=self._topics,
            pagination_forward=True,
            pagination_limit=1,
        )
        page = await self._client.query(self._peer_id, request)
        if not page.succeeded:
            said = f"{page.status_code} {page.status_desc[:100]}".strip()
            return Refuses(said), None
        return None, next((item.message for item in page.messages), None)

    async def oldest_of_v2(self) -> tuple[Refuses | None, WakuMessage | None]:
        page = await self._client.query_history(self._peer_id, self._history(forward=True))
        if not page.succeeded:
            return Refuses(str(page.error)), None
        return None, next(iter(page.messages), None)

    async def clock_ahead_ms(self) -> int | None:
        """From its cursors, which hold the times of sending and of receipt."""
        apart: list[int] = []
        query = self._history(forward=False)
        for _ in range(_CLOCK_SAMPLES):
            page = await self._client.query_history(self._peer_id, query)
            index = page.cursor
            if not page.succeeded or index is None or index.receiver_time_ns <= 0:
                break
            apart.append(index.receiver_time_ns - index.sender_time_ns)
            query = HistoryQuery(
                request_id="test",
                pubsub_topic=query.pubsub_topic,
                content_topics=query.content_topics,
                page_size=1,
                cursor=index,
                forward=False,
            )
        return round(median(apart) / NS_PER_MS) if apart else None

    def _history(self, *, forward: bool) -> HistoryQuery:
        return HistoryQuery(
            request_id="test",
            pubsub_topic=self._pubsub_topic,
            content_topics=self._topics,
            page_size=1,
            forward=forward,
        )


def _sent_ms(message: WakuMessage | None) -> UnixMs | None:
    if message is None or not message.timestamp_ns:
        return None
    return UnixMs(message.timestamp_ns // NS_PER_MS)
