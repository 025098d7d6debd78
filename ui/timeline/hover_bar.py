"""The bar that floats beside the message under the mouse: reply, react, everything else.

Everything in it is also in the message's menu, so the keyboard does not need it.
"""

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine.events import MessageView
from ui.controls import IconButton
from ui.theme import current_theme
from ui.timeline.abilities import Abilities
from ui.translate import tr

_SIDE = 28
_FROM_BUBBLE = 8


class HoverBar(QWidget):
    reply_pressed = Signal()
    react_pressed = Signal()
    more_pressed = Signal()
    left = Signal()
    """The mouse left the bar."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.message: MessageView | None = None
        """The one it belongs to, while it is shown."""
        self.bubble = QRectF()
        """That message's, which it stands beside."""
        self._shown_for: tuple[MessageView, Abilities, QRectF, QRectF] | None = None
        self._reply = self._button("reply", tr("Reply"), self.reply_pressed.emit)
        self._react = self._button("smile", tr("React"), self.react_pressed.emit)
        self._more = self._button("more", tr("More"), self.more_pressed.emit)
        row = QHBoxLayout(self)
        row.setContentsMargins(3, 3, 3, 3)
        row.setSpacing(1)
        for button in (self._reply, self._react, self._more):
            row.addWidget(button)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.hide()

    def _button(self, icon_name: str, words: str, pressed: Callable[[], None]) -> IconButton:
        button = IconButton(icon_name, words, side=_SIDE)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.clicked.connect(pressed)
        return button

    def show_for(self, message: MessageView, can: Abilities, bubble: QRectF, room: QRectF) -> None:
        """Beside ``bubble``, or above its end where there is no room; ``room``: the viewport."""
        if self._shown_for == (message, can, bubble, room):
            return
        self._shown_for = (message, can, bubble, room)
        self.message, self.bubble = message, bubble
        self._reply.setVisible(can.reply)
        self._react.setVisible(can.react)
        self.adjustSize()
        width, height = self.width(), self.height()
        before = message.is_own is not self.isRightToLeft()
        x = bubble.left() - width - _FROM_BUBBLE if before else bubble.right() + _FROM_BUBBLE
        y = max(bubble.top(), room.top() + 2)
        if x < room.left() + 2 or x + width > room.right() - 2:
            x = bubble.left() + 4 if before else bubble.right() - width - 4
            y = bubble.top() - height / 2 - 4
        x = min(max(x, room.left() + 2), room.right() - width - 2)
        y = min(max(y, room.top() + 2), room.bottom() - height - 2)
        self.move(QPoint(int(x), int(y)))
        self.show()
        self.raise_()

    def hide_now(self) -> None:
        self.message = self._shown_for = None
        self.hide()

    def react_place(self) -> QPoint:
        """Below the button that asks for a reaction, on the screen."""
        return self._react.mapToGlobal(QPoint(0, self._react.height() + 4))

    def more_place(self) -> QPoint:
        return self._more.mapToGlobal(QPoint(0, self._more.height() + 4))

    def enterEvent(self, event: QEnterEvent) -> None:
        event.accept()

    def leaveEvent(self, event: object) -> None:
        self.left.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.surface)
        radius = theme.metrics.gap(9)
        inner = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(inner, radius, radius)
