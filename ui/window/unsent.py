"""Texts on their way from the composer to the engine, in the order in which they were typed.

A text that was taken out of the composer is either durable in the engine or comes back: to the
composer if its conversation is still open, else to that conversation's draft.  The draft is only
cleared once the message is durable, so that nothing is lost if the program ends in between.
"""

import asyncio
from collections import Counter
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from engine.api import ChatEngine, Mention
from engine.core.errors import ChatError
from engine.core.ids import ConversationId, MessageId
from engine.events import ConversationView
from ui.attachments import Prepared, forget_copy
from ui.marked_text import utf16_length
from ui.tasks import Tasks
from ui.translate import tr


class Draft(Struct, frozen=True, kw_only=True):
    """What was written and not sent, with the people whom it mentions."""

    text: str = ""
    mentions: tuple[Mention, ...] = ()

    def before(self, other: Self) -> Self:
        """Both, each on lines of its own."""
        if not other.text:
            return self
        shift = utf16_length(self.text) + 1
        moved = (replace(each, start=each.start + shift) for each in other.mentions)
        text = f"{self.text}\n{other.text}"
        return replace(self, text=text, mentions=(*self.mentions, *moved))


class Unsent(Struct, frozen=True, kw_only=True):
    text: str
    reply_to: MessageId | None = None
    mentions: tuple[Mention, ...] = ()
    file: Prepared | None = None


class UnsentTexts(QObject):
    returned = Signal(str, object)
    """Conversation id and the ``Unsent`` that could not be sent."""
    draft_saved = Signal(str, str)
    files_changed = Signal(str)
    """Conversation id: what ``files_on_their_way`` says."""

    def __init__(self, engine: ChatEngine, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._in_order = asyncio.Lock()
        self._drafts: dict[ConversationId, Draft] = {}
        self._sending: Counter[ConversationId] = Counter()
        self._files: dict[ConversationId, list[Prepared]] = {}

    def draft(self, conversation: ConversationView) -> Draft:
        """What was last written here, or else what the engine keeps."""
        kept = Draft(text=conversation.draft, mentions=conversation.draft_mentions)
        return self._drafts.get(conversation.conversation_id, kept)

    def last_draft(self, conversation_id: ConversationId) -> Draft:
        """Likewise, of a conversation that something was sent in."""
        return self._drafts.get(conversation_id, Draft())

    def is_sending(self, conversation_id: ConversationId) -> bool:
        """Something is on its way there, and may have no row yet."""
        return self._sending[conversation_id] > 0

    def files_on_their_way(self, conversation_id: ConversationId) -> tuple[Prepared, ...]:
        """Those that have no row yet, in order: the engine seals them first."""
        return tuple(self._files.get(conversation_id, ()))

    def forget(self, conversation_id: ConversationId) -> None:
        self._drafts.pop(conversation_id, None)

    def send(self, conversation_id: ConversationId, unsent: Unsent) -> None:
        self._drafts[conversation_id] = Draft()
        self._sending[conversation_id] += 1

        async def work() -> None:
            try:
                async with self._in_order:
                    await self._send_in_turn(conversation_id, unsent)
            finally:
                self._sending[conversation_id] -= 1
                if unsent.file is not None:
                    self._files[conversation_id].remove(unsent.file)
                    self.files_changed.emit(conversation_id)

        if unsent.file is not None:
            self._files.setdefault(conversation_id, []).append(unsent.file)
            self.files_changed.emit(conversation_id)
        self.draft_saved.emit(conversation_id, "")
        self._tasks.spawn(work, purpose=tr("send the message"), retry=False)

    async def _send_in_turn(self, conversation_id: ConversationId, unsent: Unsent) -> None:
        try:
            await self._hand_over(conversation_id, unsent)
        except ChatError:
            self.returned.emit(conversation_id, unsent)
            raise
        # What was typed meanwhile is the draft now; usually nothing.
        await self._keep(conversation_id, self.last_draft(conversation_id))

    async def _keep(self, conversation_id: ConversationId, draft: Draft) -> None:
        timeline = self._engine.timeline
        await timeline.save_draft(conversation_id, draft.text, mentions=draft.mentions)

    async def _hand_over(self, conversation_id: ConversationId, unsent: Unsent) -> None:
        timeline, file = self._engine.timeline, unsent.file
        if file is None:
            await timeline.send_text(
                conversation_id, unsent.text, reply_to=unsent.reply_to, mentions=unsent.mentions
            )
            return
        if file.path is not None:
            await self._engine.files.send(
                conversation_id,
                str(file.path),
                name=file.name,
                media_type=file.media_type,
                caption=unsent.text,
                mentions=unsent.mentions,
                reply_to=unsent.reply_to,
                thumbnail=file.thumbnail,
                width=file.width,
                height=file.height,
            )
            forget_copy(file)
            return
        await timeline.send_file(
            conversation_id,
            name=file.name,
            media_type=file.media_type,
            data=file.data,
            caption=unsent.text,
            mentions=unsent.mentions,
            reply_to=unsent.reply_to,
            width=file.width,
            height=file.height,
        )

    def save_draft(self, conversation_id: ConversationId, draft: Draft) -> None:
        if self._drafts.get(conversation_id) == draft:
            return
        self._drafts[conversation_id] = draft

        async def work() -> None:
            async with self._in_order:
                await self._keep(conversation_id, draft)

        self.draft_saved.emit(conversation_id, draft.text)
        self._tasks.spawn(work, purpose=tr("save the draft"))
