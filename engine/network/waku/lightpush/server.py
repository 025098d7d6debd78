"""19/WAKU2-LIGHTPUSH, the service node: publishes for a peer that does not relay.

Both versions share one set of checks and differ in their encoding.  The message is relayed byte for
byte.  Some messages are refused because their sender would wrongly believe them safe: those that no
relay would forward, for topics this node does not relay, on a shard that autosharding would not
choose, or with a time that no Store would accept.  A well-formed message that reached no peer,
archive or subscriber is not a success either.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct, field

from engine.codec.waku import decode_waku_message
from engine.codec.waku_lightpush import (
    MAX_PUSH_REQUEST_BYTES,
    PushRequest,
    PushResponse,
    PushStatus,
    decode_legacy_request,
    decode_push_request,
    encode_legacy_response,
    encode_push_response,
)
from engine.codec.waku_rpc import NO_REQUEST_ID
from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.core.ids import PubsubTopic
from engine.core.waku import WakuMessage
from engine.core.waku_archive import Ineligible, ineligibility
from engine.network.libp2p.ports import Host, PeerId, ProtocolId
from engine.network.waku.peer_copies import until_it_goes_on
from engine.network.waku.protocols import LEGACY_LIGHTPUSH_PROTOCOL, LIGHTPUSH_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings, serve_requests
from engine.network.waku.topics import Sharding


class Published(Struct, frozen=True, kw_only=True):
    """``relay_peers`` took a copy from us; ``otherwise`` says whether anything else has one.

    That is an archive or a filter subscriber.
    """

    relay_peers: int
    otherwise: bool


Publish = Callable[[PeerId, PubsubTopic, WakuMessage, bytes], Awaitable[Published]]
"""Publishes on behalf of the given peer."""


class LightpushSettings(Struct, frozen=True, kw_only=True):
    service: ServiceSettings = field(
        default_factory=lambda: ServiceSettings(
            # Read a slightly oversized message too, so that its sender gets an answer.
            max_request_bytes=2 * MAX_PUSH_REQUEST_BYTES,
            gate=GateLimits(per_second=50, burst=500),
        )
    )


class LightpushServer:
    def __init__(  # noqa: PLR0913 - each is a different thing, and all are needed
        self,
        host: Host,
        settings: LightpushSettings,
        *,
        sharding: Sharding,
        relays: Callable[[PubsubTopic], bool],
        publish: Publish,
        now_ns: Callable[[], int],
        counters: Counters,
    ) -> None:
        """``relays`` says which topics this node is part of."""
        self._host = host
        self._settings = settings
        self._sharding = sharding
        self._relays = relays
        self._publish = publish
        self._now_ns = now_ns
        self._counters = counters

    def start(self) -> None:
        """Call before the host starts."""
        for version in (
            _Version(LIGHTPUSH_PROTOCOL, self, decode_push_request, encode_push_response),
            _Version(
                LEGACY_LIGHTPUSH_PROTOCOL, self, decode_legacy_request, encode_legacy_response
            ),
        ):
            serve_requests(self._host, version, self._counters)

    @property
    def settings(self) -> ServiceSettings:
        return self._settings.service

    async def handle(self, peer_id: PeerId, request: PushRequest) -> PushResponse:
        try:
            message = decode_waku_message(request.data)
            topic = self._topic_for(request.pubsub_topic, message)
        except RemoteProtocolError as error:
            self._counters.add(f"lightpush.{error.reason}")
            return _refused(request, _STATUS.get(error.reason, PushStatus.INVALID_MESSAGE), error)
        await until_it_goes_on(self._host, peer_id, is_out=False, topic=topic, data=request.data)
        if not message.payload:
            return _refused(request, PushStatus.INVALID_MESSAGE, "the payload is empty")
        if ineligibility(message, now_ns=self._now_ns()) is Ineligible.CLOCK:
            self._counters.add("lightpush.clock")
            return _refused(
                request, PushStatus.INVALID_MESSAGE, "the timestamp is more than 20 s off"
            )
        published = await self._publish(peer_id, topic, message, request.data)
        if not published.relay_peers and not published.otherwise:
            self._counters.add("lightpush.nobody")
            return _refused(request, PushStatus.NO_PEERS, "nobody is there to relay it to")
        self._counters.add("lightpush.published")
        return PushResponse(
            request_id=request.request_id,
            status_code=PushStatus.SUCCESS,
            relay_peer_count=published.relay_peers,
        )

    def unreadable(self, error: RemoteProtocolError) -> PushResponse:
        self._counters.add(f"lightpush.{error.reason}")
        too_large = error.reason == "push_request_oversized"
        status = PushStatus.PAYLOAD_TOO_LARGE if too_large else PushStatus.BAD_REQUEST
        # In 2.0.0-beta1, NO_REQUEST_ID would say that the peer asks too often.
        return PushResponse(request_id="", status_code=status, status_desc=str(error))

    def _topic_for(self, named: PubsubTopic | None, message: WakuMessage) -> PubsubTopic:
        """Raises RemoteProtocolError, for example ``lightpush_wrong_shard``."""
        derived = self._sharding.pubsub_topic(message.content_topic)
        if named is not None and named != derived and self._sharding.static_shard is None:
            raise RemoteProtocolError("lightpush_wrong_shard", f"its shard is {derived}")
        topic = named or derived
        if not self._relays(topic):
            raise RemoteProtocolError("lightpush_not_relayed", f"not relayed here: {topic}")
        return topic


_STATUS: Final = {
    "message_oversized": PushStatus.PAYLOAD_TOO_LARGE,
    "lightpush_wrong_shard": PushStatus.UNSUPPORTED_TOPIC,
    "lightpush_not_relayed": PushStatus.UNSUPPORTED_TOPIC,
}


class _Version(Struct, frozen=True):
    """One protocol id with its encoding."""

    protocol: ProtocolId
    server: LightpushServer
    decode: Callable[[bytes], PushRequest]
    encode: Callable[[PushResponse], bytes]
    name: str = "lightpush"

    @property
    def settings(self) -> ServiceSettings:
        return self.server.settings

    async def respond(self, peer_id: PeerId, request: bytes, /) -> bytes:
        try:
            decoded = self.decode(request)
        except RemoteProtocolError as error:
            return self.encode(self.server.unreadable(error))
        return self.encode(await self.server.handle(peer_id, decoded))

    def refuse(self, request: bytes, /) -> bytes:
        try:
            request_id = self.decode(request).request_id
        except RemoteProtocolError:
            request_id = NO_REQUEST_ID
        return self.encode(
            PushResponse(
                request_id=request_id,
                status_code=PushStatus.TOO_MANY_REQUESTS,
                status_desc="too many requests",
            )
        )


def _refused(request: PushRequest, status: PushStatus, reason: object) -> PushResponse:
    return PushResponse(request_id=request.request_id, status_code=status, status_desc=str(reason))
