"""The line above the composer during a reply or an edit, with a button to cancel it."""

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.events import MessageView
from ui.controls import Area, ElidedText, IconButton
from ui.conversation_words import sender_words
from ui.file_words import is_picture, with_caption
from ui.foreign_text import one_line
from ui.marked_text import shown_text
from ui.mirrored import mirror_widget
from ui.theme import current_theme
from ui.timeline.file_pictures import FilePictures, draw_small, small
from ui.translate import tr

_SHOWN = 200
_BAR = 3
_ABOVE = 6


class ComposerBar(Area):
    cancelled = Signal()

    def __init__(self, pictures: FilePictures) -> None:
        """``pictures``: small ones, as in quotes."""
        super().__init__("header", edges=("top",))
        self.picture = SmallPicture(pictures)
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
        row.addWidget(self.picture)
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
        words = with_caption(message, one_line(shown_text(message), _SHOWN))
        self.words.setText(words)
        self.setAccessibleName(f"{title}: {words}")
        self.picture.show_of(message)
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        bar = QRectF(16, _ABOVE, _BAR, self.height() - 2 * _ABOVE)
        painter = QPainter(self)
        mirror_widget(painter, self)
        painter.fillRect(bar, current_theme().accent)


class SmallPicture(QWidget):
    """Of a message that has one; hidden for others."""

    def __init__(self, pictures: FilePictures) -> None:
        super().__init__()
        self._pictures = pictures
        self._message: MessageView | None = None
        pictures.changed.connect(self._look_again)
        self.hide()

    def show_of(self, message: MessageView) -> None:
        has_picture = message.file is not None and is_picture(message.file)
        self._message = small(message) if has_picture else None
        side = round(2 * current_theme().type.small.line_height)
        self.setFixedSize(side, side)
        self._look_again()

    def _look_again(self) -> None:
        shown = self._message is not None and not self._pictures.is_broken(self._message)
        self.setVisible(shown)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._message is not None:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            mirror_widget(painter, self)
            draw_small(painter, QRectF(self.rect()), self._message, self._pictures)
