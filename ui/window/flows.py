"""Flows of more than one step: each opens a sheet, waits for it, and then gives a command.

A flow is a coroutine started by ``Tasks``, so that its errors are shown and never lost.  At most
one sheet is open at a time; asking for another while one is open does nothing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.core.channel_link import CHANNEL_PREFIX
from engine.core.contacts import CONTACT_PREFIX
from engine.core.ids import ConversationId
from engine.core.links import OWN_SCHEME
from engine.events import ConversationView
from engine.history_views import StoresChanged
from ui.dialogs.about import HowItWorks
from ui.dialogs.confirm import (
    OpenLinkConfirm,
    RefusedLink,
    leave_confirm,
    openable,
    quit_confirm,
)
from ui.dialogs.go_to_date import GoToDate
from ui.dialogs.group import CreateGroup, GroupKind, InviteLink
from ui.dialogs.join import Join
from ui.dialogs.sheet import Sheet
from ui.refusals import refusal_sentences
from ui.tasks import Tasks
from ui.timeline.view import TimelineView
from ui.translate import tr
from ui.window.one_sheet import Flow, OneSheet
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from datetime import date

    from ui.dialogs.stores import StoresList


class Flows(QObject):
    open_requested = Signal(str)
    """A conversation id that should be shown now."""
    quit_agreed = Signal()
    governed_invitation_wanted = Signal(ConversationView)
    """To a group with roles, which has a sheet of its own."""
    contact_link_pressed = Signal(str)
    channel_link_pressed = Signal(str)
    """In a message; what it says is the other flows' to show."""
    stores_changed = Signal(StoresChanged)
    """The engine told it; for the page that may be open."""

    def __init__(  # noqa: PLR0913 - what its sheets need
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        one_sheet: OneSheet,
        *,
        context: WindowContext,
        confirms_links: Callable[[], bool],
    ) -> None:
        """``confirms_links``: whether it is asked before another program opens an address."""
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self._context = context
        self._now = context.now
        self._confirms_links = confirms_links
        self.one_sheet = one_sheet
        self._start = one_sheet.start
        self._ask = one_sheet.ask
        self._address_problem = context.store_problem

    @property
    def sheet(self) -> Sheet | None:
        """The one that is open."""
        return self.one_sheet.sheet

    # --- groups -----------------------------------------------------------------------------------

    def new_group(self) -> None:
        async def create(name: str, kind: GroupKind) -> None:
            makes = self._engine.governing if kind is GroupKind.GOVERNED else self._engine.groups
            made.append(await makes.create(name))

        async def flow() -> None:
            if await self._ask(CreateGroup(create, self._tasks, self._window)):
                self.open_requested.emit(made[-1])

        made: list[ConversationId] = []
        self._start(tr("make a group"), flow)

    def join(self) -> None:
        self.show_invitation("")

    def show_invitation(self, given: str) -> None:
        """What the link says, and the choice to join; "" lets one paste one."""
        self._start(tr("join a group"), self._join_flow(given))

    def _join_flow(self, given: str) -> Flow:
        async def agree(link: str) -> None:
            invite = self._engine.groups.preview_invite(link)
            if invite.already_joined or invite.is_over:
                joined.append(invite.conversation_id)
            else:
                joined.append(await self._engine.groups.join(link))

        async def flow() -> None:
            sheet = Join(self._engine.groups.preview_invite, agree, self._tasks, self._window)
            if given:
                sheet.show_link(given)
            if await self._ask(sheet):
                self.open_requested.emit(joined[-1])

        joined: list[ConversationId] = []
        return flow

    def join_next(self) -> None:
        """As ``join``, after the sheet that is being closed."""
        self.one_sheet.start_instead(tr("join a group"), self._join_flow(""))

    def invite(self, conversation: ConversationView) -> None:
        if self._engine.governing.view(conversation.conversation_id) is not None:
            self.governed_invitation_wanted.emit(conversation)
            return

        async def flow() -> None:
            link = await self._engine.groups.make_invite_link(conversation.conversation_id)
            await self._ask(InviteLink(conversation, link, self._window))

        self._start(tr("make an invitation"), flow)

    def leave(self, conversation: ConversationView) -> None:
        async def flow() -> None:
            view = self._engine.governing.view(conversation.conversation_id)
            if await self._ask(leave_confirm(conversation, self._window, view)):
                await self._engine.groups.leave(conversation.conversation_id)

        self._start(tr("leave the group"), flow)

    def export(self, conversation: ConversationView) -> None:
        # Seldom wanted, so not at the start.
        from ui.chat_export import ChatExport  # noqa: PLC0415
        from ui.dialogs.export import ExportChat  # noqa: PLC0415

        async def flow() -> None:
            export = ChatExport(self._engine, conversation)
            sheet = ExportChat(
                conversation.name,
                export.write,
                self._tasks,
                self._window,
                choose=self._context.choose_folder,
                open_url=self._context.open_url,
            )
            await self._ask(sheet)

        self._start(tr("export the conversation"), flow)

    # --- links -----------------------------------------------------------------------------

    def go_to_date(self, timeline: TimelineView) -> None:
        async def flow() -> None:
            sheet = GoToDate(
                timeline.day_in_view(),
                self._now().date(),
                timeline.days_with_messages,
                self._tasks,
                self._window,
            )
            chosen: list[date] = []
            sheet.accepted.connect(lambda: chosen.append(sheet.day))
            await self._ask(sheet)
            for each in chosen:
                timeline.go_to_day(each)

        self._start(tr("go to a date"), flow)

    def link(self, target: str, open_url: Callable[[QUrl], bool]) -> None:
        """Pressed in a message: one of ours is shown here, another program opens the rest."""
        if target.startswith(CONTACT_PREFIX):
            self.contact_link_pressed.emit(target)
            return
        if target.startswith(CHANNEL_PREFIX):
            self.channel_link_pressed.emit(target)
            return
        if target.startswith(OWN_SCHEME):  # The sheet says so if it is no invitation.
            self.show_invitation(target)
            return

        async def flow() -> None:
            url = openable(target)
            if url is None:
                await self._ask(RefusedLink(target, self._window))
            elif not self._confirms_links() or await self._ask(OpenLinkConfirm(url, self._window)):
                open_url(url)

        self._start(tr("open the address"), flow)

    # --- the program ------------------------------------------------------------------------------

    def stores(self) -> None:
        """In a sheet: for a window that has no settings page."""
        from ui.dialogs.stores import Stores  # noqa: PLC0415 - seldom wanted, so not at the start

        async def flow() -> None:
            await self._ask(Stores(self.stores_list(), self._window))

        self._start(tr("show the Stores"), flow)

    def stores_list(self) -> "StoresList":
        from ui.dialogs.stores import StoresList  # noqa: PLC0415 - as above

        stores = StoresList(
            self._engine, self._tasks, problem_of=self._address_problem, now=self._now
        )
        self.stores_changed.connect(stores.show_event)
        return stores

    def network(self, here: Callable[[], ConversationId | None]) -> None:
        """``here``: the conversation that is open."""
        from ui.network.sheet import NetworkSheet  # noqa: PLC0415 - seldom wanted, as above

        async def flow() -> None:
            await self._ask(NetworkSheet(self._engine, here, self._now, self._window))

        self._start(tr("show the network"), flow)

    def how_it_works(self, version: str) -> None:
        async def flow() -> None:
            identity = self._engine.identity()
            stored = "" if identity is None else identity.key_storage
            refused = refusal_sentences(self._engine.counters())
            await self._ask(HowItWorks(version, stored, self._window, refused=refused))

        self._start(tr("show how it works"), flow)

    def shortcuts(self) -> None:
        from ui.dialogs.shortcuts import Shortcuts  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            await self._ask(Shortcuts(self._window))

        self._start(tr("show the keys"), flow)

    def quit(self, waiting: int) -> None:
        async def flow() -> None:
            is_closed = not self._window.isVisible()  # While another sheet was put aside.
            if not is_closed and await self._ask(quit_confirm(waiting, self._window)):
                self.quit_agreed.emit()

        self.one_sheet.start_instead("quit", flow)
