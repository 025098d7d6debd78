"""The files of a scripted engine: notes what was asked, and writes what a test gave.

What a message's file looks like, a test says itself by a row.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from engine.answers import PAGE_SIZE
from engine.api import MAX_READ_BYTES, Mention
from engine.core.errors import ChatError, StorageError, StorageFault
from engine.core.ids import ConversationId, MessageId, Position
from engine.events import MessageView


class ScriptedFiles:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.unconfirmed: set[MessageId] = set()
        """No connected member has these."""
        """Command and message id; of ``send`` the path."""
        self.data: dict[MessageId, bytes] = {}
        self.forwarded: list[ConversationId] = []
        """Where to."""
        self.listed: list[MessageView] = []
        """What ``shared`` finds."""
        self.failing = False
        """Whether the disk refuses what is to be fetched."""
        self.full = False
        """Whether it has no room for what is to be saved."""
        self.gone: dict[MessageId, ChatError] = {}
        """Why a file that a row calls complete cannot be saved."""
        self.gate = asyncio.Event()
        """Until it is set, sending and saving take their time."""
        self.gate.set()

    async def send(  # noqa: PLR0913 - as in ``engine.api``
        self,
        conversation_id: ConversationId,
        path: str,
        *,
        name: str,
        media_type: str,
        caption: str = "",
        mentions: Sequence[Mention] = (),
        reply_to: MessageId | None = None,
        forwarded: bool = False,
        thumbnail: bytes = b"",
        width: int = 0,
        height: int = 0,
    ) -> MessageId:
        del conversation_id, name, media_type, caption, mentions, reply_to
        del thumbnail, width, height
        await self.gate.wait()
        self.asked.append(("send", path))
        return MessageId(f"file {len(self.asked)}")

    async def forward(
        self, conversation_id: ConversationId, message_id: MessageId, to: ConversationId
    ) -> MessageId:
        del conversation_id
        self.asked.append(("forward", message_id))
        self.forwarded.append(to)
        return MessageId(f"file {len(self.asked)}")

    async def shared(
        self,
        conversation_id: ConversationId,
        *,
        before: Position | None = None,
        limit: int = PAGE_SIZE,
    ) -> Sequence[MessageView]:
        rows = [row for row in self.listed if row.conversation_id == conversation_id]
        rows.sort(key=lambda row: row.position, reverse=True)
        return [row for row in rows if before is None or row.position < before][:limit]

    async def fetch(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        del conversation_id
        if self.failing:
            raise StorageError("full", StorageFault.DISK_FULL)
        self.asked.append(("fetch", message_id))

    async def pause(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        del conversation_id
        self.asked.append(("pause", message_id))

    async def cancel(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        del conversation_id
        self.asked.append(("cancel", message_id))

    async def let_go(
        self, conversation_id: ConversationId, message_ids: Sequence[MessageId], *, unasked: bool
    ) -> Sequence[MessageId]:
        del conversation_id
        going = [each for each in message_ids if unasked or each not in self.unconfirmed]
        self.asked += [("let_go", each) for each in going]
        return going

    async def save_as(
        self, conversation_id: ConversationId, message_id: MessageId, path: str
    ) -> None:
        del conversation_id
        self.asked.append(("save_as", message_id))
        await self.gate.wait()
        if self.full:
            raise StorageError("full", StorageFault.FILE_NOT_WRITTEN, "No space left on device")
        if message_id in self.gone:
            raise self.gone[message_id]
        try:
            Path(path).write_bytes(self.data[message_id])  # noqa: ASYNC240 - a test's small file
        except OSError as error:
            raise StorageError("no folder", StorageFault.FILE_NOT_WRITTEN) from error

    async def read(
        self,
        conversation_id: ConversationId,
        message_id: MessageId,
        *,
        limit: int = MAX_READ_BYTES,
    ) -> bytes:
        del conversation_id
        self.asked.append(("read", message_id))
        return self.data[message_id][:limit]

    async def open_path(self, conversation_id: ConversationId, message_id: MessageId) -> str:
        del conversation_id
        self.asked.append(("open_path", message_id))
        return f"/opened/{message_id}"
