"""Serves a request-response protocol: gate, read, answer.  All Waku services run on this.

js-waku opens streams ahead of time and sends requests on them minutes later; some of its versions
treat a reset of an idle stream as an error of the service.  A stream may therefore stay silent as
long as its connection lasts.  Only the newest few per peer are kept, and the gate and the time
limit start with the first byte.

A service is a function from a request's bytes to an answer's; it must not raise because of a peer's
input.  Counts ``{name}.served``, ``.rate_limited``, ``.answers_over_budget`` and ``.busy``.
"""

import asyncio
from typing import Protocol

from msgspec import Struct, field

from engine.core.counters import Counters
from engine.core.errors import RemoteProtocolError
from engine.network.libp2p.ports import Host, PeerId, ProtocolId, Stream
from engine.network.waku.service.exchange import answer, first_bytes, read_request
from engine.network.waku.service.gate import GateLimits, ServiceGate
from engine.network.waku.token_buckets import TokenBuckets


class ServiceSettings(Struct, frozen=True, kw_only=True):
    max_request_bytes: int
    gate: GateLimits = field(default_factory=GateLimits)
    max_silent_streams: int = 8
    """Per peer; the oldest is dropped."""
    request_timeout_s: float = 10.0
    """From the first byte to the last."""
    answer_timeout_s: float = 30.0


class Service(Protocol):
    """What a server implements.  ``name`` prefixes its counters."""

    @property
    def name(self) -> str: ...

    @property
    def protocol(self) -> ProtocolId: ...

    @property
    def settings(self) -> ServiceSettings: ...

    async def respond(self, peer_id: PeerId, request: bytes, /) -> bytes:
        """The answer to a request, including one that is malformed."""

    def refuse(self, request: bytes, /) -> bytes:
        """The answer to a peer that asks too often; ``request`` is b"" if it was not even read."""


def serve_requests(
    host: Host, service: Service, counters: Counters, budget: TokenBuckets | None = None
) -> None:
    """Call before the host starts.  The host owns the streams' tasks.

    ``budget`` holds the bytes of answers that each peer may have; services may share one.  A peer
    that has anything left gets its next answer whole.
    """
    settings = service.settings
    gate = ServiceGate(settings.gate, lambda: asyncio.get_running_loop().time())
    silent = _SilentStreams(service, counters)

    async def response_to(stream: Stream, first: bytes) -> bytes:
        request = await read_request(
            stream,
            first,
            max_bytes=settings.max_request_bytes,
            timeout_s=settings.request_timeout_s,
        )
        if not gate.take(stream.peer_id):
            counters.add(f"{service.name}.rate_limited")
            return service.refuse(request)
        return await _respond(service, stream.peer_id, request, counters, budget)

    async def handle(stream: Stream) -> None:
        first = await silent.first_bytes_of(stream)
        with gate.enter(stream.peer_id) as admitted:
            try:
                if admitted:
                    response = await response_to(stream, first)
                else:
                    counters.add(f"{service.name}.busy")
                    response = service.refuse(b"")
            except RemoteProtocolError as error:
                counters.add(f"{service.name}.{error.reason}")
                await stream.reset()
                return
            await answer(stream, response, timeout_s=settings.answer_timeout_s)

    host.set_stream_handler(service.protocol, handle)


class _SilentStreams:
    """Those on which nothing was asked yet, by peer, the oldest first."""

    def __init__(self, service: Service, counters: Counters) -> None:
        self._most = service.settings.max_silent_streams
        self._too_many = f"{service.name}.too_many_silent_streams"
        self._counters = counters
        self._waiting: dict[PeerId, list[Stream]] = {}

    async def first_bytes_of(self, stream: Stream) -> bytes:
        waiting = self._waiting.setdefault(stream.peer_id, [])
        waiting.append(stream)
        if len(waiting) > self._most:
            self._counters.add(self._too_many)
            await waiting.pop(0).reset()
        try:
            return await first_bytes(stream)
        finally:
            if stream in waiting:
                waiting.remove(stream)
            if not waiting and self._waiting.get(stream.peer_id) is waiting:
                del self._waiting[stream.peer_id]


async def _respond(
    service: Service,
    peer_id: PeerId,
    request: bytes,
    counters: Counters,
    budget: TokenBuckets | None,
) -> bytes:
    if budget is not None and not budget.has_some(peer_id):
        counters.add(f"{service.name}.answers_over_budget")
        return service.refuse(request)
    counters.add(f"{service.name}.served")
    response = await service.respond(peer_id, request)
    if budget is not None:
        budget.spend(peer_id, len(response))
    return response
