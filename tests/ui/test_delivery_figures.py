"""Live figures of a delivery view: from samples to charts, tables and exported files."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import Qt, QXmlStreamReader
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.delivery_views import DeliveryMark, HolderMark
from engine.events import MemberView
from engine.live_views import (
    BufferView,
    LiveSample,
    OwnMessage,
    PairDelivery,
    RecordView,
    SkewView,
    Traffic,
    TrafficKind,
)
from tests.ui.test_window_delivery import message
from ui.delivery.buttons import Buttons
from ui.delivery.chart import ChartWidget, nice_top
from ui.delivery.export import csv_of
from ui.delivery.figures import Chart, charts_of, skew_words, span_words
from ui.delivery.holders_content import exported as matrix_file
from ui.delivery.holding import MOST_MEMBERS, Cell, matrix_of, spoken_cell, table_of
from ui.delivery.live_content import exported, live_table
from ui.delivery.matrix import HoldersMatrix
from ui.delivery.series import BUCKET_MS, BUCKETS, LiveHistory
from ui.delivery.table import FigureTable, MadeRows
from ui.delivery.words_content import RecordsContent, rounds_words

pytestmark = pytest.mark.usefixtures("qapp")

NOON = 1_795_000_000_000 // BUCKET_MS * BUCKET_MS
HOSTILE = '=HYPERLINK("x")\x0b</text><script>alert(1)</script>\ud800'


def sample(
    after_ms: int,
    *,
    placed: int = 0,
    sent: int = 0,
    earlier: tuple[int, ...] = (),
    own: tuple[OwnMessage, ...] = (),
) -> LiveSample:
    copies = {TrafficKind.CONTENT: Traffic(copies=sent, size=1_000 * sent)} if sent else {}
    return LiveSample(
        conversation_id=ConversationId("tide"),
        at_ms=UnixMs(NOON + after_ms),
        since_ms=UnixMs(NOON),
        placed=placed,
        sent=copies,
        skew=SkewView(lowest_ms=-40, highest_ms=30),
        buffers=BufferView(outgoing=2, incoming=1, missing=3, filter_fill=0.25),
        earlier=tuple(map(UnixMs, earlier)),
        own=own,
    )


def own(number: int, *, held_after_ms: int | None, copies: int = 1) -> OwnMessage:
    return OwnMessage(
        message_id=MessageId(f"m-{number}"),
        saved_ms=UnixMs(NOON + number),
        held_after_ms=held_after_ms,
        copies=copies,
    )


def charts(history: LiveHistory, *, is_pair: bool = False) -> dict[str, Chart]:
    window = history.window(300_000, 60)
    return {chart.key: chart for chart in charts_of(window, is_pair=is_pair, is_open=False)}


def test_sums_become_what_happened_between_two_samples() -> None:
    history = LiveHistory()
    history.add(sample(0, placed=10, sent=1, earlier=(NOON - 60_000, NOON - 59_000)))
    history.add(sample(1_000, placed=12, sent=3))
    history.add(sample(6_000, placed=13, sent=3))
    found = charts(history)
    rate = found["messages_per_minute"].rows[0].values
    assert rate[-2:] == (12 * 12, 12)
    assert rate[-14:-12] == (24, 0), "from the rows, a minute before"
    up = found["bytes_up"].rows[0].values
    assert up[-2:] == (3_000 / 5, 0)
    assert up[-3] is None, "nobody counted then"
    assert found["lamport_skew_ms"].rows[0].values[-1] == -40
    assert found["filter_fill"].now == "25 %"


def test_percentiles_are_of_those_that_everyone_holds_and_it_is_said_how_many_are_not() -> None:
    history = LiveHistory()
    mine = tuple(own(number, held_after_ms=number * 100) for number in range(1, 21))
    history.add(sample(0, own=(*mine, own(30, held_after_ms=None, copies=3))))
    found = charts(history)
    half, slow = found["held_by_all_ms"].rows
    assert (half.values[-1], slow.values[-1]) == (1_000, 1_900)
    assert found["held_by_all_ms"].note.endswith("20 of 21 are held by everyone.")
    assert found["copies_per_message"].rows[0].values[-1] == pytest.approx(23 / 21)
    assert set(charts(history, is_pair=True)) == {
        "messages_per_minute",
        "copies_per_message",
        "bytes_up",
        "bytes_down",
        "buffers",
    }


@given(st.lists(st.integers(0, 10_000_000), max_size=60))
def test_a_clock_that_jumps_breaks_nothing_and_the_ring_stays_bounded(jumps: list[int]) -> None:
    history = LiveHistory()
    for placed, jump in enumerate(jumps):
        history.add(sample(jump, placed=placed))
    window = history.window(BUCKETS * BUCKET_MS, 60)
    assert len(window.buckets) <= BUCKETS
    assert len(window.placed()) == 60
    assert sum(value or 0 for value in window.summed(lambda bucket: bucket.placed)) <= len(jumps)


@given(st.floats(1e-6, 1e12))
def test_an_axis_ends_at_a_round_number_at_or_above_the_highest(highest: float) -> None:
    assert highest <= nice_top(highest) <= 1.51 * highest


def test_spans_are_said_with_their_units() -> None:
    assert [span_words(ms) for ms in (40, 1_400, 12_000, 720_000)] == [
        "40 ms",
        "1.4 s",
        "12 s",
        "12 min",
    ]
    assert (skew_words(-40), skew_words(1_400)) == ("\u221240 ms", "+1.4 s")


def test_a_chart_is_read_by_the_keys() -> None:
    history = LiveHistory()
    history.add(sample(0, placed=10))
    history.add(sample(6_000, placed=13))
    widget = ChartWidget()
    widget.show_chart(charts(history)["messages_per_minute"])
    widget.resize(240, widget.heightForWidth(240))
    press(widget, Qt.Key.Key_Left)
    assert widget.chosen == 59
    assert widget.accessibleName().endswith(": 36")
    press(widget, Qt.Key.Key_Left)
    assert widget.accessibleName().endswith(": 120")
    press(widget, Qt.Key.Key_Home)
    assert widget.accessibleName().endswith(": 0"), "all rows of that time were read"
    press(widget, Qt.Key.Key_Escape)
    assert widget.accessibleName() == "Messages per minute: 120"
    assert not widget.grab().isNull()


# --- who holds what -------------------------------------------------------------------------------


def people() -> tuple[MemberView, ...]:
    return tuple(
        MemberView(
            participant_id=ParticipantId(name.lower()),
            name=name,
            is_self=name == "Ines",
            is_admin=False,
            has_left=name == "Gone",
            fingerprint="",
        )
        for name in ("Ines", "Maya", "Luc", "Gone")
    )


def mark(name: str, *, certain: bool) -> HolderMark:
    who = message(1, sender=name).sender_id
    assert who is not None
    return HolderMark(participant_id=who, certain=certain, since_ms=None)


def test_cells_say_what_is_known_and_no_more() -> None:
    matrix = matrix_of(
        [
            message(1, sender="Ines", holders=(mark("Maya", certain=True),), held_by=1),
            message(2, sender="Maya", holders=(mark("Luc", certain=False),)),
            message(3, sender="Luc", mark=DeliveryMark.MISSING, position=None),
            message(4, sender="Ines", mark=DeliveryMark.FAILED),
        ],
        people(),
    )
    assert [holder.name for holder in matrix.holders] == ["Maya", "Luc", "You"]
    assert [column.cells for column in matrix.columns] == [
        (Cell.HOLDS, Cell.NO_SIGN, Cell.WROTE),
        (Cell.WROTE, Cell.MAYBE, Cell.HOLDS),
        (Cell.NO_SIGN, Cell.WROTE, Cell.MISSING_HERE),
        (Cell.NO_SIGN, Cell.NO_SIGN, Cell.NOT_SENT),
    ]
    assert [column.held_words for column in matrix.columns] == ["1", "0", "", "0"]
    assert spoken_cell(matrix, 0, 0).startswith("Maya: holds it. You,")
    headings, rows = table_of(matrix)
    assert headings[0] == "Message"
    assert rows[-1][1:] == ("holds it", "no sign yet", "wrote it", "1/2")


def test_only_columns_in_which_something_changed_are_made_anew() -> None:
    messages = [message(number) for number in range(1, 6)]
    before = matrix_of(messages, people())
    changed = message(3, holders=(mark("Luc", certain=True),), held_by=1)
    read_again = [message(1), message(2), changed, message(4), message(5), message(6)]
    after = matrix_of(read_again, people(), before)
    assert after == matrix_of(read_again, people())
    taken_over = [each in map(id, before.columns) for each in map(id, after.columns)]
    assert taken_over == [True, True, False, True, True, False]
    without_luc = [each for each in people() if each.name != "Luc"]
    assert matrix_of(read_again, without_luc, after) == matrix_of(read_again, without_luc)


def test_in_a_crowd_we_are_still_among_those_that_are_shown() -> None:
    ines, maya = people()[:2]
    crowd = [
        replace(maya, participant_id=ParticipantId(f"p{number}"), name=f"P {number}")
        for number in range(MOST_MEMBERS + 50)
    ]
    matrix = matrix_of([message(1, sender="Ines")], [ines, *crowd])
    assert (len(matrix.holders), matrix.more_members) == (MOST_MEMBERS, 51)
    assert matrix.holders[-1].is_self
    assert matrix.columns[0].cells[-1] is Cell.WROTE


def test_buttons_go_on_in_the_next_line_and_none_is_cut() -> None:
    buttons = Buttons()
    row = buttons.layout()
    assert row is not None
    needed = row.heightForWidth(1_000)
    assert row.heightForWidth(buttons.table.sizeHint().width() + 10) > 2 * needed - 1
    for width in (1_000, buttons.table.sizeHint().width()):
        buttons.setFixedSize(width, row.heightForWidth(width))
        buttons.show()
        row.activate()
        for button in (buttons.table, buttons.export):
            assert button.width() >= button.sizeHint().width()
            assert buttons.rect().contains(button.geometry())
        assert not buttons.table.geometry().intersects(buttons.export.geometry())


def test_a_row_is_found_again_by_its_message_and_its_words_are_made_when_they_are_seen() -> None:
    made: list[int] = []

    def words(number: int) -> tuple[str, ...]:
        made.append(number)
        return (str(number),)

    def show(first: int, last: int) -> None:
        numbers = range(first, last)
        ids = [MessageId(f"m{number}") for number in numbers]
        table.show_rows(("Number",), MadeRows(numbers, words), ids)

    table = FigureTable("Numbers")
    show(0, 5_000)
    table.show()
    table.setCurrentIndex(table.model().index(10, 0))
    show(5, 5_005)
    assert table.currentIndex().row() == 5
    show(4, 5_005)
    assert table.currentIndex().row() == 6
    show(100, 200)
    assert not table.currentIndex().isValid() or table.currentIndex().row() != 6
    assert len(set(made)) < 500


def test_the_matrix_gets_room_for_those_who_join_however_short_their_names_are() -> None:
    page = QWidget()
    column = QVBoxLayout(page)
    view = HoldersMatrix()
    column.addWidget(view)
    column.addStretch(1)
    view.show_matrix(matrix_of([message(1)], people()[:1]))
    page.resize(400, 600)
    page.show()
    layout = page.layout()
    assert layout is not None
    layout.activate()
    assert view.height() == view.sizeHint().height()
    view.show_matrix(matrix_of([message(1)], people()))
    QApplication.processEvents()
    assert view.height() == view.sizeHint().height()
    assert view.verticalScrollBar().maximum() == 0


def test_the_arrow_keys_go_through_the_matrix_and_enter_looks_into_the_message() -> None:
    view = HoldersMatrix()
    messages = [message(number) for number in range(1, 50)]
    view.show_matrix(matrix_of(messages, people()))
    view.resize(400, view.sizeHint().height())
    view.show()
    asked: list[str] = []
    view.message_chosen.connect(asked.append)
    press(view, Qt.Key.Key_Left)
    assert view.chosen == (48, 0)
    press(view, Qt.Key.Key_Left)
    press(view, Qt.Key.Key_Down)
    assert view.chosen == (47, 1)
    assert view.accessibleDescription().startswith("Luc: ")
    press(view, Qt.Key.Key_Return)
    assert asked == ["m-00048"]
    press(view, Qt.Key.Key_Home)
    assert view.horizontalScrollBar().value() == 0
    view.show_matrix(matrix_of([*messages, message(50)], people()))
    assert view.chosen == (0, 1)
    assert not view.grab().isNull()
    nothing = HoldersMatrix()
    nothing.show_matrix(matrix_of([], people()))
    press(nothing, Qt.Key.Key_Left)
    assert nothing.chosen is None
    assert not nothing.grab().isNull()


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["png", "svg", "csv"])
def test_names_of_strangers_do_no_harm_in_files(kind: str) -> None:
    members = (
        *people(),
        evil := MemberView(
            participant_id=ParticipantId("evil"),
            name=HOSTILE,
            is_self=False,
            is_admin=False,
            has_left=False,
            fingerprint="",
        ),
    )
    matrix = matrix_of([message(1), message(2, sender=HOSTILE)], members)
    assert evil.participant_id in {holder.participant_id for holder in matrix.holders}
    data = matrix_file(matrix, kind)
    if kind == "png":
        assert not QImage.fromData(data).isNull()
    elif kind == "svg":
        assert "script" not in elements(data)
    else:
        read = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
        assert not [cell for row in read for cell in row if cell.startswith("=")]
        assert any(cell.startswith("'=HYPERLINK") for cell in read[0])


@given(st.lists(st.lists(st.text(), min_size=1), min_size=1))
def test_no_cell_is_a_formula_whatever_it_says(rows: list[list[str]]) -> None:
    read = csv.reader(io.StringIO(csv_of(rows[0], rows[1:]).decode("utf-8-sig"), newline=""))
    for cell in (cell for row in read for cell in row):
        assert not cell.startswith(("=", "+", "@", "\t", "\r"))
        assert not cell.startswith("-") or cell[1:].replace(".", "", 1).isdigit()


def test_live_figures_go_into_files_and_into_a_table() -> None:
    history = LiveHistory()
    history.add(sample(0, placed=10))
    shown = charts_of(history.window(300_000, 60), is_pair=False, is_open=False)
    headings, rows = live_table(shown)
    assert len(rows) == 60
    assert {len(row) for row in rows} == {len(headings)}
    read = list(csv.reader(io.StringIO(exported(shown, "csv").decode("utf-8-sig"))))
    assert len(read) == 61
    assert int(read[-1][0]) == NOON
    assert "svg" in elements(exported(shown, "svg"))
    assert not QImage.fromData(exported(shown, "png")).isNull()


# --- MVDS -----------------------------------------------------------------------------------------


def test_records_say_the_attempts_and_when_the_next_one_is() -> None:
    def record(**changes: object) -> RecordView:
        fields: dict[str, object] = {
            "message_id": MessageId("abcdefghijklmnop"),
            "record": "offer",
            "send_count": 3,
            "send_epoch": 7,
            "next_ms": UnixMs(NOON + 2_500),
            "created_ms": UnixMs(NOON),
            "size": 300,
            "is_shown": True,
        }
        return RecordView(**(fields | changes))  # type: ignore[arg-type]

    found = PairDelivery(
        conversation_id=ConversationId("pair"),
        at_ms=UnixMs(NOON),
        epoch=5,
        epoch_ms=1_000,
        records=(record(), record(send_epoch=None, next_ms=None)),
        is_all=True,
    )
    content = RecordsContent()
    content.show_records(found)
    _, first, second = content.table.texts()
    assert first[1:3] == ["offer (OFFER)", "3"]
    assert first[3].endswith("in 2.5 s")
    assert second[3] == "given up"
    assert rounds_words(found).startswith("2 records are open.")


def elements(data: bytes) -> set[str]:
    """The names of all elements of an XML document, which must be well formed."""
    reader, found = QXmlStreamReader(data.decode()), set()
    while not reader.atEnd():
        reader.readNext()
        if reader.isStartElement():
            found.add(str(reader.name()))
    assert not reader.hasError(), reader.errorString()
    return found


def press(widget: ChartWidget | HoldersMatrix, key: Qt.Key) -> None:
    QTest.keyClick(widget, key)
