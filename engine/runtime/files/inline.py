"""Files that came with their messages, for whoever wants one outside: saved, or opened in a copy.

A copy for another program is as private as one of a larger file, and goes with the message.
"""

import asyncio
from pathlib import Path

from engine.core.stored import StoredMessage
from engine.events import MessageView
from engine.persistence.saved_file import write_whole
from engine.runtime.files.book import FileKey, is_of_others
from engine.runtime.files.disk import BlobDisk
from engine.runtime.runner_context import RunnerContext


class InlineFiles:
    def __init__(self, context: RunnerContext) -> None:
        self._store = context.store
        self._storage = context.storage
        self._opened: set[FileKey] = set()
        """Those of which there may be an open copy."""

    async def save(self, key: FileKey, path: Path) -> bool:
        """False if this message brought no file with it.  Raises StorageError."""
        data, row = await self._found(key)
        if data:
            is_received = is_of_others(row)
            await asyncio.to_thread(write_whole, path, (data,), is_received=is_received)
        return bool(data)

    async def open_copy(self, key: FileKey, disk: BlobDisk) -> Path | None:
        """None if this message brought no file with it.  Raises StorageError."""
        data, row = await self._found(key)
        if not data or row is None or row.record.file is None:
            return None
        self._opened.add(key)
        name, is_received = row.record.file.name, is_of_others(row)
        return await disk.open_data(key, data, name, is_received=is_received)

    async def _found(self, key: FileKey) -> tuple[bytes, StoredMessage | None]:
        data = await self._storage.run(self._store.file_data, *key) or b""
        return data, await self._storage.run(self._store.message, *key) if data else None

    def lost(self, message: MessageView) -> bool:
        """Whether a message of which there is a copy was retracted."""
        return message.retracted and (message.conversation_id, message.message_id) in self._opened

    async def close_gone(self, disk: BlobDisk) -> None:
        """Remove the copies of messages that were retracted or removed."""
        for key in list(self._opened):
            row = await self._storage.run(self._store.message, *key)
            if row is None or row.retracted:
                self._opened.discard(key)
                await disk.close_data(key)
