"""The data types of history queries: queries, requests to Stores, outcomes, events and inputs.

They cover both versions of 13/WAKU2-STORE.  A *window* is a span of time on one pubsub topic; a
*hash lookup* names messages by their hashes (SDS's retrieval hints).  The caller performs each
``Ask`` and answers it once, with a ``Page``, a ``Refusal`` or a ``Failed``.  It first checks that
each message matches its hash; for 2.0.0-beta4, which sends no hashes, it computes them.

Streams, clocks, keys and the authenticity of messages are handled elsewhere.
"""

from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from engine.core.errors import LocalProtocolError
from engine.core.history.progress import HistoryWrite, Purpose, StoreRef
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs, WakuHash
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryIndex, HistoryQuery, StoreQueryRequest

MAX_QUERY_TOPICS: Final = 10
"""Maximum content topics per query that existing Stores accept."""

Cursor: TypeAlias = WakuHash | HistoryIndex


class StoreVersion(StrEnum):
    V3 = "3.0.0"
    V2 = "2.0.0-beta4"


class Candidate(Struct, frozen=True, kw_only=True):
    """A Store that may be queried.  ``versions``: those it reported; empty = not known yet."""

    store: StoreRef
    versions: tuple[StoreVersion, ...] = ()


# --- queries ------------------------------------------------------------------------------------


class Window(Struct, frozen=True, kw_only=True):
    """All messages on these topics from ``start_ns`` to ``end_ns``, both inclusive.

    Without a pubsub topic and content topics it covers everything a Store has; 2.0.0-beta4 cannot
    be asked for that.
    """

    pubsub_topic: PubsubTopic | None
    content_topics: tuple[ContentTopic, ...]
    start_ns: int
    end_ns: int

    def __post_init__(self) -> None:
        fewest = 0 if self.pubsub_topic is None else 1
        most = 0 if self.pubsub_topic is None else MAX_QUERY_TOPICS
        if not fewest <= len(self.content_topics) <= most:
            raise LocalProtocolError(f"a window has 1 to {MAX_QUERY_TOPICS} content topics")
        if not 0 <= self.start_ns <= self.end_ns:
            raise LocalProtocolError("a window starts before it ends, and not before 1970")


class ByHash(Struct, frozen=True, kw_only=True):
    """These messages, whatever their topic and time."""

    hashes: tuple[WakuHash, ...]

    def __post_init__(self) -> None:
        if not self.hashes:
            raise LocalProtocolError("a look-up names a message")


Query: TypeAlias = Window | ByHash


# --- asking -------------------------------------------------------------------------------------


class Ask(Struct, frozen=True, kw_only=True):
    """Send ``request`` to ``store`` now; its type determines the protocol version.

    The answer must begin within ``first_byte_timeout_ms`` and end within ``timeout_ms``.  If it
    takes longer, the outcome is a ``Failed`` of kind ``TIMEOUT``.
    """

    ask_id: int
    store: StoreRef
    request: StoreQueryRequest | HistoryQuery
    first_byte_timeout_ms: int
    timeout_ms: int

    @property
    def version(self) -> StoreVersion:
        v3 = isinstance(self.request, StoreQueryRequest)
        return StoreVersion.V3 if v3 else StoreVersion.V2


class HistoryMessage(Struct, frozen=True, gc=False):
    """A message from a Store.  Only its hash has been checked or computed."""

    message_hash: WakuHash
    message: WakuMessage
    pubsub_topic: PubsubTopic


class Page(Struct, frozen=True, kw_only=True):
    """An answer.  ``refused``: a reason for each entry left out; no cursor = the last page.

    ``size``: its bytes, of what was left out, too.
    """

    messages: tuple[HistoryMessage, ...] = ()
    cursor: Cursor | None = None
    refused: tuple[str, ...] = ()
    size: int = 0


class Refusal(Struct, frozen=True):
    """The Store's error code: ``StoreStatus`` in version 3, ``HistoryError`` in 2.0.0-beta4."""

    code: int


class FailureKind(StrEnum):
    UNREACHABLE = "unreachable"
    """No connection, or it was lost before the answer was complete."""
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """The node does not speak this version of the protocol."""
    TOO_LARGE = "too_large"
    """The answer exceeds our size limit."""
    BROKEN = "broken"
    """The answer violates the protocol."""


class Failed(Struct, frozen=True):
    """No usable answer.  ``reason`` is that of the ``RemoteProtocolError``, if there was one."""

    kind: FailureKind
    reason: str = ""


Outcome: TypeAlias = Page | Refusal | Failed


# --- results ------------------------------------------------------------------------------------


class End(StrEnum):
    """How a query ended, at one Store or as a whole."""

    COMPLETE = "complete"
    """The Store has no more."""
    CANCELLED = "cancelled"
    FAULTED = "faulted"
    """``reason`` says why."""
    NOTHING_NEW = "nothing_new"
    """Further pages brought nothing new."""
    TOO_MANY_PAGES = "too_many_pages"
    TIMEOUT = "timeout"
    CANNOT = "cannot"
    """This Store does not support such a query."""


ENVIRONMENT_REASONS: Final = frozenset({"unreachable", "too_many_requests", "unavailable"})
"""Reasons of ``FAULTED`` that do not blame the Store."""


class StoreStatistics(Struct, frozen=True, kw_only=True):
    """Statistics of one Store in one query.  ``new``: messages no other Store returned before."""

    pages: int = 0
    messages: int = 0
    """Distinct messages within the window or lookup."""
    new: int = 0
    refused: int = 0
    busy_ms: int = 0
    """Total time between requests and answers."""


class StoreNote(Struct, frozen=True, kw_only=True):
    """What a query found out about one Store.

    ``omitted``: messages that other Stores had and this one did not, not counting Stores given up
    for a fault; None if this Store did not complete.  It is no proof of anything: anyone can send
    to a topic, and a message may arrive at a Store during paging.
    """

    store: StoreRef
    version: StoreVersion
    end: End
    reason: str
    statistics: StoreStatistics
    omitted: int | None


class Fetched(Struct, frozen=True, kw_only=True):
    """Messages that are new in this query, oldest first as far as the Stores allow."""

    query_id: int
    messages: tuple[HistoryMessage, ...]


class Advanced(Struct, frozen=True, kw_only=True):
    """All Stores still running have reached ``reached_ns``.

    Make it durable only after the messages fetched before it.  It may decrease when a Store that
    starts from the beginning replaces one that was given up.
    """

    query_id: int
    reached_ns: int


class StoreEnded(Struct, frozen=True, kw_only=True):
    """One Store completed or was given up; the query continues if others can."""

    query_id: int
    store: StoreRef
    version: StoreVersion
    end: End
    reason: str
    statistics: StoreStatistics


class QueryEnded(Struct, frozen=True, kw_only=True):
    """The last event of a query.

    ``end`` is ``COMPLETE`` if at least one Store completed.  ``reached_ns`` is None for a lookup.
    ``lacking``: hashes that every Store reported not to have.  ``unknown``: hashes that were not
    found and that at least one Store could not be asked for.
    """

    query_id: int
    end: End
    reason: str
    fetched: int
    reached_ns: int | None
    notes: tuple[StoreNote, ...]
    lacking: tuple[WakuHash, ...] = ()
    unknown: tuple[WakuHash, ...] = ()


QueryEvent: TypeAlias = Fetched | Advanced | StoreEnded | QueryEnded


class QueryStarted(Struct, frozen=True, kw_only=True):
    query_id: int
    purpose: Purpose
    query: Query


class Covered(Struct, frozen=True, kw_only=True):
    """All messages that Stores had of this span were handed out; at least one Store completed."""

    purpose: Purpose
    since_ms: UnixMs
    until_ms: UnixMs
    through_ms: UnixMs
    """The time of the request."""


class GaveUp(Struct, frozen=True, kw_only=True):
    """A window that is not retried until Stores change or it is requested again."""

    purpose: Purpose
    end: End
    reason: str


class HashesMissing(Struct, frozen=True, kw_only=True):
    """Every enabled Store was asked for these hashes, and none returned them.

    ``lacked``: how many Stores reported not to have them.  ``silent``: Stores that did not answer
    or do not support lookups.  ``decided``: at least one Store answered, and the others either
    answered too or had enough time.
    """

    hashes: tuple[WakuHash, ...]
    lacked: int
    silent: tuple[StoreRef, ...] = ()
    decided: bool = True


HistoryEvent: TypeAlias = QueryEvent | QueryStarted | Covered | GaveUp | HashesMissing


# --- inputs of one query ------------------------------------------------------------------------


class Answered(Struct, frozen=True):
    """The outcome of an ``Ask``.  Ignored if the ``Ask`` was abandoned."""

    ask_id: int
    outcome: Outcome


class HoldChanged(Struct, frozen=True):
    """While ``holding``, no Store is asked, so that the caller can process its backlog."""

    holding: bool


class Cancel(Struct, frozen=True):
    """End now; buffered messages are still handed out."""


class DeadlineReached(Struct, frozen=True):
    """The time named by ``next_deadline`` has come.  Early and late calls are harmless."""


QueryInput: TypeAlias = Answered | HoldChanged | Cancel | DeadlineReached


# --- inputs of a conversation's schedule --------------------------------------------------------


class Topics(Struct, frozen=True, kw_only=True):
    """The topics of a conversation, which its windows ask for."""

    pubsub_topic: PubsubTopic
    content_topics: tuple[ContentTopic, ...]


class StoresChanged(Struct, frozen=True):
    """The enabled Stores that can be asked, in order; none = offline."""

    candidates: tuple[Candidate, ...]


class WindowWanted(Struct, frozen=True, kw_only=True):
    """Fetch everything since ``since_ms``, up to now if ``until_ms`` is None.

    Of the purpose ``DEPENDENCY`` there may be several, each with an end.
    """

    purpose: Purpose
    since_ms: UnixMs
    until_ms: UnixMs | None = None


class DependenciesMissing(Struct, frozen=True):
    """Hashes of missing messages that others depend on."""

    hashes: tuple[WakuHash, ...]


class PressureChanged(Struct, frozen=True):
    """How many messages wait for dependencies in the incoming buffer."""

    waiting: int


class WindowCancelled(Struct, frozen=True):
    """The user cancelled this window; fetched messages stay."""

    purpose: Purpose


HistoryInput: TypeAlias = (
    StoresChanged
    | WindowWanted
    | DependenciesMissing
    | PressureChanged
    | WindowCancelled
    | Answered
    | DeadlineReached
)


def starts(input_: HistoryInput) -> bool:
    """Whether this input can cause requests to Stores."""
    match input_:
        case StoresChanged(candidates=candidates):
            return bool(candidates)
        case WindowWanted() | DependenciesMissing() | DeadlineReached():
            return True
        case PressureChanged() | WindowCancelled() | Answered():
            return False
        case _:
            assert_never(input_)


# --- what follows from an input -----------------------------------------------------------------


class HistoryTransition(Struct, frozen=True, kw_only=True):
    """Handle ``events`` in order, make ``writes`` durable after them, then perform the rest."""

    asks: tuple[Ask, ...] = ()
    abandoned: tuple[int, ...] = ()
    """Ids of asks that are no longer needed: close their streams."""
    events: tuple[HistoryEvent, ...] = ()
    writes: tuple[HistoryWrite, ...] = ()
