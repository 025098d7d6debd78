"""One Store in a query: its pager, and the note about it at the end."""

from dataclasses import dataclass
from typing import Final

from engine.core.history.provenance import Provenance
from engine.core.history.queries import (
    ENVIRONMENT_REASONS,
    End,
    StoreEnded,
    StoreNote,
)
from engine.core.history.store_pager import StorePager
from engine.core.history.window_pages import WindowPages

_UNTRUSTED_ENDS: Final = frozenset({End.NOTHING_NEW, End.TOO_MANY_PAGES})


@dataclass(slots=True)
class QueriedStore:
    paging: StorePager
    window: WindowPages | None
    place: int
    behind: bool
    """The others do not wait for it until it has caught up."""
    told: bool = False

    @property
    def running(self) -> bool:
        return self.paging.end is None

    @property
    def key(self) -> int:
        return 0 if self.window is None else self.window.key

    @property
    def sure_key(self) -> int:
        """Up to here it returned everything it has."""
        return 0 if self.window is None else self.window.sure_key

    @property
    def lied(self) -> bool:
        """Given up for a fault of its own."""
        end, reason = self.paging.end, self.paging.reason
        return end is End.FAULTED and reason not in ENVIRONMENT_REASONS

    @property
    def trusted(self) -> bool:
        return not self.lied and self.paging.end not in _UNTRUSTED_ENDS

    @property
    def is_complete(self) -> bool:
        return self.paging.end is End.COMPLETE

    def ended_event(self, query_id: int, end: End) -> StoreEnded:
        return StoreEnded(
            query_id=query_id,
            store=self.paging.store,
            version=self.paging.version,
            end=end,
            reason=self.paging.reason,
            statistics=self.paging.statistics(),
        )

    def note(self, end: End, provenance: Provenance, *, trusted: int) -> StoreNote:
        """``trusted``: the Stores whose messages count for ``omitted``, as a bit mask of places."""
        counts = self.is_complete and self.window is not None
        return StoreNote(
            store=self.paging.store,
            version=self.paging.version,
            end=end,
            reason=self.paging.reason,
            statistics=self.paging.statistics(),
            omitted=provenance.omitted(self.place, of=trusted) if counts else None,
            alone=provenance.alone(self.place),
        )
