"""Background work of a running profile: counters, node addresses, traffic figures, clean-up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping

from engine.core.counters import Counters
from engine.core.errors import ChatError
from engine.core.ids import UnixMs
from engine.core.ports import AddCounters, ProfileStore, PutNodeAddress
from engine.events import (
    ConnectionChanged,
    ConnectionLevel,
    ConnectionRole,
    ConnectionView,
    EngineEvent,
)
from engine.network.owned_tasks import OwnedTasks
from engine.network.transport import Transport, TransportStatus
from engine.persistence.storage_thread import StorageThread

COUNTERS_EVERY_MS = 60_000
TRAFFIC_EVERY_MS = 2_000
TRAFFIC_RARELY_MS = 16_000
"""While there is almost no traffic."""
NO_TRAFFIC_BYTES = 512
BREATHE_MS = 20
"""Pause between two steps of clean-up, so that other writes come first."""

logger = logging.getLogger(__name__)


def connection_view(status: TransportStatus) -> ConnectionView:
    return ConnectionView(
        level=ConnectionLevel(status.level.value),
        peers=status.peers,
        reason=status.reason,
        bytes_in=status.bytes_in,
        bytes_out=status.bytes_out,
        role=ConnectionRole(status.role.value),
        trouble=status.trouble,
    )


class Maintenance:
    """Owns the tasks that run as long as the profile does."""

    def __init__(
        self,
        *,
        storage: StorageThread,
        counters: Counters,
        publish: Callable[[EngineEvent], None],
        now_ms: Callable[[], UnixMs],
    ) -> None:
        self._storage = storage
        self._counters = counters
        self._publish = publish
        self._now_ms = now_ms
        self._persisted: Mapping[str, int] = {}
        self._tasks = OwnedTasks(counters, failed="engine.task_failed")
        self._clearing: asyncio.Task[None] | None = None

    def begin(self, store: ProfileStore, transport: Transport) -> None:
        self.own(self._keep_counters(store, transport))
        self.own(self._tell_traffic(transport))
        self.clear_removed(store)
        self.mark_muted(store)

    def own(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        return self._tasks.spawn(coroutine)

    async def stop(self) -> None:
        await self._tasks.cancel_all()

    # --- removed conversations ----------------------------------------------------------------

    def clear_removed(self, store: ProfileStore) -> None:
        """Delete the data of removed conversations in small steps, after any deletion that runs."""
        before = self._clearing if self._clearing and not self._clearing.done() else None
        self._clearing = self.own(self._clear_removed(store, before))

    async def _clear_removed(self, store: ProfileStore, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            is_more = True
            while is_more:
                is_more = await self._storage.run(store.clear_removed)
                await asyncio.sleep(BREATHE_MS / 1000 if is_more else 0)
        except ChatError as error:
            self._counters.add("engine.removal_not_finished")  # It continues at the next start.
            logger.warning("removal not finished", extra={"error": type(error).__name__})

    # --- muted members ------------------------------------------------------------------------

    def mark_muted(
        self, store: ProfileStore, then: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Hide the rows of muted members, or restore them, in small steps; then call ``then``."""
        self.own(self._mark_muted(store, then))

    async def _mark_muted(
        self, store: ProfileStore, then: Callable[[], Awaitable[None]] | None
    ) -> None:
        try:
            has_begun = False
            while await self._storage.run(store.mark_muted):
                has_begun = True
                await asyncio.sleep(BREATHE_MS / 1000)
            if has_begun and then is not None:
                await then()
        except ChatError as error:
            self._counters.add("engine.muting_not_finished")  # It continues at the next start.
            logger.warning("muting not finished", extra={"error": type(error).__name__})

    # --- addresses ----------------------------------------------------------------------------

    def remember(self, store: ProfileStore, multiaddr: str) -> None:
        write = PutNodeAddress(multiaddr=multiaddr, seen_ms=self._now_ms())
        self.own(self._remember(store, write))

    async def _remember(self, store: ProfileStore, write: PutNodeAddress) -> None:
        try:
            await self._storage.run(store.apply, [write])
        except ChatError as error:
            self._counters.add("engine.address_not_saved")
            logger.warning("an address was not saved", extra={"error": type(error).__name__})

    # --- counters -----------------------------------------------------------------------------

    def all_counters(self, transport: Transport | None) -> Mapping[str, int]:
        merged = dict(self._counters.snapshot())
        if transport is not None:
            merged.update(transport.counters())
        return merged

    async def save_counters(self, store: ProfileStore, transport: Transport | None) -> None:
        now = dict(self.all_counters(transport))
        amounts = {k: v - self._persisted.get(k, 0) for k, v in now.items()}
        amounts = {k: v for k, v in amounts.items() if v > 0}
        if amounts:
            await self._storage.run(store.apply, [AddCounters(amounts=amounts)])
        self._persisted = now

    async def _keep_counters(self, store: ProfileStore, transport: Transport) -> None:
        while True:
            await asyncio.sleep(COUNTERS_EVERY_MS / 1000)
            try:
                await self.save_counters(store, transport)
            except ChatError as error:
                logger.warning("counters were not saved", extra={"error": type(error).__name__})

    # --- traffic ------------------------------------------------------------------------------

    async def _tell_traffic(self, transport: Transport) -> None:
        """Publish traffic figures now and then.  Status changes are published elsewhere."""
        told, pause_ms = 0, TRAFFIC_EVERY_MS
        while True:
            await asyncio.sleep(pause_ms / 1000)
            view = connection_view(transport.status())
            fresh, told = view.bytes_in + view.bytes_out - told, view.bytes_in + view.bytes_out
            if fresh:
                self._publish(ConnectionChanged(connection=view))
            is_busy = abs(fresh) > NO_TRAFFIC_BYTES
            pause_ms = TRAFFIC_EVERY_MS if is_busy else min(2 * pause_ms, TRAFFIC_RARELY_MS)
