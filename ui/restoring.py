"""The window in which a backup is restored: which file, its passphrase, how far it is, what then.

It stands alone: there is no engine, and no profile yet.  What is wrong with the file is said as
soon as it is chosen.  Closing the window stops the work.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from engine.core.errors import BackupError, BackupFlaw, ChatError
from ui.backup_port import RestoreDone, RestorePort
from ui.connection_words import key_words
from ui.controls import Area, Button, ElidedText, Text
from ui.dialogs.backup import ENDING, secret_field
from ui.dialogs.sheet import field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.file_choice import usual_folder
from ui.file_words import size_words
from ui.foreign_text import one_line
from ui.icons import app_icon
from ui.problem_words import sentence
from ui.progress_line import ProgressLine
from ui.tasks import Tasks
from ui.theme import current_theme
from ui.times import moment, moment_words
from ui.translate import tr

ChooseFile = Callable[[QWidget, Callable[[Path], None]], None]
"""Asks for a file, and tells it, unless nobody chooses."""
_WIDTH = 520
_EDGE, _GAP = 24, 10
_MAX_NAME = 80


def choose_file(parent: QWidget, chosen: Callable[[Path], None]) -> None:
    begin = usual_folder(QStandardPaths.StandardLocation.DocumentsLocation)
    dialog = QFileDialog(parent, tr("Choose a backup"), str(begin))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setNameFilters(
        [tr("Backups (*{ending})").format(ending=ENDING), tr("All files ({all})").format(all="*")]
    )
    dialog.fileSelected.connect(lambda name: chosen(Path(name)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


class RestoreWindow(Area):
    finished = Signal(bool)
    """Whether there is a restored profile, which is to be opened."""

    def __init__(
        self, port: RestorePort, tasks: Tasks, *, choose: ChooseFile = choose_file
    ) -> None:
        super().__init__("canvas")
        self.setWindowTitle("Causerie")
        self.setWindowIcon(app_icon())
        self._port = port
        self._tasks = tasks
        self._choose = choose
        self._file: Path | None = None
        self._is_closed = False
        self._is_done = False
        self.title = Text(tr("Restore a backup"), face="heading", strong=True, wrap=True)
        self.words = Text(
            tr(
                "You go on as the same person, with everything the backup holds. What was written"
                " in groups since then comes back from the others, where they still have it."
            ),
            colour="ink2",
            wrap=True,
        )
        self.file = Button(tr("Choose a file…"))
        self.name = ElidedText(colour="ink2")
        self.made = Text(face="small", colour="ink2", wrap=True)
        self.passphrase = secret_field()
        self.problem = problem_line()
        self.line = ProgressLine(tr("Restored"))
        self.percent = Text(face="label", colour="ink2")
        self.back = Button(tr("Back"), kind="ghost", size="big")
        self.confirm = Button(tr("Restore"), kind="primary", size="big")
        self._lay_out()
        self.file.clicked.connect(lambda: self._choose(self, self.show_file))
        self.passphrase.textChanged.connect(self._judge)
        self.passphrase.returnPressed.connect(self.confirm.click)
        self.back.clicked.connect(self.close)
        self.confirm.clicked.connect(self._submit)
        self._judge()

    def _lay_out(self) -> None:
        row, foot = QHBoxLayout(), QHBoxLayout()
        row.addWidget(self.file)
        row.addWidget(self.name, 1)
        foot.addWidget(self.back)
        foot.addStretch(1)
        foot.addWidget(self.confirm)
        self._form: tuple[QWidget, ...] = (
            self.file,
            self.name,
            self.made,
            field_label(tr("Passphrase"), self.passphrase),
            self.passphrase,
        )
        whole = QVBoxLayout(self)
        whole.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        whole.setSpacing(_GAP)
        whole.addWidget(self.title)
        whole.addWidget(self.words)
        whole.addLayout(row)
        for part in (*self._form[2:], self.problem, self.line, self.percent):
            whole.addWidget(part)
        whole.addStretch(1)
        whole.addLayout(foot)
        self.line.hide()
        self.percent.hide()
        width = current_theme().metrics.scaled(_WIDTH)
        self.resize(width, whole.totalHeightForWidth(width))

    def _fit(self) -> None:
        """Words that came may need more room."""
        layout = self.layout()
        if layout is not None:
            layout.activate()
            needed = layout.totalHeightForWidth(self.width())
            self.resize(self.width(), max(needed, self.height()))

    # --- the form ---------------------------------------------------------------------------------

    def show_file(self, path: Path) -> None:
        self._file = None
        self.made.setText("")
        self.name.setText(one_line(path.name, _MAX_NAME))
        try:
            found = self._port.look_at(path)
        except ChatError as error:
            say_problem(self.problem, sentence(error_words(error)))
        else:
            self._file = path
            say_problem(self.problem, "")
            self.made.setText(
                tr("Made on {time}, {size}").format(
                    size=size_words(found.size), time=moment_words(moment(found.created_ms))
                )
            )
            self.passphrase.setFocus(Qt.FocusReason.OtherFocusReason)
        self._judge()
        self._fit()

    def _judge(self) -> None:
        self.confirm.setEnabled(self._file is not None and bool(self.passphrase.text()))

    def _submit(self) -> None:
        if self._is_done:
            self._close_with(opens=True)
        elif self._file is not None:
            self._show_work()
            work = partial(self._work, self._file, self.passphrase.text())
            self._tasks.spawn(work, purpose=tr("restore a backup"), retry=False)

    # --- the work ---------------------------------------------------------------------------------

    async def _work(self, path: Path, passphrase: str) -> None:
        try:
            done = await self._port.restore(
                path, passphrase, self.show_share, lambda: not self._is_closed
            )
        except BackupError as error:
            if error.flaw is not BackupFlaw.STOPPED:
                self._show_form(error)
        except ChatError as error:
            self._show_form(error)
        else:
            self._show_done(done)

    def show_share(self, share: float) -> None:
        self.line.show_fraction(share)
        self.percent.setText(tr("{percent} %").format(percent=int(share * 100)))

    def _show_work(self) -> None:
        for part in (*self._form, self.confirm, self.problem):
            part.hide()
        self.line.show()
        self.percent.show()
        self.show_share(0.0)
        self.back.rename(tr("Stop"))

    def _show_form(self, error: ChatError) -> None:
        self.line.hide()
        self.percent.hide()
        for part in (*self._form, self.confirm):
            part.show()
        self.back.rename(tr("Back"))
        say_problem(self.problem, sentence(error_words(error)))
        self._judge()
        self._fit()
        self.passphrase.selectAll()
        self.passphrase.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_done(self, done: RestoreDone) -> None:
        self._is_done = True
        self.passphrase.clear()
        self.title.setText(tr("Your backup is restored"))
        words = [
            tr("What was written in groups since then comes as soon as you are connected."),
            tr(
                "If the same backup is restored on two devices, nothing breaks, but messages from"
                " one person to you reach only one of them for certain. Use one of the two."
            ),
        ]
        if done.key_storage:
            words.append(key_words(done.key_storage))
            words.append(tr("A passphrase that the old profile had does not protect this one."))
        if done.settings_beside:
            beside = tr("Your settings here were kept; those of the backup are in {path}.")
            words.append(beside.format(path=one_line(done.settings_beside)))
        self.words.setText(" ".join(words))
        for part in (self.line, self.percent, self.back):
            part.hide()
        self.confirm.rename(tr("Open"))
        self.confirm.setEnabled(True)
        self.confirm.show()
        self.confirm.setFocus(Qt.FocusReason.OtherFocusReason)
        self._fit()

    # --- its end ----------------------------------------------------------------------------------

    def _close_with(self, *, opens: bool) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.finished.emit(opens)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self._close_with(opens=self._is_done)
