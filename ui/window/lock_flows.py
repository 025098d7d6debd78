"""Sheets about the passphrase, and the command that locks the window.

Without a passphrase the command offers to set one, and locks then.
"""

from PySide6.QtCore import QObject

from engine.events import NoticeLevel
from ui.lock_port import PassphrasePort
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.locking import Lock
from ui.window.menu import WindowMenu
from ui.window.notices import Notice, NoticesBar
from ui.window.one_sheet import OneSheet


class LockFlows(QObject):
    def __init__(self, lock: Lock, tasks: Tasks, one_sheet: OneSheet, notices: NoticesBar) -> None:
        super().__init__(lock)
        self.lock = lock
        self._tasks = tasks
        self._one = one_sheet
        one_sheet.uncovered = lock.opened  # What was begun before it was locked waits.
        self._notices = notices

    def offer(self, menu: WindowMenu) -> None:
        if self.lock.is_offered:
            menu.add(tr("Lock"), ("Ctrl+L",), self.lock_now, icon_name="lock")

    def lock_now(self) -> None:
        if self.lock.can_lock:
            self.lock.lock()
        elif self.lock.port is not None:
            self._set(self.lock.port, then_locks=True)

    def set_passphrase(self) -> None:
        if self.lock.port is not None:
            self._set(self.lock.port, then_locks=False)

    def _set(self, port: PassphrasePort, *, then_locks: bool) -> None:
        from ui.dialogs.passphrase import SetPassphrase  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            sheet = SetPassphrase(port, self._tasks, self._one.window)
            is_set = await self._one.ask(sheet)
            self.lock.reread()
            if not is_set:
                return
            if not sheet.was_cleared:
                self._say(
                    tr(
                        "The passphrase is set, but what opened the profile before could not be"
                        " removed from the system keyring. The next start tries again."
                    ),
                    NoticeLevel.WARNING,
                )
            if then_locks:
                self.lock.lock()

        self._one.start(tr("set the passphrase"), flow)

    def remove_passphrase(self) -> None:
        port = self.lock.port
        if port is None:
            return
        from ui.dialogs.passphrase import RemovePassphrase  # noqa: PLC0415 - likewise

        async def flow() -> None:
            sheet = RemovePassphrase(port, self._tasks, self._one.window)
            is_removed = await self._one.ask(sheet)
            self.lock.reread()
            if is_removed:
                self._say(sheet.said(), NoticeLevel.INFO)

        self._one.start(tr("remove the passphrase"), flow)

    def _say(self, text: str, level: NoticeLevel) -> None:
        self._notices.raise_notice(Notice(key="passphrase", level=level, text=text))
