"""A report of a problem: one file without texts and names, to be read before it is handed on.

Nothing is sent anywhere.  Without recorded deliveries it says less, and says so.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtWidgets import QPlainTextEdit, QWidget

from engine.core.errors import ChatError
from ui.controls import Text
from ui.dialogs.sheet import Sheet, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import breaking
from ui.problem_words import sentence
from ui.report_port import Report, ReportPort
from ui.tasks import Tasks
from ui.translate import tr

_LONGEST_SHOWN = 200_000


class ReportProblem(Sheet):
    def __init__(  # noqa: PLR0913 - keyword-only: what it leads to
        self,
        port: ReportPort,
        report: Report,
        *,
        choose_folder: Callable[[QWidget], Awaitable[Path | None]],
        record: Callable[[], None] | None,
        tasks: Tasks,
        parent: QWidget,
    ) -> None:
        """``record``: leads to where recording is switched on; None: that is not offered."""
        words = tr(
            "One file for whoever looks into it: what was recorded of deliveries in the last hour,"
            " counters, versions and settings. It holds no text, no names, no keys and no"
            " addresses. Nothing is sent anywhere; read it below before you hand it on."
        )
        super().__init__(tr("Report a problem"), words, parent=parent)
        self._port, self._report, self._choose, self._tasks = port, report, choose_folder, tasks
        says = tr(
            "%n recorded events of the last hour.",
            "%n recorded event of the last hour.",
            report.events,
        )
        if not port.records:
            off = tr("Deliveries are not recorded now, so the report says little of messages.")
            says = f"{says} {off}"
        self.says = Text(says, face="label", wrap=True)
        self.preview = QPlainTextEdit(report.text[:_LONGEST_SHOWN])
        self.preview.setReadOnly(True)
        self.preview.setTabChangesFocus(True)
        self.preview.setAccessibleName(tr("What the report holds"))
        self.problem = problem_line()
        self.state = Text(face="label", colour="ink2", wrap=True)
        self.state.hide()
        for part in (self.says, self.preview, self.state, self.problem):
            self.body.addWidget(part)
        self.cancel = self.add_button(tr("Close"), left=True, kind="ghost")
        self.cancel.clicked.connect(self.reject)
        if record is not None and not port.records:
            self.record = self.add_button(tr("Record deliveries…"))
            self.record.clicked.connect(self.reject)
            self.record.clicked.connect(lambda _checked=False: record())
        self.confirm = self.add_button(tr("Save…"), kind="primary")
        self.confirm.clicked.connect(self._save)
        self.confirm.setFocus()

    def _save(self) -> None:
        self._tasks.spawn(self._work, purpose=tr("save the report"), retry=False)

    async def _work(self) -> None:
        try:
            folder = await self._choose(self)
            if folder is None:
                return
            path = await self._port.save(self._report, folder)
        except ChatError as error:
            say_problem(self.problem, sentence(error_words(error)))
        else:
            say_problem(self.problem, "")
            self.state.setText(tr("Saved: {file}").format(file=breaking(str(path))))
            self.state.show()
