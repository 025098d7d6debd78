"""Lightpush in both versions: what is published, what is refused, and with which status."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from engine.codec.waku import encode_waku_message
from engine.codec.waku_lightpush import (
    PushRequest,
    PushResponse,
    decode_legacy_response,
    decode_push_response,
    encode_legacy_request,
    encode_legacy_response,
    encode_push_request,
    encode_push_response,
)
from engine.core.errors import LocalProtocolError, RemoteProtocolError, TransportError
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import MAX_WAKU_MESSAGE_BYTES, WakuMessage
from engine.network.libp2p.ports import PeerId, ProtocolId, Stream
from engine.network.waku.framing import encode_frame
from engine.network.waku.lightpush.client import LightpushClient
from engine.network.waku.lightpush.server import LightpushServer, LightpushSettings, Published
from engine.network.waku.protocols import LEGACY_LIGHTPUSH_PROTOCOL, LIGHTPUSH_PROTOCOL
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings
from engine.network.waku.topics import Sharding
from tests.network.waku.memory_host import MemoryHost
from tests.network.waku.service_net import PATIENT, TOPIC, ServiceNet, exchange, waku_message
from tests.network.waku.strict_reader import (
    LEGACY_PUSH_RESPONSE,
    PUSH_RESPONSE,
    Required,
    missing_fields,
)

NOW_NS = 1_800_000_000 * 10**9
SECOND_NS = 10**9
SHARDING = Sharding()
SHARD = SHARDING.pubsub_topic(TOPIC)
BOTH = [LIGHTPUSH_PROTOCOL, LEGACY_LIGHTPUSH_PROTOCOL]


@dataclass
class Relayed:
    """Stands where the node's relay is."""

    outcome: Published = field(default_factory=lambda: Published(relay_peers=2, otherwise=False))
    messages: list[tuple[PubsubTopic, WakuMessage, bytes]] = field(default_factory=list)

    async def publish(
        self, _peer_id: PeerId, topic: PubsubTopic, message: WakuMessage, data: bytes
    ) -> Published:
        self.messages.append((topic, message, data))
        return self.outcome


@dataclass
class Net:
    net: ServiceNet
    server: MemoryHost
    host: MemoryHost
    client: LightpushClient
    relayed: Relayed

    async def by_hand(self, protocol: ProtocolId, request: PushRequest) -> PushResponse:
        if protocol == LIGHTPUSH_PROTOCOL:
            return await self.raw(protocol, encode_push_request(request))
        return await self.raw(protocol, encode_legacy_request(request))

    async def raw(self, protocol: ProtocolId, data: bytes) -> PushResponse:
        answer = await exchange(self.host, self.server.peer_id, protocol, data)
        decode = decode_push_response if protocol == LIGHTPUSH_PROTOCOL else decode_legacy_response
        return decode(answer)


@asynccontextmanager
async def lightpush_net(
    settings: LightpushSettings | None = None, sharding: Sharding = SHARDING
) -> AsyncIterator[Net]:
    async with ServiceNet() as net:
        server, host = await net.host("server"), await net.host("client")
        relayed = Relayed()
        LightpushServer(
            server,
            settings or LightpushSettings(),
            sharding=sharding,
            relays=lambda topic: topic == SHARD,
            publish=relayed.publish,
            now_ns=lambda: NOW_NS,
            counters=net.counters,
        ).start()
        await host.connect("/memory/server")
        client = LightpushClient(host, new_request_id=net.new_request_id, limits=PATIENT)
        yield Net(net=net, server=server, host=host, client=client, relayed=relayed)


def message(*, offset_s: float = 0, size: int = 0, topic: ContentTopic = TOPIC) -> WakuMessage:
    timestamp_ns = NOW_NS + int(offset_s * SECOND_NS)
    return waku_message(1, content_topic=topic, timestamp_ns=timestamp_ns, size=size)


@pytest.mark.parametrize("protocol", BOTH)
async def test_a_pushed_message_is_published_as_the_bytes_that_came(protocol: ProtocolId) -> None:
    async with lightpush_net() as net:
        data = encode_waku_message(message()) + bytes([21 << 3 & 0x7F | 2 | 0x80, 1, 2, 9, 9])
        response = await net.by_hand(
            protocol, PushRequest(request_id="r", data=data, pubsub_topic=SHARD)
        )
        assert (response.status_code, response.request_id) == (200, "r")
        assert net.relayed.messages == [(SHARD, message(), data)]
        if protocol == LIGHTPUSH_PROTOCOL:
            assert response.relay_peer_count == 2


@pytest.mark.parametrize("protocol", BOTH)
async def test_the_node_derives_the_shard_if_none_is_named(protocol: ProtocolId) -> None:
    async with lightpush_net() as net:
        request = PushRequest(request_id="r", data=encode_waku_message(message()))
        assert (await net.by_hand(protocol, request)).status_code == 200
        assert net.relayed.messages[0][0] == SHARD


OTHER = PubsubTopic("/waku/2/rs/42/7")
REFUSED: list[tuple[str, PushRequest, int]] = [
    ("junk", PushRequest(request_id="r", data=b"\xff", pubsub_topic=SHARD), 420),
    ("no content topic", PushRequest(request_id="r", data=b"", pubsub_topic=SHARD), 420),
    (
        "strange content topic",
        PushRequest(
            request_id="r", data=encode_waku_message(message(topic=ContentTopic("strange")))
        ),
        420,
    ),
    (
        "wrong shard",
        PushRequest(request_id="r", data=encode_waku_message(message()), pubsub_topic=OTHER),
        421,
    ),
    (
        "future",
        PushRequest(request_id="r", data=encode_waku_message(message(offset_s=20.1))),
        420,
    ),
    (
        "past",
        PushRequest(request_id="r", data=encode_waku_message(message(offset_s=-20.1))),
        420,
    ),
    (
        "no payload",
        PushRequest(
            request_id="r",
            data=encode_waku_message(
                WakuMessage(payload=b"", content_topic=TOPIC, timestamp_ns=NOW_NS)
            ),
        ),
        420,
    ),
    ("oversized", PushRequest(request_id="r", data=bytes(MAX_WAKU_MESSAGE_BYTES + 1)), 413),
    ("far oversized", PushRequest(request_id="r", data=bytes(MAX_WAKU_MESSAGE_BYTES * 2)), 413),
]


@pytest.mark.parametrize("protocol", BOTH)
@pytest.mark.parametrize(("name", "request_", "status"), REFUSED, ids=[case[0] for case in REFUSED])
async def test_what_is_refused_says_why(
    protocol: ProtocolId, name: str, request_: PushRequest, status: int
) -> None:
    async with lightpush_net() as net:
        response = await net.by_hand(protocol, request_)
        assert response.status_code == (status if protocol == LIGHTPUSH_PROTOCOL else 500), name
        assert response.status_desc
        assert net.relayed.messages == []


async def test_a_shard_that_is_not_relayed_here_is_refused() -> None:
    async with lightpush_net(sharding=Sharding(static_shard=3)) as net:
        request = PushRequest(
            request_id="r", data=encode_waku_message(message()), pubsub_topic=OTHER
        )
        assert (await net.by_hand(LIGHTPUSH_PROTOCOL, request)).status_code == 421
        named = PushRequest(request_id="r", data=encode_waku_message(message()), pubsub_topic=SHARD)
        assert (await net.by_hand(LIGHTPUSH_PROTOCOL, named)).status_code == 200


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Published(relay_peers=0, otherwise=False), 505),
        (Published(relay_peers=0, otherwise=True), 200),
        (Published(relay_peers=1, otherwise=False), 200),
    ],
)
async def test_a_message_that_nobody_took_is_no_success(outcome: Published, status: int) -> None:
    async with lightpush_net() as net:
        net.relayed.outcome = outcome
        response = await net.client.push(net.server.peer_id, SHARD, message())
        assert response.status_code == status


@pytest.mark.parametrize("protocol", BOTH)
async def test_junk_instead_of_a_request_is_a_bad_request(protocol: ProtocolId) -> None:
    async with lightpush_net() as net:
        assert (await net.raw(protocol, b"\xff\xff")).status_code in (400, 500)
        assert net.net.counters["lightpush.push_request_malformed"] == 1


@pytest.mark.parametrize("protocol", BOTH)
async def test_whoever_pushes_too_often_is_refused(protocol: ProtocolId) -> None:
    gate = GateLimits(per_second=0.001, burst=1)
    service = ServiceSettings(max_request_bytes=400_000, gate=gate)
    async with lightpush_net(LightpushSettings(service=service)) as net:
        request = PushRequest(request_id="r", data=encode_waku_message(message()))
        assert (await net.by_hand(protocol, request)).status_code == 200
        refused = await net.by_hand(protocol, request)
        assert refused.status_code == (429 if protocol == LIGHTPUSH_PROTOCOL else 500)
        assert (refused.request_id, refused.status_desc) == ("r", "too many requests")


@pytest.mark.parametrize(
    ("protocol", "encode", "required"),
    [
        (LIGHTPUSH_PROTOCOL, encode_push_request, PUSH_RESPONSE),
        (LEGACY_LIGHTPUSH_PROTOCOL, encode_legacy_request, LEGACY_PUSH_RESPONSE),
    ],
)
async def test_a_strict_reader_can_read_every_answer(
    protocol: ProtocolId, encode: Callable[[PushRequest], bytes], required: Required
) -> None:
    service = ServiceSettings(max_request_bytes=400_000, gate=GateLimits(per_second=0.001, burst=4))
    async with lightpush_net(LightpushSettings(service=service)) as net:
        data = encode_waku_message(message())
        late = encode_waku_message(message(offset_s=-30))
        requests = [
            encode(PushRequest(request_id="r", data=data)),
            encode(PushRequest(request_id="r", data=late)),
            encode(PushRequest(request_id="", data=late)),
            b"\xff\xff",
            encode(PushRequest(request_id="r", data=data)),
            b"\xff\xff",
        ]
        answers = [
            await exchange(net.host, net.server.peer_id, protocol, each) for each in requests
        ]
        assert [missing_fields(each, required) for each in answers] == [[]] * len(answers)
        decode = decode_push_response if protocol == LIGHTPUSH_PROTOCOL else decode_legacy_response
        ids = [decode(each).request_id for each in answers]
        assert ids == ["r", "r", "", "", "r", "N/A"]
        assert net.net.counters["lightpush.rate_limited"] == 2


async def test_the_client_takes_the_newest_version_that_the_peer_speaks() -> None:
    async with lightpush_net() as net:
        peer = net.server.peer_id
        assert (await net.client.push(peer, SHARD, message())).relay_peer_count == 2
        del net.server.handlers[LIGHTPUSH_PROTOCOL]
        assert (await net.client.push(peer, SHARD, message())).relay_peer_count is None
        assert len(net.relayed.messages) == 2
        del net.server.handlers[LEGACY_LIGHTPUSH_PROTOCOL]
        with pytest.raises(TransportError, match="no lightpush"):
            await net.client.push(peer, SHARD, message())
        await net.host.disconnect(peer)
        with pytest.raises(TransportError, match="not connected"):
            await net.client.push(peer, SHARD, message())


async def test_the_client_sends_nothing_that_cannot_travel() -> None:
    async with lightpush_net() as net:
        with pytest.raises(LocalProtocolError):
            await net.client.push(net.server.peer_id, SHARD, message(size=MAX_WAKU_MESSAGE_BYTES))
        largest = await net.client.push(
            net.server.peer_id, SHARD, message(size=MAX_WAKU_MESSAGE_BYTES - 100)
        )
        assert largest.status_code == 200


@pytest.mark.parametrize(
    ("protocol", "encode"),
    [
        (LIGHTPUSH_PROTOCOL, encode_push_response),
        (LEGACY_LIGHTPUSH_PROTOCOL, encode_legacy_response),
    ],
)
async def test_a_success_for_another_request_is_none(
    protocol: ProtocolId, encode: Callable[[PushResponse], bytes]
) -> None:
    async def lies(stream: Stream) -> None:
        await stream.write(encode_frame(encode(PushResponse(request_id="x", status_code=200))))
        await stream.close_write()

    async with lightpush_net() as net:
        net.server.handlers.clear()
        net.server.set_stream_handler(protocol, lies)
        with pytest.raises(RemoteProtocolError, match="other_request"):
            await net.client.push(net.server.peer_id, SHARD, message())
