"""What is kept on this device: what the settings' data section leads to besides backups.

A profile is erased where no engine has it open, so the window closes for it.
"""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from ui.translate import tr
from ui.window.one_sheet import OneSheet
from ui.window.window_context import WindowContext


class DataFlows(QObject):
    close_requested = Signal()

    def __init__(self, context: WindowContext, one_sheet: OneSheet) -> None:
        super().__init__(one_sheet.window)
        self._context = context
        self._one = one_sheet

    def erase_act(self) -> Callable[[], None] | None:
        """None: that is not offered."""
        return None if self._context.erase is None else self.erase

    def erase(self) -> None:
        agreed = self._context.erase
        if agreed is None:
            return
        from ui.dialogs.erase import EraseProfile  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            sheet = EraseProfile(self._context.profile_name, self._one.window)
            if await self._one.ask(sheet):
                agreed()
                self.close_requested.emit()

        self._one.start(tr("erase this profile"), flow)
