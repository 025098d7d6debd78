"""Where rows stand in the viewport: an anchor (message, offset), never a pixel position of the log.

Heights are asked for lazily, only for rows that come into view, so nothing here depends on how long
the conversation is.  Layout starts at the anchor and walks both ways until the viewport is full.
At the bottom the view sticks: the last row's lower edge is the anchor then.  Otherwise it is the
message that was topmost when one scrolled last, and whatever is put in above it, even into view,
leaves it where it is.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from msgspec import Struct

from engine.core.ids import MessageId
from ui.timeline.rows import Row, RowKey, message_in, message_of, row_key

_CLOSE_ENOUGH = 0.49
"""Less than half a pixel from the end is the end."""


class Rows(Protocol):
    """What placing needs of the loaded messages."""

    @property
    def rows(self) -> Sequence[Row]: ...

    def message_row_index(self, message_id: MessageId) -> int | None: ...

    @property
    def has_older(self) -> bool: ...

    @property
    def has_newer(self) -> bool: ...


class PlacedRow(Struct, frozen=True):
    index: int
    row: Row
    y: float
    """Top, from the viewport's top."""
    height: float

    @property
    def bottom(self) -> float:
        return self.y + self.height


class Shift(Struct, frozen=True):
    """Rows that looked the same before: they moved ``down``, and fill ``top`` to ``bottom`` now."""

    down: int
    top: float
    bottom: float


def shift_between(before: Sequence[PlacedRow], after: Sequence[PlacedRow]) -> Shift | None:
    """How the tallest stretch of rows that look the same moved as one; None if no row does.

    Rows are painted at whole pixels, so that is what their places are compared in.
    """
    places = {row_key(placed.row): (at, placed) for at, placed in enumerate(before)}
    shifts = []
    moves = [_moved(at, placed, places) for at, placed in enumerate(after)]
    for move, stretch in groupby(zip(moves, after, strict=True), key=itemgetter(0)):
        rows = [placed for _, placed in stretch]
        if move is not None:
            shifts.append(Shift(move[1], rows[0].y, rows[-1].bottom))
    return max(shifts, key=lambda shift: shift.bottom - shift.top, default=None)


def _moved(
    at: int, placed: PlacedRow, places: Mapping[RowKey, tuple[int, PlacedRow]]
) -> tuple[int, int] | None:
    """By how many rows and pixels; None for a row that was not there, or looked different."""
    was, old = places.get(row_key(placed.row), (0, None))
    if old is None or old.row != placed.row or old.height != placed.height:
        return None
    return at - was, round(placed.y) - round(old.y)


class ViewportLayout:
    """Anchor, stickiness and the rows placed last."""

    def __init__(self, height_of: Callable[[Row], float], *, padding: float = 12) -> None:
        self._height_of = height_of
        self.padding = padding
        self.covered = 0.0
        """How much of the top is covered by a bar: the beginning stands below it."""
        self.sticks = True
        self.placed: list[PlacedRow] = []
        self._anchor: MessageId | None = None
        self._offset = 0.0
        self._scrolled = True
        """Since the anchor was taken: the topmost message is what one reads on from now."""

    @property
    def anchor(self) -> tuple[MessageId, float] | None:
        return None if self._anchor is None else (self._anchor, self._offset)

    def reset(self) -> None:
        self.sticks, self.placed, self._anchor, self._offset = True, [], None, 0.0

    def stick(self) -> None:
        self.sticks = True

    def anchor_at(self, message_id: MessageId, offset: float) -> None:
        """Put the top of this message ``offset`` below the viewport's top, as far as possible."""
        self.sticks, self._anchor, self._offset = False, message_id, offset
        self._scrolled = False

    def scroll(self, down: float) -> None:
        """Move the content by ``down`` pixels: positive shows what is older."""
        if self._anchor is not None:
            self.sticks = False
            self._scrolled = True
            self._offset += down

    def at(self, y: float) -> PlacedRow | None:
        return next((p for p in self.placed if p.y <= y < p.bottom), None)

    def place(self, loaded: Rows, height: float) -> list[PlacedRow]:
        """Place the rows that a viewport of ``height`` shows, top to bottom."""
        rows = loaded.rows
        if not rows:
            self.placed = []
            return self.placed
        start = None if self.sticks else self._start(loaded)
        if start is None:
            self.sticks = self._scrolled = True
            index, y = len(rows) - 1, height - self.padding - self._height_of(rows[-1])
        else:
            index, y = start
        self.placed = self._fill(rows, index, y, height)
        self._pull_down_to_end(loaded, height)
        self._pull_up_to_beginning(loaded, height)
        self._cut(height)
        self._take_anchor()
        last = self.placed[-1]
        self.sticks = (
            not loaded.has_newer
            and last.index == len(rows) - 1
            and last.bottom <= height - self.padding + _CLOSE_ENOUGH
        )
        return self.placed

    def _start(self, loaded: Rows) -> tuple[int, float] | None:
        """Row index and top to start from: the anchor, or a neighbour if it is gone."""
        if self._anchor is not None:
            index = loaded.message_row_index(self._anchor)
            if index is not None:
                return index, self._offset
        for placed in self.placed:
            message = message_in(placed.row)
            if message is not None:
                index = loaded.message_row_index(message.message_id)
                if index is not None:
                    return index, placed.y
        return None

    def _fill(self, rows: Sequence[Row], index: int, y: float, height: float) -> list[PlacedRow]:
        placed = [PlacedRow(index, rows[index], y, self._height_of(rows[index]))]
        above, top = index - 1, y
        while above >= 0 and top > 0:
            row_height = self._height_of(rows[above])
            top -= row_height
            placed.append(PlacedRow(above, rows[above], top, row_height))
            above -= 1
        placed.reverse()
        below, bottom = index + 1, placed[-1].bottom
        while below < len(rows) and bottom < height:
            row_height = self._height_of(rows[below])
            placed.append(PlacedRow(below, rows[below], bottom, row_height))
            bottom += row_height
            below += 1
        return placed

    def _pull_down_to_end(self, loaded: Rows, height: float) -> None:
        """No empty space after the end."""
        last = self.placed[-1]
        free = height - self.padding - last.bottom
        if last.index == len(loaded.rows) - 1 and free > 0:
            self.placed = self._fill(loaded.rows, last.index, last.y + free, height)

    def _pull_up_to_beginning(self, loaded: Rows, height: float) -> None:
        """No empty space before the beginning, unless there is too little: it stands at the end."""
        first = self.placed[0]
        free = first.y - self.padding - self.covered
        if first.index == 0 and free > 0:
            moved = self._fill(loaded.rows, 0, self.padding + self.covered, height)
            last = moved[-1]
            too_short = height - self.padding - last.bottom
            if last.index == len(loaded.rows) - 1 and too_short > 0:
                moved = self._fill(loaded.rows, 0, moved[0].y + too_short, height)
            self.placed = moved

    def _cut(self, height: float) -> None:
        visible = [p for p in self.placed if p.bottom > 0 and p.y < height]
        self.placed = visible or self.placed[-1:]

    def _take_anchor(self) -> None:
        y = None if self._scrolled or self._anchor is None else self._y_of(self._anchor)
        if y is not None:
            self._offset = y
            return
        for message_in_row in (message_of, message_in):  # Better one that has its place.
            for placed in self.placed:
                message = message_in_row(placed.row)
                if message is not None:
                    self._anchor, self._offset = message.message_id, placed.y
                    self._scrolled = False
                    return

    def _y_of(self, message_id: MessageId) -> float | None:
        for placed in self.placed:
            message = message_in(placed.row)
            if message is not None and message.message_id == message_id:
                return placed.y
        return None
