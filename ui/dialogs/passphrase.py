"""Sets, changes or removes the passphrase of the profile; the present one is asked for first.

What is asked at a start, and what the other way means, is said beside the switch.
"""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from engine.core.backup import Strength, strength_of
from engine.core.errors import BackupError, ChatError
from ui.backup_words import strength_words
from ui.connection_words import key_words
from ui.controls import Text
from ui.dialogs.backup import secret_field
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.lock_port import PassphrasePort
from ui.problem_words import sentence
from ui.switch import Switch
from ui.tasks import Tasks
from ui.translate import tr


class _PassphraseSheet(Sheet):
    def __init__(
        self, title: str, words: str, port: PassphrasePort, tasks: Tasks, parent: QWidget | None
    ) -> None:
        super().__init__(title, words, parent=parent)
        self.port = port
        self._tasks = tasks
        self._is_closed = False
        self.is_working = False
        self.current = secret_field()
        self.problem = problem_line()
        self.finished.connect(self._end)

    def add_current(self) -> None:
        self.body.addWidget(field_label(tr("Present passphrase"), self.current))
        self.body.addWidget(self.current)
        self.current.textChanged.connect(self.judge)

    def judge(self) -> None:
        """Whether it can be done."""

    def work(self) -> None:
        async def do() -> None:
            try:
                await self.change()
            except (BackupError, ChatError) as error:
                self._refused(error)
            else:
                self.is_working = False
                if not self._is_closed:
                    self.accept()

        self.is_working = True
        say_problem(self.problem, "")
        self.judge()
        self._tasks.spawn(do, purpose=tr("change the passphrase"), retry=False)

    async def change(self) -> None:
        raise NotImplementedError

    def _refused(self, error: ChatError) -> None:
        self.is_working = False
        if self._is_closed:
            return
        self.judge()
        say_problem(self.problem, sentence(error_words(error)))
        self.current.selectAll()
        self.current.setFocus(Qt.FocusReason.OtherFocusReason)

    def _end(self) -> None:
        self._is_closed = True
        for field in self.findChildren(QLineEdit):
            field.clear()


class SetPassphrase(_PassphraseSheet):
    def __init__(self, port: PassphrasePort, tasks: Tasks, parent: QWidget | None = None) -> None:
        self._ways = port.ways()
        has_one = self._ways.has_passphrase
        title = tr("Change the passphrase") if has_one else tr("Set a passphrase")
        words = tr(
            "It unlocks the window, and opens your messages on this device. Write it down: nobody"
            " can find it out, nor can we."
        )
        super().__init__(title, words, port, tasks, parent)
        self.was_cleared = True
        """What opened the profile before is gone, if it should be."""
        self.passphrase, self.again = secret_field(), secret_field()
        self.strength = Text(face="small", colour="ink2", wrap=True)
        self.alone = Switch(tr("Ask for it at every start"))
        self.alone.setChecked(not (has_one and self._ways.place))
        self.meaning = Text(face="small", colour="ink2", wrap=True)
        self._lay_out(has_one=has_one)
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        words = tr("Change") if has_one else tr("Set")
        self.confirm = self.add_button(words, kind="primary")
        self.confirm.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self.work)
        for field in (self.passphrase, self.again):
            field.textChanged.connect(self.judge)
        self.alone.toggled.connect(self._say_meaning)
        self._say_meaning()
        self.judge()

    def _lay_out(self, *, has_one: bool) -> None:
        if has_one:
            self.add_current()
        for part in (
            field_label(tr("New passphrase"), self.passphrase),
            self.passphrase,
            self.strength,
            field_label(tr("The same again"), self.again),
            self.again,
        ):
            self.body.addWidget(part)
        line = QHBoxLayout()
        line.addWidget(Text(tr("Ask for it at every start"), wrap=True), 1)
        line.addWidget(self.alone)
        self.body.addLayout(line)
        self.body.addWidget(self.meaning)
        self.body.addWidget(self.problem)

    def _say_meaning(self) -> None:
        if self.alone.isChecked():
            words = tr("Nothing else on this device opens your messages any more.")
        elif self._ways.place == "key file":
            words = tr(
                "The key beside your messages opens them at a start, too, so whoever has the"
                " profile's folder reads them."
            )
        else:
            words = tr("The system keyring opens them at a start, too.")
        self.meaning.setText(words)
        self.alone.setAccessibleDescription(words)

    def judge(self) -> None:
        first, second = self.passphrase.text(), self.again.text()
        strength = strength_of(first)
        self.strength.setText(strength_words(strength) if first else "")
        differs = bool(second) and not first.startswith(second) and first != second
        if differs:
            say_problem(self.problem, tr("The two are not the same."))
        elif first or second:
            say_problem(self.problem, "")
        is_right = strength is not Strength.TOO_SHORT and first == second
        has_current = not self._ways.has_passphrase or bool(self.current.text())
        self.confirm.setEnabled(is_right and has_current and not self.is_working)

    async def change(self) -> None:
        chosen, alone, current = (
            self.passphrase.text(),
            self.alone.isChecked(),
            self.current.text(),
        )
        if self._ways.has_passphrase:
            await self.port.try_passphrase(current)
        self.was_cleared = await self.port.set_passphrase(chosen, alone=alone)


class RemovePassphrase(_PassphraseSheet):
    def __init__(self, port: PassphrasePort, tasks: Tasks, parent: QWidget | None = None) -> None:
        words = tr(
            "The window cannot be locked any more, and your messages open without being asked: by"
            " the system keyring, or by a key in a file beside them where there is none."
        )
        super().__init__(tr("Remove the passphrase"), words, port, tasks, parent)
        self.place = ""
        """What opens the profile then."""
        self.add_current()
        self.body.addWidget(self.problem)
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Remove"), kind="danger")
        self.confirm.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self.work)
        self.judge()

    def judge(self) -> None:
        self.confirm.setEnabled(bool(self.current.text()) and not self.is_working)

    async def change(self) -> None:
        await self.port.try_passphrase(self.current.text())
        self.place = await self.port.remove_passphrase()

    def said(self) -> str:
        return key_words(self.place)
