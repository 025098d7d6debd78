"""A transport that announces its node on the local network and finds others there.

Discovery runs while the inner transport does; everything else is the inner transport's.
"""

import asyncio

from engine.network.discovery.discovery import BEGIN_AFTER_S, Discovery, Surface
from engine.network.transport import Transport
from engine.network.wrapped import WrappedTransport


class DiscoveringTransport(WrappedTransport):
    def __init__(
        self, inner: Transport, *, listen_host: str, begin_after_s: float = BEGIN_AFTER_S
    ) -> None:
        super().__init__(inner)
        self._listen_host = listen_host
        self._begin_after_s = begin_after_s
        self._discovery: Discovery | None = None

    async def start(self) -> None:
        await super().start()
        self._discovery = Discovery(
            Surface(addresses=self._inner.addresses, try_peers=self._inner.try_peers),
            listen_host=self._listen_host,
            counters=self._counters,
            begin_after_s=self._begin_after_s,
        )
        self._discovery.start()

    async def stop(self) -> None:
        discovery, self._discovery = self._discovery, None
        if discovery is None:
            await super().stop()
        else:  # stopped together, because a goodbye takes a moment
            await asyncio.gather(discovery.stop(), super().stop())
