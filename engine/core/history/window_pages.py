"""Pages through a window at one Store by cursor, and by time if the cursor is lost.

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

from typing import Final

from engine.core.history.pages import PageOutcome, Place
from engine.core.history.provenance import Provenance, Sight
from engine.core.history.queries import Cursor, HistoryMessage, Page, StoreVersion, Window
from engine.core.ids import WakuHash
from engine.core.waku_store import HistoryIndex, HistoryQuery, StoreQueryRequest

FALSE_ENTRIES: Final = frozenset(
    {"store_hash_mismatch", "store_entry_unasked", "store_entry_without_data"}
)
"""Entries that no honest Store returns.  Malformed entries it may have received itself."""


class WindowPages:
    """Times are compared as *keys*, which grow in the direction of paging."""

    def __init__(
        self, window: Window, provenance: Provenance, place: int, *, overlaps_ns: tuple[int, ...]
    ) -> None:
        self._window = window
        self._provenance = provenance
        self._place = place
        self._overlaps_ns = overlaps_ns
        self._sign = 1 if window.forward else -1
        self._first_key = window.start_ns if window.forward else -window.end_ns
        self._last_key = window.end_ns if window.forward else -window.start_ns
        self.key = self._first_key
        """The key reached; the window's end if the Store has no more."""
        self._outside_key: int | None = None
        """The furthest key of messages outside the window."""
        self._start_key = self._first_key
        """Where paging started or restarted."""
        self._cursor: Cursor | None = None
        self._cursors: set[Cursor] = set()
        self._restarts = 0
        """The current step in ``overlaps_ns``, from 1."""
        self._new_since_restart = False
        self._skipped_key: int | None = None
        """The first time of which this Store could not return all messages."""
        self._left_key: int | None = None
        """The last such time."""
        self._seen_again: set[WakuHash] | None = None
        """Known messages since the restart; each is expected once."""
        self._version: StoreVersion | None = None

    @property
    def place(self) -> Place | None:
        """Where to continue; None if there is no cursor or a time was skipped."""
        if self._cursor is None or self._version is None or self._skipped_key is not None:
            return None
        return Place(key=self.key, cursor=self._cursor, version=self._version)

    def go_on(self, place: Place) -> None:
        """Continue where an earlier query stopped.  An expired cursor counts as lost."""
        self.key = min(max(self.key, place.key), self._last_key)
        self._cursor, self._version = place.cursor, place.version

    @property
    def sure_key(self) -> int:
        """Up to here nothing was skipped."""
        return self.key if self._skipped_key is None else self._skipped_key

    def has_cursor(self) -> bool:
        return self._cursor is not None

    def nothing_left(self) -> bool:
        return False

    def request(
        self, version: StoreVersion, request_id: str, limit: int
    ) -> StoreQueryRequest | HistoryQuery | None:
        window = self._window
        if window.pubsub_topic is None and version is StoreVersion.V2:
            return None  # It sends no hashes, and computing them takes the pubsub topic.
        if version is not self._version and self._version is not None:
            self._begin_again()
        self._version = version
        start_ns, end_ns = window.start_ns, window.end_ns
        if window.forward:
            start_ns = max(start_ns, self._start_key)
        else:
            end_ns = min(end_ns, -self._start_key)
        cursor = self._cursor
        if version is StoreVersion.V3:
            return StoreQueryRequest(
                request_id=request_id,
                include_data=True,
                pubsub_topic=window.pubsub_topic,
                content_topics=window.content_topics,
                time_start_ns=start_ns - 1 if start_ns > 1 else None,
                time_end_ns=end_ns + 1,
                pagination_cursor=None if isinstance(cursor, HistoryIndex) else cursor,
                pagination_forward=window.forward,
                pagination_limit=limit,
            )
        return HistoryQuery(
            request_id=request_id,
            pubsub_topic=window.pubsub_topic,
            content_topics=window.content_topics,
            page_size=limit,
            cursor=cursor if isinstance(cursor, HistoryIndex) else None,
            forward=window.forward,
            start_time_ns=start_ns - 1 if start_ns > 1 else None,
            end_time_ns=end_ns + 1,
        )

    def lose_cursor(self) -> bool:
        """Restart at the last time, with less overlap if the previous restart brought nothing."""
        if not self._restarts or not self._new_since_restart:
            self._restarts += 1
        if self._restarts > len(self._overlaps_ns):
            return self._skip()
        self._begin_again()
        return True

    def _skip(self) -> bool:
        """Continue after a time with more messages than a page holds, if that is possible."""
        if self.key in (self._last_key, self._left_key):
            return False
        self._left_key = self.key
        if self._skipped_key is None:
            self._skipped_key = self.key
        self._restarts = len(self._overlaps_ns)
        self._begin_again()
        self._start_key = self.key + 2  # The request asks for a nanosecond more.
        return True

    def _begin_again(self) -> None:
        overlap_ns = self._overlaps_ns[max(self._restarts - 1, 0)]
        self._start_key = max(self.key - overlap_ns, self._first_key)
        self._cursor = None
        self._cursors.clear()
        self._seen_again = set()
        self._new_since_restart = False

    # --- pages ---

    def take(self, page: Page) -> PageOutcome:
        new: list[HistoryMessage] = []
        messages = duplicates = outside = 0
        fault = next((reason for reason in page.refused if reason in FALSE_ENTRIES), None)
        fresh = bool(page.refused) and fault is None
        for item in page.messages:
            if self._is_elsewhere(item):
                fault = "store_entry_unasked"
                continue
            key = self._key_of(item)
            if key is None:
                outside += 1
                fresh |= self._is_further_outside(item)
                if self._is_far_outside(item) and self._version is StoreVersion.V3:
                    fault = "store_entry_outside_window"
                continue
            sight = self._provenance.note(item.message_hash, self._place)
            if sight is Sight.NEW:
                new.append(item)
            if sight is Sight.KNOWN:
                duplicates += 1
                fresh |= self._is_seen_again_first(item.message_hash)
            else:
                messages += 1
                fresh = self._new_since_restart = True
            self.key = max(self.key, key)
        if page.cursor is None and self._skipped_key is not None:
            fault = fault or "store_cursor_unknown"
        return PageOutcome(
            new=tuple(new),
            messages=messages,
            duplicates=duplicates,
            outside=outside,
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
            self.key = self._last_key
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

    def _key_of(self, item: HistoryMessage) -> int | None:
        """None outside the window.  A message without a time counts as being at the current key."""
        timestamp_ns = item.message.timestamp_ns
        if not timestamp_ns:
            return self.key
        inside = self._window.start_ns <= timestamp_ns <= self._window.end_ns
        return self._sign * timestamp_ns if inside else None

    def _is_far_outside(self, item: HistoryMessage) -> bool:
        timestamp_ns = item.message.timestamp_ns or 0
        return not self._window.start_ns - 1 <= timestamp_ns <= self._window.end_ns + 1

    def _is_further_outside(self, item: HistoryMessage) -> bool:
        """Whether messages outside the window still advance."""
        key = self._sign * (item.message.timestamp_ns or 0)
        if self._outside_key is not None and key <= self._outside_key:
            return False
        self._outside_key = key
        return True

    def _is_seen_again_first(self, message_hash: WakuHash) -> bool:
        if self._seen_again is None or message_hash in self._seen_again:
            return False
        self._seen_again.add(message_hash)
        return True
