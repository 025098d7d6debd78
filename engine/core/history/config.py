"""Limits and intervals of history queries.

The limits on a single Store bound what a hostile one can cost.  The servers' limits follow
13/WAKU2-STORE and common servers: at most 100 messages a page, pages cut by size, and refusals of
too frequent requests.
"""

from typing import Final

from msgspec import Struct

from engine.core.waku_store import MAX_PAGE_MESSAGES

SECOND_MS: Final = 1_000
SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
MINUTE_MS: Final = 60 * SECOND_MS
MIB: Final = 1024 * 1024


class HistoryConfig(Struct, frozen=True, kw_only=True):
    # One Store.
    page_messages: int = MAX_PAGE_MESSAGES
    hashes_per_ask: int = 100
    max_pages: int = 2_000
    max_stale_pages: int = 3
    """Consecutive pages with nothing new from this Store in this query."""
    first_byte_timeout_ms: int = 10 * SECOND_MS
    page_timeout_ms: int = 30 * SECOND_MS
    query_timeout_ms: int = 30 * 60 * SECOND_MS
    """In total, for one Store."""
    max_failures: int = 3
    """Consecutive lost connections and the like before the query gives up on the Store."""
    max_refusals: int = 6
    """Consecutive refusals (asked too often, out of service) before the query gives up on the
    Store."""
    back_off_ms: int = 500
    """Doubled with each consecutive failure; half of it is random."""
    longest_back_off_ms: int = 30 * SECOND_MS
    good_pages_to_grow: int = 4
    """After this many good pages in a row, a limit that was halved is doubled."""
    restart_overlaps_ns: tuple[int, ...] = (MINUTE_NS, SECOND_NS, 0)
    """How far before the last position paging restarts after a lost cursor.  If one step brings
    nothing new, the next is used."""

    # Several Stores.
    window_stores: int = 3
    """Stores queried in parallel.  If one is given up, the next in order replaces it."""
    lookup_stores: int = 1
    """Stores queried in parallel.  The next one is asked for what the previous ones do not have."""
    max_stores: int = 8
    """Stores per window, including those given up."""
    max_lookup_stores: int = 32
    """Stores per hash lookup.  It ends only after all of them were asked."""
    buffer_messages: int = 500
    buffer_bytes: int = 8 * MIB
    """Size of the reorder buffer for messages that wait for slower Stores.  When it is full, the
    Stores that are ahead are not asked for more."""
    patience_ms: int = 2 * SECOND_MS
    """How long slower Stores may delay the messages of the others."""

    # One conversation.
    overlap_ns: int = MINUTE_NS
    """How far a window overlaps what was requested before."""
    ahead_ms: int = 20 * SECOND_MS
    """How far ahead of the clock Stores accept messages."""
    trailing_ms: int = 25 * SECOND_MS
    """Delay after a window until a trailing check asks for what Stores received during it."""
    lookup_batch: int = 100
    unanswered_rounds: int = 3
    """Lookups of a message that a Store left unanswered.  After this many, the answers of the other
    Stores decide."""
    max_lookups: int = 5_000
    """Pending hash lookups.  More are refused; the session that needs them asks again."""
    pressure_messages: int = 64
    """From this many waiting messages on, their dependencies are looked up before the window
    continues."""
    max_dependency_windows: int = 16
    """Windows in which missing dependencies must lie that hash lookups do not find."""
    dependency_pages: int = 50
    """Of one Store for one of these windows.  A Store that has more is left out of them for
    ``dependency_rest_ms``, while there are others."""
    dependency_rest_ms: int = 60 * MINUTE_MS
    dependency_period_ms: int = 5 * MINUTE_MS
    dependency_asks: int = 200
    dependency_bytes: int = 16 * MIB
    """What these windows may take within a period, at all Stores.  Anybody can name messages that
    do not exist, and a Store can answer for ever."""
    max_dependency_periods: int = 3
    """Periods that one of these windows may use up."""
    retry_ms: int = 5 * SECOND_MS
    """Doubled with each attempt without progress; half of it is random."""
    longest_retry_ms: int = 5 * 60 * SECOND_MS
    max_retries: int = 5
    """Consecutive attempts without progress."""
    max_continuations: int = 20
    """Continuations of a window that progresses without reaching its end."""
