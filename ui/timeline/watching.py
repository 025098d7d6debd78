"""What somebody has seen: the read marker, the ring of what came late, and the line of the unread.

The half of ``view`` that asks whether anybody is looking.  It reports what was seen and never
moves a row; what counts as seen is decided in ``reading``.
"""
# ruff: noqa: N815 - signals are spelt as Qt spells its own.

from collections.abc import Callable

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QWidget

from engine.core.ids import ParticipantId, Position, UnixMs
from engine.events import MessageView
from ui.timeline.interaction import TimelineInteraction
from ui.timeline.loaded import Placement
from ui.timeline.reading import Reading
from ui.timeline.rows import RowKey, message_key, message_of

_SEEN_AFTER_MS = 150
RING_MS = 6000
"""How long a message that arrived late is marked once somebody sees it."""


class TimelineWatching(TimelineInteraction):
    visibleUpTo = Signal(Position)
    """Everything up to here was on screen in an active window."""

    def __init__(
        self,
        *,
        names: Callable[[ParticipantId], str],
        now_ms: Callable[[], UnixMs],
        parent: QWidget | None,
    ) -> None:
        super().__init__(names=names, now_ms=now_ms, parent=parent)
        self._reading = Reading()
        self._seen_soon = self._timer(self.note_seen, single=True)
        self._ring_over_soon = self._timer(self.end_rings, single=True)
        self._rings_seen: set[RowKey] = set()
        self.late_chip.dismissed.connect(self._dismiss_late)

    def _look_soon(self) -> None:
        """Rows came into view: in a moment they were seen, if anybody looks."""
        if not self._seen_soon.isActive():
            self._seen_soon.start(_SEEN_AFTER_MS)

    def is_watched(self) -> bool:
        """Whether somebody can be looking: visible, in an active window that is not minimised."""
        window = self.window()
        return self.isVisible() and window.isActiveWindow() and not window.isMinimized()

    def note_seen(self) -> None:
        """Report what is in view; called by itself a moment after rows came into view."""
        if not self.is_watched():
            return
        limit = self.scene.height + 1
        whole = [
            message
            for p in self.scene.placed
            if p.bottom <= limit and (message := message_of(p.row)) is not None
        ]
        self._rings_seen |= {message_key(m.message_id) for m in whole if m.late} - self.ring_over
        if self._rings_seen and not self._ring_over_soon.isActive():
            self._ring_over_soon.start(RING_MS)
        before = self._reading.late, self._reading.unread
        marker = self._reading.seen(whole, self.scene.loaded)
        if self.scene.placing.sticks:
            self._reading.caught_up()
        if before != (self._reading.late, self._reading.unread):
            self._place_floating()
            self.jump_button.show_unread(self._reading.unread)
        if marker is not None:
            self.visibleUpTo.emit(marker)

    def end_rings(self) -> None:
        """What was marked as late has been looked at for a while."""
        self.ring_over |= self._rings_seen
        self._rings_seen.clear()
        self.viewport().update()

    def event(self, event: QEvent) -> bool:
        """Of its window becoming active only the window itself hears as a change."""
        if event.type() == QEvent.Type.WindowActivate:
            self._seen_soon.start(_SEEN_AFTER_MS)
        return super().event(event)

    def _draw_unread_line(self, message: MessageView) -> None:
        """Nobody is looking: the line goes where one will go on reading, if it was passed."""
        line, loaded = self.scene.loaded.first_unread, self.scene.loaded
        if self.is_watched() or message.waiting or self._reading.is_passed(message.position):
            return
        if line is None or self._reading.is_passed(line) or line == self._reading.seen_up_to:
            loaded.set_first_unread(message.position)

    def _notice(self, message: MessageView, placement: Placement) -> None:
        """Unread, or late if its place is above what one reads."""
        key = message_key(message.message_id)
        index, placed = self.scene.loaded.row_index(key), self.scene.placed
        in_view = self.scene.rect(key) is not None
        above = index is not None and bool(placed) and index < placed[0].index
        if placement is Placement.APPENDED or self._reading.is_ahead(message.position):
            above = False  # It was never passed, however far the view has come by now.
        passed = self._reading.is_passed(message.position) and not message.waiting
        if not in_view and (placement is Placement.BEYOND_OLDER or above or passed):
            self._reading.arrived_late(message)
        else:
            self._reading.arrived(message)

    def _late_count(self) -> int:
        return self._reading.late

    def _dismiss_late(self) -> None:
        self._reading.dismiss_late()
        self.refresh()
