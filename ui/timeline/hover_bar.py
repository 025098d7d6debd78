"""The bar that floats beside the message under the mouse: reply, react, everything else.

A picture of an album has others beside it, so there the bar stands on the picture itself.

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
_NEAR_BUBBLE = 2
"""The least, where there is little room."""
_FROM_EDGE = 2


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
        self._shown_for: tuple[MessageView, Abilities, QRectF, QRectF, bool] | None = None
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

    def show_for(
        self, message: MessageView, can: Abilities, bubble: QRectF, room: QRectF, *, on_it: bool
    ) -> None:
        """Beside ``bubble`` in its row, where no words are, or ``on_it``; ``room``: the viewport.

        With as many buttons as fit there; the last is behind all of them.
        """
        if self._shown_for == (message, can, bubble, room, on_it):
            return
        self._shown_for = (message, can, bubble, room, on_it)
        self.message, self.bubble = message, bubble
        x = self._place_on(can, bubble) if on_it else self._place_beside(message, can, bubble, room)
        height = self.height()
        if height > bubble.height():
            y = bubble.center().y() - height / 2
        else:  # In view, but never beside another row.
            highest = bubble.top() + _FROM_EDGE * on_it
            y = min(max(highest, room.top() + _FROM_EDGE), bubble.bottom() - height)
        self.move(QPoint(int(x), int(y)))
        self.show()
        self.raise_()

    def _place_on(self, can: Abilities, picture: QRectF) -> float:
        """In the upper corner where reading ends; time and state are in the lower one."""
        self._fit(can, picture.width())
        if self.isRightToLeft():
            return picture.left() + _FROM_EDGE
        return picture.right() - _FROM_EDGE - self.width()

    def _place_beside(
        self, message: MessageView, can: Abilities, bubble: QRectF, room: QRectF
    ) -> float:
        """Where not even one button fits, on the other side, over the sender's picture."""
        left, right = bubble.left() - room.left(), room.right() - bubble.right()
        before = message.is_own is not self.isRightToLeft()
        if self._fit(can, left if before else right) < 0:
            before = not before
        width = self.width()
        gap = min(_FROM_BUBBLE, (left if before else right) - width - _FROM_EDGE)
        x = bubble.left() - gap - width if before else bubble.right() + gap
        return min(max(x, room.left() + _FROM_EDGE), room.right() - width - _FROM_EDGE)

    def _fit(self, can: Abilities, beside: float) -> float:
        """Leave out buttons until the bar fits; return the room that is left, negative if none."""
        shown = [self._reply] * can.reply + [self._react] * can.react
        while True:
            for button in (self._reply, self._react):
                button.setVisible(button in shown)
            self.adjustSize()
            left = beside - self.width() - _NEAR_BUBBLE - _FROM_EDGE
            if left >= 0 or not shown:
                return left
            del shown[0]

    def hide_now(self) -> None:
        """Once: as it goes, the mouse may leave what is below, too, and that hides it again."""
        if self._shown_for is not None:
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
