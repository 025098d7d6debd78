"""The mouse over the timeline: hover, clicks, and selecting text across messages.

A press that does not move is a click, one that moves selects; a double click takes the word, a
triple click the message.  Selecting beyond an edge scrolls.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QPointF, Qt, QTimer
from PySide6.QtGui import QCursor, QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

from ui.timeline.buttons import RowButton
from ui.timeline.canvas import TimelineCanvas
from ui.timeline.rows import RowKey
from ui.timeline.scene import Hit, Scene
from ui.timeline.selection import Caret, text_length

if TYPE_CHECKING:
    from ui.timeline.code_block import CodeBlock

_SELECT_SCROLL_MS = 30
_UNAWARES_MS = 700
"""So soon after another button came under a mouse at rest, a press is meant for what was there."""
_FASTEST_SCROLL = 80.0
"""Pixels at a time while selecting beyond an edge."""


class Pointer:
    """Turns mouse events on ``viewport`` into the scene's hover and selection, and into clicks."""

    def __init__(
        self,
        viewport: QWidget,
        scene: Scene,
        canvas: TimelineCanvas,
        *,
        hovered: Callable[[], None],
    ) -> None:
        """``hovered`` is called after each look at what the mouse is over."""
        self._hovered = hovered
        self._viewport = viewport
        self._scene = scene
        self._canvas = canvas
        self._point = QPointF()
        self._pressed_at: QPointF | None = None
        self._pressed_hit: Hit | None = None
        self._dragged_code: CodeBlock | None = None
        self._selecting = False
        self._since_double = QElapsedTimer()
        self._since_exchange = QElapsedTimer()
        """Since what lies under the mouse became another button by itself."""
        self._has_pressed = False
        """Where the mouse is: what changes there then does so by that."""
        self._scroll_timer = QTimer(viewport)
        self._scroll_timer.timeout.connect(self._scroll_while_selecting)
        canvas.scrolled.connect(self._hover_again)
        canvas.rows_placed.connect(self._see_exchange)

    def reset(self) -> None:
        self._pressed_at = self._pressed_hit = self._dragged_code = None
        self._selecting = False

    # events -------------------------------------------------------------------------------------

    def press(self, event: QMouseEvent) -> None:
        extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        interval = QGuiApplication.styleHints().mouseDoubleClickInterval()
        triple = self._since_double.isValid() and self._since_double.elapsed() < interval
        self._since_double.invalidate()
        self._pressed_at = self._point = event.position()
        self._pressed_hit = None if self._is_unawares() else self._scene.hit(event.position())
        self._selecting = False
        self._dragged_code = self._scene.code_at(event.position(), over_bar=True)
        caret = self._scene.caret(event.position())
        if caret is None or self._dragged_code is not None:
            return
        if triple:
            self._select_message(caret)
        elif extend and not self._scene.selection.is_empty:
            self._scene.selection.extend(caret)
        else:
            self._scene.selection.begin(caret)

    def move(self, event: QMouseEvent) -> None:
        before, self._point = self._point, event.position()
        if not event.buttons() & Qt.MouseButton.LeftButton or self._pressed_at is None:
            self._has_pressed = False
            self._hover(self._point)
        elif self._dragged_code is not None:
            self._dragged_code.drag_by(self._point.x() - before.x())
            self._canvas.repaint()
        elif self._drags(self._point, self._pressed_at):
            self._select_to(self._point)
            self._show_cursor()
            self._canvas.repaint()
        outside = not 0 <= self._point.y() <= self._scene.height
        if self._selecting and outside and not self._scroll_timer.isActive():
            self._scroll_timer.start(_SELECT_SCROLL_MS)

    def release(self, event: QMouseEvent) -> Hit | None:
        """What was clicked, if it was a click."""
        hit, selected = self._pressed_hit, self._selecting or self._dragged_code is not None
        self.reset()
        self._has_pressed = hit is not None
        if selected or hit is None or self._scene.hit(event.position()) != hit:
            return None
        return hit

    def double_click(self, event: QMouseEvent) -> None:
        caret = self._scene.caret(event.position())
        hit = self._scene.hit(event.position())
        if caret is None or hit is None or not hit.over_text:
            return
        self._since_double.start()
        begin, end = self._scene.word_at(caret)
        self._scene.selection.begin(Caret(caret.message_id, begin))
        self._scene.selection.extend(Caret(caret.message_id, end))

    def leave(self) -> None:
        self._set_hover(None)

    def look_again(self) -> None:
        """The mouse may be over the viewport again, or over nothing."""
        if self._viewport.rect().contains(self._viewport.mapFromGlobal(QCursor.pos())):
            self._hover(self._viewport.mapFromGlobal(QCursor.pos()).toPointF())
        else:
            self.leave()

    # hover --------------------------------------------------------------------------------------

    def _hover(self, point: QPointF) -> None:
        self._set_hover(self._scene.hit(point))

    def _set_hover(self, hover: Hit | None) -> None:
        before, self._scene.hover = self._scene.hover, hover
        self._hovered()  # Also of the same: what stood beside it may have been hidden meanwhile.
        if before != hover:
            self._show_cursor()
            self._canvas.repaint_rows(*(hit.key for hit in (before, hover) if hit is not None))

    def _hover_again(self) -> None:
        """Other rows came under a mouse that stands still."""
        if self._viewport.underMouse() and not self._selecting:
            self._hover(self._viewport.mapFromGlobal(QCursor.pos()).toPointF())

    def _see_exchange(self) -> None:
        """A file has come, and where one could pause it one opens it; or rows have moved."""
        before = self._scene.hover
        if before is None or self._pressed_hit is not None or self._has_pressed:
            return
        now = self._scene.hit(self._point)
        if now is not None and now.button is not None and _place(now) != _place(before):
            self._since_exchange.start()
            self._set_hover(now)

    def _is_unawares(self) -> bool:
        since = self._since_exchange
        return since.isValid() and since.elapsed() < _UNAWARES_MS

    def _show_cursor(self) -> None:
        self._viewport.setCursor(_cursor_over(self._scene.hover))

    # selecting ----------------------------------------------------------------------------------

    def _drags(self, point: QPointF, pressed_at: QPointF) -> bool:
        """Whether a move with the button down selects: not from a button, nor by a tremble."""
        if self._pressed_hit is not None and _is_button(self._pressed_hit):
            return False
        far = (point - pressed_at).manhattanLength() >= QApplication.startDragDistance()
        return self._selecting or far

    def _select_to(self, point: QPointF) -> None:
        self._selecting = True
        caret = self._scene.caret(point)
        if caret is not None:
            self._scene.selection.extend(caret)

    def _scroll_while_selecting(self) -> None:
        y = self._point.y()
        beyond = -y if y < 0 else min(0.0, self._scene.height - y)
        if not self._selecting or not beyond:
            self._scroll_timer.stop()
            return
        self._canvas.scroll_by(max(-_FASTEST_SCROLL, min(_FASTEST_SCROLL, beyond / 2)))
        self._select_to(self._point)

    def _select_message(self, caret: Caret) -> None:
        message = self._scene.loaded.get(caret.message_id)
        if message is not None:
            self._scene.selection.begin(Caret(caret.message_id, 0))
            self._scene.selection.extend(Caret(caret.message_id, text_length(message)))


def _place(hit: Hit) -> tuple[RowKey, RowButton | None]:
    return hit.key, hit.button


def _is_button(hit: Hit) -> bool:
    return hit.button is not None or hit.code is not None or bool(hit.chip) or hit.over_sender


def _cursor_over(hit: Hit | None) -> Qt.CursorShape:
    opens = hit is not None and (
        _is_button(hit) or hit.link or hit.over_quote or hit.over_file or hit.over_meta
    )
    if opens:
        return Qt.CursorShape.PointingHandCursor
    if hit is not None and hit.over_text:
        return Qt.CursorShape.IBeamCursor
    return Qt.CursorShape.ArrowCursor
