"""12/WAKU2-FILTER, the service node: keeps subscriptions to content topics and pushes messages.

A subscription lasts as long as its peer's connection, and only while the peer accepts pushes.  A
peer that comes back must subscribe again; the answer to its ping says so.  Everything is bounded:
peers, content topics per peer and per request, requests per second, and bytes queued for a peer.
Status codes are HTTP's, as in all implementations.
"""

import asyncio
from functools import partial

from msgspec import Struct, field

from engine.codec.waku_filter import (
    MAX_FILTER_REQUEST_BYTES,
    MAX_TOPICS_PER_REQUEST,
    FilterSubscribeRequest,
    FilterSubscribeResponse,
    FilterSubscribeType,
    MessagePush,
    decode_filter_request,
    encode_filter_response,
    encode_message_push,
)
from engine.codec.waku_rpc import NO_REQUEST_ID
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.network.libp2p.ports import Host, PeerId
from engine.network.owned_tasks import OwnedTasks
from engine.network.waku.filter.push import FilterPush, PushSettings
from engine.network.waku.peer_copies import goes_on
from engine.network.waku.protocols import FILTER_SUBSCRIBE_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings, serve_requests
from engine.network.waku.topics import parse_pubsub_topic

_Criterion = tuple[PubsubTopic, ContentTopic]


class FilterSettings(Struct, frozen=True, kw_only=True):
    max_peers: int = 200
    max_topics_per_peer: int = 1_000
    service: ServiceSettings = field(
        default_factory=lambda: ServiceSettings(
            max_request_bytes=MAX_FILTER_REQUEST_BYTES, gate=GateLimits(per_second=10, burst=100)
        )
    )
    push: PushSettings = field(default_factory=PushSettings)


class _Subscriber(Struct):
    push: FilterPush
    task: asyncio.Task[None]
    criteria: set[_Criterion] = field(default_factory=set)


class FilterServer:
    """One node's filter service.  Create a new one for every start."""

    name = "filter"
    protocol = FILTER_SUBSCRIBE_PROTOCOL

    def __init__(self, host: Host, settings: FilterSettings, *, counters: Counters) -> None:
        self._host = host
        self._limits = settings
        self._counters = counters
        self._subscribers: dict[PeerId, _Subscriber] = {}
        self._by_criterion: dict[_Criterion, set[PeerId]] = {}
        self._full: set[PeerId] = set()
        """Subscribers whose queue was above its soft limit when last checked."""
        self._tasks = OwnedTasks(counters, failed="filter.task_failed")
        self._running = False

    @property
    def settings(self) -> ServiceSettings:
        return self._limits.service

    @property
    def subscriber_count(self) -> int:
        return len(self._subscribers)

    def start(self) -> None:
        """Call before the host starts."""
        self._running = True
        serve_requests(self._host, self, self._counters)
        self._host.on_peer_disconnected(self._forget)

    async def stop(self) -> None:
        """Call before the host stops."""
        self._running = False
        for peer_id in list(self._subscribers):
            self._forget(peer_id)
        await self._tasks.cancel_all()

    def push(self, pubsub_topic: PubsubTopic, content_topic: ContentTopic, data: bytes) -> int:
        """Queue an encoded message for all its subscribers; return how many there are."""
        wanted_by = self._by_criterion.get((pubsub_topic, content_topic))
        if not wanted_by:
            return 0
        encoded = encode_message_push(MessagePush(data=data, pubsub_topic=pubsub_topic))
        taken = 0
        for peer_id in wanted_by:
            push = self._subscribers[peer_id].push
            go_on = partial(push.push, encoded)
            if goes_on(
                self._host, peer_id, is_out=True, topic=pubsub_topic, data=data, go_on=go_on
            ):
                taken += go_on()
            if not push.has_room:
                self._full.add(peer_id)
        self._counters.add("filter.pushed", taken)
        return taken

    async def wait_for_room(self) -> None:
        """Call this between pushes.  It waits briefly if subscribers need time to read."""
        for peer_id in tuple(self._full):
            subscriber = self._subscribers.get(peer_id)
            if subscriber is not None:
                await subscriber.push.wait_for_room()
            if subscriber is None or subscriber.push.has_room:
                self._full.discard(peer_id)

    # --- requests -------------------------------------------------------------------------------

    async def respond(self, peer_id: PeerId, request: bytes, /) -> bytes:
        try:
            decoded = decode_filter_request(request)
        except RemoteProtocolError as error:
            self._counters.add(f"filter.{error.reason}")
            return _response(NO_REQUEST_ID, 400, f"the request cannot be read: {error.reason}")
        status, text = self._handle(peer_id, decoded)
        return _response(decoded.request_id, status, text)

    def refuse(self, request: bytes, /) -> bytes:
        try:
            request_id = decode_filter_request(request).request_id or NO_REQUEST_ID
        except RemoteProtocolError:
            request_id = NO_REQUEST_ID
        return _response(request_id, 429, "too many requests")

    def _handle(self, peer_id: PeerId, request: FilterSubscribeRequest) -> tuple[int, str]:
        match request.filter_subscribe_type:
            case FilterSubscribeType.SUBSCRIBER_PING:
                return self._ping(peer_id)
            case FilterSubscribeType.SUBSCRIBE:
                return self._subscribe(peer_id, request)
            case FilterSubscribeType.UNSUBSCRIBE:
                return self._unsubscribe(peer_id, request)
            case FilterSubscribeType.UNSUBSCRIBE_ALL:
                answer = self._ping(peer_id)
                self._forget(peer_id)
                return answer

    def _ping(self, peer_id: PeerId) -> tuple[int, str]:
        if peer_id in self._subscribers:
            return 200, "OK"
        return 404, "this peer has no subscriptions"

    def _subscribe(self, peer_id: PeerId, request: FilterSubscribeRequest) -> tuple[int, str]:
        try:
            criteria = _criteria(request)
        except RemoteProtocolError as error:
            return 400, str(error)
        if not self._running or not self._is_connected(peer_id):
            return 503, "this node is stopping"
        subscriber = self._subscribers.get(peer_id)
        if subscriber is None and len(self._subscribers) >= self._limits.max_peers:
            self._counters.add("filter.too_many_peers")
            return 503, "this node serves as many subscribers as it can"
        held = set() if subscriber is None else subscriber.criteria
        if len(held | criteria) > self._limits.max_topics_per_peer:
            self._counters.add("filter.too_many_topics")
            return 503, f"at most {self._limits.max_topics_per_peer} content topics for one peer"
        if subscriber is None:
            subscriber = self._admit(peer_id)
        subscriber.criteria |= criteria
        for criterion in criteria:
            self._by_criterion.setdefault(criterion, set()).add(peer_id)
        return 200, "OK"

    def _unsubscribe(self, peer_id: PeerId, request: FilterSubscribeRequest) -> tuple[int, str]:
        try:
            criteria = _criteria(request)
        except RemoteProtocolError as error:
            return 400, str(error)
        subscriber = self._subscribers.get(peer_id)
        if subscriber is None:
            return self._ping(peer_id)
        gone = subscriber.criteria & criteria
        self._remove_criteria(peer_id, gone)
        subscriber.criteria -= gone
        if not subscriber.criteria:
            self._forget(peer_id)
        return 200, "OK"

    # --- subscribers ----------------------------------------------------------------------------

    def _is_connected(self, peer_id: PeerId) -> bool:
        """Without a connection, nothing would tell us when the peer is gone."""
        return self._host.peer(peer_id) is not None

    def _admit(self, peer_id: PeerId) -> _Subscriber:
        push = FilterPush(self._host, peer_id, settings=self._limits.push, counters=self._counters)
        task = self._tasks.spawn(push.run(), name=f"filter push to {peer_id}")
        subscriber = self._subscribers[peer_id] = _Subscriber(push=push, task=task)
        task.add_done_callback(lambda _task: self._given_up(peer_id, subscriber))
        return subscriber

    def _given_up(self, peer_id: PeerId, subscriber: _Subscriber) -> None:
        if self._subscribers.get(peer_id) is subscriber:
            self._counters.add("filter.subscriber_dropped")
            self._forget(peer_id)

    def _forget(self, peer_id: PeerId) -> None:
        if (subscriber := self._subscribers.pop(peer_id, None)) is not None:
            self._remove_criteria(peer_id, subscriber.criteria)
            subscriber.task.cancel()

    def _remove_criteria(self, peer_id: PeerId, criteria: set[_Criterion]) -> None:
        for criterion in criteria:
            wanted_by = self._by_criterion[criterion]
            wanted_by.discard(peer_id)
            if not wanted_by:
                del self._by_criterion[criterion]


def _criteria(request: FilterSubscribeRequest) -> set[_Criterion]:
    """Raises RemoteProtocolError for malformed criteria."""
    topic = request.pubsub_topic
    if topic is None or not request.content_topics:
        raise RemoteProtocolError("pubsub topic and content topics must both be given")
    if len(request.content_topics) > MAX_TOPICS_PER_REQUEST:
        raise RemoteProtocolError(f"at most {MAX_TOPICS_PER_REQUEST} content topics in a request")
    parse_pubsub_topic(topic)
    return {(topic, content_topic) for content_topic in request.content_topics}


def _response(request_id: str, status: int, text: str) -> bytes:
    return encode_filter_response(
        FilterSubscribeResponse(request_id=request_id, status_code=status, status_desc=text)
    )
