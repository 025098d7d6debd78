"""The warning above the composer of an open channel: anybody can read it and write."""

from PySide6.QtWidgets import QHBoxLayout

from engine.events import ConversationView
from ui.controls import Area, Text
from ui.conversation_words import unserved_words
from ui.translate import tr


class OpenBar(Area):
    def __init__(self) -> None:
        super().__init__("surface2", edges=("top",))
        self.words = Text(face="caption", colour="warn", strong=True, wrap=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 4, 14, 4)
        row.addWidget(self.words, 1)
        self.hide()

    def show_channel(self, conversation: ConversationView | None) -> None:
        channel = None if conversation is None else conversation.open_channel
        self.setVisible(channel is not None)
        if channel is None:
            return
        words = tr("Not encrypted: anybody can read and write")
        if not channel.is_served:
            words = f"{words}. {unserved_words(channel)}"
        self.words.setText(words)
        self.setAccessibleName(words)
