"""Sets up the backup that is made once a day: where it goes, and its passphrase.

The passphrase is asked for here and never again: what is made of it is kept in the profile.  After
a backup by hand the passphrase of that one serves, if the user wants both alike.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine.core.backup import Strength, strength_of
from engine.core.errors import ChatError
from ui.backup_port import DailyPort
from ui.backup_words import strength_words
from ui.controls import Button, Text
from ui.dialogs.backup import secret_field
from ui.dialogs.sheet import Sheet, field_label, problem_line, say_problem
from ui.error_words import error_words
from ui.foreign_text import breaking
from ui.problem_words import sentence
from ui.tasks import Tasks
from ui.translate import tr

ChooseFolder = Callable[[QWidget], Awaitable[Path | None]]


class DailyBackup(Sheet):
    """``passphrase``: of a backup that was just made; "" asks for one."""

    def __init__(  # noqa: PLR0913 - what it shows, asks and does
        self,
        port: DailyPort,
        tasks: Tasks,
        parent: QWidget | None = None,
        *,
        choose: ChooseFolder,
        folder: str = "",
        passphrase: str = "",
    ) -> None:
        words = tr(
            "While Causerie runs, it makes one encrypted backup a day and deletes the oldest of its"
            " own. A folder on another disk outlives this device."
        )
        super().__init__(tr("A backup every day"), words, parent=parent)
        self._port = port
        self._tasks = tasks
        self._choose = choose
        self._folder = Path(folder) if folder else None
        self._given = passphrase
        self._is_working = False
        self.folder = Text(face="body", wrap=True)
        self.browse = Button(tr("Choose a folder…"), size="small")
        self.passphrase, self.again = secret_field(), secret_field()
        self.strength = Text(face="small", colour="ink2", wrap=True)
        self.problem = problem_line()
        self._lay_out()
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Back up every day"), kind="primary")
        self.confirm.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.browse.clicked.connect(self._browse)
        self.confirm.clicked.connect(self._submit)
        for field in (self.passphrase, self.again):
            field.textChanged.connect(self._judge)
        self._judge()

    def _lay_out(self) -> None:
        line = QHBoxLayout()
        line.addWidget(self.folder, 1)
        line.addWidget(self.browse)
        self.body.addWidget(field_label(tr("Folder"), self.browse))
        self.body.addLayout(line)
        if self._given:
            self.body.addWidget(
                Text(
                    tr("With the passphrase of the backup that you just made."),
                    face="small",
                    colour="ink2",
                    wrap=True,
                )
            )
        else:
            for part in (
                field_label(tr("Passphrase"), self.passphrase),
                self.passphrase,
                self.strength,
                field_label(tr("The same again"), self.again),
                self.again,
                Text(
                    tr("It is asked for this once. Write it down: nobody can open them without."),
                    face="small",
                    colour="ink2",
                    wrap=True,
                ),
            ):
                self.body.addWidget(part)
        self.body.addWidget(self.problem)

    def _judge(self) -> None:
        folder = self._folder
        self.folder.setText(tr("None yet") if folder is None else breaking(str(folder)))
        first, second = self.passphrase.text(), self.again.text()
        strength = strength_of(self._given or first)
        self.strength.setText(strength_words(strength) if first else "")
        differs = bool(second) and not first.startswith(second)
        say_problem(self.problem, tr("The two are not the same.") if differs else "")
        is_enough = strength is not Strength.TOO_SHORT and first == second
        self.confirm.setEnabled(folder is not None and is_enough and not self._is_working)

    def _browse(self) -> None:
        async def work() -> None:
            chosen = await self._choose(self)
            if chosen is not None:
                self._folder = chosen
                self._judge()

        self._tasks.spawn(work, purpose=tr("choose a folder"), retry=False)

    def _submit(self) -> None:
        folder, passphrase = self._folder, self._given or self.passphrase.text()
        if folder is None:
            return

        async def work() -> None:
            try:
                await self._port.turn_on(folder, passphrase)
            except ChatError as error:
                self._is_working = False
                self._judge()
                say_problem(self.problem, sentence(error_words(error)))
            else:
                self.accept()

        self._is_working = True
        self._judge()
        self._tasks.spawn(work, purpose=tr("set up daily backups"), retry=False)
