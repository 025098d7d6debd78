"""The mouse over the timeline: hover, links, parts, and selecting text across messages.

It turns mouse events into changes of hover and selection and into named wishes; the view emits
them as signals.  A press that does not move is a click, one that moves selects; a double click
takes the word, a triple click the message.
"""

from PySide6.QtCore import QElapsedTimer, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from ui.timeline.scene import Hit, Scene
from ui.timeline.selection import Caret, Selection, text_length


class Pointer:
    def __init__(self, scene: Scene, selection: Selection) -> None:
        self._scene = scene
        self._selection = selection
        self._pressed_at: QPointF | None = None
        self._pressed_hit: Hit | None = None
        self._dragging = False
        self._since_double = QElapsedTimer()
        self.hover: Hit | None = None

    @property
    def selecting(self) -> bool:
        return self._dragging

    def reset(self) -> None:
        self._pressed_at = self._pressed_hit = self.hover = None
        self._dragging = False

    def cursor(self) -> Qt.CursorShape:
        hit = self.hover
        if hit is not None and (hit.part is not None or hit.link is not None):
            return Qt.CursorShape.PointingHandCursor
        if hit is not None and hit.over_text:
            return Qt.CursorShape.IBeamCursor
        return Qt.CursorShape.ArrowCursor

    def moved(self, point: QPointF, *, pressed: bool) -> bool:
        """True if something must be painted again."""
        if pressed and self._pressed_at is not None:
            far = (point - self._pressed_at).manhattanLength()
            if not self._dragging and far < QApplication.startDragDistance():
                return False
            if self._pressed_hit is not None and self._pressed_hit.part is not None:
                return False
            self._dragging = True
            caret = self._scene.caret(point)
            if caret is not None:
                self._selection.extend(caret)
            return True
        before, self.hover = self.hover, self._scene.hit(point)
        return before != self.hover

    def left(self) -> bool:
        had, self.hover = self.hover, None
        return had is not None

    def pressed(self, point: QPointF, *, extend: bool) -> None:
        interval = QGuiApplication.styleHints().mouseDoubleClickInterval()
        triple = self._since_double.isValid() and self._since_double.elapsed() < interval
        self._since_double.invalidate()
        self._pressed_at, self._pressed_hit = point, self._scene.hit(point)
        self._dragging = False
        caret = self._scene.caret(point)
        if caret is None:
            return
        if triple:
            self._select_message(caret)
        elif extend and not self._selection.is_empty:
            self._selection.extend(caret)
        else:
            self._selection.begin(caret)

    def released(self, point: QPointF) -> Hit | None:
        """A click, if it was one."""
        hit, dragged = self._pressed_hit, self._dragging
        self._pressed_at = self._pressed_hit = None
        self._dragging = False
        if dragged or hit is None or self._scene.hit(point) != hit:
            return None
        return hit

    def double_clicked(self, point: QPointF) -> None:
        caret = self._scene.caret(point)
        hit = self._scene.hit(point)
        if caret is None or hit is None or not hit.over_text:
            return
        self._since_double.start()
        begin, end = self._scene.word_at(caret)
        self._selection.begin(Caret(caret.message_id, begin))
        self._selection.extend(Caret(caret.message_id, end))

    def _select_message(self, caret: Caret) -> None:
        message = self._scene.loaded.get(caret.message_id)
        if message is not None:
            self._selection.begin(Caret(caret.message_id, 0))
            self._selection.extend(Caret(caret.message_id, text_length(message)))
