"""What the menu and the keys of the window do; each stands in the menu, has a key, or both."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtWidgets import QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from ui.translate import tr
from ui.window.fault_notices import FaultNotices
from ui.window.layout import Mode
from ui.window.message_links import MessageLinks
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.dialogs.first_start import FirstStart
    from ui.list.panel import LeftPanel
    from ui.window.empty import EmptyPage
    from ui.window.main_window import MainWindow

    LeadingPart: TypeAlias = EmptyPage | FirstStart | LeftPanel


class Commands(QObject):
    def __init__(self, engine: ChatEngine, window: "MainWindow") -> None:
        super().__init__(window)
        self._engine = engine
        self._window = window
        self._message_links = MessageLinks(engine, window)

    def fill_menu(self, context: WindowContext) -> None:
        window = self._window
        menu, flows = window.menu, window.flows
        menu.add(tr("Add a person"), ("Ctrl+P",), self.add_person, icon_name="person-add")
        menu.add(tr("New group"), ("Ctrl+N",), self.new_group, icon_name="compose")
        menu.add(tr("Join with an invitation"), ("Ctrl+J",), self.join, icon_name="join")
        menu.add(tr("Open channel"), ("Ctrl+O",), self.open_channel, icon_name="network")
        with_key = tr("Channel with a shared key")
        menu.add(with_key, ("Ctrl+Shift+O",), self.key_channel, icon_name="key")
        window.panel.key_channel_requested.connect(self.key_channel)
        flows.channel_link_pressed.connect(window.channels.key_channel)
        menu.add(tr("Search everything"), ("Ctrl+K",), window.search.open, icon_name="search")
        menu.addSeparator()
        menu.add(tr("Your profile"), (), self.profile, icon_name="person")
        menu.add(tr("Network"), ("Ctrl+Shift+N",), self.network, icon_name="network")
        window.strip.network_requested.connect(self.network)
        if window.settings.is_offered:
            menu.add(tr("Settings"), ("Ctrl+,",), window.settings.open, icon_name="settings")
            window.notices.open_recording = partial(window.settings.open, "recording")
        if window.data.recording is not None:
            window.delivery.page_made.connect(window.data.recording.page_made)
        window.backups.offer(menu)
        window.lock_flows.offer(menu)
        menu.add_quiet(window.desktop)
        menu.addSeparator()
        menu.add(
            tr("How it works"),
            ("F1",),
            lambda: flows.how_it_works(context.version()),
            icon_name="help",
        )
        menu.add(tr("Keys"), ("Ctrl+/",), flows.shortcuts)
        if context.report is not None:
            menu.add(tr("Report a problem…"), (), self._report)
        menu.add(tr("Quit"), ("Ctrl+Q",), window.quit, icon_name="quit")
        self._add_keys()
        window.panel.set_menu(menu)
        self.fault_notices = FaultNotices(self._engine, window, context.now)

    def _add_keys(self) -> None:
        """What has keys and no entry."""
        window, menu = self._window, self._window.menu
        for words, keys, step in (
            (tr("Larger"), ("Ctrl++", "Ctrl+="), 1),
            (tr("Smaller"), ("Ctrl+-",), -1),
            (tr("Normal"), ("Ctrl+0",), 0),
        ):
            menu.add_hidden(words, keys, partial(window.looks.step_text_size, step))
        menu.add_hidden(tr("Conversation above"), ("Alt+Up",), lambda: self._step(-1))
        menu.add_hidden(tr("Conversation below"), ("Alt+Down",), lambda: self._step(1))
        menu.add_hidden(tr("Emoji"), ("Ctrl+E",), window.pane.ask_emoji)
        menu.add_hidden(tr("Search this conversation"), ("Ctrl+F",), self.search_here)
        menu.add_hidden(tr("Search the list"), ("Ctrl+Shift+F",), self._search_list)
        menu.add_hidden(tr("About the conversation"), ("Alt+Return",), window.side.toggle)
        menu.add_hidden(tr("Inspect"), ("Ctrl+I", "Ctrl+Shift+I"), window.inspector.toggle)
        menu.add_hidden(tr("Next area"), ("F6",), partial(self.step_area, 1))
        menu.add_hidden(tr("Previous area"), ("Shift+F6",), partial(self.step_area, -1))
        menu.add_hidden(tr("Back to the conversations"), ("Alt+Left",), self.back)

    def _has_identity(self) -> bool:
        return self._engine.identity() is not None

    def can_meet(self) -> bool:
        """Whether it may be shown to whom a link leads: not amid the first two steps, or locked."""
        window = self._window
        is_covered = window.first_page.is_asking or window.lock.is_locked
        return self._has_identity() and not is_covered

    def show_link(self, link: str, open_url: Callable[[QUrl], bool]) -> None:
        """From another program."""
        if not self._message_links.show(link):
            self._window.flows.link(link, open_url)

    def _show_link_again(self, *, contact: bool) -> bool:
        """What somebody came with, and may have closed while they pressed Enter at each step."""
        window = self._window
        return window.first_page.is_shown and window.outside_links.show_again(contact=contact)

    def follow(self, part: "LeadingPart") -> None:
        """A part of the window that leads to new conversations."""
        part.new_group_requested.connect(self.new_group)
        part.join_requested.connect(self.join)
        part.add_person_requested.connect(self.add_person)

    def new_group(self) -> None:
        if self._has_identity():
            self._window.flows.new_group()

    def add_person(self) -> None:
        if self._has_identity() and not self._show_link_again(contact=True):
            self._window.people.add_person()

    def profile(self) -> None:
        self._open_section("profile", self._window.people.profile)

    def stores(self) -> None:
        self._open_section("network", self._window.flows.stores)

    def network(self) -> None:
        def here() -> ConversationId | None:
            conversation = self._window.pane.conversation
            return None if conversation is None else conversation.conversation_id

        if self._has_identity():
            self._window.flows.network(here)

    def _open_section(self, section: str, otherwise: Callable[[], None]) -> None:
        """``otherwise``: in a window that has no settings page."""
        if not self._has_identity():
            return
        if self._window.settings.is_offered:
            self._window.settings.open(section)
        else:
            otherwise()

    def join(self) -> None:
        if self._has_identity() and not self._show_link_again(contact=False):
            self._window.flows.join()

    def open_channel(self) -> None:
        if self._has_identity():
            self._window.channels.open_channel()

    def key_channel(self) -> None:
        if self._has_identity():
            self._window.channels.key_channel()

    def _report(self) -> None:
        settings = self._window.settings
        record = partial(settings.open, "recording") if settings.is_offered else None
        self._window.data.report_problem(record)

    def _search_list(self) -> None:
        window = self._window
        if not self._has_identity():
            return
        window.show_body()
        if window.body.mode is Mode.NARROW:
            window.body.show_main(False)
        elif window.panel.is_rail:
            window.body.peek()
        window.panel.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        window.panel.search.selectAll()

    def _step(self, rows: int) -> None:
        window = self._window
        if window.pages.currentWidget() is window.body:
            window.panel.step(rows)

    def search_here(self) -> None:
        """In the open conversation, in its chat."""
        self._window.pane.header.show_chat()
        self._window.pane.finding.begin()

    def back(self) -> None:
        window = self._window
        window.settings.close()
        if window.body.mode is Mode.NARROW:
            window.body.show_main(False)
        window.panel.rows.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def leave_side(self, forward: bool) -> None:
        """The panel stands last in the round of Tab."""
        window = self._window
        before = header.more if (header := window.pane.header).isVisible() else window.panel.rows
        after = window.panel.avatar if window.panel.isVisible() else self._side_areas()[0]
        (after if forward else before).setFocus(Qt.FocusReason.TabFocusReason)

    def _side_areas(self) -> tuple[QWidget, ...]:
        return self._window.side.areas() or self._window.inspector.areas()

    def step_area(self, step: int) -> None:
        """List, timeline, the bar about a person, composer, side panel, and round again.

        ``step``: 1 to the next, -1 to the one before.
        """
        window = self._window
        if window.settings.page is not None and window.settings.is_shown:
            window.settings.page.next_area()
            return
        areas = [window.panel.rows, *window.pane.areas(), *self._side_areas()]
        usable = [area for area in areas if area.isVisible() and area.isEnabled()]
        if not usable:
            return
        nowhere = -1 if step > 0 else 0
        at = next((i for i, area in enumerate(usable) if area.hasFocus()), nowhere)
        usable[(at + step) % len(usable)].setFocus(Qt.FocusReason.ShortcutFocusReason)
