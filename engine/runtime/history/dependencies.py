"""History's dependencies: a network to ask Stores over, and where their messages go."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from engine.core.counters import Counters
from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.queries import HistoryMessage
from engine.core.ids import UnixMs
from engine.core.ports import ProfileStore
from engine.events import EngineEvent
from engine.network.stores.port import StoreNetwork
from engine.persistence.storage_thread import StorageThread
from engine.runtime.job_queue import JobInput
from engine.runtime.own_clock import OwnClock
from engine.runtime.recorded_queries import Recording
from engine.session.group.opening import OpenedPage

OpenPage: TypeAlias = Callable[[Sequence[HistoryMessage]], Awaitable[OpenedPage]]
"""Opens messages outside the session: a result for each, or none at all."""


class HistoryDependencies(Struct, frozen=True, kw_only=True):
    """The engine hands these to history."""

    network: StoreNetwork | None
    """None: no Stores are ever asked."""
    store: ProfileStore
    storage: StorageThread
    random_unit: RandomUnit
    publish: Callable[[EngineEvent], None]
    counters: Counters
    online: Callable[[], bool]
    config: HistoryConfig
    clock: OwnClock
    recording: Recording = field(default_factory=Recording)
    opening_command: Sequence[str] = ()
    """Runs ``engine.runtime.history.opening_process.serve``."""


class Sink(Protocol):
    """Where a backfill delivers messages: a conversation's runner, or the inbox."""

    async def feed(self, inputs: Sequence[JobInput], /) -> None:
        """Take messages and answers, in order.  Returns once the results are durable.

        Raises StorageError, or LocalProtocolError if the conversation is gone.
        """

    def more_to_come(self) -> AbstractContextManager[None]:
        """Within this, more is on its way to be fed, so what was fed may wait a little for it."""

    @property
    def waiting(self) -> int:
        """Received messages that wait for missing dependencies."""

    @property
    def arrived(self) -> int:
        """Readable messages that came from Stores."""

    @property
    def oldest_ms(self) -> UnixMs | None: ...

    @property
    def reads_since_ms(self) -> UnixMs | None:
        """Nothing from before can be read here; None: nothing is known to be withheld."""
