"""What is kept on this device: what the settings' data section leads to besides backups.

A profile is erased where no engine has it open, so the window closes for it.
"""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from engine.api import ChatEngine
from engine.events import ConversationView
from ui.space_port import ConversationTakes
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.one_sheet import OneSheet
from ui.window.recording_flows import RecordingFlows
from ui.window.window_context import WindowContext


class DataFlows(QObject):
    close_requested = Signal()

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        one_sheet: OneSheet,
        context: WindowContext,
        conversations: Callable[[], Sequence[ConversationView]],
    ) -> None:
        super().__init__(one_sheet.window)
        self._engine = engine
        self._tasks = tasks
        self._one = one_sheet
        self._context = context
        self._conversations = conversations
        port = context.recording
        self.recording = None if port is None else RecordingFlows(port, tasks, one_sheet, context)
        """None: what is recorded of deliveries is neither shown nor exported."""

    @property
    def conversations(self) -> Callable[[], Sequence[ConversationView]]:
        return self._conversations

    def space_act(self) -> Callable[[], None] | None:
        """None: that is not offered; likewise below."""
        return None if self._context.space is None else self.show_space

    def erase_act(self) -> Callable[[], None] | None:
        return None if self._context.erase is None else self.erase

    def show_space(self) -> None:
        port = self._context.space
        if port is None or self._engine.identity() is None:
            return
        from ui.dialogs.space import SpaceTaken  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            names = {view.conversation_id: view.name for view in self._conversations()}
            await self._one.ask(
                SpaceTaken(port, names, self._let_go, self._tasks, self._one.window)
            )

        self._one.start(tr("show where the space goes"), flow)

    def report_problem(self, record: Callable[[], None] | None) -> None:
        """``record``: leads to where recording is switched on; None: it cannot be."""
        port = self._context.report
        if port is None:
            return
        from ui.dialogs.report import ReportProblem  # noqa: PLC0415 - seldom wanted

        async def flow() -> None:
            report, context = await port.make(), self._context
            await self._one.ask(
                ReportProblem(
                    port,
                    report,
                    choose_folder=context.choose_folder,
                    record=record,
                    tasks=self._tasks,
                    parent=self._one.window,
                )
            )

        self._one.start(tr("report a problem"), flow)

    async def _let_go(self, takes: ConversationTakes, unasked: bool) -> int:
        """Of the files of others those that another member holds; how many stay."""
        ids = takes.message_ids
        gone = await self._engine.files.let_go(takes.conversation_id, ids, unasked=unasked)
        return len(ids) - len(gone)

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
