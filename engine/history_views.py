"""Read models and events of history: Stores, fetches and lost messages.

They complement ``engine.events``.  Problems of Stores appear here as codes, for the settings; none
interrupts the user, and None means that there is no problem.
"""

from enum import StrEnum

from msgspec import Struct

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.problems import HistoryProblem, StoreProblem

# --- Stores -------------------------------------------------------------------------------------


class StoreOrigin(StrEnum):
    USER = "user"
    """Named in the settings: has a place and can be moved, disabled and removed."""
    FOUND = "found"
    """A connected peer that serves the Store protocol.  Asked only while no Store of the user's is
    enabled; cannot be changed."""


class StoreHealth(StrEnum):
    UNKNOWN = "unknown"
    """Not asked since the program started."""
    GOOD = "good"
    DOUBTFUL = "doubtful"
    """It answers, but something is wrong; see ``problem``."""
    FAILED = "failed"
    """Its last answer failed; see ``problem``.  It is asked again."""


class StoreTestView(Struct, frozen=True, kw_only=True):
    """The result of one test of a Store."""

    multiaddr: str
    problem: StoreProblem | None
    """Why the Store cannot be used; None if it can."""
    reachable: bool = False
    versions: tuple[str, ...] = ()
    """Protocol versions, the preferred one first: "3.0.0", "2.0.0-beta4"."""
    cluster: int | None = None
    """None if the Store does not say."""
    round_trip_ms: int | None = None
    clock_ahead_ms: int | None = None
    """How far its newest messages are dated after the Store received them.  Only 2.0.0-beta4
    reports receive times, and only for messages it has; else None."""
    oldest_ms: UnixMs | None = None
    """When its oldest message of our conversations was sent; None if it has none."""


class StoreView(Struct, frozen=True, kw_only=True):
    """One Store.  Listed in the order in which they are asked."""

    multiaddr: str
    origin: StoreOrigin
    enabled: bool
    health: StoreHealth
    problem: StoreProblem | None
    version: str
    """Protocol version of the last query; empty if there was none."""
    queries: int
    """All-time count, like those below."""
    complete: int
    """Queries that it answered completely."""
    messages: int
    new: int
    """Messages that no other Store had returned before."""
    omitted: int
    """Messages it omitted but others had, in queries that it answered completely."""
    asked_ms: UnixMs | None
    """When it was last asked."""
    round_trip_ms: int | None
    """Average of the last query."""
    test: StoreTestView | None
    """The last test since the program started."""


# --- fetching -----------------------------------------------------------------------------------


class HistoryReason(StrEnum):
    USER = "user"
    """The user chose "fetch history"."""
    EARLIER = "earlier"
    """The user scrolled up past the oldest local message."""
    CONNECT = "connect"
    """Messages sent while this device was offline."""
    DEPENDENCY = "dependency"
    """Messages that others refer to."""


class HistoryState(StrEnum):
    WAITING = "waiting"
    """Waits for a query slot, or for a reachable Store."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """``problem`` says why; messages already fetched stay."""


class HistoryView(Struct, frozen=True, kw_only=True):
    """The running or last fetch of one conversation."""

    conversation_id: ConversationId
    reason: HistoryReason
    state: HistoryState
    since_ms: UnixMs | None
    """Start of the window; None for all history."""
    fetched: int = 0
    """Messages that Stores returned; most may be known already."""
    arrived: int = 0
    """Readable messages that were new here."""
    per_second: float = 0.0
    """Recent rate of ``fetched``."""
    fraction: float | None = None
    """Share of the window, 0 to 1; None while unknown."""
    stores: int = 0
    """How many Stores are or were asked."""
    problem: HistoryProblem | None = None

    @property
    def is_over(self) -> bool:
        return self.state not in {HistoryState.WAITING, HistoryState.RUNNING}


# --- lost messages ------------------------------------------------------------------------------


class LostView(Struct, frozen=True, kw_only=True):
    """A message that no member and no Store was found to have; shown if it arrives after all.

    In a one-to-one conversation: consecutive messages of which only the author's numbers are known.
    """

    message_id: MessageId | None
    """None if no message names its id."""
    sender_id: ParticipantId | None
    """According to the messages that refer to it; None if they do not say."""
    sender_name: str
    before: Position | None
    """The first message known to follow it, with a higher Lamport timestamp."""
    since_ms: UnixMs
    """Since when it has been known to be missing."""
    stores_ms: UnixMs | None = None
    """When Stores were last asked for it; None if never, because its hash is unknown."""
    lacked_by: int = 0
    """How many of those Stores answered that they do not have it."""
    silent_stores: tuple[str, ...] = ()
    """Addresses of the Stores that did not answer."""
    asked_again_ms: UnixMs | None = None
    """When the user last asked for it again, since the program started."""
    count: int = 1
    """How many messages this entry stands for."""
    numbers: tuple[int, int] | None = None
    """The author's numbers of the first and the last; None if unknown."""
    given_up_ms: UnixMs | None = None
    """When waiting for them ended; None if unknown."""


# --- events -------------------------------------------------------------------------------------


class StoresChanged(Struct, frozen=True, kw_only=True):
    stores: tuple[StoreView, ...]


class HistoryChanged(Struct, frozen=True, kw_only=True):
    """Published at most four times a second while a fetch runs, and always at start and end."""

    history: HistoryView
