"""Layout, scrolling and painting of the timeline inside a scroll area.

There is no content height anywhere: scrolling moves the layout's anchor, and the scrollbar shows
ordinals.  The canvas draws the scene and the two buttons that float above it.  It reads no input
and fetches no pages; its signals say when rows were placed or scrolled.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace
from PySide6.QtCore import QObject, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QRegion
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from engine.core.ids import MessageId
from ui.mirrored import mirror_widget
from ui.motion import Movement
from ui.pictures import FACES
from ui.theme import theme_changed
from ui.timeline.boxes import LineBox
from ui.timeline.floating import JumpButton, LateChip
from ui.timeline.geometry import NARROW_WINDOW
from ui.timeline.layout import Shift, shift_between
from ui.timeline.paint import RowPainter, RowState
from ui.timeline.rows import (
    DayRow,
    EarlierRow,
    GapRow,
    RowKey,
    local_day,
    message_key,
    message_of,
    row_key,
)
from ui.timeline.scene import KeptSender, Scene

SCROLL_UNITS = 64
"""Scrollbar units per row."""
_OVERHANG = 4
"""Pixels that a row may paint beyond its edges."""
_DIRECTLY = Qt.FindChildOption.FindDirectChildrenOnly
_BAND_MS = 1200
_DAY_PILL_MS = 1500
JUMP_SHARE = 0.3
"""Where in the viewport a message is put that one jumps to."""


class UnreadCounts(Protocol):
    """What the floating buttons count."""

    @property
    def late(self) -> int: ...

    @property
    def unread(self) -> int: ...


class TimelineCanvas(QObject):
    """Draws ``scene`` into ``area``."""

    rows_placed = Signal()
    """Rows may have come into view."""
    scrolled = Signal()
    scrolled_past_beginning = Signal()
    """The beginning was in view already, and the user scrolled on."""

    def __init__(self, area: QAbstractScrollArea, scene: Scene, counts: UnreadCounts) -> None:
        super().__init__(area)
        self._area = area
        self._scene = scene
        self._counts = counts
        self.late_chip = LateChip(area)
        self.jump_button = JumpButton(area)
        self._band_key: RowKey | None = None
        self._found_key: RowKey | None = None
        self._band_timer = self._timer(self._fade_band, single=True)
        self._band_fade = Movement(self)
        self._band_fade.changed.connect(self._band_faded)
        self._day_pill_timer = self._timer(self.repaint, single=True)
        self._countdown = self._timer(self.refresh, single=False)
        theme_changed.connect(self.fit)
        FACES.changed.connect(self.repaint)
        for pictures in scene.shown_pictures:
            pictures.changed.connect(self._picture_came)

    def _timer(self, fire: Callable[[], None], *, single: bool) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(single)
        timer.timeout.connect(fire)
        return timer

    # layout -------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Take over a new size or theme."""
        viewport = self._area.viewport()
        narrow = self._area.window().width() < NARROW_WINDOW
        mirrored = self._area.isRightToLeft()
        self._scene.fit(viewport.width(), viewport.height(), narrow=narrow, mirrored=mirrored)
        self.refresh()

    def refresh(self) -> None:
        """Lay the rows out anew after any change, and paint."""
        self._cover()
        self._scene.place()
        self.repaint()
        self._place_around()

    def follow(self) -> None:
        """As ``refresh`` where rows only moved, or came: what is painted of them is moved, too."""
        before = self._scene.placed
        after = self._scene.place()
        shift = shift_between(before, after)
        if shift is not None and self._has_whole_pixels():
            self._move_picture(shift)
        else:
            self.repaint()
        self._place_around()

    def _has_whole_pixels(self) -> bool:
        """At other scales the edge of a part lies within a pixel, and would show."""
        return self._area.devicePixelRatioF().is_integer()

    def _cover(self) -> None:
        """In a narrow window the chip is a bar over the top."""
        covers = self._scene.geometry.narrow and self._counts.late > 0
        self._scene.layout.covered = self.late_chip.sizeHint().height() if covers else 0.0

    def _place_around(self) -> None:
        self._sync_scrollbar()
        self.place_buttons()
        self._run_countdown()
        self.rows_placed.emit()

    def _move_picture(self, shift: Shift) -> None:
        """Only what comes into view is painted, and what stands still at the top.

        Qt moves nothing under a floating button, so the picture is moved between them.
        """
        viewport, down = self._area.viewport(), shift.down
        whole, above = viewport.rect(), viewport.y()
        moved = QRect(whole)
        if down:
            if self.late_chip.isVisible():
                moved.setTop(self.late_chip.geometry().bottom() + 1 - above)
            if self.jump_button.isVisible():
                moved.setBottom(self.jump_button.geometry().top() - 1 - above)
            viewport.scroll(0, down, moved)
        head = max(self._head_height() + max(down, 0), int(shift.top) + _OVERHANG)
        self._paint_between(0, max(head, moved.top()))
        self._paint_between(min(int(shift.bottom) - _OVERHANG, moved.bottom() + 1), whole.bottom())
        for child in viewport.findChildren(QWidget, options=_DIRECTLY):
            if child.isVisible():
                place = child.geometry()
                self._paint_between(place.top() + min(down, 0), place.bottom() + max(down, 0))

    def _head_height(self) -> int:
        """Down to here the sender's picture and name, and the pill with the day, may stand."""
        scene = self._scene
        tallest = max(scene.geometry.avatar, scene.theme.metrics.scaled(40))
        return int(scene.layout.covered + scene.theme.metrics.gap(8) + tallest) + 2 * _OVERHANG

    def _paint_between(self, top: int, bottom: int) -> None:
        if top <= bottom:
            viewport = self._area.viewport()
            viewport.update(0, top, viewport.width(), bottom - top + 1)

    def _picture_came(self) -> None:
        """A picture that cannot be decoded takes another shape."""
        self._scene.forget_boxes()
        self.refresh()

    def repaint(self) -> None:
        self._area.viewport().update()

    def repaint_rows(self, *keys: RowKey) -> None:
        """Paint these rows only, as far as they are in view."""
        if not self._has_whole_pixels():
            self.repaint()
            return
        for placed in self._scene.placed:
            if row_key(placed.row) in keys:
                top, bottom = int(placed.y) - _OVERHANG, int(placed.bottom) + _OVERHANG
                self._paint_between(top, bottom)

    def place_buttons(self) -> None:
        """Put the floating buttons in their corners, with the present counts."""
        geometry, metrics = self._scene.geometry, self._scene.theme.metrics
        chip, jump, area = self.late_chip, self.jump_button, self._area.viewport().geometry()
        chip.show_count(self._counts.late, narrow=geometry.narrow)
        if geometry.narrow:
            chip.setGeometry(area.x(), area.y(), area.width(), chip.sizeHint().height())
        else:
            top = area.y() + metrics.gap(12) - 3
            chip.move(area.x() + self._at_end(chip), top)
        jump.show_unread(self._counts.unread)
        jump.setVisible(bool(self._scene.placed) and not self._scene.layout.sticks)
        below = area.bottom() - jump.height() - metrics.gap(12) + 4
        jump.move(area.x() + self._at_end(jump), below)

    def _at_end(self, button: QWidget) -> int:
        geometry = self._scene.geometry
        left = int(geometry.right) - button.width() + 3
        return int(geometry.seen(QRectF(left, 0, button.width(), 0)).left())

    def _run_countdown(self) -> None:
        """A gap marker counts down to the next request while one sees it."""
        counting = any(
            isinstance(p.row, GapRow) and p.row.gap.next_request_ms is not None
            for p in self._scene.placed
        )
        if counting and not self._countdown.isActive():
            self._countdown.start(1000)
        elif not counting:
            self._countdown.stop()

    # scrolling ----------------------------------------------------------------------------------

    def scroll_by(self, down: float) -> None:
        """Move the content down by this many pixels; negative shows what is newer."""
        was_at_beginning = down > 0 and self._beginning_is_in_view()
        self._scene.layout.scroll(down)
        self._day_pill_timer.start(_DAY_PILL_MS)
        self._cover()
        self.follow()
        self.scrolled.emit()
        if was_at_beginning and not self._scene.layout.sticks:
            self.scrolled_past_beginning.emit()

    def _beginning_is_in_view(self) -> bool:
        placed = self._scene.placed
        return bool(placed) and isinstance(placed[0].row, EarlierRow) and placed[0].y >= 0

    def compensate_move(self, down: float) -> None:
        """The area itself was moved: the rows stay where they are on the screen."""
        if self._area.isVisible() and down and not self._scene.layout.sticks:
            self._scene.layout.scroll(-down)

    def show_message(
        self, message_id: MessageId, *, share: float = JUMP_SHARE, band: bool = True
    ) -> None:
        """Bring a loaded message to ``share`` of the viewport's height."""
        self._scene.layout.anchor_at(message_id, self._scene.height * share)
        if band:
            self.mark(message_id)
        self.refresh()

    def mark(self, message_id: MessageId) -> None:
        """Put a band behind a message for a moment."""
        self._band_key = message_key(message_id)
        self._band_fade.rest()
        self._band_timer.start(_BAND_MS)

    def keep_marked(self, message_id: MessageId | None) -> None:
        """Put a band behind a message that was found; None: behind none any more."""
        self._found_key = None if message_id is None else message_key(message_id)
        self.repaint()

    def mark_found(self, query: str) -> None:
        """The words of a search, wherever they are in view; "" ends it."""
        self._scene.found.ask(query)
        self.repaint()

    def _fade_band(self) -> None:
        self._band_fade.vanish()

    def _band_faded(self) -> None:
        if self._band_fade.value <= 0:
            self._band_key = None
        self.repaint()

    def reveal(self, key: RowKey) -> None:
        """Scroll as little as possible so that a loaded row is wholly in view."""
        scene = self._scene
        scene.place()
        index, placed = scene.loaded.row_index(key), scene.placed
        if index is None or not placed:
            return
        rows, margin = scene.loaded.rows, 8.0
        if index < placed[0].index:
            above = sum(scene.box(row).height for row in rows[index : placed[0].index])
            self.scroll_by(above - placed[0].y + margin)
            return
        if index > placed[-1].index:
            below = sum(scene.box(row).height for row in rows[placed[-1].index + 1 : index + 1])
            self.scroll_by(scene.height - placed[-1].bottom - below - margin)
            return
        row = next(p for p in placed if p.index == index)
        if row.y < 0:
            self.scroll_by(-row.y + margin)
        elif row.bottom > scene.height - margin:
            room = max(scene.height - margin - row.bottom, -row.y + margin - row.height)
            self.scroll_by(min(0.0, room) if row.height < scene.height else 0.0)

    def show_day_pill(self) -> None:
        """Name the day of what is in view for a moment."""
        self._day_pill_timer.start(_DAY_PILL_MS)

    def _sync_scrollbar(self) -> None:
        bar, loaded = self._area.verticalScrollBar(), self._scene.loaded
        if bar.isSliderDown():
            return
        top, end = self._scene.shown_ordinals()
        total = max(loaded.total, len(loaded))
        page = max(1, int((end - top) * SCROLL_UNITS))
        most = max(0, total * SCROLL_UNITS - page)
        if not loaded.has_older and not loaded.has_newer and self._all_in_view():
            most = 0
        bar.setRange(0, most)
        bar.setPageStep(page)
        bar.setSingleStep(SCROLL_UNITS)
        at_end = self._scene.layout.sticks
        bar.setValue(most if at_end else min(int(top * SCROLL_UNITS), max(0, most - 1)))

    def _all_in_view(self) -> bool:
        placed = self._scene.placed
        return not placed or (
            placed[0].y >= 0
            and placed[0].index == 0
            and placed[-1].index == len(self._scene.loaded.rows) - 1
        )

    # painting -----------------------------------------------------------------------------------

    def paint(self, region: QRegion) -> None:
        """Paint what ``region``, in the viewport's coordinates, touches."""
        scene = self._scene
        painter = QPainter(self._area.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self._area.viewport())
        rows = RowPainter(painter, scene.theme, scene.geometry, scene.faces, scene.shown_pictures)
        starts_here = bool(scene.placed) and scene.placed[0].index == 0
        begin = scene.placed[0].y if starts_here and not scene.loaded.has_older else 0.0
        rows.background(scene.height, begin if scene.placed else scene.height)
        chosen = scene.selection.ranges(scene.loaded.messages)
        kept, across = scene.kept_sender(), self._area.viewport().width()
        for placed in scene.placed:
            top, height = int(placed.y) - _OVERHANG, int(placed.height) + 2 * _OVERHANG + 1
            if region.intersects(QRect(0, top, across, height)):
                message = message_of(placed.row)
                key = row_key(placed.row)
                state = self._row_state(key, kept)
                if message is not None:
                    state = replace(
                        state,
                        selected=chosen.get(message.message_id),
                        found=scene.found.within(message),
                    )
                rows.row(placed.row, scene.box(placed.row), placed.y, state)
        if kept is not None:
            rows.avatar(kept.message, float(round(kept.y)))
            rows.name(kept, scene.layout.covered)
        ring = None if scene.focus_key is None else scene.place_of(scene.focus_key)
        if ring is not None and self._area.hasFocus():
            rows.focus(scene.row(scene.focus_key), ring)
        self._paint_day_pill(rows)
        painter.end()

    def _row_state(self, key: RowKey, kept: KeptSender | None) -> RowState:
        is_kept = kept is not None and kept.first == key
        hover = self._scene.hover
        if hover is None or hover.key != key:
            hover = None
        return RowState(
            hovered=None if hover is None else hover.button,
            hovered_code=None if hover is None else hover.code,
            chip="" if hover is None else hover.chip,
            quote=hover is not None and hover.over_quote,
            band=self._band_of(key),
            ringed=key not in self._scene.late_seen,
            has_picture=not is_kept,
            has_name=kept is None or not is_kept or kept.strip.isEmpty(),
        )

    def _band_of(self, key: RowKey) -> float:
        if key == self._found_key:
            return 1.0
        return self._band_fade.value if key == self._band_key else 0.0

    def _paint_day_pill(self, rows: RowPainter) -> None:
        """While scrolling: the day of the topmost message, unless its own pill is near."""
        scene = self._scene
        if not self._day_pill_timer.isActive() or not scene.placed:
            return
        near = scene.theme.metrics.scaled(60)
        if any(isinstance(p.row, DayRow) and p.y < near for p in scene.placed):
            return
        message = next((m for p in scene.placed if (m := message_of(p.row)) is not None), None)
        if message is None:
            return
        box = scene.box(DayRow(day=local_day(message.sent_ms), before=message.message_id))
        if isinstance(box, LineBox):
            rows.pill(box.rect.translated(0, 4 + scene.layout.covered), box.words)
