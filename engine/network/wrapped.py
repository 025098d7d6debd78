"""A transport around another one.  Every call goes to the inner transport unless overridden.

Discovery and the fault layer are such wrappers: each overrides one or two calls of
``engine.network.transport.Transport``.  A wrapper adds its own counters to the inner transport's
and keeps no other state.  Wrappers can be nested in any order.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from engine.core.counters import Counters
from engine.core.ids import ContentTopic
from engine.core.waku import WakuMessage
from engine.network.blobs.port import BlobNetwork
from engine.network.libp2p.ports import JudgeCopy
from engine.network.stores.port import StoreNetwork
from engine.network.transport import (
    MessageHandler,
    PeerAddressHandler,
    Receipt,
    StatusHandler,
    Transport,
    TransportStatus,
)
from engine.network.waku.topics import Sharding
from engine.network_views import NetworkFacts


class WrappedTransport:
    """See ``engine.network.transport.Transport`` for the contract of each method."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._counters = Counters()

    async def start(self) -> None:
        await self._inner.start()

    async def stop(self) -> None:
        await self._inner.stop()

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

    def cut_off(self, peers: Collection[str], /) -> None:
        self._inner.cut_off(peers)

    def judge_copies_by(self, judge: JudgeCopy | None, /) -> None:
        self._inner.judge_copies_by(judge)

    @property
    def sharding(self) -> Sharding:
        return self._inner.sharding

    def addresses(self) -> Sequence[str]:
        return self._inner.addresses()

    def stores(self) -> StoreNetwork | None:
        return self._inner.stores()

    def blobs(self) -> BlobNetwork | None:
        return self._inner.blobs()

    def counters(self) -> Mapping[str, int]:
        return dict(sorted({**self._inner.counters(), **self._counters.snapshot()}.items()))

    def facts(self) -> NetworkFacts:
        return self._inner.facts()
