"""What the fillers of all conversations share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core.counters import Counters
from engine.core.history.config import HistoryConfig
from engine.core.history.types import StoreEnded, StoreNote, StoreRef
from engine.core.sds.types import RandomUnit
from engine.core.types import UnixMs
from engine.core.waku_store import HistoryIndex
from engine.history_views import HistoryView
from engine.network.stores.port import StoreNetwork
from engine.runtime.history.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class FillerParts:
    network: StoreNetwork
    turns: Turns
    config: HistoryConfig
    random_unit: RandomUnit
    now_ms: Callable[[], UnixMs]
    counters: Counters
    tell: Callable[[HistoryView], None]
    note: Callable[[Sequence[StoreNote]], None]
    """What is to be remembered of Stores after a query."""
    trouble: Callable[[StoreEnded], None]
    hear_index: Callable[[StoreRef, HistoryIndex], None]
    """When a Store says that it took a message in."""
    address_of: Callable[[StoreRef], str]
    """As the settings show it."""
