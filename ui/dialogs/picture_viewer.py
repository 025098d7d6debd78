"""Pictures of a conversation, large: fitted to the window or nearer, one after another.

Escape closes it, plus and minus zoom, the arrow keys lead to the picture before and after.  A GIF
moves here and nowhere else: the user opened it for that.
"""

from PySide6.QtCore import QBuffer, QByteArray, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QMovie,
    QPainter,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from engine.events import MessageView
from ui.controls import Button, ElidedText, IconButton
from ui.conversation_words import sender_words
from ui.foreign_text import one_line
from ui.theme import current_theme
from ui.times import moment, moment_words
from ui.translate import tr

_STEP = 1.25
_NEAREST, _FURTHEST = 8.0, 0.1
_NOTCH = 120


class PictureCanvas(QWidget):
    """Zooms by wheel and keys, moves by dragging."""

    def __init__(self) -> None:
        super().__init__()
        self._image = QImage()
        self._movie: QMovie | None = None
        self._bytes: QBuffer | None = None
        self.zoom = 1.0
        """Relative to the size that fits."""
        self._middle = QPointF(0, 0)
        self._dragged_from: QPointF | None = None
        self.setMinimumSize(160, 120)

    @property
    def moves(self) -> bool:
        return self._movie is not None

    def show_image(self, image: QImage, moving: bytes = b"") -> None:
        """``moving``: the bytes of a GIF that plays; ``image`` is its first picture."""
        self.stop()
        self._image, self.zoom, self._middle = image, 1.0, QPointF(0, 0)
        if moving:
            self._bytes = QBuffer()
            self._bytes.setData(moving)
            self._movie = QMovie(self._bytes, QByteArray(b"gif"), self)
            self._movie.frameChanged.connect(self._next_frame)
            self._movie.start()
        self.update()

    def stop(self) -> None:
        if self._movie is not None:
            self._movie.stop()
            self._movie.deleteLater()
        self._movie = self._bytes = None

    def _next_frame(self) -> None:
        if self._movie is not None:
            self._image = self._movie.currentImage()
            self.update()

    def zoom_by(self, factor: float) -> None:
        self.zoom = min(max(self.zoom * factor, _FURTHEST), _NEAREST)
        if self.zoom <= 1:
            self._middle = QPointF(0, 0)
        self.update()

    def shown(self) -> QRectF:
        size = QSizeF(self._image.size())
        most = QSizeF(self.size())
        if size.width() > most.width() or size.height() > most.height():
            size = size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio)
        size *= self.zoom
        place = QRectF(QPointF(0, 0), size)
        place.moveCenter(QRectF(self.rect()).center() + self._middle)
        return place

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.fillRect(self.rect(), current_theme().canvas)
        painter.drawImage(self.shown(), self._image)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.zoom_by(_STEP ** (event.angleDelta().y() / _NOTCH))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._dragged_from = event.position() - self._middle

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged_from is not None and self.zoom > 1:
            self._middle = event.position() - self._dragged_from
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragged_from = None


class PictureViewer(QDialog):
    save_requested = Signal(MessageView)
    stepped = Signal(int)
    """-1: the picture before is wanted; 1: the one after."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.message: MessageView | None = None
        """Of the picture that is shown."""
        self.canvas = PictureCanvas()
        self._title = ElidedText("", face="label")
        self.before = IconButton("back", tr("Picture before"))
        self.after = IconButton("next", tr("Picture after"))
        larger = Button(tr("Larger"), kind="ghost")
        smaller = Button(tr("Smaller"), kind="ghost")
        save = Button(tr("Save as…"))
        close = Button(tr("Close"), kind="primary")
        self.before.clicked.connect(lambda: self.stepped.emit(-1))
        self.after.clicked.connect(lambda: self.stepped.emit(1))
        larger.clicked.connect(lambda: self.canvas.zoom_by(_STEP))
        smaller.clicked.connect(lambda: self.canvas.zoom_by(1 / _STEP))
        save.clicked.connect(self._save)
        close.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addWidget(self.before)
        row.addWidget(self.after)
        row.addWidget(self._title, 1)
        for button in (smaller, larger, save, close):
            row.addWidget(button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 12, 12, 12)
        whole.addWidget(self.canvas, 1)
        whole.addLayout(row)
        window = parent.size()
        self.resize(QSize(int(window.width() * 0.9), int(window.height() * 0.9)))
        close.setFocus()

    def show_picture(
        self, message: MessageView, image: QImage, moving: bytes, *, before: bool, after: bool
    ) -> None:
        """``before``, ``after``: whether there are others to step to."""
        self.message = message
        when = moment_words(moment(message.sent_ms))
        title = tr("Photo from {name}, {time}").format(name=sender_words(message), time=when)
        self.setWindowTitle(title)
        self._title.setText(one_line(f"{title}  {message.text}", 200))
        self.canvas.show_image(image, moving)
        self.canvas.setAccessibleName(one_line(f"{title} {message.text}", 200))
        self.before.setEnabled(before)
        self.after.setEnabled(after)

    def _save(self) -> None:
        if self.message is not None:
            self.save_requested.emit(self.message)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.canvas.zoom_by(_STEP)
            case Qt.Key.Key_Minus:
                self.canvas.zoom_by(1 / _STEP)
            case Qt.Key.Key_Left | Qt.Key.Key_PageUp if self.before.isEnabled():
                self.stepped.emit(-1)
            case Qt.Key.Key_Right | Qt.Key.Key_PageDown if self.after.isEnabled():
                self.stepped.emit(1)
            case _:
                super().keyPressEvent(event)

    def done(self, result: int) -> None:
        self.canvas.stop()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.canvas.stop()
        super().closeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), current_theme().surface)
