"""The main window: puts the parts together and leads engine events to them.

It decides nothing about messages; it knows which conversation is open, how much room there is, and
which page is shown.  It is closed by the user and never by itself.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId, MessageId, Position
from engine.events import ConversationView
from ui.bridge import EngineBridge
from ui.emoji.window_emoji import WindowEmoji
from ui.foreign_text import one_line
from ui.icons import app_icon
from ui.list.marks import ListMarks
from ui.list.model import ConversationModel
from ui.list.panel import LeftPanel
from ui.settings import UiSettings
from ui.side.dock import Dock
from ui.tasks import Tasks
from ui.theme import theme_changed
from ui.translate import tr
from ui.window.backup_flows import BackupFlows
from ui.window.channel_flows import ChannelFlows
from ui.window.clock_notice import ClockNotice
from ui.window.commands import Commands
from ui.window.data_flows import DataFlows
from ui.window.delivery_flows import DeliveryFlows
from ui.window.desktop import Desktop, DesktopParts
from ui.window.empty import EmptyPage
from ui.window.first_page import FirstPage
from ui.window.flood_notices import FloodNotices
from ui.window.flows import Flows
from ui.window.fork_notices import ForkNotices
from ui.window.governing_flows import GoverningFlows
from ui.window.inspector_flows import InspectorFlows
from ui.window.layout import Body, Mode, keep_place, restore_place
from ui.window.lock_flows import LockFlows
from ui.window.locking import Lock
from ui.window.looks import Looks
from ui.window.menu import WindowMenu
from ui.window.message_flows import MessageFlows
from ui.window.notices import (
    NoticesBar,
    earlier_profile_kept,
    other_version_started,
    unreadable_page,
    wrong_settings,
)
from ui.window.one_sheet import OneSheet
from ui.window.outside_links import OutsideLinks
from ui.window.pane import ConversationPane
from ui.window.people_flows import PeopleFlows
from ui.window.router import EventRouter, Shown
from ui.window.search_flows import SearchFlows
from ui.window.settings_flows import SettingsFlows, SettingsParts
from ui.window.side_flows import SideFlows
from ui.window.strip import StatusStrip
from ui.window.undo_bar import UndoBar
from ui.window.unsent import UnsentTexts
from ui.window.window_context import WindowContext

_SIZE, _LEAST = (1280, 820), (360, 420)


class MainWindow(QMainWindow):
    closed = Signal()
    """The user closed it; drafts are on their way, so await ``shutdown`` before the loop ends."""

    def __init__(
        self, engine: ChatEngine, settings: UiSettings, surroundings: WindowContext
    ) -> None:
        super().__init__()
        self._engine = engine
        self._settings = settings
        self._surroundings = surroundings
        self._leaving = False
        self._quits = False
        self.wants_restart = False
        """It was closed to be started again."""
        self.wants_another = False
        """It was closed for a window with the words of another language."""
        self.looks = Looks(settings)
        self._wanted = ConversationId("")
        self.tasks = Tasks(self)
        self.bridge = EngineBridge(engine, self)
        self.outbox = UnsentTexts(engine, self.tasks, self)
        self.lock = Lock(surroundings, self.tasks, settings, self)
        one_sheet = OneSheet(self.tasks, self)
        self.flows = Flows(
            engine,
            self.tasks,
            self,
            one_sheet,
            context=surroundings,
            confirms_links=lambda: settings.confirm_links,
        )
        self.outside_links = OutsideLinks(
            one_sheet,
            is_ready=lambda: self.commands.can_meet() and not self._leaving,
            show=lambda link: self.commands.show_link(link, surroundings.open_url),
        )
        self.channels = ChannelFlows(engine, self.tasks, self, one_sheet)
        self.people = PeopleFlows(engine, self.tasks, self, one_sheet, surroundings)
        self.model = ConversationModel(surroundings.now)
        self.panel = LeftPanel(self.model, surroundings.now)
        self.emoji = WindowEmoji(settings, self)
        self.pane = ConversationPane(
            engine,
            self.tasks,
            self.outbox,
            surroundings.now,
            emoji=self.emoji,
            settings=settings,
            conversations=self.model.conversations,
        )
        self.marks = ListMarks(self.model, settings, self, read_up_to=self.pane.mark_read)
        self.empty = EmptyPage()
        self.first_page = FirstPage(engine, self, surroundings)
        self.notices = NoticesBar()
        self.governing = GoverningFlows(engine, self, one_sheet, settings, surroundings)
        self.about = MessageFlows(
            engine,
            self.tasks,
            self,
            one_sheet,
            self.notices,
            conversations=self.model.conversations,
            now=surroundings.now,
        )
        self.lock_flows = LockFlows(self.lock, self.tasks, one_sheet, self.notices)
        self.strip = StatusStrip()
        self.clock = ClockNotice(
            engine,
            self.tasks,
            bridge=self.bridge,
            notices=self.notices,
            strip=self.strip,
            one_sheet=one_sheet,
            now=surroundings.now,
            parent=self,
        )
        self.forks = ForkNotices(engine, self, one_sheet, surroundings.now)
        self.floods = FloodNotices(engine, self)
        self.desktop = Desktop(
            DesktopParts(
                engine=engine,
                tasks=self.tasks,
                settings=settings,
                context=surroundings,
                model=self.model,
                notices=self.notices,
                outbox=self.outbox,
                one_sheet=one_sheet,
            ),
            self,
        )
        self.commands = Commands(engine, self)
        self.backups = BackupFlows(surroundings, self.tasks, one_sheet, self.notices)
        self.data = DataFlows(engine, self.tasks, one_sheet, surroundings, self.model.conversations)
        self.pages = QStackedWidget()
        self.settings = self._settings_flows(one_sheet)
        self.menu = WindowMenu(self)
        self.search = SearchFlows(
            engine, self.tasks, self, one_sheet, self.model.conversations, surroundings.now
        )
        self.router = self._event_router()
        self._lay_out()
        self.commands.fill_menu(self._surroundings)
        self._connect_parts()
        restore_place(self, self.body, settings)
        self.lock.begin()

    # --- building ---------------------------------------------------------------------------------

    def _settings_flows(self, one_sheet: OneSheet) -> SettingsFlows:
        return SettingsFlows(
            SettingsParts(
                engine=self._engine,
                tasks=self.tasks,
                settings=self._settings,
                context=self._surroundings,
                looks=self.looks,
                desktop=self.desktop,
                one_sheet=one_sheet,
                notices=self.notices,
                pages=self.pages,
                make_profile=self.people.profile_fields,
                make_stores=self.flows.stores_list,
                lock_flows=self.lock_flows,
                backups=self.backups,
                data=self.data,
            ),
            self,
        )

    def _event_router(self) -> EventRouter:
        return EventRouter(
            self.bridge,
            self.tasks,
            Shown(
                model=self.model,
                pane=self.pane,
                notices=self.notices,
                notifications=self.desktop.notifications,
                settings=self._settings,
                outbox=self.outbox,
            ),
            self,
        )

    def _lay_out(self) -> None:
        self.setWindowTitle("Causerie")
        self.setWindowIcon(app_icon())
        self.setMinimumSize(*_LEAST)
        self.resize(*_SIZE)
        # From the outside in: with each new parent Qt styles all that a part holds once more.
        central = QWidget()
        self.setCentralWidget(central)
        column = QVBoxLayout(central)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.notices)
        column.addWidget(self.pages, 1)
        self.main = QStackedWidget()
        self.dock = Dock(self.main)
        self.body = Body(self.pages, self.panel, self.dock)
        self.pages.addWidget(self.body)
        self.main.addWidget(self.empty)
        self.main.addWidget(self.pane)
        column.addWidget(self.strip)
        self.side = SideFlows(
            self._engine,
            self.tasks,
            self,
            self.dock,
            pane=self.pane,
            model=self.model,
            flows=self.flows,
            people=self.people,
            governing=self.governing,
            now=self._surroundings.now,
        )
        self.inspector = InspectorFlows(
            self._engine,
            self.tasks,
            self,
            self.dock,
            pane=self.pane,
            side=self.side,
            bridge=self.bridge,
            now=self._surroundings.now,
        )
        now = self._surroundings.now
        self.delivery = DeliveryFlows(
            self._engine, self.tasks, self, pane=self.pane, bridge=self.bridge, now=now
        )
        self.delivery.inspect_requested.connect(self.inspector.show_message)
        self.undo_bar = UndoBar(self.pages, self.main)
        self.undo_bar.follow(self.about.deletions, self.pane.timeline)

    def _connect_parts(self) -> None:
        self.panel.opened.connect(self._show_conversation)
        self.panel.messages_requested.connect(self.search.open)
        self.search.conversation_chosen.connect(self.open_conversation)
        self.search.message_chosen.connect(self.open_at)
        self.search.person_chosen.connect(self.side.show_member)
        self.bridge.search_indexed.connect(self.search.show_indexed)
        self.panel.entered.connect(self.open_conversation)
        for part in (self.panel, self.empty):
            self.commands.follow(part)
        self.panel.open_channel_requested.connect(self.commands.open_channel)
        self.panel.mute_requested.connect(self.pane.mute)
        self.panel.profile_requested.connect(self.commands.profile)
        self.pages.currentChanged.connect(self.outside_links.show_next)
        for flows in (self.flows, self.people, self.channels, self.governing, self.about):
            flows.open_requested.connect(self._open_when_known)
        self.people.profile_changed.connect(self.show_connection)
        self.flows.quit_agreed.connect(self.close_at_once)
        self.backups.close_requested.connect(self.close_at_once)
        self.data.close_requested.connect(self.close_at_once)
        self.flows.contact_link_pressed.connect(self.people.show_contact_link)
        self.model.totals_changed.connect(self._show_totals)
        self.lock.changed.connect(self._show_title)
        self.lock.changed.connect(self.outside_links.show_next)
        self.router.open_conversation_removed.connect(self._show_nothing_open)
        self.router.connection_changed.connect(self.show_connection)
        self.governing.asking_changed.connect(self.router.tell_asking)
        self.body.mode_changed.connect(self._show_mode)
        self.body.list_width_changed.connect(lambda w: self._settings.put("list_width", str(w)))
        theme_changed.connect(self.body.refit)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self.looks.apply)
        self.marks.follow(self.panel, self.bridge)
        self._connect_side()
        self._connect_header()
        self._connect_pane()
        self.settings.restart_requested.connect(self.restart)
        self.settings.language_changed.connect(self._make_room)
        self.bridge.stores_changed.connect(self.flows.stores_changed)

    def _connect_header(self) -> None:
        header, pane = self.pane.header, self.pane
        header.back_requested.connect(self.commands.back)
        header.search_requested.connect(self.commands.search_here)
        header.date_requested.connect(lambda: self.flows.go_to_date(pane.timeline))
        for wish, flow in (
            (header.invite_requested, self.flows.invite),
            (header.leave_requested, self.flows.leave),
            (header.export_requested, self.flows.export),
            (header.channel_requested, self.channels.details),
            (header.leave_channel_requested, self.channels.leave),
            (header.rename_requested, self.people.rename),
            (header.safety_number_requested, self.people.safety_number),
            (header.block_requested, self.people.block),
            (pane.block_requested, self.people.block),
            (header.remove_requested, self.people.remove),
        ):
            wish.connect(partial(self._with_open, flow))

    def _connect_pane(self) -> None:
        about, pane = self.about, self.pane
        pane.delete_requested.connect(
            lambda m: about.delete(m, can_write=pane.timeline.scene.can_write)
        )
        pane.forward_requested.connect(about.forward)
        pane.about.reactions_went.connect(about.say_reactions_went)
        for wanted, show in (
            (pane.discard_requested, about.discard),
            (pane.holders_requested, about.holders),
            (pane.info_requested, about.info),
            (pane.versions_requested, about.versions),
            (pane.reactions_requested, about.reactions),
        ):
            wanted.connect(partial(self._about_message, show))
        pane.link_activated.connect(
            lambda target: self.flows.link(target, self._surroundings.open_url)
        )
        pane.file_open_requested.connect(
            lambda message: about.open_file(message, self._surroundings.open_url)
        )
        pane.files.saved.connect(lambda path: about.say_saved(path, self._surroundings.open_url))
        pane.load_failed.connect(self._load_failed)
        pane.stores_requested.connect(self.commands.stores)

    def _connect_side(self) -> None:
        side, pane = self.side, self.pane
        pane.header.about_requested.connect(side.toggle)
        pane.timeline.personRequested.connect(side.show_person)
        pane.muted_bar.members_requested.connect(side.show_open)
        pane.governance.requests_requested.connect(side.show_open)
        side.open_requested.connect(self.open_conversation)
        side.left_by_key.connect(self.commands.leave_side)
        self.inspector.left_by_key.connect(self.commands.leave_side)
        side.file_open_requested.connect(
            lambda message: self.about.open_file(message, self._surroundings.open_url)
        )
        for told in (self.bridge.message_added, self.bridge.message_changed):
            told.connect(lambda event: side.heard(event.message))

    # --- life -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Read what there is and show it; the first page if there is nobody yet."""
        self.clock.start()
        self.show_connection()
        self._tell_of_earlier_profile()
        self._tell_of_settings()
        self.backups.start()
        if self._engine.identity() is None:
            self.pages.setCurrentWidget(self.first_page.page)
            self.panel.setEnabled(True)
            self.first_page.page.begin()
        self.model.reset(await self._engine.conversations())
        self.marks.began()
        self.governing.start()
        self.side.show_verified()
        self._show_last()
        if self._surroundings.settings_section:
            self.settings.open(self._surroundings.settings_section)

    def _show_last(self) -> None:
        last = self.model.conversation(ConversationId(self._settings.get("conversation") or ""))
        if last is not None and self.body.mode is not Mode.NARROW:
            self.open_conversation(last.conversation_id)
        elif self.pages.currentWidget() is self.body:
            self._show_nothing_open()

    def _tell_of_earlier_profile(self) -> None:
        """Once of each: its name has the day on it."""
        name = Path(file := self._surroundings.earlier_profile).name
        if name and self._settings.get("earlier_profile") != name:
            self.notices.raise_notice(earlier_profile_kept(file))
            self._settings.put("earlier_profile", name)

    def _tell_of_settings(self) -> None:
        context = self._surroundings
        if context.wrong_settings:
            self.notices.raise_notice(
                wrong_settings(context.wrong_settings, context.settings_file, context.open_url)
            )

    def come_to_front(self, link: str = "") -> None:
        """Asked for by a second start of the program, which may bring a link."""
        if self._leaving:
            return
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()
        self.outside_links.open(link)

    def tell_other_version(self) -> None:
        """Its start was handed over, perhaps with more than is understood here."""
        self.notices.raise_notice(other_version_started())

    async def shutdown(self) -> None:
        """After ``closed``: drafts and sends reach the engine, then no more events are heard."""
        self.pane.leave()
        self.about.deletions.finish()
        await self.tasks.settle()
        self.bridge.detach()
        self.settings.end()
        self.backups.end()
        self.desktop.end()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not (self._leaving or self._quits) and self.desktop.keeps_open():
            event.ignore()
            return
        waiting = sum(view.waiting_to_send for view in self.model.conversations())
        if waiting and not (self._leaving or self.lock.is_locked):
            event.ignore()
            self.come_to_front()
            self.flows.quit(waiting)
            return
        self._leaving = True
        keep_place(self, self._settings)
        self.pane.composer.flush_draft()
        if self.flows.sheet is not None:  # Also one that a lock covers: nobody answers it any more.
            self.flows.sheet.reject()
        event.accept()
        self.closed.emit()

    def quit(self) -> None:
        """End the program, tray or not; what waits to be sent is asked about."""
        self._quits = True
        self.close()
        self._quits = False

    def restart(self) -> None:
        """End, and be started again: what waits to be sent goes out then."""
        self.wants_restart = True
        self.close_at_once()

    def _make_room(self) -> None:
        self.wants_another = True
        self.close_at_once()

    def close_at_once(self) -> None:
        """Without questions; what waits to be sent is on disk.  Harmless once it is closed."""
        if self._leaving:
            return
        self._leaving = True
        self.close()

    # --- which conversation -----------------------------------------------------------------------

    def open_conversation(self, conversation_id: ConversationId) -> None:
        """Show it, ready to write."""
        self._show_conversation(conversation_id)
        if self.pane.is_open(conversation_id):
            self.pane.take_focus()

    def _show_conversation(self, conversation_id: ConversationId) -> None:
        conversation = self.model.conversation(conversation_id)
        if conversation is None:
            return
        if not self.pane.is_open(conversation_id):
            self.pane.open(conversation)
            self.forks.opened(conversation_id)
            self.floods.opened(conversation_id)
            self.model.set_open(conversation_id)
            self.pane.show_typing(self.model.typing(conversation_id))
            self._settings.put("conversation", conversation_id)
            self._show_title()
            self.inspector.conversation_opened()
            self.side.conversation_opened()
        self.marks.opened(conversation_id)
        self.panel.select(conversation_id)
        self.main.setCurrentWidget(self.pane)
        self.pages.setCurrentWidget(self.body)
        self.body.show_main(True)
        self._show_unread_elsewhere()
        self.desktop.look()

    def _open_when_known(self, conversation_id: ConversationId) -> None:
        """Its event may come after the command's answer."""
        self._wanted = conversation_id
        if self.model.conversation(conversation_id) is not None:
            self._open_wanted()
        else:
            self.tasks.spawn(self._learn_wanted, purpose=tr("show the conversation"))

    async def _learn_wanted(self) -> None:
        for conversation in await self._engine.conversations():
            if conversation.conversation_id == self._wanted:
                self.model.put(conversation)
                self._open_wanted()

    def _open_wanted(self) -> None:
        self.panel.search.clear()
        self.open_conversation(self._wanted)

    def _show_nothing_open(self) -> None:
        self.inspector.close()
        self.side.close()
        self.pane.leave()
        self.model.set_open(None)
        self.panel.select(None)
        self._show_title()
        self.empty.show_whether_any(any_conversation=bool(self.model.conversations()))
        self.main.setCurrentWidget(self.empty)
        self.body.show_main(False)
        if self.model.rowCount():
            self.panel.rows.setFocus()
        else:
            self.empty.add_person.setFocus()

    def show_body(self) -> None:
        self.pages.setCurrentWidget(self.body)
        if self.pane.conversation is None:
            self._show_nothing_open()

    def _with_open(self, run: Callable[[ConversationView], None]) -> None:
        if self.pane.conversation is not None:
            run(self.pane.conversation)

    def _about_message(
        self, show: Callable[[ConversationView, MessageId], None], message_id: MessageId
    ) -> None:
        self._with_open(lambda view: show(view, message_id))

    def open_at(self, conversation_id: ConversationId, position: Position) -> None:
        self._show_conversation(conversation_id)
        if self.pane.is_open(conversation_id):
            self.delivery.show_chat()
            self.pane.timeline.enter_at(position)

    # --- what the parts show ----------------------------------------------------------------------

    def show_connection(self) -> None:
        connection = self._engine.connection()
        self.panel.show_identity(self._engine.identity(), connection)
        self.strip.show_connection(connection)
        self.pane.header.show_connection(connection)

    def _show_totals(self) -> None:
        self.strip.show_totals(conversations := self.model.conversations())
        self.empty.show_whether_any(any_conversation=bool(conversations))
        self._show_unread_elsewhere()
        self._show_title()
        if conversations and self.first_page.is_shown:
            self.show_body()  # Somebody was quicker, and waits for an answer.

    def _show_title(self) -> None:
        shown = None if self.lock.is_locked else self.pane.conversation
        view = None if shown is None else self.model.conversation(shown.conversation_id)
        self.setWindowTitle(
            tr("{name} — Causerie").format(name=one_line(view.name, 60)) if view else "Causerie"
        )

    def _show_unread_elsewhere(self) -> None:
        elsewhere = sum(
            view.unread
            for view in self.model.conversations()
            if not view.muted and not self.pane.is_open(view.conversation_id)
        )
        self.pane.header.back.show_unread(elsewhere)

    def _show_mode(self) -> None:
        self.pane.header.set_back_visible(self.body.mode is Mode.NARROW)
        self.show_connection()

    def _load_failed(self, text: str) -> None:
        def again() -> None:
            self.notices.clear("page")
            if (conversation := self.pane.conversation) is not None:
                self.pane.open(conversation)

        self.notices.raise_notice(unreadable_page(text, again))
