"""Commands that the engine forwards unchanged: history, Stores and timeline pages."""

from collections.abc import Sequence

from engine.answers import ForkProof, HolderView, TimelinePage
from engine.core.errors import LocalProtocolError
from engine.core.ids import ConversationId, MessageId, Position
from engine.events import FloodView, ForkView, GapView, HeldView
from engine.history_views import HistoryView, LostView, StoreTestView, StoreView
from engine.runtime.conversations import Conversations
from engine.runtime.dependencies import NO_IDENTITY
from engine.runtime.history.service import HistoryService
from engine.runtime.profile_services import ProfileServices
from engine.runtime.timeline_pages import TimelinePages


class HistoryCommands:
    _history: HistoryService | None
    _services: ProfileServices | None

    async def fetch_history(self, conversation_id: ConversationId, *, days: int | None) -> None:
        await self._past.fetch(conversation_id, days=days)

    async def _fetch_lost_of_pair(
        self, conversation_id: ConversationId, lost: Sequence[LostView]
    ) -> None:
        if self._services is None:
            raise LocalProtocolError(NO_IDENTITY)
        await self._past.fetch_lost_of_pair(conversation_id, lost, self._services.pages)

    async def fetch_earlier(self, conversation_id: ConversationId) -> None:
        await self._past.fetch_earlier(conversation_id)

    async def cancel_history(self, conversation_id: ConversationId) -> None:
        await self._past.cancel(conversation_id)

    def history(self, conversation_id: ConversationId) -> HistoryView | None:
        return self._past.view(conversation_id)

    def stores(self) -> Sequence[StoreView]:
        return () if self._history is None else self._history.stores()

    async def add_store(self, multiaddr: str) -> None:
        await self._past.add_store(multiaddr)

    async def remove_store(self, multiaddr: str) -> None:
        await self._past.remove_store(multiaddr)

    async def move_store(self, multiaddr: str, *, place: int) -> None:
        await self._past.move_store(multiaddr, place=place)

    async def enable_store(self, multiaddr: str, *, enabled: bool) -> None:
        await self._past.enable_store(multiaddr, enabled=enabled)

    async def test_store(self, multiaddr: str) -> StoreTestView:
        return await self._past.test_store(multiaddr)

    @property
    def _past(self) -> HistoryService:
        if self._history is None:
            raise LocalProtocolError(NO_IDENTITY)
        return self._history


class PageCommands:
    _conversations: Conversations
    _services: ProfileServices | None

    async def latest_page(
        self, conversation_id: ConversationId, *, limit: int = 100
    ) -> TimelinePage:
        return await self._pages.latest(conversation_id, limit=limit)

    async def page_before(
        self, conversation_id: ConversationId, position: Position, *, limit: int = 100
    ) -> TimelinePage:
        return await self._pages.before(conversation_id, position, limit=limit)

    async def page_after(
        self, conversation_id: ConversationId, position: Position, *, limit: int = 100
    ) -> TimelinePage:
        return await self._pages.after(conversation_id, position, limit=limit)

    async def page_around(
        self, conversation_id: ConversationId, position: Position, *, limit: int = 100
    ) -> TimelinePage:
        return await self._pages.around(conversation_id, position, limit=limit)

    async def gap(self, conversation_id: ConversationId) -> GapView | None:
        return self._conversations.runner(conversation_id).gap()

    async def held(self, conversation_id: ConversationId) -> HeldView | None:
        return self._conversations.runner(conversation_id).held()

    async def floods(self, conversation_id: ConversationId) -> Sequence[FloodView]:
        return self._conversations.runner(conversation_id).floods()

    async def forks(self, conversation_id: ConversationId) -> Sequence[ForkView]:
        return self._conversations.runner(conversation_id).forks()

    async def fork_proof(self, fork: ForkView) -> ForkProof:
        return await self._pages.fork_proof(fork)

    async def holders(
        self, conversation_id: ConversationId, message_id: MessageId
    ) -> Sequence[HolderView]:
        return await self._pages.holders(conversation_id, message_id)

    @property
    def _pages(self) -> TimelinePages:
        if self._services is None:
            raise LocalProtocolError(NO_IDENTITY)
        return self._services.pages
