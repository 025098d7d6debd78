"""Erases this profile: what goes, what stays elsewhere, and the profile's name typed in full."""

from PySide6.QtWidgets import QLineEdit, QWidget

from ui.controls import Text
from ui.dialogs.sheet import Sheet, field_label
from ui.foreign_text import one_line
from ui.translate import tr

_LONGEST_NAME = 100


class EraseProfile(Sheet):
    """``name``: of the profile, to be typed."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        words = tr(
            "Your identity, all conversations, files, settings and logs go from this device, and"
            " Causerie closes. This cannot be undone: without a backup nobody can be you again."
        )
        super().__init__(tr("Erase this profile?"), words, parent=parent)
        self._name = name
        stays = tr(
            "What stays elsewhere: others keep what you wrote to them, and are not told. Backups"
            " and exported conversations stay where they are."
        )
        self.body.addWidget(Text(stays, face="body", colour="ink2", wrap=True))
        self.field = QLineEdit()
        self.field.setMaxLength(_LONGEST_NAME)
        label = tr("Type the profile's name to go on: {name}").format(name=one_line(name, 60))
        self.body.addWidget(field_label(label, self.field))
        self.body.addWidget(self.field)
        self.cancel = self.add_button(tr("Cancel"), left=True, kind="ghost")
        self.confirm = self.add_button(tr("Erase"), kind="danger")
        self.confirm.setEnabled(False)
        self.field.textChanged.connect(lambda text: self.confirm.setEnabled(text == name))
        self.cancel.clicked.connect(self.reject)
        self.confirm.clicked.connect(self.accept)
        self.field.setFocus()
