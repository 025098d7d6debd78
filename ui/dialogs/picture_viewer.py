"""Pictures of a conversation, large: fitted to the window or nearer, one after another.

It lies on the window as sheets do.  Escape closes it, plus, minus and the wheel zoom, 0 fits it
again, and the arrow keys lead to the picture before and after.  A GIF moves here and nowhere else:
the user opened it for that.
"""

from PySide6.QtCore import QBuffer, QByteArray, QEvent, QObject, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QMovie,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QVBoxLayout, QWidget

from engine.events import MessageView
from ui.controls import Button, ElidedText, IconButton, Text
from ui.conversation_words import sender_words
from ui.dialogs.overlay import OverlayDialog
from ui.file_words import is_moving
from ui.foreign_text import one_line
from ui.speaking import announce, told_as
from ui.theme import current_theme, theme_changed
from ui.times import moment, moment_words
from ui.translate import tr

_STEP = 1.25
_NEAREST, _FURTHEST = 8.0, 0.1
_NOTCH = 120
_EDGE = 12
_MIDDLE = QPointF(0, 0)
_BY_TAB = {Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason}


@told_as(QAccessible.Role.Graphic)
class PictureCanvas(QWidget):
    """Zooms by wheel and keys, moves by dragging."""

    zoomed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._image = QImage()
        self._movie: QMovie | None = None
        self._bytes: QBuffer | None = None
        self.zoom = 1.0
        """Relative to the size that fits."""
        self._middle = _MIDDLE
        """How far the picture's middle is from ours."""
        self._dragged_from: QPointF | None = None
        self._keys_lead = False
        self.setMinimumSize(160, 120)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme_changed.connect(self.update)

    @property
    def moves(self) -> bool:
        return self._movie is not None

    def show_image(self, image: QImage, moving: bytes = b"") -> None:
        """``moving``: the bytes of a GIF that plays; ``image`` is its first picture."""
        self.stop()
        self._image, self.zoom, self._middle = image, 1.0, _MIDDLE
        if moving:
            self._bytes = QBuffer()
            self._bytes.setData(moving)
            self._movie = QMovie(self._bytes, QByteArray(b"gif"), self)
            self._movie.frameChanged.connect(self._next_frame)
            self._movie.start()
        self.update()
        self.zoomed.emit()

    def stop(self) -> None:
        if self._movie is not None:
            self._movie.stop()
            self._movie.deleteLater()
        self._movie = self._bytes = None

    def let_go(self) -> None:
        """Of the picture: 50 MB of a camera's, which else wait for the garbage collector."""
        self.stop()
        self._image = QImage()

    def _next_frame(self) -> None:
        if self._movie is not None:
            self._image = self._movie.currentImage()
            self.update()

    # --- how near ---------------------------------------------------------------------------------

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """``at``: what lies there stays there; the middle if None."""
        zoom = min(max(self.zoom * factor, _FURTHEST), _NEAREST)
        fixed = _MIDDLE if at is None else at - QRectF(self.rect()).center()
        self._middle = fixed + (self._middle - fixed) * (zoom / self.zoom)
        self.zoom = zoom
        self._stay_in_view()

    def fit(self) -> None:
        self.zoom_by(1 / self.zoom)

    def percent(self) -> int:
        """Of its own pixels."""
        width = self._image.width()
        return round(100 * self.shown().width() / width) if width else 100

    def shown(self) -> QRectF:
        size = QSizeF(self._image.size())
        most = QSizeF(self.size())
        if size.width() > most.width() or size.height() > most.height():
            size = size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio)
        size *= self.zoom
        place = QRectF(_MIDDLE, size)
        place.moveCenter(QRectF(self.rect()).center() + self._middle)
        return place

    def _stay_in_view(self) -> None:
        """No edge of it comes further in than the canvas' own."""
        shown = self.shown()
        across = max(0.0, (shown.width() - self.width()) / 2)
        down = max(0.0, (shown.height() - self.height()) / 2)
        middle = self._middle
        self._middle = QPointF(
            min(max(middle.x(), -across), across), min(max(middle.y(), -down), down)
        )
        self.update()
        self.zoomed.emit()

    # --- what the user does -----------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.zoom_by(_STEP ** (event.angleDelta().y() / _NOTCH), event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged_from = event.position() - self._middle

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged_from is not None:
            self._middle = event.position() - self._dragged_from
            self._stay_in_view()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragged_from = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Nearer, and back to all of it."""
        if self.zoom > 1:
            self.fit()
        else:
            self.zoom_by(2 * _STEP, event.position())

    def focusInEvent(self, event: QFocusEvent) -> None:
        """It has the focus from the start; a ring is for those who come by Tab."""
        super().focusInEvent(event)
        self._keys_lead = event.reason() in _BY_TAB
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._keys_lead = False
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._stay_in_view()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.fillRect(self.rect(), theme.canvas)
        painter.drawImage(self.shown(), self._image)
        if self._keys_lead:
            width = theme.focus_width
            painter.setPen(QPen(theme.focus, width))
            inset = width / 2
            painter.drawRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset))


class PictureViewer(OverlayDialog):
    save_requested = Signal(MessageView)
    stepped = Signal(int)
    """-1: the picture before is wanted; 1: the one after."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.message: MessageView | None = None
        """Of the picture that is shown."""
        self.canvas = PictureCanvas()
        self._title = ElidedText("", face="label")
        self._percent = Text(face="caption", colour="ink2")
        self.before = IconButton("back", tr("Picture before"))
        self.after = IconButton("next", tr("Picture after"))
        self.smaller = IconButton("minus", tr("Smaller"))
        self.larger = IconButton("plus", tr("Larger"))
        self.keep = Button(tr("Save as…"))
        self.shut = IconButton("close", tr("Close"))
        self._lay_out()
        self.before.clicked.connect(lambda: self.stepped.emit(-1))
        self.after.clicked.connect(lambda: self.stepped.emit(1))
        self.larger.clicked.connect(lambda: self.canvas.zoom_by(_STEP))
        self.smaller.clicked.connect(lambda: self.canvas.zoom_by(1 / _STEP))
        self.keep.clicked.connect(self._save)
        self.shut.clicked.connect(self.reject)
        self.canvas.zoomed.connect(self._show_percent)
        for button in self.findChildren(QAbstractButton):
            button.installEventFilter(self)
        self.canvas.setFocus()

    def _lay_out(self) -> None:
        head, foot = QHBoxLayout(), QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self.shut)
        foot.addWidget(self.before)
        foot.addWidget(self.after)
        foot.addStretch(1)
        foot.addWidget(self.smaller)
        foot.addWidget(self._percent)
        foot.addWidget(self.larger)
        foot.addStretch(1)
        foot.addWidget(self.keep)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(_EDGE, _EDGE // 2, _EDGE, _EDGE)
        whole.addLayout(head)
        whole.addWidget(self.canvas, 1)
        whole.addLayout(foot)

    def fit(self) -> None:
        self.setFixedSize(self.room())

    def show_picture(
        self, message: MessageView, image: QImage, moving: bytes, *, before: bool, after: bool
    ) -> None:
        """``before``, ``after``: whether there are others to step to."""
        follows = self.message is not None
        self.message = message
        title = _title_of(message)
        whole = one_line(f"{title} · {message.text}" if message.text.strip() else title, 200)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self._title.setText(whole)
        self.canvas.show_image(image, moving)
        self.canvas.setAccessibleName(whole)
        for button, is_there in ((self.before, before), (self.after, after)):
            if button.hasFocus() and not is_there:
                self.canvas.setFocus()
            button.setEnabled(is_there)
        if follows:
            announce(self.canvas, whole)

    def _show_percent(self) -> None:
        self._percent.setText(tr("{percent} %").format(percent=self.canvas.percent()))

    def _save(self) -> None:
        if self.message is not None:
            self.save_requested.emit(self.message)

    # --- keys -------------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A button would take the arrows to lead to its neighbour."""
        return isinstance(event, QKeyEvent) and _is_press(event) and self._take(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._take(event):
            super().keyPressEvent(event)

    def _take(self, event: QKeyEvent) -> bool:
        match event.key():
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self._zoom(_STEP)
            case Qt.Key.Key_Minus:
                self._zoom(1 / _STEP)
            case Qt.Key.Key_0:
                self._zoom(1 / self.canvas.zoom)
            case Qt.Key.Key_Left | Qt.Key.Key_PageUp:
                self._step(self.before, -1)
            case Qt.Key.Key_Right | Qt.Key.Key_PageDown:
                self._step(self.after, 1)
            case _:
                return False
        return True

    def _zoom(self, factor: float) -> None:
        self.canvas.zoom_by(factor)
        announce(self.canvas, self._percent.text())

    def _step(self, button: IconButton, step: int) -> None:
        if button.isEnabled():
            self.stepped.emit(step)

    def done(self, result: int) -> None:
        self.canvas.let_go()
        super().done(result)


def _title_of(message: MessageView) -> str:
    if message.file is not None and is_moving(message.file):
        words = tr("Your GIF, {time}") if message.is_own else tr("GIF from {name}, {time}")
    else:
        words = tr("Your photo, {time}") if message.is_own else tr("Photo from {name}, {time}")
    when = moment_words(moment(message.sent_ms))
    return words.format(name=sender_words(message), time=when)


def _is_press(event: QKeyEvent) -> bool:
    return event.type() == QEvent.Type.KeyPress
