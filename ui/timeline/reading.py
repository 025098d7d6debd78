"""Tracks what has been read: the read marker, the unread below, the late ones that wait.

``ReadTracker`` asks what is wholly in view and whether anybody looks; ``ReadState`` keeps count.
The marker only moves forward; rows that wait for earlier ones do not move it, because their place
is not certain yet.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from engine.core.ids import MessageId, Position
from engine.events import ConversationView, MessageView
from ui.timeline.canvas import TimelineCanvas
from ui.timeline.loaded import LoadedMessages, Placement
from ui.timeline.rows import RowKey, is_system, message_key, message_of
from ui.timeline.scene import Scene

_MAX_LATE = 1000
_FEW_LATE = 20
_READ_AFTER_MS = 150
_JUST_BEFORE_MS = 120_000
"""Whoever sent it so shortly before one came may as well have sent it since, by another clock."""
RING_MS = 6000
"""How long a message that arrived late keeps its ring once somebody sees it."""


class _Unread:
    """Messages by id, and their positions in order: none is looked at again as others come."""

    def __init__(self) -> None:
        self._positions: dict[MessageId, Position] = {}
        self._in_order: list[Position] = []

    def __len__(self) -> int:
        return len(self._positions)

    def first(self) -> MessageId | None:
        return self._in_order[0].message_id if self._in_order else None

    def add(self, position: Position) -> None:
        self.discard(position.message_id)  # It may have found another place.
        self._positions[position.message_id] = position
        insort(self._in_order, position)

    def discard(self, message_id: MessageId) -> bool:
        """Whether it was there."""
        position = self._positions.pop(message_id, None)
        if position is None:
            return False
        del self._in_order[bisect_left(self._in_order, position)]
        return True

    def drop_before(self, first: Position) -> None:
        end = bisect_left(self._in_order, first)
        for position in self._in_order[:end]:
            del self._positions[position.message_id]
        del self._in_order[:end]

    def clear(self) -> None:
        self._positions.clear()
        self._in_order.clear()


class ReadState:
    """Counts, without a widget or a clock."""

    def __init__(self) -> None:
        self._seen_up_to: Position | None = None
        self._late: OrderedDict[MessageId, Position] = OrderedDict()
        self._late_uncounted = 0
        """More than can be kept one by one: known by number and by the first of them."""
        self._late_first: Position | None = None
        self._unread = _Unread()
        self._unread_elsewhere = 0
        """Unread when the conversation was opened and not loaded since: known by number only."""

    def open(self, conversation: ConversationView) -> None:
        self._seen_up_to = None
        self.dismiss_late()
        self._unread.clear()
        self._unread_elsewhere = max(0, conversation.unread)

    @property
    def unread(self) -> int:
        return len(self._unread) + self._unread_elsewhere

    @property
    def late(self) -> int:
        return len(self._late) + self._late_uncounted

    def first_late(self) -> Position | None:
        kept = min(self._late.values(), default=None)
        if self._late_first is None or kept is None:
            return self._late_first or kept
        return min(kept, self._late_first)

    def followed_late(self) -> None:
        """Somebody was led to the first: few are seen one by one, of many that was the news."""
        if self.late > _FEW_LATE:
            self.dismiss_late()

    def dismiss_late(self) -> None:
        self._late.clear()
        self._late_uncounted, self._late_first = 0, None

    def told(self, conversation: ConversationView) -> None:
        """The conversation's own count holds: the list shows it, too."""
        first = conversation.first_unread
        if not conversation.unread or first is None:
            self._unread.clear()
        else:
            self._unread.drop_before(first)
        self._unread_elsewhere = max(0, conversation.unread - len(self._unread))

    def caught_up(self) -> None:
        """The newest message is in view: nothing below can be unread."""
        self._unread.clear()
        self._unread_elsewhere = 0

    def arrived(self, message: MessageView) -> None:
        """Somebody else's message that is not known to have been seen."""
        if not is_system(message):
            self._unread.add(message.position)

    def arrived_late(self, message: MessageView) -> None:
        """Its place is above what one reads: it would go unnoticed there."""
        if len(self._late) < _MAX_LATE or message.message_id in self._late:
            self._late[message.message_id] = message.position
            return
        self._late_uncounted += 1
        if self._late_first is None or message.position < self._late_first:
            self._late_first = message.position

    def first_unread(self) -> MessageId | None:
        """The first in the conversation's order that arrived and was not seen yet."""
        return self._unread.first()

    def is_ahead(self, position: Position) -> bool:
        """Whether the marker is known not to have come here yet."""
        return self._seen_up_to is not None and position > self._seen_up_to

    def was_seen(self, position: Position) -> bool:
        return self._seen_up_to is not None and position <= self._seen_up_to

    def is_passed(self, position: Position) -> bool:
        """Whether the marker is already beyond this place."""
        return self._seen_up_to is not None and position < self._seen_up_to

    def removed(self, message_id: MessageId) -> None:
        self._late.pop(message_id, None)
        self._unread.discard(message_id)

    def seen(self, messages: Iterable[MessageView], loaded: LoadedMessages) -> Position | None:
        """These are wholly in view; returns the new marker if it moved."""
        newest, in_view = self._seen_up_to, list(messages)
        for message in in_view:
            if not message.waiting and (newest is None or message.position > newest):
                newest = message.position
        moved = newest is not None and newest != self._seen_up_to
        if newest is not None and moved:
            self._count_down(loaded, newest)
            self._seen_up_to = newest
        for message in in_view:
            self.removed(message.message_id)
        return newest if moved else None

    def _count_down(self, loaded: LoadedMessages, newest: Position) -> None:
        """Rows that the marker passed are read, whether they were looked at or jumped over."""
        first = self._seen_up_to or loaded.first_unread
        if first is None:
            return
        begin, end = loaded.index_at_or_after(first), loaded.index_at_or_after(newest)
        for message in loaded.messages[begin : end + 1]:
            fresh = message.position > first or self._seen_up_to is None
            if self._unread.discard(message.message_id):
                continue
            if fresh and not message.is_own and not is_system(message):
                self._unread_elsewhere = max(0, self._unread_elsewhere - 1)


class ReadTracker(QObject):
    """Watches what is in view of somebody, and keeps ``state``."""

    marker_moved = Signal(Position)
    """Everything up to here was in view in an active window."""

    def __init__(
        self, area: QWidget, scene: Scene, canvas: TimelineCanvas, state: ReadState
    ) -> None:
        super().__init__(canvas)
        self._area = area
        self._scene = scene
        self._canvas = canvas
        self.state = state
        self._rings_seen: set[RowKey] = set()
        self._line_is_passed = False
        """Everything was read since the unread line was drawn."""
        self._opened_ms = scene.now_ms()
        self._read_timer = self._timer(self.note_seen)
        self._ring_timer = self._timer(self.end_rings)
        canvas.rows_placed.connect(self._look_soon)
        canvas.late_chip.dismissed.connect(self._dismiss_late)

    def _timer(self, fire: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(fire)
        return timer

    def clear(self) -> None:
        self._rings_seen.clear()

    def open(self, conversation: ConversationView) -> None:
        self.state.open(conversation)
        self._line_is_passed = False
        self._opened_ms = self._scene.now_ms()

    # looking ------------------------------------------------------------------------------------

    def is_watched(self) -> bool:
        """Whether somebody can be looking: visible, in an active window that is not minimised."""
        window = self._area.window()
        return self._area.isVisible() and window.isActiveWindow() and not window.isMinimized()

    def _look_soon(self) -> None:
        if not self._read_timer.isActive():
            self._read_timer.start(_READ_AFTER_MS)

    def look_again(self) -> None:
        """The window became active: what is in view is read in a moment."""
        self._read_timer.start(_READ_AFTER_MS)

    def note_seen(self) -> None:
        """Take what is in view as read; called by a timer a moment after it came into view."""
        if not self.is_watched():
            return
        limit = self._scene.height + 1
        whole = [
            message
            for p in self._scene.placed
            if p.bottom <= limit and (message := message_of(p.row)) is not None
        ]
        late = {message_key(m.message_id) for m in whole if m.late}
        self._rings_seen |= late - self._scene.late_seen
        if self._rings_seen and not self._ring_timer.isActive():
            self._ring_timer.start(RING_MS)
        state = self.state
        before = state.late, state.unread
        marker = state.seen(whole, self._scene.loaded)
        if self._scene.layout.sticks:
            state.caught_up()
        if before != (state.late, state.unread):
            self._canvas.place_buttons()
        if marker is not None:
            self.marker_moved.emit(marker)

    def end_rings(self) -> None:
        """What was ringed as late has been looked at for a while."""
        self._scene.late_seen |= self._rings_seen
        self._rings_seen.clear()
        self._canvas.repaint()

    def _dismiss_late(self) -> None:
        self.state.dismiss_late()
        self._canvas.refresh()

    # arrivals -----------------------------------------------------------------------------------

    def told(self, conversation: ConversationView) -> bool:
        """Count as the conversation counts, and move the line there; True if it moved.

        Nobody is looking: it moves to where one will read on.  While somebody reads, it stays where
        it is until everything was read; then the next line is for what comes in below unseen.  What
        was sent while one was away has its line although it comes in before one's eyes.
        """
        before = self.state.unread
        self.state.told(conversation)
        if self.state.unread != before:
            self._canvas.place_buttons()
        if not conversation.unread:
            self._line_is_passed = True
        loaded, first = self._scene.loaded, conversation.first_unread
        if not conversation.unread or first is None or first == loaded.first_unread:
            return False
        if self.state.was_seen(first):
            return False  # told before it was known to have been read
        if self.is_watched():
            is_drawn = loaded.first_unread is not None and not self._line_is_passed
            follows = self._scene.layout.sticks and not self._begins_what_was_missed(first)
            if is_drawn or follows:
                return False
        loaded.set_first_unread(first)
        self._line_is_passed = False
        return True

    def _begins_what_was_missed(self, first: Position) -> bool:
        """Sent before one came here, where no line tells yet what is new since."""
        loaded = self._scene.loaded
        message = loaded.get(first.message_id)
        if message is None or loaded.first_unread is not None:
            return False
        return message.sent_ms < self._opened_ms - _JUST_BEFORE_MS

    def count(self, message: MessageView, placement: Placement) -> None:
        """Count a message that arrived: unread, or late if it stands above what one reads."""
        key = message_key(message.message_id)
        index, placed = self._scene.loaded.row_index(key), self._scene.placed
        in_view = index is not None and self._scene.rect(key) is not None
        above = index is not None and bool(placed) and index < placed[0].index
        if placement is Placement.APPENDED or self.state.is_ahead(message.position):
            above = False  # It was never passed, however far the view has come by now.
        passed = self.state.is_passed(message.position) and not message.waiting
        if not in_view and (placement is Placement.BEYOND_OLDER or above or passed):
            self.state.arrived_late(message)
        else:
            self.state.arrived(message)
