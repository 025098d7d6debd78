"""The card about the delivery log: whether it is written, where it lies, its key, and its export.

What is recorded is of all conversations, so the switch is the one of the settings.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from ui.controls import Button, Text
from ui.delivery.wrapping import WrappingRow
from ui.foreign_text import breaking
from ui.recording_port import RecordingState
from ui.speaking import announce
from ui.switch import Switch
from ui.translate import tr


class LogContent(QWidget):
    switch_wished = Signal(bool)
    export_wished = Signal()
    folder_wished = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._key = ""
        self.switch = Switch(tr("Record deliveries"))
        self.switch.clicked.connect(self._wish)
        self.title = Text(tr("Record deliveries"), face="label", strong=True)
        self.state = Text(face="label", colour="ink2", wrap=True)
        self.key = Text(face="code", wrap=True)
        self.key.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.key_words = Text(
            tr("Records can be compared if all who made them have the same key:"),
            face="small",
            colour="ink2",
            wrap=True,
        )
        self.copy_key = Button(tr("Copy the key"), kind="ghost", size="small")
        self.copy_key.clicked.connect(self._copy)
        self.folder = Button(tr("Open the folder"), kind="ghost", size="small")
        self.folder.clicked.connect(lambda _checked=False: self.folder_wished.emit())
        self.export = Button(tr("Export…"), size="small")
        self.export.setAccessibleName(tr("Export recorded deliveries…"))
        self.export.clicked.connect(lambda _checked=False: self.export_wished.emit())
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.switch)
        buttons = WrappingRow()
        for button in (self.export, self.folder, self.copy_key):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        for part in (self.state, self.key_words, self.key):
            column.addWidget(part)
        column.addLayout(buttons)

    def _wish(self, on: bool) -> None:
        self.switch.setChecked(not on)  # Until it is so.
        self.switch_wished.emit(on)

    def show_state(self, state: RecordingState) -> None:
        self.switch.setChecked(state.records)
        self.switch.setEnabled(not state.lasts)
        self.state.setText(_words(state))
        self._key = state.key
        for part in (self.key, self.key_words, self.copy_key):
            part.setVisible(bool(state.key))
        self.key.setText(breaking(state.key))
        self.key.setAccessibleName(tr("Key: {key}").format(key=state.key))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._key)
        announce(self, tr("Copied"))


def _words(state: RecordingState) -> str:
    if not state.records:
        words = tr(
            "Nothing is recorded now. Switched on, it begins at once: of all conversations, without"
            " texts and names, in {folder}."
        )
    elif state.lasts:
        words = tr(
            "Of all conversations, without texts and names, in {folder}. It was asked for on the"
            " command line, so it goes on until the program ends."
        )
    else:
        words = tr("Of all conversations, without texts and names, in {folder}.")
    return words.format(folder=breaking(state.directory))
