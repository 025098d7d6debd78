"""The interface that paging by time and paging by hash share, and the result of a page."""

from typing import Protocol

from engine.core.history.queries import Cursor, HistoryMessage, Page, StoreVersion
from engine.core.value import value
from engine.core.waku_store import HistoryQuery, StoreQueryRequest


@value(frozen=True, slots=True, kw_only=True)
class PageOutcome:
    """``fresh``: the page had something that this Store had not returned before.

    ``fault``: why to give up on the Store; the page's valid messages still count.
    """

    new: tuple[HistoryMessage, ...] = ()
    messages: int = 0
    """Messages that this Store returned for the first time."""
    duplicates: int = 0
    outside: int = 0
    fresh: bool = False
    done: bool = False
    fault: str | None = None


@value(frozen=True, slots=True, kw_only=True)
class Place:
    """Where paging through a window stopped at one Store, to continue there."""

    key: int
    cursor: Cursor
    version: StoreVersion


class Pages(Protocol):
    """The position of one query at one Store."""

    def request(
        self, version: StoreVersion, request_id: str, limit: int
    ) -> StoreQueryRequest | HistoryQuery | None:
        """The request for the next page; None if this version does not support the query."""

    def take(self, page: Page) -> PageOutcome: ...

    def has_cursor(self) -> bool: ...

    def lose_cursor(self) -> bool:
        """Continue without the cursor.  Returns whether that can still succeed."""

    def nothing_left(self) -> bool:
        """Whether nothing is left to ask for, since other Stores returned it."""
