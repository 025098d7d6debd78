"""The layout never moves what one reads, never leaves a hole, and knows when it is at the end."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import MessageId
from tests.ui.timeline.timeline_stage import message
from ui.timeline.layout import ViewportLayout
from ui.timeline.rows import MessageRow, Row, message_of


@dataclass
class Column:
    """Rows of given heights: what layout needs to know of a conversation."""

    heights: dict[MessageId, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    has_older: bool = False
    has_newer: bool = False

    def insert(self, index: int, lamport_timestamp: int, height: float) -> MessageId:
        row = MessageRow(message=message(lamport_timestamp), first=True, last=True)
        self.rows.insert(index, row)
        self.heights[row.message.message_id] = height
        return row.message.message_id

    def message_row_index(self, message_id: MessageId) -> int | None:
        for index, row in enumerate(self.rows):
            shown = message_of(row)
            if shown is not None and shown.message_id == message_id:
                return index
        return None

    def height_of(self, row: Row) -> float:
        shown = message_of(row)
        assert shown is not None
        return self.heights[shown.message_id]


def column(heights: list[float]) -> tuple[Column, ViewportLayout]:
    rows = Column()
    for index, height in enumerate(heights):
        rows.insert(index, index, height)
    return rows, ViewportLayout(rows.height_of, padding=12)


ROW_HEIGHTS = st.lists(st.floats(10, 400), min_size=1, max_size=40)
VIEWPORT = st.floats(100, 1000)


def top_of(layout: ViewportLayout, message_id: MessageId) -> float | None:
    tops = (
        placed.y
        for placed in layout.placed
        if (shown := message_of(placed.row)) is not None and shown.message_id == message_id
    )
    return next(tops, None)


def assert_sound(layout: ViewportLayout, rows: Column, viewport: float) -> None:
    """Consecutive rows without holes or overlaps that fill the viewport as far as there are any."""
    placed = layout.placed
    for above, below in pairwise(placed):
        assert below.index == above.index + 1
        assert abs(below.y - above.bottom) < 0.01
    first, last = placed[0], placed[-1]
    if first.index > 0:
        assert first.y <= 0.01
    if last.index < len(rows.rows) - 1:
        assert last.bottom >= viewport - 0.01
    else:
        assert last.bottom >= viewport - layout.padding - 0.01
    total = sum(rows.heights.values())
    if total > viewport and first.index == 0:
        assert first.y <= layout.padding + 0.01


@given(ROW_HEIGHTS, VIEWPORT, st.lists(st.floats(-3000, 3000), max_size=8))
def test_any_scrolling_leaves_a_sound_view(
    heights: list[float], viewport: float, scrolls: list[float]
) -> None:
    rows, layout = column(heights)
    layout.place(rows, viewport)
    assert_sound(layout, rows, viewport)
    for down in scrolls:
        layout.scroll(down)
        layout.place(rows, viewport)
        assert_sound(layout, rows, viewport)


@given(
    st.lists(st.floats(10, 400), min_size=20, max_size=40),
    st.floats(100, 400),
    st.floats(0, 6000),
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(10, 400)), min_size=1, max_size=10),
)
def test_what_is_put_in_above_moves_nothing_that_one_reads(
    heights: list[float], viewport: float, up: float, inserted: list[tuple[int, float]]
) -> None:
    rows, layout = column(heights)
    layout.place(rows, viewport)
    layout.scroll(up)
    layout.place(rows, viewport)
    before = {p.row: p.y for p in layout.placed}
    for number, (where, height) in enumerate(inserted):
        rows.insert(where % (layout.placed[0].index + 1), 1000 + number, height)
        layout.place(rows, viewport)
    after = {p.row: p.y for p in layout.placed}
    for row, y in before.items():
        assert abs(after[row] - y) < 0.5


@given(st.lists(st.floats(10, 100), min_size=20, max_size=40), st.floats(50, 900))
def test_what_is_appended_below_moves_nothing_unless_at_the_end(
    heights: list[float], up: float
) -> None:
    rows, layout = column(heights)
    layout.place(rows, 200)
    end = layout.placed[-1].bottom
    layout.scroll(up)
    layout.place(rows, 200)
    assert layout.placed[-1].bottom > end
    anchor = layout.anchor
    rows.insert(len(rows.rows), 5000, 80)
    layout.place(rows, 200)
    assert layout.anchor == anchor
    layout.stick()
    layout.place(rows, 200)
    rows.insert(len(rows.rows), 5001, 80)
    layout.place(rows, 200)
    assert layout.sticks
    assert layout.placed[-1].index == len(rows.rows) - 1
    assert abs(layout.placed[-1].bottom - end) < 0.01


def test_the_end_is_the_end_only_if_the_newest_is_loaded() -> None:
    rows, layout = column([100.0] * 10)
    rows.has_newer = True
    layout.place(rows, 300)
    assert not layout.sticks


def test_a_deleted_anchor_hands_over_to_its_neighbour() -> None:
    rows, layout = column([100.0] * 10)
    layout.place(rows, 300)
    layout.scroll(250)
    layout.place(rows, 300)
    assert layout.anchor is not None
    second = layout.placed[1]
    index = rows.message_row_index(layout.anchor[0])
    assert index is not None
    del rows.rows[index]
    layout.place(rows, 300)
    shown = message_of(second.row)
    assert shown is not None
    assert top_of(layout, shown.message_id) == second.y


def test_a_taller_anchor_keeps_its_top() -> None:
    rows, layout = column([100.0] * 10)
    layout.place(rows, 300)
    layout.scroll(250)
    layout.place(rows, 300)
    assert layout.anchor is not None
    message_id, top = layout.anchor
    rows.heights[message_id] = 180
    layout.place(rows, 300)
    assert top_of(layout, message_id) == top


def test_few_rows_stand_at_the_end() -> None:
    rows, layout = column([50.0, 50.0])
    layout.place(rows, 300)
    assert [p.y for p in layout.placed] == [188, 238]
    layout.scroll(1000)
    layout.place(rows, 300)
    assert [p.y for p in layout.placed] == [188, 238]


def test_nothing_to_place_is_no_error() -> None:
    layout = ViewportLayout(Column().height_of)
    assert layout.place(Column(), 300) == []
