"""What the engine tells of history: the Stores that are asked, what is being fetched, what is lost.

Read models and events like those of ``engine.events``.  A Store's troubles stand here with their
reason, for the settings; none of them is an event that interrupts anybody.  Sentences are for
people, without capital and full stop; empty = nothing to say.
"""

from dataclasses import dataclass
from enum import StrEnum

from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs

# --- Stores -------------------------------------------------------------------------------------


class StoreOrigin(StrEnum):
    USER = "user"
    """Named in the settings: has a place, can be moved, switched off and removed."""
    FOUND = "found"
    """A connected peer that keeps messages for others; asked while the user has named no Store
    that is on.  Cannot be changed."""


class StoreHealth(StrEnum):
    UNKNOWN = "unknown"
    """Not asked since the program started."""
    GOOD = "good"
    DOUBTFUL = "doubtful"
    """It answers, but something is wrong: see ``problem``."""
    FAILED = "failed"
    """The last time it did not answer as it should: see ``problem``.  It is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTestView:
    """What one test found, just then."""

    multiaddr: str
    tested_ms: UnixMs
    problem: str
    """Why it cannot be used; empty if it can."""
    reachable: bool = False
    versions: tuple[str, ...] = ()
    """Of the protocol, the preferred one first: "3.0.0", "2.0.0-beta4"."""
    cluster: int | None = None
    """None: not said."""
    round_trip_ms: int | None = None
    clock_ahead_ms: int | None = None
    """How far the newest messages that it took in lie before their own times; only a Store of
    2.0.0-beta4 says when it took in what, and only while there is something."""
    oldest_ms: UnixMs | None = None
    """When the oldest message was sent that it has of our conversations; None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreView:
    """One Store, in the order in which they are asked."""

    multiaddr: str
    origin: StoreOrigin
    enabled: bool
    health: StoreHealth
    problem: str
    version: str
    """Spoken the last time, empty if it was never asked."""
    queries: int
    """All time, like the following."""
    complete: int
    """Queries that it answered to the end."""
    messages: int
    new: int
    """Messages that no other Store had brought before."""
    omitted: int
    """Messages that others had and it had not, in queries that it answered to the end."""
    asked_ms: UnixMs | None
    """When it was asked last."""
    round_trip_ms: int | None
    """On average in the last query."""
    test: StoreTestView | None
    """The last test since the program started."""


# --- fetching -----------------------------------------------------------------------------------


class HistoryReason(StrEnum):
    USER = "user"
    """Asked for: "fetch history"."""
    EARLIER = "earlier"
    """Scrolled up past what is here."""
    CONNECT = "connect"
    """What was said while this device was away."""
    DEPENDENCY = "dependency"
    """Messages that others refer to."""


class HistoryState(StrEnum):
    WAITING = "waiting"
    """For its turn, or for a Store that can be reached."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """``problem`` says why; what was fetched is here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """What is being fetched for one conversation, or was last."""

    conversation_id: ConversationId
    reason: HistoryReason
    state: HistoryState
    since_ms: UnixMs | None
    """From when on; None: all that there is."""
    fetched: int = 0
    """Messages from Stores that were looked at, of which most may be known."""
    arrived: int = 0
    """Messages to read that were new here."""
    per_second: float = 0.0
    """Of ``fetched``, lately."""
    fraction: float | None = None
    """Of the span of time, 0 to 1; None: not known."""
    stores: int = 0
    """That are being asked, or were."""
    problem: str = ""

    @property
    def is_over(self) -> bool:
        return self.state not in {HistoryState.WAITING, HistoryState.RUNNING}


# --- what is lost -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LostView:
    """A message that nobody could be found to have; it is shown if it ever turns up.

    Of a one-to-one conversation: messages in a row of which only the author's numbers are known.
    """

    message_id: MessageId | None
    """None: nobody ever named it."""
    sender_id: ParticipantId | None
    """As those say who refer to it; None: they do not."""
    sender_name: str
    before: Position | None
    """The first message known to come after it: its Lamport timestamp is below that one's."""
    since_ms: UnixMs
    """Since when it was known to lack."""
    stores_ms: UnixMs | None = None
    """When Stores were asked for it last; None: they never were, for nobody knows its hash."""
    lacked_by: int = 0
    """So many of them said then that they do not have it."""
    silent_stores: tuple[str, ...] = ()
    """Addresses of those that gave no answer."""
    asked_again_ms: UnixMs | None = None
    """When the user last wanted it asked for once more, since the program started."""
    count: int = 1
    """How many these are."""
    numbers: tuple[int, int] | None = None
    """The first and the last, as their author counts; None: not known."""
    given_up_ms: UnixMs | None = None
    """When they were waited for no longer; None: not known."""


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StoresChanged:
    stores: tuple[StoreView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChanged:
    """At most four times a second while it runs; always at its begin and end."""

    history: HistoryView
