"""Turns the composer's text into a message, a reply or an edit.

It leads texts to the engine through ``UnsentTexts``, so that none is lost, and keeps the draft of a
new message apart while an old one is edited.  What is answered, an edit that was begun and the
files that are to go out wait in their conversation while one looks into others.  People whose names
were completed are mentioned by their ids; a name that was only typed stays a word.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from engine.api import MAX_CAPTION_BYTES, ChatEngine, Mention
from engine.core.ids import ConversationId, MessageId
from engine.events import ConversationView, MessageView
from ui.attachments import Prepared
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.attaching import Attaching, Pile
from ui.window.composer import Composer
from ui.window.composer_bar import ComposerBar
from ui.window.mentioning import Mentioning, draft_of
from ui.window.unsent import Draft, Unsent, UnsentTexts

MAX_WAITING: Final = 16
"""Conversations with an answer, an edit or files that wait; of more the oldest are dropped."""


class Mode(Enum):
    NEW = auto()
    REPLY = auto()
    EDIT = auto()


class _Waiting(Struct, frozen=True, kw_only=True):
    """What was to go out in a conversation, beside its draft."""

    answered: MessageView | None = None
    edited: MessageView | None = None
    new: Draft = Draft()
    """What that one was to say."""
    files: Pile = field(default_factory=Pile)

    @property
    def about(self) -> MessageView | None:
        return self.answered or self.edited


class Writing(QObject):
    sent = Signal()
    """A new message is on its way."""

    def __init__(  # noqa: PLR0913, PLR0917 - the window's parts that it works with
        self,
        engine: ChatEngine,
        tasks: Tasks,
        outbox: UnsentTexts,
        composer: Composer,
        bar: ComposerBar,
        attaching: Attaching,
        *,
        last_own: Callable[[], MessageView | None],
        tells_typing: Callable[[], bool],
        parent: QObject,
    ) -> None:
        """``last_own``: our newest message that can be edited.

        ``tells_typing``: whether the others may know that one is typing.
        """
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._outbox = outbox
        self._composer = composer
        self._bar = bar
        self._attaching = attaching
        self._last_own = last_own
        self._tells_typing = tells_typing
        self._conversation: ConversationView | None = None
        self._mode = Mode.NEW
        self._about: MessageView | None = None
        """The message that is answered or edited."""
        self._put_aside = Draft()
        """What stood in the composer when editing began."""
        self._files_aside = Pile()
        """What was attached then."""
        self._waiting: dict[ConversationId, _Waiting] = {}
        """In conversations that one left, the last of them last."""
        self._mentioning = Mentioning(composer)
        composer.submitted.connect(self._submit)
        composer.draft_changed.connect(self._save_draft)
        composer.typing_changed.connect(self._tell_typing)
        composer.edit_last_requested.connect(self._edit_last)
        composer.cancelled.connect(self.cancel)
        bar.cancelled.connect(self.cancel)
        outbox.returned.connect(self._take_back)
        outbox.files_changed.connect(self._show_files)

    # --- what is written in -----------------------------------------------------------------------

    def open(self, conversation: ConversationView) -> None:
        self._conversation = conversation
        self._start_new()
        self._mentioning.forget()
        self._mentioning.offer(conversation)
        self._composer.open(conversation.name)
        self._mentioning.write(self._outbox.draft(conversation))
        waiting = self._waiting.pop(conversation.conversation_id, _Waiting())
        if waiting.answered is not None:
            self._answer(waiting.answered)
        self._attaching.bring_back(waiting.files)
        self._show_files(conversation.conversation_id)
        if waiting.edited is not None:
            self.edit(waiting.edited)
            self._mentioning.write(waiting.new)

    def refresh(self, conversation: ConversationView) -> None:
        """Members changed."""
        self._conversation = conversation
        self._mentioning.offer(conversation)

    def leave(self) -> None:
        """Keep what was written."""
        if self._conversation is None:
            return
        waiting, about, written = _Waiting(), self._about, self._mentioning.written()
        if self._mode is Mode.REPLY:
            waiting = _Waiting(answered=about)
        elif about is not None and written.text != about.text:
            waiting = _Waiting(edited=about, new=written)
        self.cancel()
        self._keep(self._conversation.conversation_id, waiting)
        self._composer.flush_draft()
        self._composer.stop_typing()

    def _keep(self, conversation_id: ConversationId, waiting: _Waiting) -> None:
        files = self._attaching.put_aside()
        if waiting.about is not None or not files.is_empty:
            self._let_wait(conversation_id, replace(waiting, files=files))

    def _let_wait(self, conversation_id: ConversationId, waiting: _Waiting) -> None:
        self._waiting[conversation_id] = waiting
        if len(self._waiting) > MAX_WAITING:
            self.drop(next(iter(self._waiting)))

    def drop(self, conversation_id: ConversationId) -> None:
        """Nothing is to go out there any more."""
        if (waiting := self._waiting.pop(conversation_id, None)) is not None:
            waiting.files.drop()

    def forget(self) -> None:
        self._conversation = None
        self._start_new()
        self._attaching.put_aside().drop()

    def _start_new(self) -> None:
        self._mode, self._about, self._put_aside = Mode.NEW, None, Draft()
        self._bar.hide()
        files, self._files_aside = self._files_aside, Pile()
        self._attaching.bring_back(files)

    # --- about a message --------------------------------------------------------------------------

    def reply(self, message: MessageView) -> None:
        self.cancel()
        self._answer(message)
        self._composer.box.setFocus()

    def _answer(self, message: MessageView) -> None:
        self._mode, self._about = Mode.REPLY, message
        self._bar.show_reply(message)

    def edit(self, message: MessageView) -> None:
        self.cancel()
        self._files_aside = self._attaching.put_aside()
        self._composer.flush_draft()
        self._mode, self._about = Mode.EDIT, message
        self._put_aside = self._mentioning.written()
        self._bar.show_edit(message)
        self._mentioning.write(draft_of(message))
        self._composer.box.setFocus()

    def _edit_last(self) -> None:
        open_id, message = self._open_id(), self._last_own()
        if open_id is None or self._outbox.is_sending(open_id):
            return  # The last one has no row yet, and no earlier one is meant.
        if message is not None and self._mode is Mode.NEW:
            self.edit(message)

    def cancel(self) -> None:
        """Write a new message again; what stood in the composer before an edit comes back."""
        if self._mode is Mode.EDIT:
            self._mentioning.write(self._put_aside)
        self._start_new()

    def changed(self, message: MessageView) -> None:
        if message.retracted:
            self.removed(message.message_id)

    def removed(self, message_id: MessageId) -> None:
        """A message is gone; nothing can be said about it any more."""
        if self._about is not None and self._about.message_id == message_id:
            self.cancel()
        for conversation_id, waiting in self._waiting.items():
            if waiting.about is not None and waiting.about.message_id == message_id:
                self._waiting[conversation_id] = _Waiting(files=waiting.files)

    def _show_files(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._open_id():
            self._attaching.show_leaving(self._outbox.files_on_their_way(conversation_id))

    # --- sending ----------------------------------------------------------------------------------

    def _open_id(self) -> ConversationId | None:
        return None if self._conversation is None else self._conversation.conversation_id

    def _submit(self, text: str) -> None:
        open_id, mode, about = self._open_id(), self._mode, self._about
        if open_id is None:
            return
        mentions = self._mentioning.in_text(text)
        if mode is Mode.EDIT and about is not None:
            self._mentioning.write(self._put_aside)
            self._start_new()
            if text != about.text:
                self._send_edit(open_id, about, text, mentions)
            return
        reply_to = None if about is None else about.message_id
        self._start_new()
        first, *others = self._attaching.take_all() or (None,)
        unsent = Unsent(text=text, reply_to=reply_to, mentions=mentions, file=first)
        follows = first is not None and len(text.encode()) > MAX_CAPTION_BYTES
        if follows:  # A long text is no caption.
            self._outbox.send(open_id, replace(unsent, text="", mentions=()))
        else:
            self._outbox.send(open_id, unsent)
        for file in others:
            self._outbox.send(open_id, Unsent(text="", file=file))
        if follows:
            self._outbox.send(open_id, replace(unsent, file=None, reply_to=None))
        self.sent.emit()

    def _send_edit(
        self,
        open_id: ConversationId,
        message: MessageView,
        text: str,
        mentions: tuple[Mention, ...],
    ) -> None:
        async def work() -> None:
            await self._engine.timeline.edit(open_id, message.message_id, text, mentions=mentions)

        self._tasks.spawn(work, purpose=tr("edit the message"))

    def _save_draft(self, _text: str) -> None:
        """While a message is edited, the draft is what was put aside."""
        if (open_id := self._open_id()) is not None and self._mode is not Mode.EDIT:
            self._outbox.save_draft(open_id, self._mentioning.written())

    def _take_back(self, conversation_id: ConversationId, unsent: Unsent) -> None:
        """What could not be sent stands in the composer again, before what came after."""
        back = Draft(text=unsent.text, mentions=unsent.mentions)
        if unsent.file is not None:
            self._take_file_back(conversation_id, unsent.file)
        if conversation_id == self._open_id() and self._mode is not Mode.EDIT:
            whole = back.before(self._mentioning.written())
            self._mentioning.write(whole)
            self._outbox.save_draft(conversation_id, whole)
            return
        whole = back.before(self._outbox.last_draft(conversation_id))
        self._outbox.save_draft(conversation_id, whole)
        if conversation_id == self._open_id():
            self._put_aside = whole

    def _take_file_back(self, conversation_id: ConversationId, file: Prepared) -> None:
        if conversation_id == self._open_id():
            self._attaching.add(file)
            return
        waiting = self._waiting.get(conversation_id, _Waiting())
        waiting.files.add(file)
        self._let_wait(conversation_id, waiting)

    def _tell_typing(self, active: bool) -> None:
        if not self._tells_typing():
            return  # Of what was told before, the others forget by themselves.
        if (open_id := self._open_id()) is not None:

            async def work() -> None:
                await self._engine.timeline.set_typing(open_id, active=active)

            self._tasks.spawn(work, purpose=tr("tell that you are typing"), retry=False)
