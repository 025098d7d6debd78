"""Flows about open channels: each opens a sheet, waits for it, and then gives a command."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.events import ConversationView
from ui.dialogs.open_channel import (
    ChannelChoice,
    ChannelDetails,
    OpenChannel,
    leave_channel_confirm,
)
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.one_sheet import OneSheet

if TYPE_CHECKING:
    from engine.core.ids import ConversationId


class ChannelFlows(QObject):
    open_requested = Signal(str)
    """A conversation id that should be shown now."""

    def __init__(
        self, engine: ChatEngine, tasks: Tasks, window: QWidget, one_sheet: OneSheet
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self._one = one_sheet

    def open_channel(self) -> None:
        joined: list[ConversationId] = []

        async def join(choice: ChannelChoice) -> None:
            joined.append(
                await self._engine.open_channels.join(
                    choice.name,
                    label=choice.label,
                    nick=choice.nick,
                    format_=choice.format,
                    pace=choice.pace,
                )
            )

        async def flow() -> None:
            identity = self._engine.identity()
            sheet = OpenChannel(
                join,
                self._tasks,
                cluster_id=self._engine.open_channels.cluster_id(),
                nick="" if identity is None else identity.name,
                parent=self._window,
            )
            if await self._one.ask(sheet):
                self.open_requested.emit(joined[-1])

        self._one.start(tr("open a channel"), flow)

    def details(self, conversation: ConversationView) -> None:
        channel = conversation.open_channel
        if channel is None:
            return

        async def label(words: str) -> None:
            await self._engine.open_channels.set_label(conversation.conversation_id, words)

        async def flow() -> None:
            await self._one.ask(
                ChannelDetails(conversation, channel, label, self._tasks, self._window)
            )

        self._one.start(tr("show the channel"), flow)

    def leave(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            if await self._one.ask(leave_channel_confirm(conversation, self._window)):
                await self._engine.open_channels.leave(conversation.conversation_id)

        self._one.start(tr("leave the channel"), flow)
