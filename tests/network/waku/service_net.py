"""Hosts in memory for services, all gone at the end, and the bytes to talk to them by hand."""

import asyncio
import itertools
from collections.abc import Callable, Sized
from typing import Self

from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.ids import ContentTopic, PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import PeerId, ProtocolId
from engine.network.waku.framing import FrameDecoder, encode_frame
from engine.network.waku.service.exchange import ExchangeLimits
from tests.network.waku.memory_host import MemoryHost, Wire
from tests.patience import PATIENCE_S

SHARD = PubsubTopic("/waku/2/rs/42/0")
TOPIC = ContentTopic("/causerie/1/tests/proto")
OTHER_TOPIC = ContentTopic("/causerie/1/other/proto")
PATIENT = ExchangeLimits(end_timeout_s=PATIENCE_S, max_response_bytes=300_000)
QUICK = replace(PATIENT, first_byte_timeout_s=0.1, timeout_s=0.2, end_timeout_s=0.01)
"""For peers that are known not to answer."""


def waku_message(
    number: int = 0,
    *,
    content_topic: ContentTopic = TOPIC,
    timestamp_ns: int | None = None,
    size: int = 0,
    ephemeral: bool | None = None,
) -> WakuMessage:
    return WakuMessage(
        payload=b"%d " % number + b"x" * size,
        content_topic=content_topic,
        timestamp_ns=timestamp_ns,
        ephemeral=ephemeral,
    )


class ServiceNet:
    def __init__(self) -> None:
        self.wire = Wire()
        self.hosts: list[MemoryHost] = []
        self.counters = Counters()
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for host in self.hosts:
            await host.stop()
        leftovers = asyncio.all_tasks() - {asyncio.current_task()}
        if kind is None:  # What failed first is what is to be seen.
            assert leftovers == set()

    def new_request_id(self) -> str:
        return f"request {next(self._numbers)}"

    async def host(self, name: str) -> MemoryHost:
        host = self.wire.host(name)
        self.hosts.append(host)
        await host.start()
        return host


async def exchange(host: MemoryHost, peer: PeerId, protocol: ProtocolId, request: bytes) -> bytes:
    """By hand: what comes back, whole, after ``request`` was sent as one frame."""
    return unframed(await exchange_raw(host, peer, protocol, encode_frame(request)))


async def exchange_raw(host: MemoryHost, peer: PeerId, protocol: ProtocolId, data: bytes) -> bytes:
    stream = await host.new_stream(peer, [protocol])
    await stream.write(data)
    await stream.close_write()
    answer = b""
    async with asyncio.timeout(PATIENCE_S):
        while chunk := await stream.read_some(65_536):
            answer += chunk
    return answer


def unframed(data: bytes) -> bytes:
    (frame,) = FrameDecoder(10_000_000).feed(data)
    return frame


async def until(condition: Callable[[], bool]) -> None:
    """Lets everybody else work until it is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - not everything that is waited for has an event
            await asyncio.sleep(0)


async def until_length(items: Sized, count: int) -> None:
    await until(lambda: len(items) == count)
