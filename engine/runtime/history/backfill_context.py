"""What the backfills of all conversations share."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.queries import StoreEnded, StoreNote, StoreRef
from engine.history_views import HistoryView
from engine.network.stores.port import StoreNetwork
from engine.runtime.own_clock import OwnClock


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillContext:
    network: StoreNetwork
    slots: asyncio.Semaphore
    config: HistoryConfig
    random_unit: RandomUnit
    clock: OwnClock
    counters: Counters
    tell: Callable[[HistoryView], None]
    note: Callable[[Sequence[StoreNote]], None]
    """Receives the notes about Stores after a query."""
    trouble: Callable[[StoreEnded], None]
    address_of: Callable[[StoreRef], str]
    """The Store's address as the settings show it."""
