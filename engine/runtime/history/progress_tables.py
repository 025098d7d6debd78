"""Where the progress of backfills is stored: with its conversation, or for the inbox."""

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from engine.core.history.saved import HistoryKept, KeptWrite, SaveReach
from engine.core.ids import ConversationId, UnixMs
from engine.core.ports import ApplyHistory, ProfileStore, SaveValue
from engine.persistence.storage_thread import StorageThread

INBOX_KEY: Final = "history.inbox"

logger = logging.getLogger(__name__)


class ProgressTable(Protocol):
    """Both methods may raise StorageError."""

    async def load(self) -> HistoryKept: ...

    async def save(self, writes: Sequence[KeptWrite], /) -> None: ...


class ConversationProgressTable:
    def __init__(
        self, conversation_id: ConversationId, store: ProfileStore, storage: StorageThread
    ) -> None:
        self._conversation_id = conversation_id
        self._store = store
        self._storage = storage

    async def load(self) -> HistoryKept:
        return await self._storage.run(self._store.history, self._conversation_id)

    async def save(self, writes: Sequence[KeptWrite], /) -> None:
        write = ApplyHistory(conversation_id=self._conversation_id, writes=tuple(writes))
        await self._storage.run(self._store.apply, [write])


class InboxProgressTable:
    """Stores only up to when the inbox was covered; an interrupted window starts again."""

    def __init__(self, store: ProfileStore, storage: StorageThread) -> None:
        self._store = store
        self._storage = storage

    async def load(self) -> HistoryKept:
        text = await self._storage.run(self._store.value, INBOX_KEY)
        return HistoryKept(through_ms=UnixMs(int(text)) if text else None)

    async def save(self, writes: Sequence[KeptWrite], /) -> None:
        for write in writes:
            if isinstance(write, SaveReach) and write.through_ms is not None:
                value = SaveValue(key=INBOX_KEY, value=str(write.through_ms))
                await self._storage.run(self._store.apply, [value])
