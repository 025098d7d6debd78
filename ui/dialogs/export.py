"""Exports one conversation: says what comes of it, how far it is, and what could not be done."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QStandardPaths, QUrl
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.core.errors import ChatError
from ui.chat_export import Exported, Progress
from ui.controls import Text
from ui.dialogs.sheet import Sheet, problem_line, say_problem
from ui.error_words import error_words
from ui.file_choice import chosen_path, usual_folder
from ui.foreign_text import breaking, one_line
from ui.problem_words import sentence
from ui.regional import grouped
from ui.tasks import Tasks
from ui.translate import tr

if TYPE_CHECKING:
    import asyncio

ChooseFolder = Callable[[QWidget], Awaitable[Path | None]]


async def choose_folder(parent: QWidget) -> Path | None:
    """Ask for a folder in the desktop's own way; None if nothing was chosen."""
    place = str(usual_folder(QStandardPaths.StandardLocation.DocumentsLocation))
    dialog = QFileDialog(parent, tr("Where shall it be put?"), place)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    return await chosen_path(dialog)


def _words() -> str:
    return tr(
        "A folder with a page to read (HTML), the same for programs (JSON), and the files that are"
        " on this device. It is not encrypted: whoever has the folder can read it."
    )


class ExportChat(Sheet):
    def __init__(  # noqa: PLR0913 - what it shows, asks and does
        self,
        name: str,
        write: Callable[[Path, Progress], Awaitable[Exported]],
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        choose: ChooseFolder = choose_folder,
        open_url: Callable[[QUrl], bool],
    ) -> None:
        super().__init__(
            tr("Export {name}?").format(name=one_line(name, 60)), _words(), parent=parent
        )
        self._write = write
        self._tasks = tasks
        self._choose = choose
        self._open_url = open_url
        self._task: asyncio.Task[None] | None = None
        self._folder: Path | None = None
        self.state = Text(face="label", colour="ink2", wrap=True)
        self.state.hide()
        self.problem = problem_line()
        self.body.addWidget(self.state)
        self.body.addWidget(self.problem)
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Choose a folder…"), kind="primary")
        self.cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self._go_on)
        self.finished.connect(self._stop)
        self.confirm.setFocus()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _go_on(self) -> None:
        if self._folder is not None:
            self._open_url(QUrl.fromLocalFile(str(self._folder)))
            self.accept()
            return
        self.confirm.setEnabled(False)
        say_problem(self.problem, "")
        self._task = self._tasks.spawn(self._export, purpose=tr("export"), retry=False)

    async def _export(self) -> None:
        try:
            place = await self._choose(self)
            if place is not None:
                self._done(await self._write(place, self._show_progress))
        except ChatError as error:
            self.state.hide()
            words = tr("{problem} Nothing was left behind.")
            say_problem(self.problem, words.format(problem=sentence(error_words(error))))
        self.confirm.setEnabled(True)

    def _show_progress(self, written: int, total: int) -> None:
        words = tr("{written} of {total} messages")
        self.state.setText(words.format(written=grouped(written), total=grouped(total)))
        self.state.show()

    def _done(self, made: Exported) -> None:
        self._folder = made.folder
        said = [
            tr("%n messages", "%n message", made.messages),
            tr("%n files", "%n file", made.files),
        ]
        if made.not_here:
            said.append(
                tr(
                    "%n files are not on this device",
                    "%n file is not on this device",
                    made.not_here,
                )
            )
        words = tr("Written: {what}. {folder}")
        folder = breaking(str(made.folder))
        self.state.setText(words.format(what=", ".join(said), folder=folder))
        self.state.show()
        self.cancel.rename(tr("Close"))
        self.confirm.rename(tr("Open the folder"))
