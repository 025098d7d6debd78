"""Locks the window: a page that asks for the passphrase takes the place of everything in it.

What was shown is taken out of the window, not only covered: no key, no screen reader and no command
reaches it, and it goes on as it was when the window is unlocked.  The engine goes on, too: messages
come and wait.  Whoever shows something meanwhile asks ``is_locked`` first, or waits for
``when_open``.  A locked window stays locked over a restart.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QKeyCombination, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QHBoxLayout,
    QToolTip,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from engine.core.errors import ChatError
from ui.controls import Area
from ui.fitted_scroll_area import FittedScrollArea
from ui.lock_port import KeyWaysView, PassphrasePort
from ui.settings import UiSettings
from ui.tasks import Tasks
from ui.theme import current_theme, theme_changed
from ui.translate import tr
from ui.unlock_form import ForgottenFoot, UnlockForm
from ui.window.idle import IdleWatch
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_WIDTH: Final = 400
_EDGE: Final = 16
_LOCKED: Final = "locked"
_QUIT: Final = QKeyCombination(Qt.KeyboardModifier.ControlModifier, Qt.Key.Key_Q)
_MS_PER_MINUTE: Final = 60_000


class LockPage(Area):
    quit_requested = Signal()
    restore_requested = Signal()

    def __init__(self, port: PassphrasePort, tasks: Tasks, *, can_restore: bool) -> None:
        super().__init__("canvas")
        self.setAccessibleName(tr("Causerie is locked"))
        words = tr("Messages go on coming in. Your passphrase shows them.")
        self.form = UnlockForm(port, tasks, title=tr("Causerie is locked"), words=words)
        self.foot = ForgottenFoot()
        self.restore, self.quit = self.foot.restore, self.foot.quit
        self.restore.setHidden(not can_restore)
        self.restore.clicked.connect(self.restore_requested)
        self.quit.clicked.connect(self.quit_requested)
        self._content = QWidget()
        column = QVBoxLayout(self._content)
        column.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        column.addStretch(2)
        column.addWidget(self.form)
        column.addSpacing(_EDGE)
        column.addWidget(self.foot)
        column.addStretch(3)
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._content, 1000)
        row.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(FittedScrollArea(centre))
        theme_changed.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        self._content.setMaximumWidth(current_theme().metrics.scaled(_WIDTH) + 2 * _EDGE)

    def event(self, event: QEvent) -> bool:
        """No shortcut of the window does anything."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.keyCombination() == _QUIT:
            self.quit_requested.emit()
        else:
            super().keyPressEvent(event)


class Lock(QObject):
    changed = Signal()
    """It is locked now, or not any more."""
    ways_changed = Signal()
    """A passphrase was set, changed or removed."""

    def __init__(
        self,
        context: WindowContext,
        tasks: Tasks,
        settings: UiSettings,
        window: "MainWindow",
        *,
        idle: IdleWatch | None = None,
    ) -> None:
        super().__init__(window)
        self.port = context.passphrase
        self._restore = context.restore_beside
        self._tasks = tasks
        self._settings = settings
        self._window = window
        self._page: LockPage | None = None
        self._vault: QWidget | None = None
        """Holds what is taken out of the window.  A window that is never shown, and ends with the
        other: what would outlive it would go on following theme and engine."""
        self._taken: list[tuple[QWidget, bool]] = []
        self._central: QWidget | None = None
        self._actions: list[QAction] = []
        self._focus_before: QWidget | None = None
        self._then: Callable[[], None] | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._is_over = False
        window.closed.connect(self._end)
        self.usable = asyncio.Event()
        """Once there is a passphrase."""
        self.ways = KeyWaysView()
        self._idle = idle or IdleWatch(self)
        self._idle.idle.connect(self.lock)

    # --- what there is ----------------------------------------------------------------------------

    @property
    def is_offered(self) -> bool:
        return self.port is not None

    @property
    def can_lock(self) -> bool:
        return self.ways.has_passphrase

    def key_storage(self) -> str:
        """What opens the profile now, as ``IdentityView.key_storage``; "" if it is not known."""
        return self.ways.place or ("passphrase" if self.can_lock else "")

    @property
    def is_locked(self) -> bool:
        return self._page is not None

    @property
    def page(self) -> LockPage | None:
        return self._page

    def begin(self) -> None:
        """Before the window is shown: one that was locked when it ended begins locked."""
        self.reread()
        if self.can_lock and self.ways.place and self._settings.get(_LOCKED) == "yes":
            self.lock()
        else:
            self._settings.put(_LOCKED, "no")

    def reread(self) -> None:
        """Which ways there are, and after what time it locks by itself."""
        if self.port is None:
            return
        try:
            self.ways = self.port.ways()
        except ChatError:  # Of a header that became unreadable; what was known still counts.
            return
        if self.can_lock:
            self.usable.set()
        self._idle.begin(self.idle_limit_ms)
        self.ways_changed.emit()

    @property
    def idle_limit_ms(self) -> int:
        """After which it locks; 0: never by itself, or not now."""
        may_lock = self.can_lock and not self.is_locked
        return self._settings.lock_after_minutes * _MS_PER_MINUTE if may_lock else 0

    def when_open(self, then: Callable[[], None]) -> None:
        """Now, or when it is unlocked; of several that wait the last one counts."""
        if self.is_locked:
            self._then = then
        else:
            then()

    async def opened(self) -> bool:
        """Waits until it is not locked; False if the window ends before that."""
        while self.is_locked and not self._is_over:
            await self._open.wait()
        return not self.is_locked

    def _end(self) -> None:
        self._is_over = True
        self._open.set()

    # --- locking ----------------------------------------------------------------------------------

    def screen_locked(self) -> None:
        if self._settings.lock_with_screen:
            self.lock()

    def lock(self) -> None:
        """Harmless if it is locked, or there is no passphrase."""
        if self.port is None or not self.can_lock or self.is_locked:
            return
        window = self._window
        self._open.clear()
        self._settings.put(_LOCKED, "yes")
        self._idle.begin(0)
        self._focus_before = QApplication.focusWidget()
        self._close_what_lies_outside()
        self._take_away()
        page = self._page = LockPage(self.port, self._tasks, can_restore=self._restore is not None)
        page.form.unlocked.connect(self.unlock)
        page.quit_requested.connect(window.quit)
        page.restore_requested.connect(self._close_to_restore)
        window.setCentralWidget(page)
        self._actions = [action for action in window.actions() if action.isEnabled()]
        for action in self._actions:
            action.setEnabled(False)
        self.changed.emit()
        page.form.begin()

    def _close_to_restore(self) -> None:
        if self._restore is not None:
            self._restore()
            self._window.close_at_once()

    def _close_what_lies_outside(self) -> None:
        """Menus, lists of completions, file dialogs, tips: windows of their own."""
        QToolTip.hideText()
        while (popup := QApplication.activePopupWidget()) is not None:
            if not popup.close():
                break
        for child in self._window.findChildren(QWidget):
            if child.isWindow() and child.isVisible():
                if isinstance(child, QDialog):
                    child.reject()
                else:
                    child.close()

    def _take_away(self) -> None:
        window = self._window
        self._vault = QWidget(window, Qt.WindowType.Window)
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        self._central = window.takeCentralWidget()
        for child in window.findChildren(QWidget, options=direct):
            if not child.isWindow():
                self._taken.append((child, not child.isHidden()))
                child.setParent(self._vault)
        if self._central is not None:
            self._central.setParent(self._vault)

    def unlock(self) -> None:
        """The passphrase was right."""
        window, page, central = self._window, self._page, self._central
        if page is None or central is None:
            return
        self._page = None
        window.takeCentralWidget()
        page.hide()
        page.deleteLater()
        window.setCentralWidget(central)
        central.show()
        for child, was_shown in self._taken:
            if isValid(child):
                child.setParent(window)
                child.setGeometry(window.rect())
                child.setVisible(was_shown)
                child.raise_()
        if self._vault is not None:
            self._vault.deleteLater()
        self._taken, self._central, self._vault = [], None, None
        for action in self._actions:
            if isValid(action):
                action.setEnabled(True)
        self._settings.put(_LOCKED, "no")
        before = self._focus_before
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        self._open.set()
        self.reread()
        self.changed.emit()
        then, self._then = self._then, None
        if then is not None:
            then()
