"""Finds messages, and keeps the index of the search up while the profile runs.

Implements ``engine.api.Search``.  Searches read on a thread of their own, beside the storage
thread, so they delay no write.  What came is indexed a second later, or before the next search; a
backfill once it is over, since both use the storage thread and somebody waits for its messages.
Messages of an old profile are indexed in slices with pauses between them.  A damaged index is made
again, which the window says.
"""

import asyncio
import logging
from collections.abc import Sequence
from threading import Event
from typing import Final

from engine.answers import FOUND_SIZE, FoundView, SearchAnswer
from engine.core.errors import ChatError, StorageError
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.search import FoundMessage, FoundPlace, Indexed, SearchQuery, SearchReader
from engine.core.search_text import is_shortened, wanted
from engine.events import (
    ConversationRemoved,
    EngineEvent,
    MessageAdded,
    MessageChanged,
    MessageRemoved,
    MessagesAdded,
    NoticeLevel,
    NoticeRaised,
    SearchIndexed,
    SearchMadeAgain,
    TimelineChanged,
)
from engine.network.owned_tasks import OwnedTasks
from engine.persistence.storage_thread import DAMAGE, StorageThread
from engine.runtime.conversations import Conversations
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import sender_name, shown_name

SETTLE_S: Final = 1.0
"""Messages that come within this time are indexed together."""
LONGEST_SETTLE_S: Final = 30.0
"""If messages keep coming for this long, they are indexed nevertheless."""
BREATHE_S: Final = 0.05
"""Pause between two slices, so that other writes come first."""
MOST_SLICES: Final = 16
"""Indexed before a search; the rest of a flood is found a little later."""
_CHANGES: Final = (
    MessageAdded, MessagesAdded, MessageChanged, MessageRemoved, TimelineChanged,
    ConversationRemoved,
)  # fmt: skip

logger = logging.getLogger(__name__)


class Search:
    def __init__(self, context: RunnerContext, conversations: Conversations) -> None:
        self._storage = context.storage
        self._searching = context.store.searching
        self._publish = context.publish
        self._counters = context.counters
        self._conversations = conversations
        self._reading = StorageThread()
        self._reader: SearchReader | None = None
        self._can_read_beside = True
        self._asked: set[Event] = set()
        """Set to end the searches that are under way."""
        self._may_make_again = True
        """Not before it was whole again: what is damaged then is not the index."""
        self._active = True
        self._told = SearchIndexed(left=0, total=0, is_paused=False)
        self._due = asyncio.Event()
        self._tasks = OwnedTasks(context.counters, failed="engine.task_failed")

    def start(self) -> None:
        self._tasks.spawn(self._keep_up())

    async def stop(self) -> None:
        await self._tasks.cancel_all()
        for stop in self._asked:
            stop.set()
        await self._reading.close(self._close_reader)

    def hear(self, event: EngineEvent) -> None:
        if isinstance(event, _CHANGES):
            self._due.set()

    # --- searching ----------------------------------------------------------------------------

    async def find(  # noqa: PLR0913 - one keyword per filter
        self,
        text: str,
        *,
        conversation_id: ConversationId | None = None,
        sender_id: ParticipantId | None = None,
        since_ms: UnixMs | None = None,
        until_ms: UnixMs | None = None,
        has_file: bool = False,
        has_link: bool = False,
        before: FoundPlace | None = None,
        limit: int = FOUND_SIZE,
    ) -> SearchAnswer:
        query = SearchQuery(
            wanted=wanted(text),
            conversation_id=conversation_id,
            sender_id=sender_id,
            since_ms=since_ms,
            until_ms=until_ms,
            has_file=has_file,
            has_link=has_link,
            before=before,
        )
        found: Sequence[FoundMessage] = ()
        if query.asks_for_something():
            try:
                await self._index_due()
                found = await self._read(query, limit + 1)
            except StorageError as error:
                await self._set_right(error)
        views = tuple(view for one in found[:limit] if (view := self._view(one)) is not None)
        return SearchAnswer(
            found=views, has_more=len(found) > limit, is_shortened=is_shortened(text)
        )

    async def _index_due(self) -> None:
        for _ in range(MOST_SLICES):
            indexed = await self._storage.attempt(self._searching.index_some, old=False)
            self._show(indexed)  # Of a long backfill not all is found yet.
            if not indexed.is_more:
                return

    async def _read(self, query: SearchQuery, limit: int) -> Sequence[FoundMessage]:
        stop = Event()
        self._asked.add(stop)
        try:
            if self._can_read_beside:
                found = await self._reading.run(self._read_beside, query, limit, stop)
                if found is not None:
                    return found
                self._can_read_beside = False
            return await self._storage.attempt(self._searching.find, query, limit=limit, stop=stop)
        except asyncio.CancelledError:
            stop.set()
            raise
        finally:
            self._asked.discard(stop)

    def _read_beside(
        self, query: SearchQuery, limit: int, stop: Event
    ) -> Sequence[FoundMessage] | None:
        """On the reading thread.  None if this store has no other connection."""
        if self._reader is None:
            self._reader = self._searching.reader()
        if self._reader is None:
            return None
        try:
            return self._reader.find(query, limit=limit, stop=stop)
        except StorageError:
            self._close_reader()
            raise

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _view(self, one: FoundMessage) -> FoundView | None:
        """None if the conversation was left meanwhile."""
        try:
            runner = self._conversations.runner(one.conversation_id)
        except ChatError:
            return None
        return FoundView(
            conversation_id=one.conversation_id,
            conversation_name=shown_name(runner.record),
            position=one.position,
            sender_id=one.sender_id,
            sender_name=sender_name(one.sender_id, runner.members, runner.record),
            is_own=one.is_own,
            sent_ms=one.sent_ms,
            excerpt=one.excerpt,
            file_name=one.file_name,
        )

    # --- indexing -----------------------------------------------------------------------------

    def indexed(self) -> SearchIndexed:
        return self._told

    def set_indexing(self, *, active: bool) -> None:
        self._active = active
        self._tell(self._told.left, self._told.total)
        self._due.set()

    async def _keep_up(self) -> None:
        await self._conversations.loaded()
        while True:
            self._due.clear()
            if await self._index_some():
                await asyncio.sleep(BREATHE_S)  # What comes meanwhile does not hold up the rest.
            else:
                await self._due.wait()
                await self._settle()

    async def _settle(self) -> None:
        """Something came: wait until nothing has come for a while."""
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + LONGEST_SETTLE_S
        while self._due.is_set() and now_s() < until_s:
            self._due.clear()
            await asyncio.sleep(SETTLE_S)

    async def _index_some(self) -> bool:
        """Whether to go on at once.  After a failure of the disk the next change tries again."""
        try:
            indexed = await self._storage.attempt(self._searching.index_some, old=self._active)
        except StorageError as error:
            try:
                await self._set_right(error)
            except StorageError as worse:
                self._counters.add("search.not_indexed")
                logger.warning("messages were not indexed", extra={"error": type(worse).__name__})
            return False
        self._show(indexed)
        if not (indexed.is_more or indexed.old_left):
            self._may_make_again = True
        return indexed.is_more or (self._active and indexed.old_left > 0)

    async def _set_right(self, error: StorageError) -> None:
        """Make a damaged index again.  Raises StorageError if that is not what is wrong.

        A message that cannot be read looks the same from here, and would be met again and again.
        """
        if error.fault not in DAMAGE or not self._may_make_again:
            self._storage.tell_of(error)
            raise error
        self._may_make_again = False
        self._counters.add("search.index_made_again")
        logger.warning("the search's index is damaged and made again")
        await self._storage.run(self._searching.rebuild)
        content = SearchMadeAgain()
        self._publish(NoticeRaised(key="search", level=NoticeLevel.INFO, content=content))
        self._due.set()

    def _show(self, indexed: Indexed) -> None:
        self._tell(indexed.old_left, indexed.old_total if indexed.old_left else 0)

    def _tell(self, left: int, total: int) -> None:
        told = SearchIndexed(left=left, total=total, is_paused=not self._active and left > 0)
        if told != self._told:
            self._told = told
            self._publish(told)
