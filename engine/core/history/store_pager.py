"""Runs one query at one Store, page by page, and determines why it ends.

It handles what windows and hash lookups share: the version of 13/WAKU2-STORE, refusals, lost
connections, back-off, oversized pages, and every limit on what a hostile Store can cost.  A Store
that errs is given up with a reason.  Messages it returned before stay, since each was checked by
itself.  ``merging`` combines several Stores.
"""

from typing import Final, assert_never

from engine.core.entropy import RandomUnit
from engine.core.history.config import HistoryConfig
from engine.core.history.pages import Pages, Provenance, WindowPages
from engine.core.history.queries import (
    ENVIRONMENT_REASONS,
    Ask,
    Candidate,
    End,
    Failed,
    FailureKind,
    HistoryMessage,
    Outcome,
    Page,
    Refusal,
    StoreEnded,
    StoreNote,
    StoreStatistics,
    StoreVersion,
)
from engine.core.ids import UnixMs
from engine.core.waku_store import HistoryError, StoreStatus

_BUSY: Final = {
    int(StoreStatus.TOO_MANY_REQUESTS): "too_many_requests",
    int(StoreStatus.INTERNAL_ERROR): "unavailable",
    int(StoreStatus.SERVICE_UNAVAILABLE): "unavailable",
}
_CUT_SHORT: Final = frozenset({"frame_oversized", "exchange_ended_early"})
"""How an answer that exceeded a size limit appears here."""
_UNTRUSTED_ENDS: Final = frozenset({End.NOTHING_NEW, End.TOO_MANY_PAGES})


class StorePager:
    def __init__(  # noqa: PLR0913 - keyword-only: where one Store stands in a query
        self,
        candidate: Candidate,
        pages: Pages,
        place: int,
        *,
        behind: bool,
        version: StoreVersion | None,
        config: HistoryConfig,
        random_unit: RandomUnit,
        now_ms: UnixMs,
    ) -> None:
        """``version``: that of an earlier query, to go on with; None = the newest it may speak."""
        self.store = candidate.store
        self.pages = pages
        self.place = place
        self.behind = behind
        """The others do not wait for it until it has caught up."""
        self.told = False
        """Whether its end has been reported."""
        self._config = config
        self._random_unit = random_unit
        speaks_v3 = not candidate.versions or StoreVersion.V3 in candidate.versions
        self.version = version or (StoreVersion.V3 if speaks_v3 else StoreVersion.V2)
        self._unsupported: set[StoreVersion] = set()
        self.end: End | None = None
        self.reason = ""
        self._ends_ms = UnixMs(now_ms + config.query_timeout_ms)
        self._asked: Ask | None = None
        self._asked_ms = now_ms
        self._not_before_ms: UnixMs | None = None
        self._limit = self._largest = config.page_messages
        self._good_pages = 0
        self._stale_pages = 0
        self._failures = 0
        self._refusals = 0
        # Counts for ``statistics``.
        self._page_count = self._messages = self._new = self._refused = self._busy_ms = 0

    @property
    def outstanding(self) -> int | None:
        """The id of the ``Ask`` that waits for its answer."""
        return None if self._asked is None else self._asked.ask_id

    # --- what the query makes of it ---

    @property
    def running(self) -> bool:
        return self.end is None

    @property
    def is_complete(self) -> bool:
        return self.end is End.COMPLETE

    @property
    def lied(self) -> bool:
        """Given up for a fault of its own."""
        return self.end is End.FAULTED and self.reason not in ENVIRONMENT_REASONS

    @property
    def trusted(self) -> bool:
        return not self.lied and self.end not in _UNTRUSTED_ENDS

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(
            pages=self._page_count,
            messages=self._messages,
            new=self._new,
            refused=self._refused,
            busy_ms=self._busy_ms,
        )

    def ended_event(self, query_id: int, end: End) -> StoreEnded:
        return StoreEnded(
            query_id=query_id,
            store=self.store,
            version=self.version,
            end=end,
            reason=self.reason,
            statistics=self.statistics(),
        )

    def note(self, end: End, provenance: Provenance, *, trusted: int) -> StoreNote:
        """``trusted``: the Stores whose messages count for ``omitted``, as a bit mask of places."""
        counts = self.is_complete and isinstance(self.pages, WindowPages)
        return StoreNote(
            store=self.store,
            version=self.version,
            end=end,
            reason=self.reason,
            statistics=self.statistics(),
            omitted=provenance.omitted(self.place, of=trusted) if counts else None,
        )

    # --- asking ---

    def next_deadline(self) -> UnixMs | None:
        """When the Store may be asked again, or its answer is due."""
        if self.end is not None:
            return None
        if self._asked is not None:
            return min(self._ends_ms, UnixMs(self._asked_ms + self._asked.timeout_ms))
        return self._not_before_ms

    def may_ask(self, now_ms: UnixMs) -> bool:
        if self.end is not None or self._asked is not None:
            return False
        # A wait longer than the maximum means that the clock was set back.
        wait_ms = 0 if self._not_before_ms is None else self._not_before_ms - now_ms
        return not 0 < wait_ms <= self._config.longest_back_off_ms

    def ask(self, ask_id: int, now_ms: UnixMs) -> Ask | None:
        """The next request; None if the query ended at this Store (see ``end``)."""
        if self.pages.nothing_left():
            self._finish(End.COMPLETE)
            return None
        if now_ms >= self._ends_ms:
            self._finish(End.TIMEOUT)
            return None
        request = self.pages.request(self.version, str(ask_id), self._limit)
        if request is None:
            self._finish(End.CANNOT, "protocol_unsupported" if self._unsupported else "")
            return None
        self._asked_ms, self._not_before_ms = now_ms, None
        self._asked = Ask(
            ask_id=ask_id,
            store=self.store,
            request=request,
            first_byte_timeout_ms=self._config.first_byte_timeout_ms,
            timeout_ms=self._config.page_timeout_ms,
        )
        return self._asked

    def answered(self, outcome: Outcome, now_ms: UnixMs) -> tuple[HistoryMessage, ...]:
        """Handle an outcome; returns messages that no Store returned before.  See also ``end``."""
        self._asked = None
        self._busy_ms += max(now_ms - self._asked_ms, 0)
        match outcome:
            case Page():
                return self._page(outcome)
            case Refusal(code=code):
                self._refusal(code, now_ms)
            case Failed():
                self._failed(outcome, now_ms)
            case _:
                assert_never(outcome)
        return ()

    def overdue(self, now_ms: UnixMs) -> bool:
        """Whether the answer is overdue."""
        if self._asked is None:
            return False
        self._asked_ms = min(self._asked_ms, now_ms)  # In the future: the clock was set back.
        return now_ms >= min(self._asked_ms + self._asked.timeout_ms, self._ends_ms)

    def cancel(self) -> None:
        self._finish(End.CANCELLED)

    # --- outcomes ---

    def _page(self, page: Page) -> tuple[HistoryMessage, ...]:
        taken = self.pages.take(page)
        self._page_count += 1
        self._failures = self._refusals = 0
        self._messages += taken.messages
        self._new += len(taken.new)
        self._refused += len(page.refused)
        self._stale_pages = 0 if taken.fresh else self._stale_pages + 1
        self._grow()
        if taken.fault is not None:
            self._finish(End.FAULTED, taken.fault)
        elif taken.done:
            self._finish(End.COMPLETE)
        elif self._stale_pages >= self._config.max_stale_pages:
            self._finish(End.NOTHING_NEW)
        elif self._page_count >= self._config.max_pages:
            self._finish(End.TOO_MANY_PAGES)
        return taken.new

    def _grow(self) -> None:
        if self._limit == self._largest:
            return
        self._good_pages += 1
        if self._good_pages >= self._config.good_pages_to_grow:
            self._good_pages = 0
            self._limit = min(2 * self._limit, self._largest)

    def _refusal(self, code: int, now_ms: UnixMs) -> None:
        busy = _BUSY.get(code)
        if busy is not None:
            self._refusals += 1
            if self._refusals >= self._config.max_refusals:
                self._finish(End.FAULTED, busy)
            else:
                self._wait(self._refusals, now_ms)
        elif self.version is StoreVersion.V2 and code == HistoryError.INVALID_CURSOR:
            self._cursor_lost("bad_request")
        elif self.version is StoreVersion.V3 and code == StoreStatus.BAD_RESPONSE:
            self._cursor_lost("bad_response")
        elif self.version is StoreVersion.V3 and code == StoreStatus.BAD_REQUEST:
            self._cursor_lost("bad_request")
        else:
            self._finish(End.FAULTED, "status_unknown")

    def _cursor_lost(self, else_reason: str) -> None:
        """Restart without the cursor; if there was none, the request itself was refused."""
        if not self.pages.has_cursor():
            self._finish(End.FAULTED, else_reason)
        elif not self.pages.lose_cursor():
            self._finish(End.FAULTED, "store_cursor_unknown")

    def _failed(self, failed: Failed, now_ms: UnixMs) -> None:
        match failed.kind:
            case FailureKind.UNSUPPORTED:
                self._switch()
            case FailureKind.TOO_LARGE:
                self._too_large(failed.reason or "frame_oversized")
            case FailureKind.BROKEN if failed.reason in _CUT_SHORT:
                self._too_large(failed.reason)
            case FailureKind.BROKEN:
                self._finish(End.FAULTED, failed.reason or "broken")
            case FailureKind.TIMEOUT:
                self._timed_out(now_ms)
            case FailureKind.UNREACHABLE:
                self._lost(End.FAULTED, now_ms)
            case _:
                assert_never(failed.kind)

    def _switch(self) -> None:
        self._unsupported.add(self.version)
        is_v3 = self.version is StoreVersion.V3
        self.version = StoreVersion.V2 if is_v3 else StoreVersion.V3
        if self.version in self._unsupported:
            self._finish(End.FAULTED, "protocol_unsupported")

    def _too_large(self, reason: str) -> None:
        """Ask for less first: servers limit page sizes differently."""
        if self._limit == 1:
            self._finish(End.FAULTED, reason)
        self._halve()
        self._largest = self._limit

    def _timed_out(self, now_ms: UnixMs) -> None:
        """Give up on a Store that never answered; else retry with a smaller page."""
        if not self._page_count or now_ms >= self._ends_ms:
            self._finish(End.TIMEOUT)
        else:
            self._lost(End.TIMEOUT, now_ms)

    def _lost(self, end: End, now_ms: UnixMs) -> None:
        self._failures += 1
        if self._failures >= self._config.max_failures:
            self._finish(end, "unreachable" if end is End.FAULTED else "")
            return
        self._halve()
        self._wait(self._failures, now_ms)

    def _halve(self) -> None:
        self._good_pages = 0
        self._limit = max(self._limit // 2, 1)

    def _wait(self, times: int, now_ms: UnixMs) -> None:
        longest_ms = self._config.longest_back_off_ms
        wait_ms = min(self._config.back_off_ms << min(times - 1, 20), longest_ms)
        wait_ms -= int(wait_ms / 2 * self._random_unit())
        self._not_before_ms = UnixMs(now_ms + wait_ms)

    def _finish(self, end: End, reason: str = "") -> None:
        self.end, self.reason = end, reason
        self._asked = self._not_before_ms = None
