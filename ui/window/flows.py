"""What takes more than one step: every flow opens a sheet, waits for it, and then commands.

A flow is a coroutine started by ``Tasks``, so that its errors are shown and never lost.  At most
one sheet is open at a time; asking for another while one is open does nothing.
"""

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.core.types import ConversationId, MessageId
from engine.events import ConversationView
from ui.dialogs.about import HowItWorks
from ui.dialogs.confirm import (
    OpenLinkConfirm,
    RefusedLink,
    delete_confirm,
    leave_confirm,
    openable,
    quit_confirm,
)
from ui.dialogs.group import CreateGroup, InviteLink, Members
from ui.dialogs.holders import Holders
from ui.dialogs.join import Join
from ui.dialogs.sheet import Sheet
from ui.tasks import Tasks
from ui.window.one_sheet import OneSheet


class Flows(QObject):
    open_requested = Signal(str)
    """A conversation id that should be shown now."""
    quit_agreed = Signal()

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        one_sheet: OneSheet,
        *,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self._now = now
        self._one = one_sheet
        self._start = one_sheet.start
        self._ask = one_sheet.ask

    @property
    def sheet(self) -> Sheet | None:
        """The one that is open."""
        return self._one.sheet

    # --- groups -----------------------------------------------------------------------------------

    def new_group(self) -> None:
        async def create(name: str) -> None:
            made.append(await self._engine.create_group(name))

        async def flow() -> None:
            if await self._ask(CreateGroup(create, self._tasks, self._window)):
                self.open_requested.emit(made[-1])

        made: list[ConversationId] = []
        self._start("make a group", flow)

    def join(self) -> None:
        async def agree(link: str) -> None:
            invite = self._engine.preview_invite(link)
            if invite.already_joined:
                joined.append(invite.conversation_id)
            else:
                joined.append(await self._engine.join_group(link))

        async def flow() -> None:
            sheet = Join(self._engine.preview_invite, agree, self._tasks, self._window)
            if await self._ask(sheet):
                self.open_requested.emit(joined[-1])

        joined: list[ConversationId] = []
        self._start("join a group", flow)

    def invite(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            link = await self._engine.make_invite_link(conversation.conversation_id)
            await self._ask(InviteLink(conversation, link, self._window))

        self._start("make an invitation", flow)

    def members(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            await self._ask(Members(conversation, self._window))

        self._start("show the members", flow)

    def leave(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            if await self._ask(leave_confirm(conversation, self._window)):
                await self._engine.leave_group(conversation.conversation_id)

        self._start("leave the group", flow)

    # --- messages ---------------------------------------------------------------------------------

    def delete(
        self, conversation: ConversationView, message_id: MessageId, *, unsent: bool
    ) -> None:
        async def flow() -> None:
            if await self._ask(delete_confirm(self._window, unsent=unsent)):
                await self._engine.delete_locally(conversation.conversation_id, message_id)

        self._start("delete the message", flow)

    def holders(self, conversation: ConversationView, message_id: MessageId) -> None:
        async def flow() -> None:
            found = await self._engine.holders(conversation.conversation_id, message_id)
            await self._ask(Holders(found, self._now(), self._window))

        self._start("show who holds it", flow)

    def link(self, target: str, open_url: Callable[[QUrl], bool]) -> None:
        async def flow() -> None:
            url = openable(target)
            if url is None:
                await self._ask(RefusedLink(target, self._window))
            elif await self._ask(OpenLinkConfirm(url, self._window)):
                open_url(url)

        self._start("open the address", flow)

    # --- the program ------------------------------------------------------------------------------

    def how_it_works(self, version: str) -> None:
        async def flow() -> None:
            identity = self._engine.identity()
            stored = "" if identity is None else identity.key_storage
            await self._ask(HowItWorks(version, stored, self._window))

        self._start("show how it works", flow)

    def quit(self, waiting: int) -> None:
        async def flow() -> None:
            if await self._ask(quit_confirm(waiting, self._window)):
                self.quit_agreed.emit()

        self._start("quit", flow)
