"""The window's part in the desktop around it: notifications, tray, and what closing it means.

Nothing of this is needed to show the window, so ``begin`` comes after the first paint: what was
told before is told to the desktop then.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication, QWidget

from engine.api import ChatEngine
from engine.core.errors import ChatError
from engine.core.ids import ConversationId, Position
from engine.events import ConversationView, NoticeLevel
from ui.desktop.closing import Closing, KeepRunning, closing_explained, what_closing_means
from ui.desktop.notifications import Notifications
from ui.desktop.port import NotificationPort
from ui.desktop.quiet import DoNotDisturb
from ui.desktop.tray import Tray, TrayMaker
from ui.foreign_text import one_line
from ui.list.model import ConversationModel, counted_unread
from ui.menu import Menu
from ui.mute_entries import durations, until_words
from ui.settings import CloseToTray, UiSettings
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.notices import Notice, NoticesBar
from ui.window.one_sheet import OneSheet
from ui.window.unsent import Unsent, UnsentTexts
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_LONGEST_REPLY_SHOWN = 200
_LOOK_MS = 2_000
"""How often it is looked whether the tray that a window went into is still there."""


class DesktopParts(Struct, frozen=True, kw_only=True):
    engine: ChatEngine
    tasks: Tasks
    settings: UiSettings
    context: WindowContext
    model: ConversationModel
    notices: NoticesBar
    outbox: UnsentTexts
    one_sheet: OneSheet


class Desktop(QObject):
    opened = Signal(str, object)
    """By a notification: conversation id, and the ``Position`` that is shown, or None."""

    def __init__(self, parts: DesktopParts, window: "MainWindow") -> None:
        super().__init__(window)
        self._parts = parts
        self._window = window
        self.tray: Tray | None = None
        self.quiet = DoNotDisturb(parts.settings, parts.context.now, self)
        self.notifications = Notifications(
            self, is_quiet=self.quiet.is_on, is_locked=lambda: window.lock.is_locked
        )
        self.quiet_menus: list[Menu] = []
        self._hidden = QTimer(self)
        self._hidden.setInterval(_LOOK_MS)
        self._hidden.timeout.connect(self._look_for_tray)
        self.notifications.told.connect(self._call)
        self.notifications.opened.connect(self._opened)
        self.notifications.replied.connect(self._replied)
        self.notifications.marked_read.connect(self._mark_read)
        self.quiet.changed.connect(self._show_quiet)
        window.lock.changed.connect(self._lock_changed)
        parts.model.totals_changed.connect(self._show_unread)
        if isinstance(app := QApplication.instance(), QApplication):
            app.focusWindowChanged.connect(self.look)

    def begin(self, port: NotificationPort, make_tray: TrayMaker | None = None) -> None:
        """``make_tray``: None for no icon, whatever the desktop has."""
        self.notifications.use(port)
        if make_tray is None or not self._parts.settings.tray:
            return
        menu = Menu(self._window)
        menu.addAction(tr("Open Causerie")).triggered.connect(self._come)
        self.add_quiet_menu(menu)
        self._add_lock(menu)
        menu.addSeparator()
        menu.addAction(tr("Quit")).triggered.connect(self._window.quit)
        self.tray = make_tray(menu, self)
        if self.tray is not None:
            self.tray.open_requested.connect(self._come)
            self._show_unread()

    def end(self) -> None:
        """Nothing that leads nowhere stays on the screen."""
        self.notifications.close()
        self._hidden.stop()
        if self.tray is not None:
            self.tray.hide()

    def _add_lock(self, menu: Menu) -> None:
        lock = self._window.lock
        action = menu.addAction(tr("Lock"))
        action.triggered.connect(lock.lock)

        def show() -> None:
            action.setVisible(lock.can_lock and not lock.is_locked)

        lock.changed.connect(show)
        lock.ways_changed.connect(show)
        show()

    def _lock_changed(self) -> None:
        if self._window.lock.is_locked:
            self.notifications.conceal()
        else:
            self._window.outside_links.show_next()
            self.look()

    # --- the window goes away, and comes back -----------------------------------------------------

    def has_tray(self) -> bool:
        return self.tray is not None and self.tray.is_there()

    def show_at_start(self, *, minimised: bool) -> None:
        """Minimised is in the tray, or where there is none, in the task bar."""
        if not minimised:
            self._window.show()
        elif self.has_tray():
            self.hide()
        else:
            self._window.showMinimized()

    def hide(self) -> None:
        """Into the tray, from which it comes back also if the tray goes away."""
        self._window.hide()
        self._hidden.start()

    def _look_for_tray(self) -> None:
        if not self._window.isHidden():
            self._hidden.stop()
        elif not self.has_tray():
            self._window.showMinimized()

    def keeps_open(self) -> bool:
        """The user closes the window: whether it does not end by that, or not yet."""
        settings = self._parts.settings
        explains = self._parts.context.explains_closing
        meaning = what_closing_means(settings, has_tray=self.has_tray(), explains=explains)
        if self._window.lock.is_locked and meaning is not Closing.HIDE:
            return False  # Nothing is asked over the page that locks it.
        match meaning:
            case Closing.END:
                return False
            case Closing.HIDE:
                self.hide()
            case Closing.ASK:
                self._parts.one_sheet.start(tr("close the window"), self._ask, waits=True)
            case Closing.EXPLAIN:
                self._parts.one_sheet.start(tr("close the window"), self._explain, waits=True)
        return True

    async def _ask(self) -> None:
        sheet = KeepRunning(self._window)
        if await self._parts.one_sheet.ask(sheet):
            self._parts.settings.close_to_tray = CloseToTray.YES
            self.hide()
        elif sheet.quit_chosen:
            self._parts.settings.close_to_tray = CloseToTray.NO
            self._window.quit()

    async def _explain(self) -> None:
        if await self._parts.one_sheet.ask(closing_explained(self._window)):
            self._parts.settings.put("closing_explained", "yes")
            self._window.quit()

    def _come(self) -> None:
        self._window.come_to_front()

    def look(self) -> None:
        """What is before the user's eyes needs no notification."""
        pane = self._window.pane
        if pane.conversation is not None and pane.isVisible() and pane.isActiveWindow():
            self.notifications.withdraw(pane.conversation.conversation_id)

    # --- what is shown outside --------------------------------------------------------------------

    def _call(self) -> None:
        """The task bar's entry asks for attention, too: not every desktop shows notifications."""
        QApplication.alert(self._window)

    def _show_unread(self) -> None:
        if self.tray is not None:
            self.tray.show_unread(sum(map(counted_unread, self._parts.model.conversations())))

    def add_quiet_menu(self, menu: Menu) -> Menu:
        return self._keep_quiet_menu(menu.submenu(tr("Do not disturb")))

    def make_quiet_menu(self, parent: QWidget) -> Menu:
        """For a button."""
        return self._keep_quiet_menu(Menu(parent))

    def _keep_quiet_menu(self, quiet: Menu) -> Menu:
        self.quiet_menus.append(quiet)
        self._fill_quiet(quiet)
        return quiet

    def _show_quiet(self) -> None:
        for menu in self.quiet_menus:
            self._fill_quiet(menu)
        if self.quiet.is_on():
            self.notifications.withdraw_all()

    def _fill_quiet(self, menu: Menu) -> None:
        menu.clear()
        if self.quiet.is_on():
            until_ms = self.quiet.until_ms()
            until = "" if until_ms is None else until_words(until_ms, self._parts.context.now())
            words = tr("Switch off (on {until})").format(until=until) if until else tr("Switch off")
            menu.addAction(words).triggered.connect(self.quiet.end)
            return
        for words, for_ms in durations():
            said = words if for_ms is not None else tr("Until switched off")
            menu.addAction(said).triggered.connect(_beginning(self.quiet, for_ms))

    # --- what is done with notifications ----------------------------------------------------------

    def _opened(self, conversation_id: ConversationId, position: Position | None) -> None:
        self._come()
        self._window.lock.when_open(lambda: self._go(conversation_id, position))

    def _go(self, conversation_id: ConversationId, position: Position | None) -> None:
        if self._known(conversation_id) is None:
            self._say(tr("The conversation of that notification is not here any more."))
        else:
            self._window.open_conversation(conversation_id)
            if position is not None and self._window.pane.is_open(conversation_id):
                self._window.pane.timeline.go_to(position)
            self.opened.emit(conversation_id, position)

    def _mark_read(self, conversation_id: ConversationId, position: Position | None) -> None:
        is_there = self._known(conversation_id) is not None and position is not None
        if not is_there or position is None or self._window.lock.is_locked:
            return

        async def work() -> None:
            await self._parts.engine.timeline.mark_read(conversation_id, position)

        self._parts.tasks.spawn(work, purpose=tr("remember what was read"), retry=False)

    def _replied(self, conversation_id: ConversationId, text: str) -> None:
        if not text.strip():
            return
        view = self._known(conversation_id)
        if view is None:
            self._say(
                tr(
                    "Your reply was not sent, because the conversation is not here any more: {text}"
                ).format(text=one_line(text, _LONGEST_REPLY_SHOWN))
            )
            return

        outbox, draft = self._parts.outbox, self._parts.outbox.draft(view)

        def keep() -> None:
            """It stands before what was being written there."""
            outbox.save_draft(conversation_id, draft)
            outbox.returned.emit(conversation_id, Unsent(text=text))

        if self._window.lock.is_locked:
            keep()
            self._say(tr("Your reply was not sent, because the window was locked. It waits."))
            return

        async def work() -> None:
            try:
                await self._parts.engine.timeline.send_text(conversation_id, text)
            except ChatError:
                keep()
                raise

        self._parts.tasks.spawn(work, purpose=tr("send the reply"), retry=False)

    def _known(self, conversation_id: ConversationId) -> ConversationView | None:
        return self._parts.model.conversation(conversation_id)

    def _say(self, text: str) -> None:
        self._parts.notices.raise_notice(
            Notice(key="notification", level=NoticeLevel.WARNING, text=text)
        )


def _beginning(quiet: DoNotDisturb, for_ms: int | None) -> Callable[[], None]:
    def begin() -> None:
        quiet.begin(for_ms)

    return begin
