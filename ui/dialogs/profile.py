"""One's own profile: the name and picture that contacts see, and the fingerprint they compare.

A chosen file is read off the loop and within limits; what is shown is exactly what would travel.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtCore import QStandardPaths, Signal
from PySide6.QtWidgets import QBoxLayout, QFileDialog, QLineEdit, QVBoxLayout, QWidget
from shiboken6 import isValid

from engine.core.errors import ChatError
from engine.events import IdentityView
from ui.avatar import Avatar
from ui.connection_words import key_words
from ui.controls import Button, Text
from ui.dialogs.group import selectable
from ui.dialogs.sheet import Sheet, field_label, limit_name, problem_line, say_problem
from ui.error_words import error_words
from ui.file_choice import chosen_path, usual_folder
from ui.pictures import PictureError, picture_from_file
from ui.tasks import Tasks
from ui.translate import tr

ChoosePicture = Callable[[QWidget], Awaitable[Path | None]]


async def choose_picture_file(parent: QWidget) -> Path | None:
    """Ask for a file in the desktop's own way; None if nothing was chosen."""
    place = str(usual_folder(QStandardPaths.StandardLocation.PicturesLocation))
    dialog = QFileDialog(parent, tr("Choose a picture"), place, tr("Pictures (*.png *.jpg *.jpeg)"))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    return await chosen_path(dialog)


async def chosen_picture(choose: ChoosePicture, parent: QWidget) -> tuple[bytes | None, str]:
    """The picture in the chosen file, None if there is none; and why, if it is of no use."""
    try:
        path = await choose(parent)
        picture = None if path is None else await asyncio.to_thread(picture_from_file, path)
    except PictureError as error:
        return None, str(error)
    return picture, ""


class ProfileFields(QWidget):
    """Picture and name, as they will be once ``save`` was called, which may refuse."""

    changed = Signal()
    saved = Signal()

    def __init__(
        self,
        identity: Callable[[], IdentityView | None],
        save: Callable[[str, bytes], Awaitable[None]],
        choose: ChoosePicture,
        tasks: Tasks,
    ) -> None:
        super().__init__()
        self._identity = identity
        self._save = save
        self._choose = choose
        self._tasks = tasks
        self._is_busy = False
        self.picture = b""
        self._avatar = Avatar(88, is_group=False)
        self.choose_button = Button(tr("Choose a picture…"))
        self.remove_button = Button(tr("Remove picture"), kind="ghost")
        self.name = QLineEdit()
        self.problem = problem_line()
        self._lay_out()
        self.choose_button.clicked.connect(self._start_choosing)
        self.remove_button.clicked.connect(lambda: self._take(b""))
        self.name.textChanged.connect(self._judge)
        self.reread()

    def _lay_out(self) -> None:
        buttons = QVBoxLayout()
        buttons.setSpacing(6)
        buttons.addStretch(1)
        buttons.addWidget(self.choose_button)
        buttons.addWidget(self.remove_button)
        buttons.addStretch(1)
        self._row = row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        row.setSpacing(16)
        row.addWidget(self._avatar)
        row.addLayout(buttons)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(row)
        limit_name(self.name, self.problem)
        column.addWidget(field_label(tr("Name"), self.name))
        column.addWidget(self.name)
        column.addWidget(self.problem)

    def set_narrow(self, narrow: bool) -> None:
        """Little room: the buttons stand below the picture."""
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)

    def reread(self) -> None:
        """Show what others see; what was entered is given up."""
        known = self._identity()
        self.setEnabled(known is not None)
        if known is not None:
            self.name.setText(known.name)
            self._take(known.picture)

    def entered(self) -> str:
        return self.name.text().strip()

    @property
    def is_changed(self) -> bool:
        known = self._identity()
        return known is not None and (self.entered(), self.picture) != (known.name, known.picture)

    @property
    def can_be_saved(self) -> bool:
        return bool(self.entered()) and not self._is_busy

    def _take(self, picture: bytes) -> None:
        self.picture = picture
        known = self._identity()
        if known is not None:
            self._avatar.show_identity(known.participant_id, self.entered(), picture=picture)
        self._avatar.setAccessibleName(tr("Your picture") if picture else tr("No picture"))
        self.remove_button.setVisible(bool(picture))
        self._judge()

    def _judge(self) -> None:
        say_problem(self.problem, "")
        self.changed.emit()

    def _start_choosing(self) -> None:
        self.choose_button.setEnabled(False)
        self._tasks.spawn(self._read_chosen, purpose=tr("read the picture"), retry=False)

    async def _read_chosen(self) -> None:
        picture, problem = await chosen_picture(self._choose, self)
        if isValid(self):
            self._take(self.picture if picture is None else picture)
            say_problem(self.problem, problem)
            self.choose_button.setEnabled(True)
            self.choose_button.setFocus()

    def submit(self) -> None:
        if self.can_be_saved:
            self._is_busy = True
            self.changed.emit()
            self._tasks.spawn(self._submit, purpose=tr("save your profile"), retry=False)

    async def _submit(self) -> None:
        problem = ""
        try:
            await self._save(self.entered(), self.picture)
        except ChatError as error:
            problem = error_words(error)
        if not isValid(self):
            return
        self._is_busy = False
        self._judge()
        if problem:
            say_problem(self.problem, problem)
            self.name.setFocus()
        else:
            self.saved.emit()


class Profile(Sheet):
    """For a window that has no settings page."""

    def __init__(
        self, identity: IdentityView, fields: ProfileFields, parent: QWidget | None = None
    ) -> None:
        super().__init__(
            tr("Your profile"), tr("People you talk to see this name and picture."), parent=parent
        )
        self.fields = fields
        self.body.addWidget(fields)
        self.body.addSpacing(4)
        self.body.addWidget(Text(tr("Your fingerprint, to compare"), face="caption", colour="ink3"))
        self.body.addWidget(selectable(identity.fingerprint))
        kept = key_words(identity.key_storage)
        self.body.addWidget(Text(kept, face="caption", colour="ink3", wrap=True))
        self.confirm = self._add_buttons()
        fields.changed.connect(self._judge)
        fields.saved.connect(self.accept)
        fields.name.setFocus()
        self._judge()

    def _add_buttons(self) -> Button:
        cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        cancel.clicked.connect(self.reject)
        confirm = self.add_button(tr("Save"), kind="primary")
        confirm.setDefault(True)
        confirm.clicked.connect(self.fields.submit)
        return confirm

    def _judge(self) -> None:
        self.confirm.setEnabled(self.fields.can_be_saved)
