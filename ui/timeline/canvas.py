"""The scrolling half of the timeline: it paints the scene, scrolls it and feels the mouse over it.

There is no content height anywhere: wheel, keys and scrollbar move the anchor, and the scrollbar
shows ordinals.  What the rows mean, where pages come from and what a click asks for is the business
of ``view``, which builds on this class.
"""

import time
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QCursor, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QAbstractSlider, QApplication, QFrame, QWidget

from engine.core.ids import MessageId, UnixMs
from ui.pictures import FACES
from ui.theme import theme_changed
from ui.timeline.boxes import LineBox
from ui.timeline.floating import JumpButton, LateChip
from ui.timeline.geometry import NARROW_WINDOW
from ui.timeline.paint import Look, RowPainter
from ui.timeline.pointer import Pointer
from ui.timeline.rows import DayRow, GapRow, RowKey, local_day, message_key, message_of, row_key
from ui.timeline.scene import Scene
from ui.timeline.selection import Selection

_UNITS = 64
"""Scrollbar units per row."""
_WHEEL_NOTCH = 120
_LINE = 20
_BAND_MS = 1200
_PILL_MS = 1500
_SELECT_SCROLL_MS = 30


def wall_clock_ms() -> UnixMs:
    return UnixMs(int(time.time() * 1000))


class TimelineCanvas(QAbstractScrollArea):
    def __init__(self, *, now_ms: Callable[[], UnixMs], parent: QWidget | None) -> None:
        super().__init__(parent)
        self.scene = Scene(now_ms)
        self.selection = Selection()
        self.pointer = Pointer(self.scene, self.selection)
        self.focus_key: RowKey | None = None
        self._band_key: RowKey | None = None
        self.ring_over: set[RowKey] = set()
        """Messages that arrived late and were looked at since."""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.late_chip = LateChip(self)
        self.jump_button = JumpButton(self)
        self._band_over = self._timer(self._end_band, single=True)
        self._pill_over = self._timer(self.viewport().update, single=True)
        self._tick = self._timer(self.refresh, single=False)
        self._drag_scroll = self._timer(self._scroll_while_selecting, single=False)
        self._drag_point = QPointF()
        self.verticalScrollBar().actionTriggered.connect(self._on_scrollbar)
        theme_changed.connect(self._restyle)
        FACES.changed.connect(self.viewport().update)

    def _timer(self, fire: Callable[[], None], *, single: bool) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(single)
        timer.timeout.connect(fire)
        return timer

    # placing --------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Place the rows anew after any change, and paint."""
        covers = self.scene.geometry.narrow and self._late_count() > 0
        self.scene.placing.covered = self.late_chip.sizeHint().height() if covers else 0.0
        self.scene.place()
        self._sync_scrollbar()
        self._place_floating()
        self._run_clock()
        self.viewport().update()
        self._rows_shown()

    def _rows_shown(self) -> None:
        """For ``view``: rows may have come into view."""

    def _restyle(self) -> None:
        self._fit()
        self.refresh()

    def _fit(self) -> None:
        viewport = self.viewport()
        narrow = self.window().width() < NARROW_WINDOW
        self.scene.fit(viewport.width(), viewport.height(), narrow=narrow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        self.refresh()

    def _place_floating(self) -> None:
        geometry, metrics = self.scene.geometry, self.scene.theme.metrics
        chip, jump, area = self.late_chip, self.jump_button, self.viewport().geometry()
        chip.show_count(self._late_count(), narrow=geometry.narrow)
        if geometry.narrow:
            chip.setGeometry(area.x(), area.y(), area.width(), chip.sizeHint().height())
        else:
            top = area.y() + metrics.gap(12) - 3
            chip.move(area.x() + int(geometry.right) - chip.width() + 3, top)
        jump.setVisible(bool(self.scene.placed) and not self.scene.placing.sticks)
        below = area.bottom() - jump.height() - metrics.gap(12) + 4
        jump.move(area.x() + int(geometry.right) - jump.width() + 3, below)

    def _late_count(self) -> int:
        return 0

    def _run_clock(self) -> None:
        """The gap marker counts down while one sees it."""
        counting = any(
            isinstance(p.row, GapRow) and p.row.gap.next_request_ms is not None
            for p in self.scene.placed
        )
        if counting and not self._tick.isActive():
            self._tick.start(1000)
        elif not counting:
            self._tick.stop()

    # scrolling ------------------------------------------------------------------------------------

    def scroll_by(self, down: float) -> None:
        """Move the content down by this many pixels; negative shows what is newer."""
        self.scene.placing.scroll(down)
        self._pill_over.start(_PILL_MS)
        self.refresh()
        if self.viewport().underMouse() and not self.pointer.selecting:
            self.pointer.moved(
                self.viewport().mapFromGlobal(QCursor.pos()).toPointF(), pressed=False
            )
            self.viewport().setCursor(self.pointer.cursor())

    def show_message(self, message_id: MessageId, *, share: float = 0.3, band: bool = True) -> None:
        """Bring a loaded message to ``share`` of the viewport's height."""
        self.scene.placing.anchor_at(message_id, self.scene.height * share)
        if band:
            self._band_key = message_key(message_id)
            self._band_over.start(_BAND_MS)
        self.refresh()

    def _end_band(self) -> None:
        self._band_key = None
        self.viewport().update()

    def reveal(self, key: RowKey) -> None:
        """Scroll as little as possible so that a loaded row is wholly in view."""
        self.scene.place()
        index = self.scene.loaded.row_index(key)
        placed = self.scene.placed
        if index is None or not placed:
            return
        rows, margin = self.scene.loaded.rows, 8.0
        if index < placed[0].index:
            above = sum(self.scene.box(row).height for row in rows[index : placed[0].index])
            self.scroll_by(above - placed[0].y + margin)
            return
        if index > placed[-1].index:
            below = sum(
                self.scene.box(row).height for row in rows[placed[-1].index + 1 : index + 1]
            )
            self.scroll_by(self.scene.height - placed[-1].bottom - below - margin)
            return
        row = next(p for p in placed if p.index == index)
        if row.y < 0:
            self.scroll_by(-row.y + margin)
        elif row.bottom > self.scene.height - margin:
            room = max(self.scene.height - margin - row.bottom, -row.y + margin - row.height)
            self.scroll_by(min(0.0, room) if row.height < self.scene.height else 0.0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # The window changes the text size with it.
            return
        down = float(event.pixelDelta().y())
        if not down:
            lines = event.angleDelta().y() / _WHEEL_NOTCH * QApplication.wheelScrollLines()
            down = lines * _LINE * self.scene.theme.metrics.factor
        if down:
            self.scroll_by(down)
        event.accept()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """The scrollbar follows the rows, not the other way round: see ``_on_scrollbar``."""

    def _sync_scrollbar(self) -> None:
        bar = self.verticalScrollBar()
        if bar.isSliderDown():
            return
        top, end = self.scene.shown_ordinals()
        total = max(self.scene.loaded.total, len(self.scene.loaded))
        page = max(1, int((end - top) * _UNITS))
        most = max(0, total * _UNITS - page)
        everything = not self.scene.loaded.has_older and not self.scene.loaded.has_newer
        if everything and self._all_in_view():
            most = 0
        bar.setRange(0, most)
        bar.setPageStep(page)
        bar.setSingleStep(_UNITS)
        at_end = self.scene.placing.sticks
        bar.setValue(most if at_end else min(int(top * _UNITS), max(0, most - 1)))

    def _all_in_view(self) -> bool:
        placed = self.scene.placed
        return not placed or (
            placed[0].y >= 0
            and placed[0].index == 0
            and placed[-1].index == len(self.scene.loaded.rows) - 1
        )

    def _on_scrollbar(self, action: int) -> None:
        bar, kind = self.verticalScrollBar(), QAbstractSlider.SliderAction
        page = self.scene.height * 0.9
        match kind(action):
            case kind.SliderSingleStepAdd:
                self.scroll_by(-3 * _LINE)
            case kind.SliderSingleStepSub:
                self.scroll_by(3 * _LINE)
            case kind.SliderPageStepAdd:
                self.scroll_by(-page)
            case kind.SliderPageStepSub:
                self.scroll_by(page)
            case kind.SliderToMinimum:
                self.go_to_beginning()
            case kind.SliderToMaximum:
                self.go_to_newest()
            case kind.SliderMove:
                self._pill_over.start(_PILL_MS)
                if bar.sliderPosition() >= bar.maximum():
                    self.go_to_newest()
                else:
                    self.go_to_ordinal(bar.sliderPosition() / _UNITS)
                return
            case _:
                return
        bar.setSliderPosition(bar.value())

    def go_to_beginning(self) -> None:
        """For ``view``: pages may be needed."""

    def go_to_newest(self) -> None: ...

    def go_to_ordinal(self, ordinal: float) -> None: ...

    # painting -------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        scene, geometry = self.scene, self.scene.geometry
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rows = RowPainter(painter, scene.theme, geometry, scene.faces)
        starts_here = bool(scene.placed) and scene.placed[0].index == 0
        begin = scene.placed[0].y if starts_here and not scene.loaded.has_older else 0.0
        rows.background(scene.height, begin if scene.placed else scene.height)
        chosen = self.selection.ranges(scene.loaded.messages)
        clip = QRectF(event.rect())
        for placed in scene.placed:
            if placed.bottom >= clip.top() - 4 and placed.y <= clip.bottom() + 4:
                key = row_key(placed.row)
                message = message_of(placed.row)
                selected = None if message is None else chosen.get(message.message_id)
                rows.row(placed.row, scene.box(placed.row), placed.y, self._look(key, selected))
        ring = None if self.focus_key is None else scene.rect(self.focus_key)
        if ring is not None and self.hasFocus():
            rows.focus(ring)
        self._paint_day(rows)
        painter.end()

    def _look(self, key: RowKey, selected: tuple[int, int] | None) -> Look:
        hover = self.pointer.hover
        return Look(
            selected=selected,
            hovered=hover.part if hover is not None and hover.key == key else None,
            band=1.0 if key == self._band_key else 0.0,
            ringed=key not in self.ring_over,
        )

    def _paint_day(self, rows: RowPainter) -> None:
        """While scrolling: the day of the topmost message, unless its own pill is near."""
        if not self._pill_over.isActive() or not self.scene.placed:
            return
        near = self.scene.theme.metrics.scaled(60)
        if any(isinstance(p.row, DayRow) and p.y < near for p in self.scene.placed):
            return
        message = next((m for p in self.scene.placed if (m := message_of(p.row)) is not None), None)
        if message is None:
            return
        box = self.scene.box(DayRow(day=local_day(message.sent_ms), before=message.message_id))
        if isinstance(box, LineBox):
            rows.pill(box.rect.translated(0, 4 + self.scene.placing.covered), box.words)

    # mouse ----------------------------------------------------------------------------------------

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Leave and self.pointer.left():
            self._hover_changed()
        return super().viewportEvent(event)

    def _hover_changed(self) -> None:
        self.viewport().setCursor(self.pointer.cursor())
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.pointer.pressed(event.position(), extend=shift)
            self.focus_key = None
            self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        pressed = bool(event.buttons() & Qt.MouseButton.LeftButton)
        self._drag_point = event.position()
        if self.pointer.moved(event.position(), pressed=pressed):
            self._hover_changed()
        outside = not 0 <= event.position().y() <= self.scene.height
        if self.pointer.selecting and outside and not self._drag_scroll.isActive():
            self._drag_scroll.start(_SELECT_SCROLL_MS)

    def _scroll_while_selecting(self) -> None:
        y = self._drag_point.y()
        over = -y if y < 0 else min(0.0, self.scene.height - y)
        if not self.pointer.selecting or not over:
            self._drag_scroll.stop()
            return
        self.scroll_by(max(-80.0, min(80.0, over / 2)))
        self.pointer.moved(self._drag_point, pressed=True)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.pointer.double_clicked(event.position())
            self.viewport().update()
