"""Asks before deliveries are recorded, and shows the key under which they are.

What is written down and what is not is said here in plain words, since the files are not encrypted.
"""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from ui.controls import Text
from ui.dialogs.confirm import Confirm
from ui.dialogs.sheet import Sheet
from ui.translate import tr


def _words() -> str:
    return tr(
        "From now on it is written down when each message was sent, arrived, was missing"
        " and was acknowledged: for testers who compare their records. The files lie in the profile"
        " and are not encrypted. They hold no text, no names and no keys, but message ids, times,"
        " and a pseudonym for every person and conversation. Nothing is sent anywhere."
    )


def _key_words() -> str:
    return tr(
        "Records can be compared if all who made them have this key. Whoever has it can find out"
        " whose the pseudonyms are: give it to your test group only, for \u201ckey\u201d under"
        " [delivery] in their settings file."
    )


def recording_confirm(parent: QWidget) -> Confirm:
    return Confirm(tr("Record deliveries?"), _words(), yes=tr("Record"), parent=parent)


class RecordingKey(Sheet):
    """Shown once recording was switched on."""

    def __init__(self, key: str, parent: QWidget | None = None) -> None:
        super().__init__(tr("The key of your records"), _key_words(), parent=parent)
        self.key = Text(key, face="code", wrap=True)
        self.key.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.key.setAccessibleName(tr("Key: {key}").format(key=key))
        self.body.addWidget(self.key)
        self.add_close(tr("Done"))
