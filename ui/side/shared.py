"""Pictures and files of a conversation, in a panel: the newest first, more on request.

A picture is a tile, anything else a row; pressing one does what a click on it in the timeline does.
"""

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId, Position
from engine.events import MessageView
from ui.controls import Button, ElidedText, Text
from ui.file_words import is_picture, size_words
from ui.foreign_text import file_name, one_line
from ui.icons import draw_icon
from ui.side.panel import PressableRow
from ui.tasks import Tasks
from ui.theme import Radius, current_theme
from ui.timeline.file_pictures import FilePictures
from ui.times import spoken_time
from ui.translate import tr

PAGE = 12
_COLUMNS = 4
_TILE = 70


class SharedFiles(QWidget):
    chosen = Signal(MessageView)
    grew = Signal()

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        pictures: FilePictures,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._tasks = tasks
        self._pictures = pictures
        self._now = now
        self._conversation_id = ConversationId("")
        self._left = False
        self.messages: list[MessageView] = []
        self._tiles = QGridLayout()
        self._tiles.setSpacing(6)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self.nothing = Text(
            tr("Nothing was shared so far."), face="label", colour="ink2", wrap=True
        )
        self.nothing.hide()
        self.more = Button(tr("Show more"), kind="ghost")
        self.more.hide()
        self.more.clicked.connect(self._read_more)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(8)
        whole.addWidget(self.nothing)
        whole.addLayout(self._tiles)
        whole.addLayout(self._rows)
        whole.addWidget(self.more)
        self._tiles.setColumnStretch(_COLUMNS, 1)
        self._pictures.changed.connect(self.update_tiles)

    def show_of(self, conversation_id: ConversationId) -> None:
        self._conversation_id = conversation_id
        self.messages.clear()
        self._read_more()

    def leave(self) -> None:
        """It is about to go: what is still being read is dropped."""
        self._left = True

    def update_tiles(self) -> None:
        for tile in self.findChildren(PictureTile):
            tile.update()

    def _read_more(self) -> None:
        before: Position | None = self.messages[-1].position if self.messages else None

        async def work() -> None:
            found = await self._engine.files.shared(
                self._conversation_id, before=before, limit=PAGE + 1
            )
            if self._left:
                return
            self._add(list(found[:PAGE]))
            self.more.setVisible(len(found) > PAGE)
            self.nothing.setVisible(not self.messages)
            self.grew.emit()

        self._tasks.spawn(work, purpose=tr("list what was shared"), retry=False)

    def _add(self, messages: list[MessageView]) -> None:
        for message in messages:
            self.messages.append(message)
            file = message.file
            if file is None:
                continue
            if is_picture(file):
                tile = PictureTile(message, self._pictures, self._now())
                number = len(self.findChildren(PictureTile))
                self._tiles.addWidget(tile, number // _COLUMNS, number % _COLUMNS)
                tile.clicked.connect(lambda _checked=False, m=message: self.chosen.emit(m))
            else:
                row = FileRow(message, self._now())
                self._rows.addWidget(row)
                row.clicked.connect(lambda _checked=False, m=message: self.chosen.emit(m))


def _told(message: MessageView, now: datetime) -> tuple[str, str]:
    """The name, and whose it is, when it was sent and how large it is."""
    file = message.file
    name = "" if file is None else file_name(file.name)
    size = 0 if file is None else file.size
    sender = tr("You") if message.is_own else one_line(message.sender_name, 40)
    when = spoken_time(message.sent_ms, now)
    return name, f"{sender} · {when} · {size_words(size)}"


class PictureTile(PressableRow):
    def __init__(self, message: MessageView, pictures: FilePictures, now: datetime) -> None:
        super().__init__()
        self._message = message
        self._pictures = pictures
        side = current_theme().metrics.scaled(_TILE)
        self.setFixedSize(side, side)
        name, words = _told(message, now)
        self.setAccessibleName(tr("Picture {name}, {words}").format(name=name, words=words))
        self.setToolTip("")

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        box = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        radius = theme.metrics.gap(Radius.GROUPED)
        path = QPainterPath()
        path.addRoundedRect(box, radius, radius)
        painter.fillPath(path, theme.surface2)
        scale = self.devicePixelRatioF()
        pixmap = self._pictures.pixmap(self._message, box.size(), scale, cover=True)
        if pixmap is None or pixmap.isNull():
            side = theme.metrics.scaled(20)
            at = QRectF(0, 0, side, side)
            at.moveCenter(box.center())
            draw_icon(painter, "picture", at, theme.ink3)
        else:
            painter.save()
            painter.setClipPath(path)
            painter.drawPixmap(box, pixmap, QRectF(pixmap.rect()))
            painter.restore()
        if self.hasFocus() or self.underMouse():
            colour = theme.focus if self.hasFocus() else theme.line2
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colour, theme.focus_width if self.hasFocus() else 1))
            painter.drawRoundedRect(box, radius, radius)


class FileRow(PressableRow):
    def __init__(self, message: MessageView, now: datetime) -> None:
        super().__init__()
        name, words = _told(message, now)
        whole = "" if message.file is None else one_line(message.file.name)
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(
            ElidedText(whole, face="label", strong=True, elided=Qt.TextElideMode.ElideMiddle)
        )
        texts.addWidget(ElidedText(words, face="caption", colour="ink2"))
        self.row.addWidget(_FileSign())
        self.row.addLayout(texts, 1)
        self.setAccessibleName(tr("File {name}, {words}").format(name=name, words=words))


class _FileSign(QWidget):
    def __init__(self) -> None:
        super().__init__()
        side = current_theme().metrics.scaled(24)
        self.setFixedSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_icon(
            QPainter(self), "file", QRectF(self.rect()).adjusted(2, 2, -2, -2), current_theme().ink2
        )
