"""One picture, large: fitted to the window, or in its own size; Escape closes it."""

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from engine.events import MessageView
from ui.controls import Button, ElidedText
from ui.conversation_words import sender_words
from ui.foreign_text import one_line
from ui.theme import current_theme
from ui.times import moment, moment_words
from ui.translate import tr

_STEP = 1.25
_NEAREST, _FURTHEST = 8.0, 0.1
_NOTCH = 120


class _Canvas(QWidget):
    """Zooms by wheel and keys, moves by dragging."""

    def __init__(self, image: QImage) -> None:
        super().__init__()
        self._image = image
        self.zoom = 1.0
        """Relative to the size that fits."""
        self._middle = QPointF(0, 0)
        self._dragged_from: QPointF | None = None
        self.setMinimumSize(160, 120)

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
    save_requested = Signal()

    def __init__(self, image: QImage, message: MessageView, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        when = moment_words(moment(message.sent_ms))
        title = tr("Photo from {name}, {time}").format(name=sender_words(message), time=when)
        self.setWindowTitle(title)
        self.canvas = _Canvas(image)
        self.canvas.setAccessibleName(one_line(f"{title} {message.text}", 200))
        larger = Button(tr("Larger"), kind="ghost")
        smaller = Button(tr("Smaller"), kind="ghost")
        save = Button(tr("Save as…"))
        close = Button(tr("Close"), kind="primary")
        larger.clicked.connect(lambda: self.canvas.zoom_by(_STEP))
        smaller.clicked.connect(lambda: self.canvas.zoom_by(1 / _STEP))
        save.clicked.connect(self.save_requested)
        close.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addWidget(ElidedText(title, face="label"), 1)
        for button in (smaller, larger, save, close):
            row.addWidget(button)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 12, 12, 12)
        whole.addWidget(self.canvas, 1)
        whole.addLayout(row)
        window = parent.size()
        self.resize(QSize(int(window.width() * 0.9), int(window.height() * 0.9)))
        close.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.canvas.zoom_by(_STEP)
            case Qt.Key.Key_Minus:
                self.canvas.zoom_by(1 / _STEP)
            case _:
                super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), current_theme().surface)
