"""The warning above the composer: who can read and write here, or that nothing comes or goes.

The first of an open channel, with or without a shared key; the second of a group whose key was lost
in a damaged database, with what leads back into it: what should be kept is exported before one
leaves and joins anew.
"""

from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from engine.events import ConversationView
from ui.controls import Area, Button, Text
from ui.conversation_words import shared_key_words, unserved_words
from ui.translate import tr


class OpenBar(Area):
    def __init__(self, export: Callable[[], None], leave: Callable[[], None]) -> None:
        """``export``, ``leave``: ask for that, of the conversation that is shown."""
        super().__init__("surface2", edges=("top",))
        self.words = Text(face="caption", colour="warn", strong=True, wrap=True)
        self.export = Button(tr("Export…"), size="small")
        self.leave = Button(tr("Leave…"), size="small")
        self.export.clicked.connect(lambda _checked=False: export())
        self.leave.clicked.connect(lambda _checked=False: leave())
        column, row = QVBoxLayout(self), QHBoxLayout()
        column.setContentsMargins(20, 4, 14, 4)
        column.addWidget(self.words)
        for button in (self.export, self.leave):
            row.addWidget(button)
            button.hide()
        row.addStretch(1)
        column.addLayout(row)
        self.hide()

    def show_standing(self, conversation: ConversationView | None) -> None:
        is_lost = conversation is not None and conversation.key_is_lost
        for button in (self.export, self.leave):
            button.setVisible(is_lost)
        channel = None if conversation is None else conversation.open_channel
        self.setVisible(is_lost or channel is not None)
        if is_lost:
            words = tr(
                "The key of this group was lost: nothing comes or goes. Export what you want to"
                " keep, leave, and join again by a new invitation."
            )
        elif channel is None:
            return
        else:
            words = (
                shared_key_words()
                if channel.has_key
                else tr("Not encrypted: anybody can read and write")
            )
            if not channel.is_served:
                words = f"{words}. {unserved_words(channel)}"
        self.words.setText(words)
        self.setAccessibleName(words)
