"""A transport whose node is found on the local network, and finds others there.

Everything is the inner transport's; while it runs, discovery runs beside it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from engine.core.counters import Counters
from engine.core.types import ContentTopic
from engine.core.waku import WakuMessage
from engine.network.discovery.discovery import BEGIN_AFTER_S, Discovery, Surface
from engine.network.stores.port import StoreNetwork
from engine.network.transport import (
    MessageHandler,
    PeerAddressHandler,
    Receipt,
    StatusHandler,
    Transport,
    TransportStatus,
)


class DiscoveringTransport:
    """See ``engine.network.transport.Transport`` for what each method promises."""

    def __init__(
        self, inner: Transport, *, listen_host: str, begin_after_s: float = BEGIN_AFTER_S
    ) -> None:
        self._inner = inner
        self._listen_host = listen_host
        self._begin_after_s = begin_after_s
        self._counters = Counters()
        self._discovery: Discovery | None = None

    async def start(self) -> None:
        await self._inner.start()
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
            await self._inner.stop()
        else:  # at once: saying goodbye takes a moment
            await asyncio.gather(discovery.stop(), self._inner.stop())

    async def publish(self, message: WakuMessage, /) -> Receipt:
        return await self._inner.publish(message)

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        return self._inner.subscribe(content_topic, handler)

    def status(self) -> TransportStatus:
        return self._inner.status()

    def on_status(self, handler: StatusHandler, /) -> Callable[[], None]:
        return self._inner.on_status(handler)

    def on_peer_address(self, handler: PeerAddressHandler, /) -> Callable[[], None]:
        return self._inner.on_peer_address(handler)

    def add_peers(self, multiaddrs: Sequence[str], /) -> None:
        self._inner.add_peers(multiaddrs)

    def try_peers(self, multiaddrs: Sequence[str], /) -> None:
        self._inner.try_peers(multiaddrs)

    def add_service_nodes(self, multiaddrs: Sequence[str], /) -> None:
        self._inner.add_service_nodes(multiaddrs)

    def addresses(self) -> Sequence[str]:
        return self._inner.addresses()

    def stores(self) -> StoreNetwork | None:
        return self._inner.stores()

    def counters(self) -> Mapping[str, int]:
        return dict(sorted({**self._inner.counters(), **self._counters.snapshot()}.items()))
