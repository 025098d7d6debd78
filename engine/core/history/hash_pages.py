"""Looks messages up by hash at one Store: Store v3 only, at most 100 per request.

It uses no cursor: hashes absent from a truncated page are requested again.  All Stores of the query
share the set of missing hashes, so each is asked only for what the previous ones did not have.
2.0.0-beta4 has no hash lookups, and a hash gives no time to search, so it cannot answer.
"""

from engine.core.history.pages import PageOutcome
from engine.core.history.provenance import Provenance, Sight
from engine.core.history.queries import HistoryMessage, Page, StoreVersion
from engine.core.history.window_pages import FALSE_ENTRIES
from engine.core.ids import WakuHash
from engine.core.waku_store import StoreQueryRequest


class HashPages:
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
        messages = duplicates = 0
        fault = next((reason for reason in page.refused if reason in FALSE_ENTRIES), None)
        for item in page.messages:
            if item.message_hash not in self._asked:
                fault = "store_entry_unasked"
                continue
            sight = self._provenance.note(item.message_hash, self._place)
            if sight is Sight.NEW:
                new.append(item)
            if sight is Sight.KNOWN:
                duplicates += 1
            else:
                messages += 1
            self._missing.pop(item.message_hash, None)
        cut = page.cursor is not None
        if not cut:
            self._batch = ()
        return PageOutcome(
            new=tuple(new),
            messages=messages,
            duplicates=duplicates,
            fresh=bool(messages) or not cut,
            done=fault is None and self.nothing_left(),
            fault=fault,
        )
