"""12/WAKU2-FILTER, the client: asks a service node for content topics and accepts what it pushes.

A push is accepted only from a peer that confirmed a subscription to its topic; others are counted
and dropped.  The message is validated like any relayed one.  One call is one request: the caller
subscribes again, pings, and chooses service nodes.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from engine.codec.waku import decode_waku_message
from engine.codec.waku_filter import (
    MAX_FILTER_RESPONSE_BYTES,
    MAX_PUSH_BYTES,
    FilterSubscribeRequest,
    FilterSubscribeType,
    decode_filter_response,
    decode_message_push,
    encode_filter_request,
)
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ContentTopic, PubsubTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import Host, PeerId, Stream
from engine.network.waku.framing import FrameDecoder
from engine.network.waku.message_hash import message_hash
from engine.network.waku.peer_copies import goes_on
from engine.network.waku.protocols import FILTER_PUSH_PROTOCOL, FILTER_SUBSCRIBE_PROTOCOL
from engine.network.waku.service.exchange import ExchangeLimits, ask

_READ_BYTES: Final = 64 * 1024
_FRAMES_PER_SLICE: Final = 16
MAX_PUSH_STREAMS: Final = 200
"""Open at once, per peer.  go-waku opens one stream per message, all those of a burst at once, and
does not reopen a stream that was reset."""


class Pushed(Struct, frozen=True, kw_only=True):
    peer_id: PeerId
    pubsub_topic: PubsubTopic
    message: WakuMessage
    message_hash: WakuHash


class FilterAnswer(Struct, frozen=True, kw_only=True):
    """``status_code`` 2xx means done; 404 means that the node knows no subscription of ours."""

    status_code: int
    status_desc: str

    @property
    def accepted(self) -> bool:
        return self.status_code // 100 == 2  # noqa: PLR2004 - "in the 2xx range"


class FilterClient:
    """Subscriptions at any number of service nodes.  Create a new one for every start."""

    def __init__(
        self,
        host: Host,
        *,
        new_request_id: Callable[[], str],
        deliver: Callable[[Pushed], None],
        counters: Counters,
        limits: ExchangeLimits | None = None,
    ) -> None:
        """``deliver`` is called on the loop and must neither block nor raise."""
        self._host = host
        self._new_request_id = new_request_id
        self._deliver = deliver
        self._counters = counters
        self._limits = limits or ExchangeLimits(max_response_bytes=MAX_FILTER_RESPONSE_BYTES)
        self._subscribed: dict[PeerId, set[tuple[PubsubTopic, ContentTopic]]] = {}
        self._streams: dict[PeerId, int] = {}

    def start(self) -> None:
        """Call before the host starts."""
        self._host.set_stream_handler(FILTER_PUSH_PROTOCOL, self._serve)
        self._host.on_peer_disconnected(self._peer_disconnected)

    async def subscribe(
        self, peer_id: PeerId, pubsub_topic: PubsubTopic, content_topics: Sequence[ContentTopic]
    ) -> FilterAnswer:
        """Add to what the peer pushes.  Raises TransportError, RemoteProtocolError."""
        criteria = {(pubsub_topic, content_topic) for content_topic in content_topics}
        held = self._subscribed.setdefault(peer_id, set())
        added = criteria - held
        held |= added  # The first push may arrive before the answer.
        try:
            answered = await self._ask(
                peer_id, FilterSubscribeType.SUBSCRIBE, pubsub_topic, content_topics
            )
        except BaseException:
            self._take_back(peer_id, added)
            raise
        if not answered.accepted:
            self._take_back(peer_id, added)
        return answered

    async def ping(self, peer_id: PeerId) -> FilterAnswer:
        """Whether the peer still holds subscriptions of ours."""
        return await self._ask(peer_id, FilterSubscribeType.SUBSCRIBER_PING)

    async def unsubscribe(
        self, peer_id: PeerId, pubsub_topic: PubsubTopic, content_topics: Sequence[ContentTopic]
    ) -> FilterAnswer:
        self._take_back(
            peer_id, {(pubsub_topic, content_topic) for content_topic in content_topics}
        )
        return await self._ask(
            peer_id, FilterSubscribeType.UNSUBSCRIBE, pubsub_topic, content_topics
        )

    def _take_back(self, peer_id: PeerId, criteria: set[tuple[PubsubTopic, ContentTopic]]) -> None:
        held = self._subscribed.get(peer_id, set())
        held -= criteria
        if not held:
            self._subscribed.pop(peer_id, None)

    async def _ask(
        self,
        peer_id: PeerId,
        kind: FilterSubscribeType,
        pubsub_topic: PubsubTopic | None = None,
        content_topics: Sequence[ContentTopic] = (),
    ) -> FilterAnswer:
        request = FilterSubscribeRequest(
            request_id=self._new_request_id(),
            filter_subscribe_type=kind,
            pubsub_topic=pubsub_topic,
            content_topics=tuple(content_topics),
        )
        encoded = encode_filter_request(request)
        response = decode_filter_response(
            await ask(self._host, peer_id, FILTER_SUBSCRIBE_PROTOCOL, encoded, self._limits)
        )
        answered = FilterAnswer(status_code=response.status_code, status_desc=response.status_desc)
        if answered.accepted and response.request_id != request.request_id:
            raise RemoteProtocolError("filter_response_other_request")
        return answered

    def _peer_disconnected(self, peer_id: PeerId) -> None:
        self._subscribed.pop(peer_id, None)

    # --- pushes ---------------------------------------------------------------------------------

    async def _serve(self, stream: Stream) -> None:
        peer_id = stream.peer_id
        open_streams = self._streams.get(peer_id, 0)
        if peer_id not in self._subscribed or open_streams >= MAX_PUSH_STREAMS:
            self._counters.add("filter.push_stream_unwanted")
            await stream.reset()
            return
        self._streams[peer_id] = open_streams + 1
        try:
            await self._read(stream)
        finally:
            self._streams[peer_id] -= 1
            if not self._streams[peer_id]:
                del self._streams[peer_id]

    async def _read(self, stream: Stream) -> None:
        frames = FrameDecoder(MAX_PUSH_BYTES)
        while chunk := await stream.read_some(_READ_BYTES):
            for count, frame in enumerate(frames.feed(chunk), start=1):
                self._receive(stream.peer_id, frame)
                if count % _FRAMES_PER_SLICE == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)  # A fast peer must not starve the loop.

    def _receive(self, peer_id: PeerId, frame: bytes) -> None:
        try:
            push = decode_message_push(frame)
            message = decode_waku_message(push.data)
        except RemoteProtocolError as error:
            self._counters.add(f"filter.{error.reason}")
            return
        topic = self._topic_of(peer_id, push.pubsub_topic, message.content_topic)
        if topic is None:
            self._counters.add("filter.push_unasked")
            return
        self._counters.add("filter.push_received")
        pushed = Pushed(
            peer_id=peer_id,
            pubsub_topic=topic,
            message=message,
            message_hash=message_hash(topic, message),
        )
        go_on = partial(self._deliver, pushed)
        if goes_on(self._host, peer_id, is_out=False, topic=topic, data=push.data, go_on=go_on):
            go_on()

    def _topic_of(
        self, peer_id: PeerId, named: PubsubTopic | None, content_topic: ContentTopic
    ) -> PubsubTopic | None:
        """The topic subscribed to.  A push may leave it out where only one is possible."""
        held = self._subscribed.get(peer_id, set())
        possible = [topic for topic, wanted in held if wanted == content_topic]
        if named is not None:
            return named if named in possible else None
        return possible[0] if len(possible) == 1 else None
