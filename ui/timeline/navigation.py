"""Going to places in the conversation, and reading the pages that takes.

A place is the newest message, the beginning, an ordinal from the scrollbar, or a position.  What is
loaded is shown at once; for anything else a page is read first.  Pages ahead of what is in view are
read while one scrolls.
"""

from collections.abc import Callable
from datetime import date

from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from engine.answers import TimelinePage
from engine.core.ids import ConversationId, Position
from ui.timeline.canvas import JUMP_SHARE, TimelineCanvas
from ui.timeline.days import beginning_of
from ui.timeline.paging import Load, Pager, PageSource
from ui.timeline.rows import DayRow
from ui.timeline.scene import Scene

_ROWS_AHEAD = 50
"""Rows left on a side when the next page is read."""


class Anchor(Struct, frozen=True):
    """A position and how far below the viewport's top it stands, in pixels."""

    position: Position
    offset: float


class TimelineNavigation(QObject):
    page_shown = Signal()
    """A page was read; its messages are in the scene."""
    page_failed = Signal(str)
    """A page could not be read; the text is for the user."""

    def __init__(
        self, source: Callable[[], PageSource], scene: Scene, canvas: TimelineCanvas
    ) -> None:
        super().__init__(canvas)
        self._scene = scene
        self._canvas = canvas
        self._pager = Pager(source, applied=self._apply, failed=self.page_failed.emit)
        self._target: Position | Anchor | float | None = None
        self._marks = False
        """Whether the message at the target is marked for a moment once it is there."""
        canvas.rows_placed.connect(self._read_ahead)
        canvas.destroyed.connect(self._pager.close)

    @property
    def loading(self) -> bool:
        """Whether a page is being read."""
        return self._pager.busy

    async def days_with_messages(self, first: date, last: date) -> frozenset[date]:
        return await self._pager.days_with_messages(first, last)

    def open(self, conversation_id: ConversationId, at: Position | None) -> None:
        """Read the conversation around ``at``; None: its newest messages."""
        self._pager.open(conversation_id)
        self._target, self._marks = at, False
        if at is None:
            self._pager.latest()
        else:
            self._pager.around(at)

    def close(self) -> None:
        """Drop what is being read."""
        self._pager.close()
        self._target = None

    def reload(self) -> None:
        """Read what is in view again, without moving it."""
        anchor = self._scene.layout.anchor
        message = None if anchor is None else self._scene.loaded.get(anchor[0])
        if self._scene.layout.sticks or anchor is None or message is None or message.waiting:
            self._pager.latest()
        else:
            self._target = Anchor(message.position, anchor[1])
            self._pager.around(message.position)

    # places -------------------------------------------------------------------------------------

    def go_to_newest(self) -> None:
        if self._scene.loaded.has_newer or not len(self._scene.loaded):
            self._pager.latest()
        elif not self._scene.layout.sticks:
            self._scene.layout.stick()
            self._canvas.refresh()

    def go_to_beginning(self) -> None:
        loaded = self._scene.loaded
        if loaded.has_older:
            self._pager.first()
        elif loaded.messages:
            self._canvas.show_message(loaded.messages[0].message_id, share=1, band=False)

    def go_to_ordinal(self, ordinal: float) -> None:
        """Show the row with this number; a fraction is a part of the row's height."""
        loaded = self._scene.loaded
        if loaded.older_count <= ordinal < loaded.older_count + len(loaded):
            self._anchor_at_ordinal(ordinal)
            self._canvas.refresh()
        else:
            self._target = ordinal
            self._pager.seek(int(ordinal), loaded.total)

    def go_to(self, position: Position) -> None:
        """Show a message, wherever it is, and mark it for a moment."""
        loaded = self._scene.loaded
        index = loaded.index_at_or_after(position)
        if index < len(loaded) and loaded.messages[index].position == position:
            self._canvas.show_message(loaded.messages[index].message_id)
        else:
            self._target, self._marks = position, True
            self._pager.around(position)

    def go_to_day(self, day: date) -> None:
        position = beginning_of(day)
        scene, loaded = self._scene, self._scene.loaded
        pill = scene.box(DayRow(day=day, before=position.message_id))
        anchor = Anchor(position, scene.layout.covered + pill.height)
        index = loaded.index_at_or_after(position)
        begins = index > 0 or not loaded.has_older
        ends = index < len(loaded) or not loaded.has_newer
        self._target = anchor
        if loaded.messages and begins and ends:
            self._anchor_at(anchor.position, anchor.offset)
            self._canvas.refresh()
        else:
            self._pager.around(position)

    # pages --------------------------------------------------------------------------------------

    def _read_ahead(self) -> None:
        loaded, placed = self._scene.loaded, self._scene.placed
        if not placed:
            return
        first = self._scene.message_index(placed[0])
        last = self._scene.message_index(placed[-1])
        oldest, newest = loaded.first_placed, loaded.last_placed
        if loaded.has_older and oldest is not None and first < _ROWS_AHEAD:
            self._pager.older_than(oldest.position)
        elif loaded.has_newer and newest is not None and len(loaded) - last <= _ROWS_AHEAD:
            self._pager.newer_than(newest.position)

    def _apply(self, load: Load, page: TimelinePage) -> None:
        loaded, layout = self._scene.loaded, self._scene.layout
        match load:
            case Load.OLDER:
                loaded.extend_older(page)
            case Load.NEWER:
                loaded.extend_newer(page)
            case Load.LATEST:
                loaded.reset(page)
                layout.stick()
            case Load.FIRST:
                loaded.reset(page)
                if page.messages:
                    layout.anchor_at(page.messages[0].message_id, self._scene.height)
            case Load.AROUND | Load.ORDINAL:
                loaded.reset(page)
                self._anchor_at_target()
        self.page_shown.emit()

    def _anchor_at_target(self) -> None:
        """Put the target in view, or what is nearest to it."""
        target = self._target
        if not self._scene.loaded.messages or target is None:
            return
        if isinstance(target, Anchor):
            self._anchor_at(target.position, target.offset)
        elif isinstance(target, Position):
            self._anchor_at(target, self._scene.height * JUMP_SHARE)
            if self._marks:
                self._canvas.mark(target.message_id)
        else:
            self._anchor_at_ordinal(target)

    def _anchor_at(self, position: Position, offset: float) -> None:
        loaded = self._scene.loaded
        index = min(loaded.index_at_or_after(position), len(loaded) - 1)
        self._scene.layout.anchor_at(loaded.messages[index].message_id, offset)

    def _anchor_at_ordinal(self, ordinal: float) -> None:
        loaded = self._scene.loaded
        index = min(max(int(ordinal) - loaded.older_count, 0), len(loaded) - 1)
        message = loaded.messages[index]
        row_index = loaded.message_row_index(message.message_id)
        if row_index is not None:
            height = self._scene.box(loaded.rows[row_index]).height
            self._scene.layout.anchor_at(message.message_id, -(ordinal % 1) * height)
