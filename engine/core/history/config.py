"""Every limit and interval of a history query.  Nothing here decides anything.

The limits on a single Store bound what a hostile one can cost; the servers' side of them is in
13/WAKU2-STORE and in what servers do: at most 100 messages a page, pages cut by bytes, refusals
when asked too often.
"""

from dataclasses import dataclass
from typing import Final

from engine.core.waku_store import MAX_PAGE_MESSAGES

SECOND_MS: Final = 1_000
SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    # One Store.
    page_messages: int = MAX_PAGE_MESSAGES
    hashes_per_ask: int = 100
    max_pages: int = 2_000
    max_stale_pages: int = 3
    """In a row, with nothing new within this query of this Store."""
    first_byte_timeout_ms: int = 10 * SECOND_MS
    page_timeout_ms: int = 30 * SECOND_MS
    query_timeout_ms: int = 30 * 60 * SECOND_MS
    """For one Store, all in all."""
    max_failures: int = 3
    """In a row, by lost connections and the like; then the Store is left."""
    max_refusals: int = 6
    """In a row, for being asked too often or out of service; then the Store is left."""
    back_off_ms: int = 500
    """Doubled with each failure in a row; half of it is left to chance."""
    longest_back_off_ms: int = 30 * SECOND_MS
    good_pages_to_grow: int = 4
    """After so many pages in a row, a limit that was halved is doubled."""
    restart_overlaps_ns: tuple[int, ...] = (MINUTE_NS, SECOND_NS, 0)
    """How far before the last position paging begins again when a cursor is lost; the next one if
    that brought nothing."""

    # Several Stores.
    window_stores: int = 3
    """At once; the next in order takes the place of one that is left."""
    lookup_stores: int = 1
    """At once: the next is asked for what the one before does not have."""
    max_stores: int = 8
    """In one window, those that were left with them."""
    max_lookup_stores: int = 32
    """In one look-up, which is not over before all were asked."""
    buffer_messages: int = 500
    buffer_bytes: int = 8 * MIB
    """Messages that wait for slower Stores.  Whoever is ahead is asked for no more then."""
    patience_ms: int = 2 * SECOND_MS
    """For how long slower Stores hold up the others' messages."""

    # One conversation.
    overlap_ns: int = MINUTE_NS
    """How far windows reach back into what was asked for before."""
    ahead_ms: int = 20 * SECOND_MS
    """How far ahead of the clock a Store takes in messages."""
    trailing_ms: int = 25 * SECOND_MS
    """After a window is done, what was stored meanwhile is asked for once more."""
    lookup_batch: int = 100
    unanswered_rounds: int = 3
    """So many look-ups of a message in which a Store gave no answer; then those that did decide."""
    max_lookups: int = 5_000
    """Messages to be looked up; more are read over, whoever misses them asks again."""
    pressure_messages: int = 64
    """So many messages that wait for others: these are looked up before a window goes on."""
    around_before_ms: int = 60 * 60 * SECOND_MS
    around_after_ms: int = 60 * SECOND_MS
    max_around_windows: int = 16
    """Windows instead of look-ups, where no Store knows these."""
    retry_ms: int = 5 * SECOND_MS
    """Doubled each time that a window came no further; half of it is left to chance."""
    longest_retry_ms: int = 5 * 60 * SECOND_MS
    max_retries: int = 5
    """In a row, without coming further."""
    max_continuations: int = 20
    """Of a window that comes further, but not to its end."""
