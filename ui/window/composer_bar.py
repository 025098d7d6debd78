"""The line above the composer during a reply or an edit, with a button to cancel it."""

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from engine.events import MessageView
from ui.controls import Area, ElidedText, IconButton
from ui.conversation_words import sender_words
from ui.file_words import with_caption
from ui.foreign_text import one_line
from ui.mirrored import mirror_widget
from ui.theme import current_theme
from ui.translate import tr

_SHOWN = 200
_BAR = 3
_ABOVE = 6


class ComposerBar(Area):
    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__("header", edges=("top",))
        self.title = ElidedText("", face="small", colour="accentInk", strong=True)
        self.words = ElidedText("", face="small", colour="ink2")
        self.cancel = IconButton("close", tr("Cancel (Esc)"), side=28)
        self.cancel.clicked.connect(self.cancelled)
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(self.title)
        texts.addWidget(self.words)
        row = QHBoxLayout(self)
        row.setContentsMargins(16 + _BAR + 9, _ABOVE, 14, _ABOVE)
        row.setSpacing(10)
        row.addLayout(texts, 1)
        row.addWidget(self.cancel, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    def show_reply(self, message: MessageView) -> None:
        name = sender_words(message)
        title = tr("Reply to yourself") if message.is_own else tr("Reply to {name}")
        self._show(title.format(name=name), message)

    def show_edit(self, message: MessageView) -> None:
        self._show(tr("Edit message"), message)

    def _show(self, title: str, message: MessageView) -> None:
        self.title.setText(title)
        words = one_line(with_caption(message, message.text), _SHOWN)
        self.words.setText(words)
        self.setAccessibleName(f"{title}: {words}")
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        bar = QRectF(16, _ABOVE, _BAR, self.height() - 2 * _ABOVE)
        painter = QPainter(self)
        mirror_widget(painter, self)
        painter.fillRect(bar, current_theme().accent)
