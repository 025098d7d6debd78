"""A bad network on top of any transport: loses, delays, duplicates and reorders incoming copies.

Faults apply to each **incoming** copy and to nothing else.  When every participant has this layer,
each copy passes it exactly once, at its receiver, and losses at different receivers are
independent, as on a real network.  If outgoing copies were disturbed too, a loss of 0.3 would
become 0.51.  Publishing and its receipt pass unchanged: a sender never learns of later losses.
Requests for chunks of files have faults of their own: some break off.

Each fault is counted under ``faults.``.  The policy is ``engine.core.faults``.  Waiting uses the
injected ``call_later``, so virtual time works as well.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from engine.core.ids import ContentTopic, WakuHash
from engine.core.waku import WakuMessage
from engine.network.blobs.faulty import FaultyBlobs
from engine.network.blobs.port import BlobNetwork
from engine.network.handlers import TopicHandlers
from engine.network.transport import MessageHandler, Transport
from engine.network.wrapped import WrappedTransport

MAX_PENDING = 10_000
"""Copies waiting at once; more are lost and counted."""


class Cancellable(Protocol):
    def cancel(self) -> None: ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Cancellable]
"""``call_later(delay_s, callback)``, as an asyncio loop has it."""


class Plan(Protocol):
    """``engine.core.faults.FaultPlan``."""

    def delays_ms(self) -> tuple[int, ...]: ...

    def resets(self) -> bool: ...


class FaultyTransport(WrappedTransport):
    """Wraps ``inner``; several subscriptions to one topic share each copy's fate."""

    def __init__(
        self, inner: Transport, plan: Plan, *, call_later: CallLater | None = None
    ) -> None:
        super().__init__(inner)
        self._plan = plan
        self._call_later = call_later
        self._subscriptions = TopicHandlers()
        self._unsubscribe_inner: dict[ContentTopic, Callable[[], None]] = {}
        self._pending: dict[object, Cancellable] = {}

    async def stop(self) -> None:
        """Waiting copies are lost: nothing is delivered after this."""
        for timer in self._pending.values():
            timer.cancel()
        if self._pending:
            self._counters.add("faults.lost_at_stop", len(self._pending))
            self._pending.clear()
        await super().stop()

    def blobs(self) -> BlobNetwork | None:
        inner = super().blobs()
        return None if inner is None else FaultyBlobs(inner, self._plan.resets)

    def subscribe(
        self, content_topic: ContentTopic, handler: MessageHandler, /
    ) -> Callable[[], None]:
        if content_topic not in self._subscriptions:
            self._unsubscribe_inner[content_topic] = super().subscribe(content_topic, self._arrived)
        remove = self._subscriptions.add(content_topic, handler)

        def unsubscribe() -> None:
            remove()
            undo = self._unsubscribe_inner.get(content_topic)
            if undo is not None and content_topic not in self._subscriptions:
                del self._unsubscribe_inner[content_topic]
                undo()

        return unsubscribe

    def _arrived(self, message: WakuMessage, waku_hash: WakuHash) -> bool:
        """Return True for delayed copies: whether they pass is not known yet."""
        passed = True
        delays_ms = self._plan.delays_ms()
        if not delays_ms:
            self._counters.add("faults.lost")
        if len(delays_ms) > 1:
            self._counters.add("faults.doubled")
        for delay_ms in delays_ms:
            if delay_ms <= 0:
                passed = self._subscriptions.deliver(message, waku_hash)
            elif len(self._pending) >= MAX_PENDING:
                self._counters.add("faults.lost_too_many_waiting")
            else:
                self._counters.add("faults.delayed")
                self._deliver_later(message, waku_hash, delay_ms)
        return passed

    def _deliver_later(self, message: WakuMessage, waku_hash: WakuHash, delay_ms: int) -> None:
        token = object()

        def due() -> None:
            self._pending.pop(token, None)
            self._subscriptions.deliver(message, waku_hash)

        call_later = self._call_later or asyncio.get_running_loop().call_later
        self._pending[token] = call_later(delay_ms / 1_000, due)
