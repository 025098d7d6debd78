"""Backups in the window: the sheet that makes one, and the way to restoring one at first start.

A backup is restored where there is no profile yet, so the window closes for it and another one,
without an engine, does the work (``ui.restoring``).
"""

from PySide6.QtCore import QObject, Signal

from ui.dialogs.first_start import FirstStart
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.menu import WindowMenu
from ui.window.one_sheet import OneSheet
from ui.window.window_context import WindowContext


class BackupFlows(QObject):
    close_requested = Signal()

    def __init__(self, context: WindowContext, tasks: Tasks, one_sheet: OneSheet) -> None:
        super().__init__(one_sheet.window)
        self._context = context
        self._tasks = tasks
        self._one = one_sheet

    @property
    def is_offered(self) -> bool:
        return self._context.backups is not None

    def offer(self, menu: WindowMenu, first_start: FirstStart) -> None:
        if self.is_offered:
            menu.add(tr("Back up…"), (), self.back_up, icon_name="lock")
        if self._context.restore is not None:
            first_start.offer_restore()
            first_start.restore_requested.connect(self.restore)

    def back_up(self) -> None:
        port = self._context.backups
        if port is None:
            return
        from ui.dialogs.backup import Backup  # noqa: PLC0415 - seldom wanted, so not at the start

        async def flow() -> None:
            await self._one.ask(Backup(port, self._tasks, self._one.window))

        self._one.start(tr("make a backup"), flow)

    def restore(self) -> None:
        """Only while nobody has a name here."""
        if self._context.restore is not None:
            self._context.restore()
            self.close_requested.emit()
