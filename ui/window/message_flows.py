"""Flows about one message: delete it, forward it, look into it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtWidgets import QWidget

from engine.api import MAX_EMOJI_EACH, ChatEngine
from engine.core.ids import ConversationId, MessageId
from engine.events import ConversationView, MessageView, NoticeLevel
from engine.file_views import FileState
from ui.dialogs.confirm import DeleteAsAdmin, DeleteChoice, delete_confirm, run_confirm
from ui.dialogs.holders import Holders
from ui.file_words import may_run
from ui.foreign_text import one_line
from ui.governing_words import is_out
from ui.tasks import Tasks
from ui.timeline.abilities import abilities_of
from ui.translate import tr
from ui.window.message_commands import Deletions
from ui.window.notices import Notice, NoticesBar
from ui.window.one_sheet import OneSheet

SAID_MS: Final = 10_000
"""How long it is said where a message went, where a file was saved, or which reactions are gone."""
_FORWARDED = "forwarded"
_NAME = 60
_NAMES_SAID = 2
_NAME_ON_BUTTON = 24


class MessageFlows(QObject):
    open_requested = Signal(str)
    """A conversation that a message was forwarded to."""

    def __init__(  # noqa: PLR0913 - the window's parts that it works with
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        one_sheet: OneSheet,
        notices: NoticesBar,
        *,
        conversations: Callable[[], Sequence[ConversationView]],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._window = window
        self._now = now
        self._tasks = tasks
        self._conversations = conversations
        self._notices = notices
        self._start = one_sheet.start
        self._ask = one_sheet.ask
        self.deletions = Deletions(engine, tasks, self)

    def delete(self, message: MessageView, *, can_write: bool) -> None:
        """Here, or for everybody if it is ours."""

        async def flow() -> None:
            if self._may_delete_for_all(message, can_write=can_write):
                await self._delete_as_admin(message)
                return
            if not abilities_of(message, can_write=can_write).retract:
                if await self._ask(delete_confirm(self._window, unsent=False)):
                    await self._delete_here(message.conversation_id, message.message_id)
                return
            choice = DeleteChoice(self._window)
            if await self._ask(choice):
                if choice.here_only:
                    await self._delete_here(message.conversation_id, message.message_id)
                else:
                    self.deletions.begin(message)

        self._start(tr("delete the message"), flow)

    def _may_delete_for_all(self, message: MessageView, *, can_write: bool) -> bool:
        """Of somebody whom we outrank in a governed group, as long as it is not deleted already."""
        view = self._engine.governing.view(message.conversation_id)
        below = frozenset() if view is None else view.outranked
        return abilities_of(message, can_write=can_write, outranked=below).delete_as_admin

    async def _delete_as_admin(self, message: MessageView) -> None:
        choice = DeleteAsAdmin(message, self._window)
        if not await self._ask(choice):
            return
        if choice.here_only:
            await self._delete_here(message.conversation_id, message.message_id)
        else:
            governing = self._engine.governing
            await governing.delete_message(message.conversation_id, message.message_id)

    def discard(self, conversation: ConversationView, message_id: MessageId) -> None:
        async def flow() -> None:
            if await self._ask(delete_confirm(self._window, unsent=True)):
                await self._delete_here(conversation.conversation_id, message_id)

        self._start(tr("delete the message"), flow)

    async def _delete_here(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        await self._engine.timeline.delete_locally(conversation_id, message_id)

    def holders(self, conversation: ConversationView, message_id: MessageId) -> None:
        async def flow() -> None:
            found = await self._engine.timeline.holders(conversation.conversation_id, message_id)
            is_open = conversation.open_channel is not None
            await self._ask(Holders(found, self._now(), self._window, is_open=is_open))

        self._start(tr("show who holds it"), flow)

    def info(self, conversation: ConversationView, message_id: MessageId) -> None:
        from ui.dialogs.message_info import MessageInfoSheet  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            info = await self._engine.timeline.info(conversation.conversation_id, message_id)
            is_open = conversation.open_channel is not None
            is_pair, now = conversation.contact is not None, self._now()
            sheet = MessageInfoSheet(info, now, self._window, is_open=is_open, is_pair=is_pair)
            await self._ask(sheet)

        self._start(tr("show what is known of the message"), flow)

    def versions(self, conversation: ConversationView, message_id: MessageId) -> None:
        from ui.dialogs.message_info import Versions  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            timeline = self._engine.timeline
            versions = await timeline.versions(conversation.conversation_id, message_id)
            await self._ask(Versions(versions, self._now(), self._window))

        self._start(tr("show the earlier versions"), flow)

    def reactions(self, conversation: ConversationView, message_id: MessageId) -> None:
        from ui.dialogs.message_info import Reactors  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            timeline = self._engine.timeline
            reactors = await timeline.reactors(conversation.conversation_id, message_id)
            await self._ask(Reactors(reactors, self._now(), self._window))

        self._start(tr("show who reacted"), flow)

    def forward(self, message: MessageView) -> None:
        from ui.dialogs.forward import Forward  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            view_of = self._engine.governing.view
            open_to_us = [
                each for each in self._conversations() if not is_out(view_of(each.conversation_id))
            ]
            sheet = Forward(message, open_to_us, self._window)
            if not await self._ask(sheet):
                return
            went: list[ConversationId] = []
            try:
                for conversation_id in sheet.chosen:
                    await self._forward_to(conversation_id, message)
                    went.append(conversation_id)
            finally:
                self._say_forwarded([c for c in open_to_us if c.conversation_id in went])

        self._start(tr("forward the message"), flow)

    def _say_forwarded(self, went: Sequence[ConversationView]) -> None:
        if not went:
            return

        def show(conversation: ConversationView) -> None:
            self._notices.clear(_FORWARDED)
            self.open_requested.emit(conversation.conversation_id)

        words = tr("Open") if len(went) == 1 else tr("Open {name}")
        self._notices.raise_notice(
            Notice(
                key=_FORWARDED,
                level=NoticeLevel.INFO,
                text=forwarded_words([one.name for one in went]),
                actions=tuple(
                    (words.format(name=one_line(one.name, _NAME_ON_BUTTON)), partial(show, one))
                    for one in went[:_NAMES_SAID]
                ),
                lasts_ms=SAID_MS,
            )
        )

    def say_saved(self, path: str, open_url: Callable[[QUrl], bool]) -> None:
        """``path``: of the file, whose folder a button opens."""
        place = Path(path)

        def show_folder() -> None:
            open_url(QUrl.fromLocalFile(str(place.parent)))

        self._notices.raise_notice(
            Notice(
                key="saved",
                level=NoticeLevel.INFO,
                text=tr("Saved as {name}.").format(name=one_line(place.name, _NAME)),
                actions=((tr("Open the folder"), show_folder),),
                lasts_ms=SAID_MS,
            )
        )

    def say_reactions_went(self, emoji: Sequence[str]) -> None:
        words = tr("Your {emoji} went: a message keeps the {most} newest reactions of each person.")
        text = words.format(emoji=" ".join(emoji), most=MAX_EMOJI_EACH)
        self._notices.raise_notice(
            Notice(key="reactions", level=NoticeLevel.INFO, text=text, lasts_ms=SAID_MS)
        )

    def open_file(self, message: MessageView, open_url: Callable[[QUrl], bool]) -> None:
        """In another program; what can run only once it was said that it can."""
        file = message.file
        if file is None:
            return

        async def flow() -> None:
            if may_run(file) and not await self._ask(run_confirm(message, file, self._window)):
                return
            files = self._engine.files
            path = await files.open_path(message.conversation_id, message.message_id)
            if not open_url(QUrl.fromLocalFile(path)):
                text = tr("No program here opens it. Save it instead.")
                key = f"open:{message.message_id}"
                self._notices.raise_notice(Notice(key=key, level=NoticeLevel.WARNING, text=text))

        self._start(tr("open the file"), flow)

    async def _forward_to(self, conversation_id: ConversationId, message: MessageView) -> None:
        timeline, file = self._engine.timeline, message.file
        if file is None:
            await timeline.send_text(conversation_id, message.text, forwarded=True)
            return
        if file.state is not FileState.INLINE:
            await self._engine.files.forward(
                message.conversation_id, message.message_id, conversation_id
            )
            return
        await timeline.send_file(
            conversation_id,
            name=file.name,
            media_type=file.media_type,
            data=await timeline.file_data(message.conversation_id, message.message_id),
            caption=message.text,
            forwarded=True,
            width=file.width,
            height=file.height,
        )


def forwarded_words(names: Sequence[str]) -> str:
    """``names``: of the conversations that it went to, at least one."""
    shown = [one_line(name, _NAME) for name in names[:_NAMES_SAID]]
    others = len(names) - len(shown)
    if others:
        words = tr(
            "Forwarded to {name}, {other} and %n others.",
            "Forwarded to {name}, {other} and %n other.",
            others,
        )
        return words.format(name=shown[0], other=shown[1])
    if len(shown) == 1:
        return tr("Forwarded to {name}.").format(name=shown[0])
    return tr("Forwarded to {name} and {other}.").format(name=shown[0], other=shown[1])
