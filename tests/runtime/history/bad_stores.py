"""What Stores do wrong: archives that lie, and servers that do not answer."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from engine.core.counters import Counters
from engine.core.waku_archive import (
    Appended,
    ArchivedMessage,
    ArchivePage,
    ArchiveQuery,
    ArchiveStatistics,
)
from engine.network.libp2p.ports import Host, PeerId
from engine.network.waku.service.gate import GateLimits
from engine.network.waku.service.server import ServiceSettings, serve_requests
from engine.network.waku.store import server as store_server
from engine.network.waku.store.intake import Archive


class Honest:
    """Passes everything on."""

    def __init__(self, inner: Archive) -> None:
        self._inner = inner

    async def append(self, messages: Sequence[ArchivedMessage], /) -> Appended:
        return await self._inner.append(messages)

    async def query(self, query: ArchiveQuery, /) -> ArchivePage:
        return await self._inner.query(query)

    async def retain(self) -> int:
        return await self._inner.retain()

    async def statistics(self) -> ArchiveStatistics:
        return await self._inner.statistics()

    async def close(self) -> None:
        await self._inner.close()


class Garbled(store_server.StoreServer):
    """Bytes that are no answer."""

    async def respond(self, _peer_id: PeerId, _request: bytes, /) -> bytes:
        return b"\xff" * 40


class Silent(store_server.StoreServer):
    """It takes what it is asked, however much that is, and that is all."""

    @property
    def settings(self) -> ServiceSettings:
        gate = GateLimits(per_second=1_000, burst=1_000, at_once_per_peer=1_000, at_once=1_000)
        return replace(super().settings, gate=gate)

    async def respond(self, _peer_id: PeerId, _request: bytes, /) -> bytes:
        await asyncio.Event().wait()
        return b""


@contextmanager
def serving(
    bad: type[store_server.StoreServer] | None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Whatever node is started meanwhile serves its archive so; None: not at all."""

    def serve_badly(
        host: Host,
        query: store_server.QueryArchive,
        settings: store_server.StoreSettings,
        counters: Counters,
    ) -> None:
        if bad is not None:
            serve_requests(host, bad(query, settings, counters), counters)

    with monkeypatch.context() as patch:
        patch.setattr(store_server, "serve_store", serve_badly)
        yield
