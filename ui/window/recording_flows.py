"""The delivery log in the delivery view: it is switched, shown and exported from there."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl

from ui.dialogs.recording import recording_confirm
from ui.recording_port import RecordingPort
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.one_sheet import OneSheet
from ui.window.window_context import WindowContext

if TYPE_CHECKING:
    from ui.delivery.log_content import LogContent
    from ui.delivery.page import DeliveryPane


class RecordingFlows(QObject):
    def __init__(
        self, port: RecordingPort, tasks: Tasks, one_sheet: OneSheet, context: WindowContext
    ) -> None:
        super().__init__(one_sheet.window)
        self._port = port
        self._tasks = tasks
        self._one = one_sheet
        self._context = context
        self.content: LogContent | None = None
        """Of the view that is open."""

    def page_made(self, page: "DeliveryPane") -> None:
        from ui.delivery.log_content import LogContent  # noqa: PLC0415 - seldom wanted

        content = self.content = LogContent()
        content.switch_wished.connect(self._switch)
        content.export_wished.connect(self.export)
        content.folder_wished.connect(self._open_folder)
        page.fill_log(content)
        call_off = self._port.listen(self._show)
        page.destroyed.connect(lambda: self._gone(content))
        page.destroyed.connect(call_off)
        self._show()

    def _gone(self, content: "LogContent") -> None:
        if self.content is content:
            self.content = None

    def _show(self) -> None:
        if self.content is not None:
            self.content.show_state(self._port.state())

    def _switch(self, on: bool) -> None:
        async def flow() -> None:
            if not on or await self._one.ask(recording_confirm(self._one.window)):
                await self._port.switch(on=on)
                self._show()

        self._one.start(tr("record deliveries"), flow)

    def _open_folder(self) -> None:
        """The one that is there: it is made with the first record."""
        folder = Path(self._port.state().directory)
        shown = folder if folder.is_dir() else folder.parent
        self._context.open_url(QUrl.fromLocalFile(str(shown)))

    def export(self) -> None:
        from ui.dialogs.export_log import ExportLog  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            context = self._context
            await self._one.ask(
                ExportLog(
                    self._port,
                    self._tasks,
                    self._one.window,
                    choose_folder=context.choose_folder,
                    open_url=context.open_url,
                    now_ms=lambda: int(context.now().timestamp() * 1_000),
                )
            )

        self._one.start(tr("export recorded deliveries"), flow)
