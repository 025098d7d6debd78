"""Pages of one query at one Store: a window by cursor and time, or a lookup by hash.

13/WAKU2-STORE says that a page is ascending, which is not relied upon.  The next page follows an
exclusive cursor, which is valid at this Store only.  If the Store no longer knows its cursor, or
the version changes, paging restarts somewhat before the last time reached, because messages of one
time may span a page boundary.  Repeats are recognised by hash.

A Store that forgets all its cursors cannot return more messages of one time than fit in a page.  It
is then asked for what follows, and never counts as complete.

Some Stores treat the end time as inclusive, others as exclusive.  So a nanosecond more is requested
on both sides, and the extra messages are left out.  Some Stores of 2.0.0-beta4 ignore the times and
return all they have, so there a message outside the window is no fault.
"""

from enum import Enum, auto
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.history.queries import Cursor, HistoryMessage, Page, StoreVersion, Window
from engine.core.ids import WakuHash
from engine.core.waku_store import HistoryIndex, HistoryQuery, StoreQueryRequest

FALSE_ENTRIES: Final = frozenset(
    {"store_hash_mismatch", "store_entry_unasked", "store_entry_without_data"}
)
"""Entries that no honest Store returns.  Malformed entries it may have received itself."""


class Sight(Enum):
    NEW = auto()
    """No Store returned it before."""
    NEW_HERE = auto()
    """Another Store returned it, this one did not."""
    KNOWN = auto()


class Provenance:
    """Which Stores had which message in one query, by hash.

    One dictionary serves all Stores, so a message costs one entry however often it comes.  It also
    counts messages per set of Stores, which makes omissions cheap to compute.
    """

    def __init__(self) -> None:
        self._had_by: dict[WakuHash, int] = {}
        self._counts: dict[int, int] = {}
        """Number of messages per set of Stores that had them, as a bit mask."""

    def note(self, message_hash: WakuHash, place: int) -> Sight:
        """Record that the Store at ``place``, counted from 0, has this message."""
        before = self._had_by.get(message_hash, 0)
        after = before | 1 << place
        if after == before:
            return Sight.KNOWN
        self._had_by[message_hash] = after
        self._counts[after] = self._counts.get(after, 0) + 1
        if not before:
            return Sight.NEW
        self._counts[before] -= 1
        return Sight.NEW_HERE

    def omitted(self, place: int, *, of: int) -> int:
        """How many messages a Store in the bit mask ``of`` had and this one did not."""
        bit = 1 << place
        return sum(
            count
            for had_by, count in self._counts.items()
            if had_by & of & ~bit and not had_by & bit
        )


class PageOutcome(Struct, frozen=True, kw_only=True):
    """What came of a page.

    ``fresh``: it had something that this Store had not returned before.  ``fault``: why to give up
    on the Store; the page's valid messages still count.
    """

    new: tuple[HistoryMessage, ...]
    messages: int
    """Messages that this Store returned for the first time."""
    fresh: bool
    done: bool
    fault: str | None


class Place(Struct, frozen=True, kw_only=True):
    """Where paging through a window stopped at one Store, to continue there."""

    reached_ns: int
    cursor: Cursor
    version: StoreVersion


# --- a window -----------------------------------------------------------------------------------


class WindowPages:
    def __init__(
        self, window: Window, provenance: Provenance, place: int, *, overlaps_ns: tuple[int, ...]
    ) -> None:
        self._window = window
        self._provenance = provenance
        self._place = place
        self._overlaps_ns = overlaps_ns
        self.reached_ns = window.start_ns
        """The window's end if the Store has no more."""
        self._outside_ns: int | None = None
        """The furthest time of messages outside the window."""
        self._start_ns = window.start_ns
        """Where paging started or restarted."""
        self._cursor: Cursor | None = None
        self._cursors: set[Cursor] = set()
        self._restarts = 0
        """The current step in ``overlaps_ns``, from 1."""
        self._new_since_restart = False
        self._skipped_ns: int | None = None
        """The first time of which this Store could not return all messages."""
        self._left_ns: int | None = None
        """The last such time."""
        self._seen_again: set[WakuHash] | None = None
        """Known messages since the restart; each is expected once."""
        self._version: StoreVersion | None = None

    @property
    def left_at(self) -> Place | None:
        """Where to continue; None if there is no cursor or a time was skipped."""
        if self._cursor is None or self._version is None or self._skipped_ns is not None:
            return None
        return Place(reached_ns=self.reached_ns, cursor=self._cursor, version=self._version)

    def go_on(self, left_at: Place) -> None:
        """Continue where an earlier query stopped.  An expired cursor counts as lost."""
        self.reached_ns = min(max(self.reached_ns, left_at.reached_ns), self._window.end_ns)
        self._cursor, self._version = left_at.cursor, left_at.version

    @property
    def sure_ns(self) -> int:
        """Up to here nothing was skipped."""
        return self.reached_ns if self._skipped_ns is None else self._skipped_ns

    def has_cursor(self) -> bool:
        return self._cursor is not None

    def nothing_left(self) -> bool:
        return False

    def request(
        self, version: StoreVersion, request_id: str, limit: int
    ) -> StoreQueryRequest | HistoryQuery | None:
        """The request for the next page; None if this version does not support the query."""
        window = self._window
        if window.pubsub_topic is None and version is StoreVersion.V2:
            return None  # It sends no hashes, and computing them takes the pubsub topic.
        if version is not self._version and self._version is not None:
            self._begin_again()
        self._version = version
        start_ns = self._start_ns - 1 if self._start_ns > 1 else None
        end_ns = window.end_ns + 1
        cursor = self._cursor
        if version is StoreVersion.V3:
            return StoreQueryRequest(
                request_id=request_id,
                include_data=True,
                pubsub_topic=window.pubsub_topic,
                content_topics=window.content_topics,
                time_start_ns=start_ns,
                time_end_ns=end_ns,
                pagination_cursor=None if isinstance(cursor, HistoryIndex) else cursor,
                pagination_forward=True,
                pagination_limit=limit,
            )
        return HistoryQuery(
            request_id=request_id,
            pubsub_topic=window.pubsub_topic,
            content_topics=window.content_topics,
            page_size=limit,
            cursor=cursor if isinstance(cursor, HistoryIndex) else None,
            forward=True,
            start_time_ns=start_ns,
            end_time_ns=end_ns,
        )

    def lose_cursor(self) -> bool:
        """Restart at the last time, with less overlap if the previous restart brought nothing.

        Returns whether that can still succeed.
        """
        if not self._restarts or not self._new_since_restart:
            self._restarts += 1
        if self._restarts > len(self._overlaps_ns):
            return self._skip()
        self._begin_again()
        return True

    def _skip(self) -> bool:
        """Continue after a time with more messages than a page holds, if that is possible."""
        if self.reached_ns in (self._window.end_ns, self._left_ns):
            return False
        self._left_ns = self.reached_ns
        if self._skipped_ns is None:
            self._skipped_ns = self.reached_ns
        self._restarts = len(self._overlaps_ns)
        self._begin_again()
        self._start_ns = self.reached_ns + 2  # The request asks for a nanosecond more.
        return True

    def _begin_again(self) -> None:
        overlap_ns = self._overlaps_ns[max(self._restarts - 1, 0)]
        self._start_ns = max(self.reached_ns - overlap_ns, self._window.start_ns)
        self._cursor = None
        self._cursors.clear()
        self._seen_again = set()
        self._new_since_restart = False

    def take(self, page: Page) -> PageOutcome:
        new: list[HistoryMessage] = []
        messages = 0
        fault = next((reason for reason in page.refused if reason in FALSE_ENTRIES), None)
        fresh = bool(page.refused) and fault is None
        for item in page.messages:
            if self._is_elsewhere(item):
                fault = "store_entry_unasked"
                continue
            at_ns = item.message.timestamp_ns or self.reached_ns  # Without a time: as of here.
            if not self._window.start_ns <= at_ns <= self._window.end_ns:
                fresh |= self._is_further_outside(at_ns)
                if self._is_far_outside(at_ns) and self._version is StoreVersion.V3:
                    fault = "store_entry_outside_window"
                continue
            sight = self._provenance.note(item.message_hash, self._place)
            if sight is Sight.NEW:
                new.append(item)
            if sight is Sight.KNOWN:
                fresh |= self._is_seen_again_first(item.message_hash)
            else:
                messages += 1
                fresh = self._new_since_restart = True
            self.reached_ns = max(self.reached_ns, at_ns)
        if page.cursor is None and self._skipped_ns is not None:
            fault = fault or "store_cursor_unknown"
        return PageOutcome(
            new=tuple(new),
            messages=messages,
            fresh=fresh,
            done=fault is None and self._is_done(page.cursor),
            fault=fault or self._move(page.cursor),
        )

    def _is_elsewhere(self, item: HistoryMessage) -> bool:
        window = self._window
        return window.pubsub_topic is not None and (
            item.pubsub_topic != window.pubsub_topic
            or item.message.content_topic not in window.content_topics
        )

    def _is_done(self, cursor: Cursor | None) -> bool:
        if cursor is None:
            self.reached_ns = self._window.end_ns
        return cursor is None

    def _move(self, cursor: Cursor | None) -> str | None:
        """Store the cursor; returns the fault if it is invalid."""
        if cursor is None:
            return None
        if isinstance(cursor, HistoryIndex) is (self._version is StoreVersion.V3):
            return "store_cursor_malformed"
        if cursor in self._cursors:
            return "store_cursor_stuck" if cursor == self._cursor else "store_cursor_repeated"
        self._cursors.add(cursor)
        self._cursor = cursor
        return None

    def _is_far_outside(self, at_ns: int) -> bool:
        return not self._window.start_ns - 1 <= at_ns <= self._window.end_ns + 1

    def _is_further_outside(self, at_ns: int) -> bool:
        """Whether messages outside the window still advance."""
        if self._outside_ns is not None and at_ns <= self._outside_ns:
            return False
        self._outside_ns = at_ns
        return True

    def _is_seen_again_first(self, message_hash: WakuHash) -> bool:
        if self._seen_again is None or message_hash in self._seen_again:
            return False
        self._seen_again.add(message_hash)
        return True


# --- a lookup by hash ---------------------------------------------------------------------------


class HashPages:
    """Looks messages up by hash: Store v3 only, at most 100 per request.

    It uses no cursor: hashes absent from a truncated page are requested again.  All Stores of the
    query share the set of missing hashes, so each is asked only for what the previous ones did not
    have.  2.0.0-beta4 has no hash lookups, and a hash gives no time to search, so it cannot answer.
    """

    reached_ns = sure_ns = 0
    left_at: Place | None = None

    def __init__(
        self, missing: dict[WakuHash, None], provenance: Provenance, place: int, *, at_once: int
    ) -> None:
        """``missing`` is shared; hashes that were found are removed from it here."""
        self._missing = missing
        self._provenance = provenance
        self._place = place
        self._at_once = at_once
        self._to_ask = list(reversed(missing))
        """Hashes not requested yet, the next one last."""
        self._batch: tuple[WakuHash, ...] = ()
        self._asked: frozenset[WakuHash] = frozenset()

    def has_cursor(self) -> bool:
        return False

    def lose_cursor(self) -> bool:
        return False

    def nothing_left(self) -> bool:
        """Whether nothing is left to ask for, since other Stores returned it."""
        while self._to_ask and self._to_ask[-1] not in self._missing:
            self._to_ask.pop()
        return not self._to_ask and not any(item in self._missing for item in self._batch)

    def request(
        self, version: StoreVersion, request_id: str, limit: int
    ) -> StoreQueryRequest | None:
        if version is not StoreVersion.V3:
            return None
        size = min(limit, self._at_once)
        batch = [item for item in self._batch if item in self._missing]
        self._to_ask.extend(reversed(batch[size:]))
        del batch[size:]
        while len(batch) < size and self._to_ask:
            item = self._to_ask.pop()
            if item in self._missing:
                batch.append(item)
        self._batch = tuple(batch)
        self._asked = frozenset(batch)
        return StoreQueryRequest(
            request_id=request_id,
            include_data=True,
            message_hashes=self._batch,
            pagination_forward=True,
            pagination_limit=size,
        )

    def take(self, page: Page) -> PageOutcome:
        """Take a page.  If it has a cursor, hashes absent from it are requested again."""
        new: list[HistoryMessage] = []
        messages = 0
        fault = next((reason for reason in page.refused if reason in FALSE_ENTRIES), None)
        for item in page.messages:
            if item.message_hash not in self._asked:
                fault = "store_entry_unasked"
                continue
            sight = self._provenance.note(item.message_hash, self._place)
            if sight is Sight.NEW:
                new.append(item)
            messages += sight is not Sight.KNOWN
            self._missing.pop(item.message_hash, None)
        cut = page.cursor is not None
        if not cut:
            self._batch = ()
        return PageOutcome(
            new=tuple(new),
            messages=messages,
            fresh=bool(messages) or not cut,
            done=fault is None and self.nothing_left(),
            fault=fault,
        )


Pages: TypeAlias = WindowPages | HashPages
"""The position of one query at one Store."""
