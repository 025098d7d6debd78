"""What every conversation of a profile shares: disk, network, clock, and who is told."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.core.counters import Counters
from engine.core.ports import ProfileStore
from engine.core.types import ParticipantId, UnixMs
from engine.events import EngineEvent
from engine.network.transport import Transport
from engine.persistence.storage_thread import StorageThread


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every runner of a profile shares."""

    store: ProfileStore
    storage: StorageThread
    transport: Transport
    own_id: ParticipantId
    now_ms: Callable[[], UnixMs]
    publish: Callable[[EngineEvent], None]
    counters: Counters
