"""The causal graph as a widget: dragged or panned by Shift and wheel, zoomed by Ctrl and wheel.

A click or Enter looks into a message.  By the keys: Left and Right go from message to message, Up
and Down from lane to lane, Home and End to the first and the newest.  While the newest message is
in view, it stays there.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from engine.core.ids import MessageId
from engine.delivery_views import DeliveryMessage
from engine.events import ConversationView
from ui.delivery.layout import GraphLayout
from ui.delivery.loaded import LoadedMessages
from ui.delivery.painting import (
    NAMES,
    POINT,
    GraphImages,
    Sight,
    draw_graph,
    height_of,
    lane_y,
)
from ui.delivery.words import lines_about, said
from ui.speaking import told_as
from ui.theme import current_theme, theme_changed
from ui.translate import tr

STEP: Final = 66.0
_LEAST_FIT, _LEAST, _MOST = 14.0, 0.6, 140.0
_ZOOM: Final = 1.25
_NEAR: Final = 14
"""Pixels from a bead that still mean it."""
_AHEAD: Final = 1.2
"""Columns that stay free at the right."""
_MOST_NAMES: Final = 0.42


@told_as(QAccessible.Role.Chart)
class CausalGraphView(QWidget):
    chosen = Signal(str)
    """The id of a message into which one wants to look."""
    older_wanted = Signal()
    """One looks at the beginning of what is loaded."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self._layout = GraphLayout()
        self._images = GraphImages()
        self._step = STEP
        self._left = 0.0
        self._begin = 0
        """The column where the chosen time begins."""
        self._is_at_end = True
        self._is_fitted = True
        """Nobody has moved or zoomed it since."""
        self._has_ring = False
        self._grabbed: tuple[QPoint, float] | None = None
        self._was_dragged = False
        self._hovered: MessageId | None = None
        self.current: MessageId | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._fit_height)
        self._say()

    # --- what is shown ----------------------------------------------------------------------------

    def show_loaded(
        self,
        loaded: LoadedMessages,
        changed: int,
        conversation: ConversationView | None,
        *,
        begin: int,
    ) -> None:
        """``begin``: the index of the first message of the chosen time."""
        before = self._layout.column_count
        self._images.points.forget(self._first_new_pixel(changed))
        self._layout.lay_out(loaded.messages, changed, conversation)
        columns = self._layout.columns
        self._begin = columns[begin] if begin < len(columns) else self._layout.column_count
        if self.current is not None and self.current not in self._layout.index:
            self.current = None
        if not changed and not self._is_at_end:
            # What came ahead of it moves what one looks at by as much.
            self._left += self._layout.column_count - before
        self._fit_height()
        self._keep_in()
        self._say()
        self.update()

    def _first_new_pixel(self, changed: int) -> float:
        """Where what changes begins, before it is laid out anew.

        Beads share a column, and a point reaches into the pixels beside its own.
        """
        columns = self._layout.columns
        if not 0 < changed <= len(columns):
            return 0.0
        return (columns[changed - 1] - 1) * self._step - POINT

    def fit(self) -> None:
        """All of the chosen time at once, if the beads have room; else its newest part."""
        count = max(1, self._layout.column_count - self._begin)
        room = self.width() - self._names_width()
        self._step = min(STEP, max(_LEAST_FIT, room / (count + _AHEAD)))
        self._is_at_end = self._is_fitted = True
        self._keep_in()
        self.update()

    @property
    def message(self) -> DeliveryMessage | None:
        """The one that the keys are about."""
        at = self._layout.index.get(self.current) if self.current is not None else None
        return None if at is None else self._layout.messages[at]

    def sight(self) -> Sight:
        return Sight(
            left=self._left,
            step=self._step,
            width=float(self.width()),
            names=self._names_width(),
        )

    def paint_on(self, painter: QPainter) -> None:
        """As it is seen, for a file."""
        draw_graph(painter, self._layout, self.sight(), current_theme())

    def _names_width(self) -> float:
        return min(float(current_theme().metrics.scaled(NAMES)), self.width() * _MOST_NAMES)

    def _fit_height(self) -> None:
        height = int(height_of(self._layout, current_theme()) + 1)
        if height != self.height():
            self.setFixedHeight(height)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, int(height_of(self._layout, current_theme()) + 1))

    # --- moving -----------------------------------------------------------------------------------

    def pan(self, columns: float) -> None:
        self._left += columns
        self._is_at_end = self._is_fitted = False
        self._keep_in()
        self.update()

    def zoom(self, factor: float, x: float | None = None) -> None:
        """Around a place of the widget; None: its middle."""
        sight = self.sight()
        x = (sight.names + sight.width) / 2 if x is None else x
        column = sight.column(x)
        count = max(1, self._layout.column_count - self._begin)
        least = max(_LEAST, (sight.width - sight.names) / (count + _AHEAD) * 0.9)
        self._step = min(_MOST, max(min(least, STEP), self._step * factor))
        self._left += column - self.sight().column(x)
        self._is_at_end = self._is_fitted = False
        self._keep_in()
        self.update()

    def _keep_in(self) -> None:
        last = self._layout.column_count + _AHEAD - self.sight().shown
        if self._is_at_end or self._left >= last:
            self._left, self._is_at_end = last, True
        self._left = max(self._left, min(self._begin, last))
        if self._left < self._begin:
            self._left = float(self._begin)
        if self._left - self._begin < self.sight().shown / 2 and not self._begin:
            self.older_wanted.emit()

    def resizeEvent(self, event: QEvent) -> None:
        if self._is_fitted:
            self.fit()
        self._keep_in()

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(_ZOOM ** (turned.y() / 120), event.position().x())
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier or turned.x():
            pixels = event.pixelDelta().x() or (turned.x() or turned.y()) / 2
            self.pan(-pixels / self._step)
        else:
            event.ignore()  # The page scrolls.
            return
        event.accept()

    # --- mouse ------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._grabbed = event.position().toPoint(), self._left
            self._was_dragged = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grabbed is not None and event.buttons() & Qt.MouseButton.LeftButton:
            begin, left = self._grabbed
            moved = event.position().x() - begin.x()
            if abs(moved) >= QApplication.startDragDistance() or self._was_dragged:
                self._was_dragged = True
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
                self.pan(left - moved / self._step - self._left)
            return
        found = self._at(event.position())
        hovered = None if found is None else found.message_id
        if hovered != self._hovered:
            self._hovered = hovered
            shape = Qt.CursorShape.PointingHandCursor if hovered else Qt.CursorShape.OpenHandCursor
            self.setCursor(shape)
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        if self._grabbed is None or self._was_dragged:
            self._grabbed = None
            return
        self._grabbed = None
        found = self._at(event.position())
        if found is not None:
            self.choose(found.message_id)
            self.chosen.emit(found.message_id)

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = None
        self.update()

    def place_of(self, message_id: MessageId) -> QPointF:
        """Where a message's bead is."""
        at = self._layout.index[message_id]
        y = lane_y(self._layout.lane(at), current_theme())
        return QPointF(self.sight().x(self._layout.columns[at]), y)

    def _at(self, point: QPointF) -> DeliveryMessage | None:
        sight, layout = self.sight(), self._layout
        if point.x() < sight.names:
            return None
        reach = _NEAR / self._step
        column = sight.column(point.x())
        near = layout.between(column - reach, column + reach)
        best, found = float(_NEAR), None
        for at in near:
            y = lane_y(layout.lane(at), current_theme())
            away = abs(sight.x(layout.columns[at]) - point.x()) + abs(y - point.y())
            if away < best:
                best, found = away, layout.messages[at]
        return found

    # --- keys -------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, page = event.key(), self.sight().shown * 0.8
        moves: dict[int, Callable[[], None]] = {
            Qt.Key.Key_Left: lambda: self._go(-1),
            Qt.Key.Key_Right: lambda: self._go(1),
            Qt.Key.Key_Up: lambda: self._go_lane(-1),
            Qt.Key.Key_Down: lambda: self._go_lane(1),
            Qt.Key.Key_Home: lambda: self._go_to(0),
            Qt.Key.Key_End: lambda: self._go_to(len(self._layout.messages) - 1),
            Qt.Key.Key_PageUp: lambda: self.pan(-page),
            Qt.Key.Key_PageDown: lambda: self.pan(page),
            Qt.Key.Key_Plus: lambda: self.zoom(_ZOOM),
            Qt.Key.Key_Equal: lambda: self.zoom(_ZOOM),
            Qt.Key.Key_Minus: lambda: self.zoom(1 / _ZOOM),
        }
        is_plain = not event.modifiers() & ~(
            Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier
        )
        if is_plain and key in moves:
            moves[key]()
        elif is_plain and key in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            if self.current is not None:
                self.chosen.emit(self.current)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._has_ring = event.reason() is not Qt.FocusReason.MouseFocusReason
        self.update()

    def _place(self) -> int | None:
        return None if self.current is None else self._layout.index.get(self.current)

    def _go(self, step: int) -> None:
        at = self._place()
        self._go_to(len(self._layout.messages) - 1 if at is None else at + step)

    def _go_to(self, at: int) -> None:
        if self._layout.messages:
            at = max(self._first_in_time(), min(at, len(self._layout.messages) - 1))
            self.choose(self._layout.messages[at].message_id)

    def _first_in_time(self) -> int:
        return self._layout.between(self._begin, self._layout.column_count).start

    def _go_lane(self, step: int) -> None:
        """To the nearest message of the next lane that has any in view, up or down."""
        at, layout, sight = self._place(), self._layout, self.sight()
        if at is None:
            self._go(0)
            return
        lane, column = layout.lane(at), layout.columns[at]
        seen = layout.between(sight.left, sight.left + sight.shown)
        beyond = [each for each in seen if (layout.lane(each) - lane) * step > 0]
        if beyond:
            nearest = min(
                beyond,
                key=lambda each: (
                    abs(layout.lane(each) - lane),
                    abs(layout.columns[each] - column),
                ),
            )
            self._go_to(nearest)

    def choose(self, message_id: MessageId) -> None:
        """The message that the keys are about; it comes into view."""
        self.current = message_id
        sight, column = self.sight(), self._layout.columns[self._layout.index[message_id]]
        if column < sight.left + 0.5:
            self.pan(column - sight.left - 1)
        elif column > sight.left + sight.shown - 1.5:
            self.pan(column - sight.left - sight.shown + 2)
        self._say()
        self.update()

    def _say(self) -> None:
        number = len(self._layout.messages)
        words = tr("Causal order of %n messages", "Causal order of %n message", number)
        message = self.message
        if message is not None:
            words = said(message, self._now())
        if words != self.accessibleName():
            self.setAccessibleName(words)
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.NameChanged))

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        shown = self._hovered or self.current
        draw_graph(painter, self._layout, self.sight(), theme, chosen=shown, images=self._images)
        if self.hasFocus() and self._has_ring:
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        if shown is not None and shown in self._layout.index:
            self._draw_about(painter, self._layout.messages[self._layout.index[shown]])

    def _draw_about(self, painter: QPainter, message: DeliveryMessage) -> None:
        """A small card beside the bead: whose, how it stands, who holds it."""
        theme, at = current_theme(), self.place_of(message.message_id)
        if not self._names_width() <= at.x() <= self.width():
            return
        lines = lines_about(message, self._now())
        fonts = [theme.type.small.strong(), *[theme.type.small.font] * (len(lines) - 1)]
        metrics = [QFontMetricsF(font) for font in fonts]
        width = max(m.horizontalAdvance(line) for m, line in zip(metrics, lines, strict=True)) + 24
        height = sum(m.height() + 2 for m in metrics) + 14
        x = at.x() + 18 if at.x() + 18 + width < self.width() else at.x() - 18 - width
        y = max(4.0, min(at.y() - height - 6, self.height() - height - 4))
        painter.setPen(QPen(theme.line2, 1))
        painter.setBrush(theme.surface)
        painter.drawRoundedRect(QRectF(x, y, width, height), 9, 9)
        y += 7
        for line, font, metric in zip(lines, fonts, metrics, strict=True):
            painter.setFont(font)
            painter.setPen(theme.ink if line is lines[0] else theme.ink2)
            painter.drawText(QPointF(x + 12, y + metric.ascent()), line)
            y += metric.height() + 2
