"""The vocabulary of history: what is asked of which Store, what it answered, how it ended.

13/WAKU2-STORE in both versions.  A *window* is a span of time on one pubsub topic; a *look-up*
names messages by their hashes (SDS's retrieval hints).  Whoever performs an ``Ask`` answers
it once, with a ``Page``, a ``Refusal`` or a ``Failed``, after having checked that each message has
the hash it is said to have; of 2.0.0-beta4, which names no hashes, it computes them.  Nothing here
knows streams, clocks, conversations' keys, or whether a message is genuine.
"""

from enum import StrEnum
from typing import Final, NewType, TypeAlias

from engine.core.errors import LocalProtocolError
from engine.core.history.progress import HistoryWrite, Purpose
from engine.core.ids import ContentTopic, PubsubTopic, UnixMs, WakuHash
from engine.core.value import value
from engine.core.waku import WakuMessage
from engine.core.waku_store import HistoryIndex, HistoryQuery, StoreQueryRequest

StoreRef = NewType("StoreRef", str)
"""A Store's multiaddr, as it stands in the settings."""

MAX_QUERY_TOPICS: Final = 10
"""Content topics of one query that Stores in the wild accept."""

Cursor: TypeAlias = WakuHash | HistoryIndex


class StoreVersion(StrEnum):
    V3 = "3.0.0"
    V2 = "2.0.0-beta4"


@value(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A Store that may be asked.  ``versions``: what it said it speaks; none = not known yet."""

    store: StoreRef
    versions: tuple[StoreVersion, ...] = ()


# --- queries ------------------------------------------------------------------------------------


@value(frozen=True, slots=True, kw_only=True)
class Window:
    """Everything on these topics from ``start_ns`` to ``end_ns``, both inclusive.

    Without topics of either kind: everything that a Store has, which 2.0.0-beta4 cannot be asked.
    """

    pubsub_topic: PubsubTopic | None
    content_topics: tuple[ContentTopic, ...]
    start_ns: int
    end_ns: int
    forward: bool = True

    def __post_init__(self) -> None:
        fewest = 0 if self.pubsub_topic is None else 1
        most = 0 if self.pubsub_topic is None else MAX_QUERY_TOPICS
        if not fewest <= len(self.content_topics) <= most:
            raise LocalProtocolError(f"a window has 1 to {MAX_QUERY_TOPICS} content topics")
        if not 0 <= self.start_ns <= self.end_ns:
            raise LocalProtocolError("a window starts before it ends, and not before 1970")


@value(frozen=True, slots=True, kw_only=True)
class ByHash:
    """These messages, wherever and whenever they were sent."""

    hashes: tuple[WakuHash, ...]

    def __post_init__(self) -> None:
        if not self.hashes:
            raise LocalProtocolError("a look-up names a message")


Query: TypeAlias = Window | ByHash


# --- asking -------------------------------------------------------------------------------------


@value(frozen=True, slots=True, kw_only=True)
class Ask:
    """Send ``request`` to ``store`` now; its type says in which version.

    The answer has to begin within ``first_byte_timeout_ms`` and end within ``timeout_ms``; what
    takes longer is a ``Failed`` of kind ``TIMEOUT``.
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


@value(frozen=True, slots=True)
class HistoryMessage:
    """A message as a Store gave it; its hash has been checked, or computed, nothing else."""

    message_hash: WakuHash
    message: WakuMessage
    pubsub_topic: PubsubTopic


@value(frozen=True, slots=True, kw_only=True)
class Page:
    """``refused``: one reason for every entry that was left out; no cursor = the end."""

    messages: tuple[HistoryMessage, ...] = ()
    cursor: Cursor | None = None
    refused: tuple[str, ...] = ()


@value(frozen=True, slots=True)
class Refusal:
    """The Store's own error: a ``StoreStatus`` of version 3, a ``HistoryError`` of the other."""

    code: int


class FailureKind(StrEnum):
    UNREACHABLE = "unreachable"
    """No connection, or it was lost before the answer was whole."""
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """The node does not speak this version of the protocol."""
    TOO_LARGE = "too_large"
    """The answer has more bytes than we accept."""
    BROKEN = "broken"
    """The answer breaks the protocol."""


@value(frozen=True, slots=True)
class Failed:
    """No answer.  ``reason`` is a ``RemoteProtocolError``'s, where there is one."""

    kind: FailureKind
    reason: str = ""


Outcome: TypeAlias = Page | Refusal | Failed


# --- results ------------------------------------------------------------------------------------


class End(StrEnum):
    """How a query ended: at one Store, or as a whole."""

    COMPLETE = "complete"
    """The Store said that there is no more."""
    CANCELLED = "cancelled"
    FAULTED = "faulted"
    """``reason`` says why."""
    NOTHING_NEW = "nothing_new"
    """Pages went on and had nothing new."""
    TOO_MANY_PAGES = "too_many_pages"
    TIMEOUT = "timeout"
    CANNOT = "cannot"
    """This Store has no way to answer such a query."""


ENVIRONMENT_REASONS: Final = frozenset({"unreachable", "too_many_requests", "unavailable"})
"""Reasons of ``FAULTED`` that are not the Store's lie or error."""


@value(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """Of one Store in one query.  ``new``: messages that no other Store had brought before."""

    asks: int = 0
    pages: int = 0
    messages: int = 0
    """Different ones, of the window or look-up."""
    new: int = 0
    duplicates: int = 0
    outside: int = 0
    """Of another time than was asked for."""
    refused: int = 0
    payload_bytes: int = 0
    busy_ms: int = 0
    """From asking to its answers, all in all."""


@value(frozen=True, slots=True, kw_only=True)
class StoreNote:
    """What is to be remembered of a Store after a query.

    ``omitted``: messages that other Stores had, those left for a fault excepted, and this one had
    not; None where it did not come to its end.  ``alone``: what only this Store had.  Neither is a
    proof: anybody can send to a topic, and a message may have been stored while it was paged.
    """

    store: StoreRef
    version: StoreVersion
    end: End
    reason: str
    statistics: StoreStatistics
    omitted: int | None
    alone: int


@value(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Messages that are new in this query, oldest first as far as the Stores let it be."""

    query_id: int
    messages: tuple[HistoryMessage, ...]


@value(frozen=True, slots=True, kw_only=True)
class Advanced:
    """All Stores that still run have come as far as ``reached_ns``.

    Durable only after what was fetched before it is.  It may fall when a Store that starts from the
    beginning takes the place of one that was left.
    """

    query_id: int
    reached_ns: int
    fetched: int
    """In all, so far."""


@value(frozen=True, slots=True, kw_only=True)
class StoreEnded:
    """One Store is done, or was left; the query goes on if others can."""

    query_id: int
    store: StoreRef
    version: StoreVersion
    end: End
    reason: str
    statistics: StoreStatistics


@value(frozen=True, slots=True, kw_only=True)
class QueryEnded:
    """The last event of a query.

    ``end`` is ``COMPLETE`` if at least one Store came to its end.  ``reached_ns`` is None for a
    look-up.  ``lacking``: hashes that every Store says it does not have; ``unknown``: those that
    were not found and that some Store could not be asked for.
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


@value(frozen=True, slots=True, kw_only=True)
class QueryStarted:
    query_id: int
    purpose: Purpose
    query: Query


@value(frozen=True, slots=True, kw_only=True)
class Covered:
    """All that Stores had of this span was handed out; at least one of them came to its end."""

    purpose: Purpose
    start_ms: UnixMs
    through_ms: UnixMs


@value(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """A window that is not tried again by itself; when Stores change, or if it is wanted again."""

    purpose: Purpose
    end: End
    reason: str


@value(frozen=True, slots=True, kw_only=True)
class HashesMissing:
    """Every enabled Store was asked for these, and none brought them.

    ``lacked``: how many say that they do not have them; ``silent``: those that gave no answer, or
    cannot look for single messages.  ``decided``: all answered, or those that did not were given
    enough time; never without an answer.
    """

    hashes: tuple[WakuHash, ...]
    lacked: int
    silent: tuple[StoreRef, ...] = ()
    decided: bool = True


HistoryEvent: TypeAlias = QueryEvent | QueryStarted | Covered | GaveUp | HashesMissing


# --- inputs of one query ------------------------------------------------------------------------


@value(frozen=True, slots=True)
class Answered:
    """The outcome of an ask.  One that nobody waits for any more is read over."""

    ask_id: int
    outcome: Outcome


@value(frozen=True, slots=True)
class HoldChanged:
    """Whether to ask for nothing more until told: what was fetched has to be worked off first."""

    holding: bool


@value(frozen=True, slots=True)
class Cancel:
    """End now; what is buffered is still handed out."""


@value(frozen=True, slots=True)
class DeadlineReached:
    """The time that ``next_deadline`` named has come (early and late calls are harmless)."""


QueryInput: TypeAlias = Answered | HoldChanged | Cancel | DeadlineReached


# --- what follows from an input -----------------------------------------------------------------


@value(frozen=True, slots=True, kw_only=True)
class HistoryTransition:
    """Hand out ``events`` in order, make ``writes`` durable after them, then perform the rest."""

    asks: tuple[Ask, ...] = ()
    abandoned: tuple[int, ...] = ()
    """Asks whose answer nobody waits for any more: close their streams."""
    events: tuple[HistoryEvent, ...] = ()
    writes: tuple[HistoryWrite, ...] = ()
