"""How far one conversation's backfill has come: on disk, and as the user sees it.

``ProgressStore`` saves new and finished windows immediately, and progress in between at most once a
second.  Progress is saved only after the messages it covers: the caller makes these durable first.
A crash costs about a second of pages, which are fetched again.

``HistoryEventPublisher`` shows message counts, rate and share of the window.  It publishes updates
at most four times a second, changes of state immediately.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from engine.core.history.progress import (
    HistoryKept,
    HistoryWrite,
    KeptWrite,
    Purpose,
    SaveProgress,
    SaveReach,
    ms_of,
    with_write,
)
from engine.core.history.queries import Window
from engine.core.ids import ConversationId, UnixMs
from engine.core.ports import ApplyHistory, ProfileStore, SaveValue
from engine.core.problems import HistoryProblem, NoStoreToAsk
from engine.history_views import HistoryReason, HistoryState, HistoryView
from engine.persistence.storage_thread import StorageThread

SAVE_EVERY_MS: Final = 1_000
INBOX: Final = ConversationId("inbox")
"""The inbox has a backfill like a conversation."""
INBOX_KEY: Final = "history.inbox"
TELL_EVERY_MS: Final = 250
RATE_OVER_MS: Final = 4_000

REASONS: Final = {
    Purpose.USER: HistoryReason.USER,
    Purpose.EARLIER: HistoryReason.EARLIER,
    Purpose.CONNECT: HistoryReason.CONNECT,
    Purpose.DEPENDENCY: HistoryReason.DEPENDENCY,
}
"""Trailing checks are missing here: they run silently."""
ASKED_BY_USER: Final = frozenset({HistoryReason.USER, HistoryReason.EARLIER})


class ProgressStore:
    """Every coroutine may raise StorageError."""

    def __init__(
        self,
        conversation_id: ConversationId,
        store: ProfileStore,
        storage: StorageThread,
        now_ms: Callable[[], UnixMs],
    ) -> None:
        self._conversation_id = conversation_id
        self._store = store
        self._storage = storage
        self._now_ms = now_ms
        self._unsaved: dict[Purpose, SaveProgress] = {}
        self._saved_ms = 0
        self.kept = HistoryKept()

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved)

    async def load(self) -> None:
        """Read what is durable, and discard the rest: its pages are fetched again."""
        self._unsaved.clear()
        if self._conversation_id != INBOX:
            self.kept = await self._storage.run(self._store.history, self._conversation_id)
            return
        text = await self._storage.run(self._store.value, INBOX_KEY)
        self.kept = HistoryKept(through_ms=UnixMs(int(text)) if text else None)

    async def keep(self, writes: Sequence[HistoryWrite]) -> None:
        """Save new and dropped windows now, and progress when it is due."""
        now: list[KeptWrite] = []
        kept = {progress.purpose for progress in self.kept.progress}
        for write in writes:
            if isinstance(write, SaveProgress):
                self._unsaved[write.progress.purpose] = write
                if write.progress.purpose not in kept:
                    now.append(self._unsaved.pop(write.progress.purpose))
            else:
                self._unsaved.pop(write.purpose, None)
                now.append(write)
        if now:
            await self.save(now)
        await self.save_due()

    async def save_due(self) -> None:
        now_ms = self._now_ms()
        if self._unsaved and not 0 <= now_ms - self._saved_ms < SAVE_EVERY_MS:
            unsaved, self._unsaved = list(self._unsaved.values()), {}
            await self.save(unsaved)

    async def save(self, writes: Sequence[KeptWrite]) -> None:
        rows = self._rows(writes)
        if rows:
            await self._storage.run(self._store.apply, rows)
        self._saved_ms = self._now_ms()
        for write in writes:
            self.kept = with_write(self.kept, write)

    def _rows(self, writes: Sequence[KeptWrite]) -> list[ApplyHistory | SaveValue]:
        """Of the inbox only up to when it was covered; an interrupted window starts again."""
        if self._conversation_id != INBOX:
            return [ApplyHistory(conversation_id=self._conversation_id, writes=tuple(writes))]
        return [
            SaveValue(key=INBOX_KEY, value=str(write.through_ms))
            for write in writes
            if isinstance(write, SaveReach) and write.through_ms is not None
        ]

    async def reach(self, since_ms: UnixMs) -> None:
        """Record how far back the user or a session requested messages."""
        known = self.kept.since_ms
        if known is None or since_ms < known:
            await self.save([SaveReach(since_ms=since_ms)])


class HistoryEventPublisher:
    def __init__(
        self,
        conversation_id: ConversationId,
        tell: Callable[[HistoryView], None],
        now_ms: Callable[[], UnixMs],
    ) -> None:
        self._conversation_id = conversation_id
        self._tell = tell
        self._now_ms = now_ms
        self.view: HistoryView | None = None
        self._purpose: Purpose | None = None
        self._window: Window | None = None
        self._first_ns: int | None = None
        self._before = 0
        """Messages fetched by earlier queries of this request."""
        self._query_fetched = 0
        self._arrived_at_begin = 0
        self._rate: deque[tuple[UnixMs, int]] = deque()
        self._told_ms = 0
        self._has_store = True

    def stores(self, *, any_: bool) -> None:
        """Whether there is a Store to ask; a waiting view shows it."""
        self._has_store = any_
        view = self.view
        if view is not None and not view.is_over:
            problem = None if any_ else NoStoreToAsk()
            if problem != view.problem:
                waits = view if any_ else replace(view, state=HistoryState.WAITING)
                self._show(replace(waits, problem=problem), now=True)

    def waits(self, purpose: Purpose, since_ms: UnixMs) -> None:
        """Show a request that waits; the user's replace background ones."""
        reason, view = REASONS.get(purpose), self.view
        if reason is None:
            return
        if (
            view is None
            or view.is_over
            or (reason in ASKED_BY_USER and view.reason not in ASKED_BY_USER)
        ):
            self._begin(purpose, reason, since_ms)

    def started(self, purpose: Purpose, window: Window, *, stores: int, arrived: int) -> None:
        reason = REASONS.get(purpose)
        self._purpose, self._window = purpose, window
        if reason is None:
            return
        goes_on = self.view is not None and self.view.reason is reason and not self.view.is_over
        if not goes_on:
            self._begin(purpose, reason, ms_of(window.start_ns))
        if self.view is not None and self.view.state is HistoryState.WAITING:
            self._arrived_at_begin = arrived
        self._before += self._query_fetched
        self._query_fetched = 0
        if self.view is not None:
            running = replace(self.view, state=HistoryState.RUNNING, stores=stores, problem=None)
            self._show(running, now=True)

    def _begin(self, purpose: Purpose, reason: HistoryReason, since_ms: UnixMs) -> None:
        self._purpose = purpose
        self._first_ns, self._before, self._query_fetched = None, 0, 0
        self._rate.clear()
        view = HistoryView(
            conversation_id=self._conversation_id,
            reason=reason,
            state=HistoryState.WAITING,
            since_ms=since_ms or None,
            problem=None if self._has_store else NoStoreToAsk(),
        )
        self._show(view, now=True)

    @property
    def _is_told(self) -> bool:
        return self._purpose in REASONS

    def fetched(self, number: int, first_ns: int | None, *, arrived: int) -> None:
        view = self.view
        if not self._is_told or view is None or view.state is HistoryState.WAITING:
            return  # From a query that this request interrupted.
        if self._first_ns is None:
            self._first_ns = first_ns
        self._query_fetched += number
        total, now_ms = self._before + self._query_fetched, self._now_ms()
        self._rate.append((now_ms, total))
        while len(self._rate) > 2 and self._rate[0][0] < now_ms - RATE_OVER_MS:  # noqa: PLR2004
            self._rate.popleft()
        began_ms, before = self._rate[0]
        elapsed_ms = now_ms - began_ms
        rate = 1_000 * (total - before) / elapsed_ms if elapsed_ms > 0 else 0.0
        arrived -= self._arrived_at_begin
        self._show(replace(view, fetched=total, per_second=rate, arrived=arrived))

    def advanced(self, reached_ns: int) -> None:
        window, view = self._window, self.view
        if not self._is_told or window is None or view is None:
            return
        start_ns = max(window.start_ns, self._first_ns or 0)
        if start_ns and window.end_ns > start_ns:
            share = (reached_ns - start_ns) / (window.end_ns - start_ns)
            self._show(replace(view, fraction=min(max(share, 0.0), 1.0)))

    def ended(
        self, purpose: Purpose, state: HistoryState, problem: HistoryProblem | None = None
    ) -> None:
        view = self.view
        if view is None or view.is_over or view.reason is not REASONS.get(purpose):
            return
        fraction = 1.0 if state is HistoryState.DONE else view.fraction
        self._show(replace(view, state=state, fraction=fraction, problem=problem), now=True)

    def _show(self, view: HistoryView, *, now: bool = False) -> None:
        self.view = view
        at_ms = self._now_ms()
        if now or not 0 <= at_ms - self._told_ms < TELL_EVERY_MS:
            self._told_ms = at_ms
            self._tell(view)
