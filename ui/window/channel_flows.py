"""Flows about open channels: each opens a sheet, waits for it, and then gives a command."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.events import ConversationView
from ui.dialogs.key_channel import KeyChannel
from ui.dialogs.open_channel import (
    ChannelChoice,
    ChannelDetails,
    ChannelDoing,
    OpenChannel,
    leave_channel_confirm,
)
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.one_sheet import OneSheet

if TYPE_CHECKING:
    from engine.core.ids import ConversationId


Join: TypeAlias = Callable[[ChannelChoice], Awaitable[None]]


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
        def sheet(join: Join) -> OpenChannel:
            return OpenChannel(
                join,
                self._tasks,
                cluster_id=self._engine.open_channels.cluster_id(),
                nick=self._own_name(),
                parent=self._window,
            )

        self._start(sheet)

    def key_channel(self, link: str = "") -> None:
        """``link``: one that was pressed, or came from another program."""
        channels = self._engine.open_channels

        def sheet(join: Join) -> KeyChannel:
            made = KeyChannel(
                join,
                self._tasks,
                proposed=channels.new_name(),
                preview=channels.preview_link,
                nick=self._own_name(),
                parent=self._window,
            )
            made.show_link(link)
            return made

        self._start(sheet)

    def _own_name(self) -> str:
        identity = self._engine.identity()
        return "" if identity is None else identity.name

    def _start(self, sheet: Callable[[Join], OpenChannel | KeyChannel]) -> None:
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
            if await self._one.ask(sheet(join)):
                self.open_requested.emit(joined[-1])

        self._one.start(tr("open a channel"), flow)

    def details(self, conversation: ConversationView) -> None:
        channel = conversation.open_channel
        if channel is None:
            return

        channels, here = self._engine.open_channels, conversation.conversation_id

        async def key() -> str:
            return (await channels.shared_key(here)).hex()

        doing = ChannelDoing(
            set_label=partial(channels.set_label, here),
            link=partial(channels.make_link, here),
            key=key,
        )

        async def flow() -> None:
            await self._one.ask(
                ChannelDetails(conversation, channel, doing, self._tasks, self._window)
            )

        self._one.start(tr("show the channel"), flow)

    def leave(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            if await self._one.ask(leave_channel_confirm(conversation, self._window)):
                await self._engine.open_channels.leave(conversation.conversation_id)

        self._one.start(tr("leave the channel"), flow)
