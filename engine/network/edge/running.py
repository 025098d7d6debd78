"""What an edge node has between start and stop: clients on one host, and their users."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from engine.codec.waku_filter import MAX_FILTER_RESPONSE_BYTES
from engine.codec.waku_lightpush import MAX_PUSH_RESPONSE_BYTES
from engine.codec.waku_metadata import Metadata
from engine.core.counters import Counters
from engine.network.edge.publishing import Publishing
from engine.network.edge.push_record import PushRecord
from engine.network.edge.service_nodes import ServiceNodes
from engine.network.edge.settings import EdgePace
from engine.network.edge.subscriptions import Subscriptions
from engine.network.libp2p.ports import Host, PeerId
from engine.network.waku.filter.client import FilterClient, Pushed
from engine.network.waku.lightpush.client import LightpushClient
from engine.network.waku.metadata import MetadataObserver, WakuMetadata
from engine.network.waku.service.exchange import ExchangeLimits


class EdgeObserver(MetadataObserver, Protocol):
    """Called on the loop; must neither block nor raise."""

    def nodes_changed(self) -> None:
        """Other service nodes than before hold our subscriptions."""


class EdgeParts(Struct, frozen=True, kw_only=True):
    """Parts that outlive a stop, for those that do not."""

    pace: EdgePace
    nodes: ServiceNodes
    counters: Counters
    deliver: Callable[[Pushed], None]
    own_metadata: Callable[[], Metadata]
    new_request_id: Callable[[], str]
    observer: EdgeObserver


class RunningEdge:
    def __init__(self, host: Host, parts: EdgeParts) -> None:
        self.host = host
        self._redial: dict[PeerId, asyncio.TimerHandle] = {}
        self._look: asyncio.TimerHandle | None = None
        pace = parts.pace
        limits = ExchangeLimits(
            first_byte_timeout_s=pace.request_timeout_s,
            timeout_s=pace.request_timeout_s,
            max_response_bytes=max(MAX_FILTER_RESPONSE_BYTES, MAX_PUSH_RESPONSE_BYTES),
        )
        self.filter = FilterClient(
            host,
            new_request_id=parts.new_request_id,
            deliver=self._take,
            counters=parts.counters,
            limits=limits,
        )
        self.subscriptions = Subscriptions(
            parts.nodes,
            self.filter,
            pace=pace,
            heard=PushRecord(pace.unheard_grace_s),
            deliver=parts.deliver,
            changed=parts.observer.nodes_changed,
            counters=parts.counters,
        )
        self.publishing = Publishing(
            parts.nodes,
            LightpushClient(host, new_request_id=parts.new_request_id, limits=limits),
            pace=pace,
            counters=parts.counters,
        )
        self.metadata = WakuMetadata(
            host, parts.own_metadata, counters=parts.counters, observer=parts.observer
        )

    def start(self) -> None:
        """Call before the host starts, so that no peer is missed."""
        self.filter.start()
        self.metadata.start()

    async def stop(self) -> None:
        for timer in self._redial.values():
            timer.cancel()
        if self._look is not None:
            self._look.cancel()
        await self.subscriptions.stop()
        await self.publishing.stop()
        await self.metadata.stop()
        await self.host.stop()

    def look_again(self, at_s: float | None, look: Callable[[], None]) -> None:
        """Schedule ``look`` for ``at_s``, replacing any earlier schedule; None cancels it."""
        if self._look is not None:
            self._look.cancel()
        loop = asyncio.get_running_loop()
        self._look = None if at_s is None else loop.call_at(at_s, look)

    def dial_again(self, peer_id: PeerId, addresses: list[str], after_s: float) -> None:
        waiting = self._redial.get(peer_id)
        if waiting is not None:
            waiting.cancel()
        loop = asyncio.get_running_loop()
        self._redial[peer_id] = loop.call_later(after_s, self.host.keep_connected, addresses)

    def _take(self, pushed: Pushed) -> None:
        self.publishing.pushed_back(pushed.message_hash, pushed.peer_id)
        self.subscriptions.take(pushed)
