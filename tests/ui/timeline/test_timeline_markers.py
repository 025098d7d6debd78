"""Markers stand directly above what is known to come after them, and nowhere else."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest

from engine.core.history.queries import End
from engine.core.ids import ConversationId, MessageId, Position, UnixMs
from engine.core.problems import NoStoreToAsk, QueryFailed
from engine.events import GapView, MessageKind, MessageView
from engine.history_views import HistoryReason, HistoryState, HistoryView, LostView
from tests.ui.timeline.timeline_stage import (
    CONVERSATION,
    IDS,
    MemoryPages,
    at,
    chatter,
    conversation,
    gap,
    gap_of,
    gap_place,
    message,
    opened_view,
    run,
    settled,
    shown_view,
)
from ui.timeline.buttons import RowButton
from ui.timeline.cards import CardBox
from ui.timeline.row_words import lost_cause, lost_details, lost_title
from ui.timeline.rows import (
    EarlierRow,
    GapRow,
    LostRow,
    MessageRow,
    Row,
    derive_rows,
    earlier_row,
    message_of,
    order,
    row_key,
)
from ui.timeline.view import TimelineView


def lost(
    lamport_timestamp: int, before: MessageView | None, *, who: str = "Jonas", name: str = "Jonas"
) -> LostView:
    return LostView(
        message_id=MessageId(f"{lamport_timestamp:08x}cafe"),
        sender_id=IDS[who],
        sender_name=name,
        before=None if before is None else before.position,
        since_ms=at(13, 0, 19),
    )


def rows_of(
    messages: list[MessageView],
    marker: GapView,
    *,
    beginning: bool = True,
    end: bool = True,
) -> list[Row]:
    rows = derive_rows(
        sorted(messages, key=order),
        gap=marker,
        first_unread=None,
        starts_at_beginning=beginning,
        reaches_end=end,
    )
    return [row for row in rows if isinstance(row, MessageRow | GapRow | LostRow)]


def below(rows: list[Row], kind: type[Row]) -> str | None:
    """The text of the message directly below a marker."""
    index = next(i for i, row in enumerate(rows) if isinstance(row, kind))
    following = [m for row in rows[index:] if (m := message_of(row)) is not None]
    return following[0].text if following else None


def test_what_is_missing_stands_above_what_refers_to_it() -> None:
    messages = [message(n, text=str(n)) for n in (10, 20, 30, 40)]
    marker = gap(before=messages[2].position)
    assert below(rows_of(messages, marker), GapRow) == "30"


def test_each_gap_has_its_own_marker_with_its_own_count() -> None:
    messages = [message(n, text=str(n), waiting=n > 20) for n in (10, 20, 30, 40, 50)]
    places = (
        gap_place(3, 1, messages[2].position),
        gap_place(1, 2, messages[3].position),
        gap_place(2, 0, None),
    )
    rows = rows_of(messages, gap_of(*places))
    markers = [(row.gap.missing, row.gap.waiting) for row in rows if isinstance(row, GapRow)]
    assert markers == [(3 + 2, 1), (1, 2)], "what has no place stands with the first that waits"
    assert [type(row) for row in rows[2:5]] == [GapRow, MessageRow, GapRow]
    keys = [row_key(row) for row in rows]
    assert len(set(keys)) == len(keys)
    one_left = rows_of(messages, gap_of(places[1]))
    assert [row.gap for row in one_left if isinstance(row, GapRow)] == [places[1]]


def test_a_marker_stands_above_a_message_that_waits() -> None:
    messages = [message(10, text="a"), message(5, text="w", waiting=True), message(20, text="b")]
    marker = gap(waiting=1, before=messages[1].position)
    rows = rows_of(messages, marker)
    assert [type(row) for row in rows] == [MessageRow, MessageRow, GapRow, MessageRow]
    assert below(rows, GapRow) == "w"


@pytest.mark.parametrize(
    ("before", "beginning", "end", "shown"),
    [
        (5, False, True, False),  # on an older page
        (10, False, True, True),  # right at the first that is loaded
        (5, True, True, True),  # its message was deleted, and nothing is older
        (99, True, False, False),  # on a newer page
        (99, True, True, True),
    ],
)
def test_a_place_outside_of_what_is_loaded_is_not_pretended(
    before: int, *, beginning: bool, end: bool, shown: bool
) -> None:
    messages = [message(n) for n in (10, 20, 30)]
    place = Position(lamport_timestamp=before, message_id=MessageId(f"m{before:07d}"))
    rows = rows_of(messages, gap(before=place), beginning=beginning, end=end)
    assert any(isinstance(row, GapRow) for row in rows) is shown


def test_lost_ones_stand_where_each_belongs_and_no_gap_is_invented_for_them() -> None:
    messages = [message(n, text=str(n)) for n in (10, 20, 30)]
    gone = (lost(1, messages[1]), lost(2, messages[2]), lost(3, messages[1]))
    marker = replace(gap_of(), lost=gone, lost_total=5)
    rows = rows_of(messages, marker)
    assert [type(row) for row in rows] == [MessageRow, LostRow, MessageRow, LostRow, MessageRow]
    first, second = (row for row in rows if isinstance(row, LostRow))
    assert {each.message_id for each in first.lost} == {gone[0].message_id, gone[2].message_id}
    assert (first.untold, second.untold) == (2, 0)
    found = replace(marker, lost=(gone[1],), lost_total=1)
    assert sum(isinstance(row, LostRow) for row in rows_of(messages, found)) == 1


def test_what_nobody_can_place_stands_at_the_beginning_out_of_the_way() -> None:
    messages = [message(10), message(20)]
    marker = replace(gap_of(), lost=(lost(1, None),), lost_total=1)
    assert isinstance(rows_of(messages, marker)[0], LostRow)
    assert not any(isinstance(r, LostRow) for r in rows_of(messages, marker, beginning=False))


@given(
    st.lists(
        st.builds(message, st.integers(0, 200), waiting=st.booleans()),
        unique_by=lambda m: m.message_id,
        max_size=30,
    ),
    st.integers(-1, 201),
    st.booleans(),
    st.booleans(),
)
def test_a_marker_never_has_what_comes_after_it_above(
    messages: list[MessageView], before: int, beginning: bool, end: bool
) -> None:
    place = Position(lamport_timestamp=before, message_id=MessageId(f"m{before:07d}"))
    marker = replace(gap(before=place), lost=(lost(1, None),), lost_total=1)
    rows = rows_of(messages, marker, beginning=beginning, end=end)
    markers = [i for i, row in enumerate(rows) if isinstance(row, GapRow)]
    assert len(markers) <= 1
    for index in markers:
        above = [m for row in rows[:index] if (m := message_of(row)) is not None]
        placed = [m for m in above if not m.waiting]
        assert all(m.position < place for m in placed) or any(
            m.position == place for m in messages if m.waiting
        )
    assert len([r for r in rows if isinstance(r, MessageRow)]) == len(messages)


@pytest.mark.parametrize("kind", [MessageKind.CREATED, MessageKind.ASKED])
def test_nothing_is_earlier_than_the_first_of_all(kind: MessageKind) -> None:
    assert earlier_row([message(1, kind=kind)], None, offered=True) == []
    assert earlier_row([message(1)], None, offered=True) == [EarlierRow(history=None)]
    assert earlier_row([message(1)], None, offered=False) == []
    assert earlier_row([], None, offered=True) == []


# --- on the real widget ---------------------------------------------------------------------------

HISTORY = HistoryView(
    conversation_id=ConversationId(CONVERSATION),
    reason=HistoryReason.EARLIER,
    state=HistoryState.RUNNING,
    since_ms=at(9, 0, 1),
)


def buttons_of(view: TimelineView, kind: type[Row]) -> list[RowButton]:
    row = next(row for row in view.scene.loaded.rows if isinstance(row, kind))
    box = view.scene.box(row)
    assert isinstance(box, CardBox)
    return [button for button, _ in box.buttons]


def said(view: TimelineView) -> list[str]:
    list_ = QAccessible.queryAccessibleInterface(view)
    return [list_.child(i).text(QAccessible.Text.Name) for i in range(list_.childCount())]


@pytest.mark.usefixtures("qapp")
def test_lost_ones_say_what_is_known_of_them() -> None:
    source = MemoryPages(chatter(3))
    gone = (
        replace(lost(0xABCDEF12, source.messages[1]), stores_ms=at(13, 5), lacked_by=2),
        replace(lost(2, source.messages[1], name=""), stores_ms=at(13, 5), lacked_by=2),
    )

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.set_gap(replace(gap_of(), lost=gone, lost_total=2))
            (words,) = [words for words in said(view) if "lost" in words]
            assert words.startswith("2 messages lost since Yesterday, 13:00. From Jonas")
            assert "no Store has them any more" in words
            row = next(r for r in view.scene.loaded.rows if isinstance(r, LostRow))
            closed = view.scene.box(row)
            view.scene.explain(f"lost {row.place}")
            opened = view.scene.box(row)
            assert isinstance(opened, CardBox)
            assert opened.height > closed.height
            assert "Jonas, id abcdef12…" in opened.cause
            assert "said before" in opened.cause
            assert buttons_of(view, LostRow) == [RowButton.GAP_DETAILS, RowButton.TRY_AGAIN]
            view.set_gap(None)
            assert not any("lost" in words for words in said(view))

    run(scenario)


SILENT = "/dns4/store.example.org/tcp/60000/p2p/16Uiu2"


@pytest.mark.parametrize(
    ("stores_ms", "lacked_by", "silent", "said"),
    [
        (None, 0, (), "No member has it any more"),
        (at(13, 5), 2, (), "No member and no Store has it any more"),
        (
            at(13, 5),
            1,
            (SILENT,),
            "No member and no Store that answered has it; store.example.org:60000 did not answer",
        ),
        (at(13, 5), 0, (SILENT,), "No member has it any more; store.example.org:60000 did not"),
        (at(13, 5), 1, (SILENT, "/dns4/b/tcp/1"), "has it; 2 Stores did not answer"),
    ],
)
def test_nobody_is_said_to_lack_it_who_did_not_say_so(
    stores_ms: UnixMs | None, lacked_by: int, silent: tuple[str, ...], said: str
) -> None:
    one = replace(lost(1, None), stores_ms=stores_ms, lacked_by=lacked_by, silent_stores=silent)
    assert said in lost_details((one,))
    row = LostRow(lost=(one,), place="end")
    assert all(f"{store} did not answer" in lost_cause(row, date(2026, 11, 22)) for store in silent)
    again = replace(one, asked_again_ms=at(14, 3))
    assert lost_details((again,)).endswith(" · asked again at 14:03")


def lost_of_pair(first: int, last: int, before: MessageView) -> LostView:
    return replace(
        lost(1, before),
        message_id=None,
        count=last - first + 1,
        numbers=(first, last),
        given_up_ms=at(13, 5),
    )


def test_of_two_only_numbers_are_known() -> None:
    messages = [message(n, text=str(n)) for n in (10, 20, 30)]
    one, many = lost_of_pair(4, 4, messages[1]), lost_of_pair(1_000, 1_002, messages[2])
    marker = replace(gap_of(), lost=(one, many), lost_total=9)
    rows = [row for row in rows_of(messages, marker) if isinstance(row, LostRow)]
    assert [row.untold for row in rows] == [9 - 4, 0]
    assert [lost_title(row.lost) for row in rows] == ["1 message lost", "3 messages lost"]
    words = lost_details((one,), pair=True)
    assert words == "From Jonas · It never arrived, and nobody waits for it any more"
    assert "They never arrived" in lost_details((many,), pair=True)
    first = lost_cause(rows[0], date(2026, 11, 22))
    assert "Jonas, number 4, said before" in first
    assert "given up 13:05" in first or ", 13:05" in first
    assert "If it ever turns up" in first
    assert "5 other messages, lost longer ago" in first
    second = lost_cause(rows[1], date(2026, 11, 22))
    assert "Jonas, numbers 1,000 to 1,002" in second
    assert "What turns up takes its place here." in second


@pytest.mark.usefixtures("qapp")
def test_what_is_lost_can_be_tried_again() -> None:
    source = MemoryPages(chatter(3))
    gone = (lost(1, source.messages[1]), lost(2, source.messages[2]))

    async def scenario() -> None:
        with shown_view(source) as view:
            asked: list[tuple[MessageId, ...]] = []
            view.lostRequested.connect(asked.append)
            view.open(conversation())
            await settled(view)
            view.set_gap(replace(gap_of(), lost=gone, lost_total=2))
            rows = [row for row in view.scene.loaded.rows if isinstance(row, LostRow)]
            for row in rows:
                view.scene.focus_key = row_key(row)
                QTest.keyClick(view, Qt.Key.Key_Return)
            assert asked == [(gone[0].message_id,), (gone[1].message_id,)]

    run(scenario)


@pytest.mark.usefixtures("qapp")
def test_the_row_above_the_beginning_says_what_goes_on_and_what_came_of_it() -> None:
    source = MemoryPages(chatter(3))

    async def scenario() -> None:
        with shown_view(source) as view:
            asked: list[None] = []
            view.earlierRequested.connect(lambda: asked.append(None))
            view.open(conversation())
            await settled(view)
            assert not any(isinstance(row, EarlierRow) for row in view.scene.loaded.rows)
            view.offer_earlier(None)
            assert buttons_of(view, EarlierRow) == [RowButton.EARLIER]
            assert said(view)[0] == "Fetch earlier messages"
            view.offer_earlier(HISTORY)
            assert buttons_of(view, EarlierRow) == []
            assert said(view)[0].startswith("Fetching earlier messages")
            alone = replace(HISTORY, state=HistoryState.WAITING, problem=NoStoreToAsk())
            view.offer_earlier(alone)
            assert buttons_of(view, EarlierRow) == [RowButton.STORES]
            assert said(view)[0].startswith("Waiting to fetch earlier messages. There is no Store")
            view.offer_earlier(replace(alone, problem=None))
            assert buttons_of(view, EarlierRow) == []
            failed = replace(HISTORY, state=HistoryState.FAILED, problem=QueryFailed(End.TIMEOUT))
            view.offer_earlier(failed)
            assert buttons_of(view, EarlierRow) == [RowButton.STORES, RowButton.EARLIER]
            assert "could not be fetched. No Store answered to the end; of the one" in said(view)[0]
            view.offer_earlier(replace(HISTORY, state=HistoryState.DONE))
            assert said(view)[0].startswith("Nothing more was found, back to 1 November 2026.")
            everything = replace(HISTORY, state=HistoryState.DONE, since_ms=None, arrived=3)
            view.offer_earlier(everything)
            assert buttons_of(view, EarlierRow) == []
            assert asked == []

    run(scenario)
