"""The quiet line under the header: who is muted here, and a button to show them again.

Without it nobody could tell a conversation in which somebody is muted from a whole one.
"""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout

from engine.events import ConversationView
from ui.controls import Area, Button, Text
from ui.conversation_words import muted_words
from ui.translate import tr


class MutedBar(Area):
    show_requested = Signal(str)
    """The id of the one member who is muted."""
    members_requested = Signal()
    """Several are: whose messages to show is chosen among the members."""

    def __init__(self) -> None:
        super().__init__("surface2", edges=("bottom",))
        self._muted: tuple[str, ...] = ()
        self.words = Text(face="caption", colour="ink2", wrap=True)
        self.button = Button(tr("Show"), kind="ghost", size="small")
        self.button.clicked.connect(self._pressed)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 2, 10, 2)
        row.setSpacing(10)
        row.addWidget(self.words, 1)
        row.addWidget(self.button)
        self.hide()

    def show_muted(self, conversation: ConversationView | None) -> None:
        members = () if conversation is None else conversation.members
        muted = [member for member in members if member.is_muted]
        self._muted = tuple(member.participant_id for member in muted)
        self.setVisible(bool(muted))
        if muted:
            self.words.setText(muted_words([member.name for member in muted]))
            self.setAccessibleName(self.words.text())
            self.button.rename(tr("Show") if len(muted) == 1 else tr("Members"))

    def _pressed(self) -> None:
        if len(self._muted) == 1:
            self.show_requested.emit(self._muted[0])
        else:
            self.members_requested.emit()
