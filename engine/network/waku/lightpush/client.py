"""19/WAKU2-LIGHTPUSH, the client: sends one message to one service node, in either version.

Version 3.0.0 is preferred where the peer speaks it.  A refusal is an answer, not an error: from its
status the caller decides whether to try another node or try again later.
"""

from collections.abc import Callable, Collection

from engine.codec.waku import encode_waku_message
from engine.codec.waku_lightpush import (
    MAX_PUSH_RESPONSE_BYTES,
    PushRequest,
    PushResponse,
    PushStatus,
    decode_legacy_response,
    decode_push_response,
    encode_legacy_request,
    encode_push_request,
)
from engine.core.errors import RemoteProtocolError, TransportError, TransportFault
from engine.core.ids import PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import Host, PeerId, ProtocolId
from engine.network.waku.peer_copies import until_it_goes_on
from engine.network.waku.protocols import LEGACY_LIGHTPUSH_PROTOCOL, LIGHTPUSH_PROTOCOL
from engine.network.waku.service.exchange import ExchangeLimits, ask


class LightpushClient:
    def __init__(
        self,
        host: Host,
        *,
        new_request_id: Callable[[], str],
        limits: ExchangeLimits | None = None,
    ) -> None:
        self._host = host
        self._new_request_id = new_request_id
        self._limits = limits or ExchangeLimits(max_response_bytes=MAX_PUSH_RESPONSE_BYTES)

    async def push(
        self, peer_id: PeerId, pubsub_topic: PubsubTopic, message: WakuMessage
    ) -> PushResponse:
        """Raises TransportError, RemoteProtocolError; LocalProtocolError if it cannot be sent."""
        request = PushRequest(
            request_id=self._new_request_id(),
            data=encode_waku_message(message),
            pubsub_topic=pubsub_topic,
        )
        await until_it_goes_on(
            self._host, peer_id, is_out=True, topic=pubsub_topic, data=request.data
        )
        spoken = self._spoken(peer_id)
        if LIGHTPUSH_PROTOCOL in spoken:
            response = decode_push_response(
                await self._ask(peer_id, LIGHTPUSH_PROTOCOL, encode_push_request(request))
            )
        elif LEGACY_LIGHTPUSH_PROTOCOL in spoken:
            response = decode_legacy_response(
                await self._ask(peer_id, LEGACY_LIGHTPUSH_PROTOCOL, encode_legacy_request(request))
            )
        else:
            raise TransportError(f"{peer_id} offers no lightpush", TransportFault.NO_PROTOCOL)
        if response.status_code == PushStatus.SUCCESS and response.request_id != request.request_id:
            raise RemoteProtocolError("push_response_other_request")
        return response

    def _spoken(self, peer_id: PeerId) -> Collection[ProtocolId]:
        peer = self._host.peer(peer_id)
        if peer is None:
            raise TransportError(f"{peer_id} is not connected", TransportFault.NOT_CONNECTED)
        return peer.protocols

    async def _ask(self, peer_id: PeerId, protocol: ProtocolId, request: bytes) -> bytes:
        return await ask(self._host, peer_id, protocol, request, self._limits)
