"""The scripted engine's history: it notes what was asked, and tells what a test wants told."""

from collections.abc import Sequence

from engine.core.ids import ConversationId
from engine.history_views import HistoryView, StoreTestView, StoreView
from tests.ui.scripted_search import ScriptedSearching


class ScriptedStores(ScriptedSearching):
    store_views: tuple[StoreView, ...] = ()
    history_view: HistoryView | None = None

    def _enter(self, method: str, argument: object) -> None:
        raise NotImplementedError

    async def fetch(self, conversation_id: ConversationId, *, days: int | None) -> None:
        self._enter("fetch_history", (conversation_id, days))

    async def fetch_earlier(self, conversation_id: ConversationId) -> None:
        self._enter("fetch_earlier", conversation_id)

    async def cancel(self, conversation_id: ConversationId) -> None:
        self._enter("cancel_history", conversation_id)

    def view(self, conversation_id: ConversationId) -> HistoryView | None:
        del conversation_id
        return self.history_view

    def stores(self) -> Sequence[StoreView]:
        return self.store_views

    async def add_store(self, multiaddr: str) -> None:
        self._enter("add_store", multiaddr)

    async def remove_store(self, multiaddr: str) -> None:
        self._enter("remove_store", multiaddr)

    async def move_store(self, multiaddr: str, *, place: int) -> None:
        self._enter("move_store", (multiaddr, place))

    async def enable_store(self, multiaddr: str, *, enabled: bool) -> None:
        self._enter("enable_store", (multiaddr, enabled))

    async def test_store(self, multiaddr: str) -> StoreTestView:
        self._enter("test_store", multiaddr)
        return StoreTestView(multiaddr=multiaddr, problem=None)
