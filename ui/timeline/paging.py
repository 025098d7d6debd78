"""Fetches the timeline's pages: one request at a time, and none for a conversation that was left.

Pages come through a small protocol that the engine's API satisfies, on the same loop.  They are
keyset pages by position.  There is no page by ordinal, so dragging the scrollbar far away searches
the log: Lamport timestamps grow with the ordinal, a page says its own ordinal, and a few
interpolated guesses suffice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import date
from enum import Enum, auto
from typing import Protocol

from engine.answers import PAGE_SIZE, TimelinePage
from engine.core.errors import ChatError
from engine.core.ids import ConversationId, MessageId, Position
from ui.error_words import error_words
from ui.timeline.days import days_with_messages

_MAX_GUESSES = 8
_BEFORE_EVERYTHING = Position(lamport_timestamp=-1, message_id=MessageId(""))

log = logging.getLogger(__name__)


class PageSource(Protocol):
    """Where pages come from: four methods of ``engine.api.Timeline``."""

    def latest_page(self, conversation_id: ConversationId, /) -> Awaitable[TimelinePage]: ...

    def page_before(
        self, conversation_id: ConversationId, position: Position, /
    ) -> Awaitable[TimelinePage]: ...

    def page_after(
        self, conversation_id: ConversationId, position: Position, /, *, limit: int = PAGE_SIZE
    ) -> Awaitable[TimelinePage]: ...

    def page_around(
        self, conversation_id: ConversationId, position: Position, /
    ) -> Awaitable[TimelinePage]: ...


class Load(Enum):
    """What a page is for."""

    LATEST = auto()
    FIRST = auto()
    OLDER = auto()
    NEWER = auto()
    AROUND = auto()
    ORDINAL = auto()


class Pager:
    """Fetches for one conversation at a time; ``applied`` gets each page on the loop."""

    def __init__(
        self,
        source: Callable[[], PageSource],
        *,
        applied: Callable[[Load, TimelinePage], None],
        failed: Callable[[str], None],
    ) -> None:
        self._source = source
        self._applied = applied
        self._failed = failed
        self._conversation_id: ConversationId | None = None
        self._task: asyncio.Task[None] | None = None
        self._wanted_ordinal: tuple[int, int] | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def open(self, conversation_id: ConversationId | None) -> None:
        """Switch to this conversation; a request for the one before is dropped."""
        self._stop()
        self._conversation_id = conversation_id

    def close(self) -> None:
        """The view is gone."""
        self.open(None)

    def latest(self) -> None:
        self._stop()
        self._start(Load.LATEST, self._source().latest_page)

    def first(self) -> None:
        self._stop()
        self._start(Load.FIRST, lambda c: self._source().page_after(c, _BEFORE_EVERYTHING))

    def around(self, position: Position) -> None:
        self._stop()
        self._start(Load.AROUND, lambda c: self._source().page_around(c, position))

    def older_than(self, position: Position) -> None:
        if not self.busy:
            self._start(Load.OLDER, lambda c: self._source().page_before(c, position))

    def newer_than(self, position: Position) -> None:
        if not self.busy:
            self._start(Load.NEWER, lambda c: self._source().page_after(c, position))

    def seek(self, ordinal: int, total: int) -> None:
        """Fetch a page with row ``ordinal`` of ``total``.  While busy, the last request wins."""
        if self.busy:
            self._wanted_ordinal = (ordinal, total)
            return
        self._wanted_ordinal = None
        self._start(Load.ORDINAL, lambda c: self._near(c, ordinal, total))

    async def days_with_messages(self, first: date, last: date) -> frozenset[date]:
        """As in ``ui.timeline.days``; it does not wait for pages, nor they for it."""
        if self._conversation_id is None:
            return frozenset()
        return await days_with_messages(self._source(), self._conversation_id, first, last)

    def _stop(self) -> None:
        self._wanted_ordinal = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _start(
        self, load: Load, fetch: Callable[[ConversationId], Awaitable[TimelinePage]]
    ) -> None:
        if self._conversation_id is not None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._run(self._conversation_id, load, fetch))

    async def _run(
        self,
        conversation_id: ConversationId,
        load: Load,
        fetch: Callable[[ConversationId], Awaitable[TimelinePage]],
    ) -> None:
        try:
            page = await fetch(conversation_id)
            await asyncio.sleep(0)  # A frame may be painted before the page is placed.
        except ChatError as error:
            log.warning("page not loaded: %s", type(error).__name__)
            self._task = None
            self._failed(error_words(error))
            return
        self._task = None
        self._applied(load, page)
        if self._wanted_ordinal is not None and not self.busy:
            self.seek(*self._wanted_ordinal)

    async def _near(
        self, conversation_id: ConversationId, ordinal: int, total: int
    ) -> TimelinePage:
        """Interpolate between known pairs of ordinal and Lamport timestamp, or bisect."""
        page = await self._source().page_after(conversation_id, _BEFORE_EVERYTHING)
        low = _last_point(page)
        if low is None or _holds(page, ordinal):
            return page
        page = await self._source().latest_page(conversation_id)
        high = _first_point(page)
        if high is None or _holds(page, ordinal):
            return page
        for guess in range(_MAX_GUESSES):
            if high[1] - low[1] <= 1 or high[0] <= low[0]:
                break
            share = (ordinal - low[0]) / (high[0] - low[0])
            if guess % 3 == 2:  # noqa: PLR2004 - every third guess bisects: steps may be uneven
                share = 0.5
            lamport = low[1] + max(1, min(int((high[1] - low[1]) * share), high[1] - low[1] - 1))
            at = Position(lamport_timestamp=lamport, message_id=MessageId(""))
            page = await self._source().page_around(conversation_id, at)
            first, last = _first_point(page), _last_point(page)
            if first is None or last is None or _holds(page, ordinal):
                break
            low, high = (last, high) if last[0] < ordinal else (low, first)
        return page


def _holds(page: TimelinePage, ordinal: int) -> bool:
    return page.older_count <= ordinal < page.older_count + len(page.messages)


def _first_point(page: TimelinePage) -> tuple[int, int] | None:
    if not page.messages:
        return None
    return page.older_count, page.messages[0].position.lamport_timestamp


def _last_point(page: TimelinePage) -> tuple[int, int] | None:
    placed = [m for m in page.messages if not m.waiting]
    if not placed:
        return None
    return page.older_count + len(placed) - 1, placed[-1].position.lamport_timestamp
