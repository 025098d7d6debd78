"""What is injected into an engine: store, transport, clock and chance."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.core.entropy import Entropy
from engine.core.history.config import HistoryConfig
from engine.core.ids import UnixMs
from engine.core.ports import ProfileStore
from engine.core.sds.config import FloodLimits
from engine.delivery.recorder import Recorder
from engine.network.transport import Transport
from engine.runtime.own_clock import boot_time_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedStore:
    """What opening the profile's storage gives; ``key_storage`` is shown to the user."""

    store: ProfileStore
    key_storage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTransport:
    """What the profile remembers of its network: identity and the port it had."""

    network_key: bytes
    remembered_port: int | None
    now_ns: Callable[[], int] = time.time_ns
    """Our clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDependencies:
    """Everything that is injected into an engine.

    ``open_store`` runs on the storage thread.  ``port_of`` reads the port that a started transport
    listens on, None if it has none.
    """

    open_store: Callable[[], OpenedStore]
    make_transport: Callable[[SavedTransport], Transport]
    port_of: Callable[[Transport], int | None]
    entropy: Entropy
    now_ms: Callable[[], UnixMs]
    """The time of the system, which may be set at any moment."""
    counted_ms: Callable[[], int] = boot_time_ms
    """What goes on steadily, from anywhere: timers go by it."""
    peers: Sequence[str] = ()
    history: HistoryConfig = field(default_factory=HistoryConfig)
    """Limits and intervals of asking Stores."""
    flood: FloodLimits = field(default_factory=FloodLimits)
    """What one member of a group may send in a day."""
    recorder: Recorder | None = None
    """Where the user wants deliveries recorded."""
    service_nodes: Callable[[], Sequence[str]] = tuple
    """What groups that are created here travel with; the transport has them already."""


NO_IDENTITY = "there is no identity yet"
