"""What is injected into an engine: store, transport, clocks, entropy and limits."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from engine.core.entropy import Entropy
from engine.core.history.config import HistoryConfig
from engine.core.ids import UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import ProfileStore
from engine.core.sds.config import FloodLimits
from engine.delivery.recorder import Recorder
from engine.network.transport import Transport
from engine.runtime.files.disk import FilesSettings
from engine.runtime.own_clock import boot_time_ms
from engine.session.pair.factory import PAIR_CONFIG


class OpenedStore(Struct, frozen=True, kw_only=True):
    """The profile's opened storage; ``key_storage`` is shown to the user."""

    store: ProfileStore
    key_storage: str


class SavedTransport(Struct, frozen=True, kw_only=True):
    """The network identity and port that the profile saved."""

    network_key: bytes
    remembered_port: int | None
    now_ns: Callable[[], int] = time.time_ns
    """Our clock, in Unix nanoseconds."""


class EngineDependencies(Struct, frozen=True, kw_only=True):
    """Everything that is injected into an engine.

    ``open_store`` runs on the storage thread.  ``port_of`` returns the port of a started transport,
    or None if it listens on none.
    """

    open_store: Callable[[], OpenedStore]
    make_transport: Callable[[SavedTransport], Transport]
    port_of: Callable[[Transport], int | None]
    entropy: Entropy
    now_ms: Callable[[], UnixMs]
    """The system's time, which may be set at any moment."""
    counted_ms: Callable[[], int] = boot_time_ms
    """A steady counter with any origin; timers use it."""
    peers: Sequence[str] = ()
    history: HistoryConfig = field(default_factory=HistoryConfig)
    """Limits and intervals of Store queries."""
    opening_command: Sequence[str] = ()
    """Runs ``engine.runtime.history.opening_process.serve``; empty: no other process is used."""
    flood: FloodLimits = field(default_factory=FloodLimits)
    """Daily quota of each member of a group."""
    mvds: MvdsConfig = PAIR_CONFIG
    """How one-to-one conversations are synchronised."""
    pairs_by_olm: bool = True
    """False: as a program does that does not know Olm; for tests and benchmarks."""
    recorder: Recorder | None = None
    """Set if the user records deliveries."""
    mentions_when_muted: Callable[[], bool] = lambda: True
    """Whether a message that mentions us rings in a muted conversation, too."""
    announces_presence: Callable[[], bool] = lambda: True
    """Whether people we talk to are told that we are online."""
    files: FilesSettings | None = None
    """Where files beyond MAX_FILE_BYTES are kept; None: they are neither sent nor fetched."""
    service_nodes: Callable[[], Sequence[str]] = tuple
    """Service nodes listed in new groups' invitations; the transport knows them already."""


NO_IDENTITY = "there is no identity yet"
