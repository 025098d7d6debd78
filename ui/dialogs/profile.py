"""One's own profile: the name and picture that contacts see, and the fingerprint they compare.

A chosen file is read off the loop and within limits; what is shown is exactly what would travel.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine.core.errors import ChatError
from engine.events import IdentityView
from ui.avatar import Avatar
from ui.connection_words import key_words
from ui.controls import Button, Text
from ui.dialogs.group import selectable
from ui.dialogs.sheet import Sheet, field_label, limit_name, problem_line, say_problem
from ui.error_words import error_words
from ui.file_choice import chosen_path
from ui.pictures import PictureError, picture_from_file
from ui.tasks import Tasks
from ui.translate import tr

ChoosePicture = Callable[[QWidget], Awaitable[Path | None]]


async def choose_picture_file(parent: QWidget) -> Path | None:
    """Ask for a file in the desktop's own way; None if nothing was chosen."""
    place = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.PicturesLocation)
    dialog = QFileDialog(parent, tr("Choose a picture"), place, tr("Pictures (*.png *.jpg *.jpeg)"))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    return await chosen_path(dialog)


class Profile(Sheet):
    """``save`` takes name and picture and may refuse."""

    def __init__(
        self,
        identity: IdentityView,
        save: Callable[[str, bytes], Awaitable[None]],
        choose: ChoosePicture,
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            tr("Your profile"), tr("People you talk to see this name and picture."), parent=parent
        )
        self._identity = identity
        self._save = save
        self._choose = choose
        self._tasks = tasks
        self.picture = identity.picture
        self._is_closed = False
        self.finished.connect(self._note_closed)
        self._avatar = Avatar(88, is_group=False)
        self.choose_button = Button(tr("Choose a picture…"))
        self.remove_button = Button(tr("Remove picture"), kind="ghost")
        self.name = QLineEdit(identity.name)
        self.problem = problem_line()
        self._lay_out()
        self.confirm = self._add_buttons()
        self.choose_button.clicked.connect(self._start_choosing)
        self.remove_button.clicked.connect(lambda: self._take(b""))
        self.name.textChanged.connect(self._judge)
        self._take(identity.picture)
        self.name.setFocus()

    def _lay_out(self) -> None:
        buttons = QVBoxLayout()
        buttons.setSpacing(6)
        buttons.addStretch(1)
        buttons.addWidget(self.choose_button)
        buttons.addWidget(self.remove_button)
        buttons.addStretch(1)
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(self._avatar)
        row.addLayout(buttons)
        row.addStretch(1)
        self.body.addLayout(row)
        limit_name(self.name, self.problem)
        self.body.addWidget(field_label(tr("Name"), self.name))
        self.body.addWidget(self.name)
        self.body.addWidget(self.problem)
        self.body.addSpacing(4)
        self.body.addWidget(Text(tr("Your fingerprint, to compare"), face="caption", colour="ink3"))
        self.body.addWidget(selectable(self._identity.fingerprint))
        kept = key_words(self._identity.key_storage)
        self.body.addWidget(Text(kept, face="caption", colour="ink3", wrap=True))

    def _add_buttons(self) -> Button:
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        confirm = self.add_button(tr("Save"), kind="primary")
        confirm.setDefault(True)
        confirm.clicked.connect(self._submit)
        return confirm

    def _take(self, picture: bytes) -> None:
        self.picture = picture
        name = self.name.text().strip()
        self._avatar.show_identity(self._identity.participant_id, name, picture=picture)
        self._avatar.setAccessibleName(tr("Your picture") if picture else tr("No picture"))
        self.remove_button.setVisible(bool(picture))
        self._judge()

    def _judge(self) -> None:
        say_problem(self.problem, "")
        self.confirm.setEnabled(bool(self.name.text().strip()))

    def _start_choosing(self) -> None:
        self.choose_button.setEnabled(False)
        self._tasks.spawn(self._read_chosen, purpose=tr("read the picture"), retry=False)

    async def _read_chosen(self) -> None:
        picture, problem = self.picture, ""
        try:
            path = await self._choose(self)
            if path is not None:
                picture = await asyncio.to_thread(picture_from_file, path)
        except PictureError as error:
            problem = str(error)
        if not self._is_closed:
            self._take(picture)
            say_problem(self.problem, problem)
            self.choose_button.setEnabled(True)
            self.choose_button.setFocus()

    def _note_closed(self) -> None:
        self._is_closed = True

    def _submit(self) -> None:
        self.confirm.setEnabled(False)
        self._tasks.spawn(self._do, purpose=tr("save your profile"), retry=False)

    async def _do(self) -> None:
        try:
            await self._save(self.name.text().strip(), self.picture)
        except ChatError as error:
            self._judge()
            say_problem(self.problem, error_words(error))
            self.name.setFocus()
        else:
            self.accept()
