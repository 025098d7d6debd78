"""What a page of one Store was worth; the common shape of paging by time and by hash."""

from typing import Protocol

from engine.core.history.queries import Cursor, HistoryMessage, Page, StoreVersion
from engine.core.value import value
from engine.core.waku_store import HistoryQuery, StoreQueryRequest


@value(frozen=True, slots=True, kw_only=True)
class PageOutcome:
    """``fresh``: the page had something that this Store had not brought before.

    ``fault`` is why the Store is to be left; what the page had is good nevertheless.
    """

    new: tuple[HistoryMessage, ...] = ()
    messages: int = 0
    """Those that this Store brought for the first time."""
    duplicates: int = 0
    outside: int = 0
    fresh: bool = False
    done: bool = False
    fault: str | None = None


@value(frozen=True, slots=True, kw_only=True)
class Place:
    """Where paging through a window was left at one Store, for going on there."""

    key: int
    cursor: Cursor
    version: StoreVersion


class Pages(Protocol):
    """Where one query is at one Store."""

    def request(
        self, version: StoreVersion, request_id: str, limit: int
    ) -> StoreQueryRequest | HistoryQuery | None:
        """For the next page; None if this version has no way to ask for it."""

    def take(self, page: Page) -> PageOutcome: ...

    def has_cursor(self) -> bool: ...

    def lose_cursor(self) -> bool:
        """Go on without the cursor; whether that may still lead anywhere."""

    def nothing_left(self) -> bool:
        """Whether there is nothing to ask for any more, since others brought it."""
