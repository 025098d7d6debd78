"""Makes a backup: a passphrase, where to put it, how far it is, and that it was checked.

The passphrase is asked twice and called weak or strong; nobody can find it out later.  Closing the
sheet stops the work, and nothing that was there before is touched.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit, QWidget

from engine.core.backup import MAX_PASSPHRASE_CHARACTERS, Strength, strength_of
from engine.core.errors import BackupError, BackupFlaw, ChatError
from ui.backup_port import BackupDone, BackupPort
from ui.backup_words import strength_words
from ui.controls import Text
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.file_words import size_words
from ui.problem_words import sentence
from ui.progress_line import ProgressLine
from ui.tasks import Tasks
from ui.translate import tr

ChooseTarget = Callable[[QWidget, Path, Callable[[Path], None]], None]
"""Asks where to put a file that is called so, and tells it, unless nobody chooses."""
ENDING: Final = ".causerie-backup"


def secret_field() -> QLineEdit:
    field = QLineEdit()
    field.setEchoMode(QLineEdit.EchoMode.Password)
    field.setMaxLength(MAX_PASSPHRASE_CHARACTERS)
    return field


def choose_target(parent: QWidget, suggestion: Path, chosen: Callable[[Path], None]) -> None:
    dialog = QFileDialog(parent, tr("Where to put the backup"), str(suggestion))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(ENDING.removeprefix("."))
    dialog.selectFile(suggestion.name)
    dialog.fileSelected.connect(lambda name: chosen(Path(name)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def _done_words(done: BackupDone) -> str:
    if not done.left_out:
        words = tr("The backup is complete and was checked: {size} in {path}.")
    else:
        words = tr(
            "The backup was checked: {size} in {path}. %n parts of files are damaged on this device"
            " and not in it.",
            "The backup was checked: {size} in {path}. %n part of a file is damaged on this device"
            " and not in it.",
            done.left_out,
        )
    return words.format(size=size_words(done.size), path=done.path)


class Backup(Sheet):
    def __init__(
        self,
        port: BackupPort,
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        choose: ChooseTarget = choose_target,
        offers_daily: bool = False,
    ) -> None:
        """``offers_daily``: to make one every day, once this one is made."""
        words = tr(
            "One encrypted file with your identity, messages, files and settings. Keep it on"
            " another device or disk: with it and its passphrase you go on anywhere."
        )
        super().__init__(tr("Back up"), words, parent=parent)
        self._port = port
        self._tasks = tasks
        self._choose = choose
        self._is_closed = False
        self._offers_daily = offers_daily
        self.wants_daily: tuple[Path, str] | None = None
        """Where the backup went, and its passphrase, if one like it is wanted every day."""
        self.passphrase, self.again = secret_field(), secret_field()
        self.strength = Text(face="small", colour="ink2", wrap=True)
        self.problem = problem_line()
        self.line = ProgressLine(tr("Backed up"))
        self.said = Text(face="body", colour="ink", wrap=True)
        self._lay_out()
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Back up…"), kind="primary")
        self.confirm.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self._submit)
        self.finished.connect(self._end)
        for field in (self.passphrase, self.again):
            field.textChanged.connect(self._judge)
        self._judge()

    def _lay_out(self) -> None:
        self._warning = Text(
            tr("Write the passphrase down. Nobody can open the backup without it, nor can we."),
            face="small",
            colour="ink2",
            wrap=True,
        )
        self._form = (
            field_label(tr("Passphrase"), self.passphrase),
            self.passphrase,
            self.strength,
            field_label(tr("The same again"), self.again),
            self.again,
            self._warning,
            self.problem,
        )
        for part in (*self._form, self.said, self.line):
            self.body.addWidget(part)
        self.said.hide()
        self.line.hide()

    # --- the form ---------------------------------------------------------------------------------

    def _judge(self) -> None:
        first, second = self.passphrase.text(), self.again.text()
        strength = strength_of(first)
        self.strength.setText(strength_words(strength) if first else "")
        differs = bool(second) and not first.startswith(second) and first != second
        say_problem(self.problem, tr("The two are not the same.") if differs else "")
        self.confirm.setEnabled(strength is not Strength.TOO_SHORT and first == second)

    def _submit(self) -> None:
        self._choose(self, self._port.suggestion(), self.make_at)

    # --- the work ---------------------------------------------------------------------------------

    def make_at(self, path: Path) -> None:
        passphrase = self.passphrase.text()  # The field may be gone when the work begins.

        async def work() -> None:
            try:
                done = await self._port.make(
                    path, passphrase, self.show_share, lambda: not self._is_closed
                )
            except BackupError as error:
                if error.flaw is not BackupFlaw.STOPPED:
                    self._show_form(sentence(error_words(error)))
            except ChatError as error:
                self._show_form(sentence(error_words(error)))
            else:
                self._show_done(done, passphrase)

        self._show_work()
        self._tasks.spawn(work, purpose=tr("make a backup"), retry=False)

    def show_share(self, share: float) -> None:
        if self._is_closed:
            return
        self.line.show_fraction(share)
        self.said.setText(tr("Copying and checking: {percent} %").format(percent=int(share * 100)))

    def _show_work(self) -> None:
        for part in self._form:
            part.hide()
        self.confirm.hide()
        self.said.show()
        self.line.show()
        self.show_share(0.0)
        self.cancel.rename(tr("Stop"))
        self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_form(self, problem: str) -> None:
        if self._is_closed:
            return
        for part in (*self._form, self.confirm):
            part.show()
        self.said.hide()
        self.line.hide()
        self.cancel.rename(tr("Cancel"))
        self._judge()
        say_problem(self.problem, problem)

    def _show_done(self, done: BackupDone, passphrase: str) -> None:
        if self._is_closed:
            return
        self.line.hide()
        self.cancel.hide()
        self.passphrase.clear()
        self.again.clear()
        self.said.setText(_done_words(done))
        self.confirm.clicked.disconnect(self._submit)
        self.confirm.clicked.connect(self.accept)
        self.confirm.rename(tr("Done"))
        self.confirm.setEnabled(True)
        self.confirm.show()
        if self._offers_daily:
            self._offer_daily(done.path, passphrase)
        self.confirm.setFocus(Qt.FocusReason.OtherFocusReason)

    def _offer_daily(self, path: Path, passphrase: str) -> None:
        def want() -> None:
            self.wants_daily = path, passphrase
            self.accept()

        self.cancel.clicked.disconnect(self.reject)
        self.cancel.clicked.connect(want)
        self.cancel.rename(tr("One every day…"))
        self.cancel.show()

    def _end(self) -> None:
        self._is_closed = True
