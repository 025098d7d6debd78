"""What mouse and keyboard do to the timeline: select, copy, follow links, act on messages."""

from collections.abc import Callable, Coroutine

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.core.ids import DeliveryState
from engine.core.problems import FailureReason
from engine.events import MessageView, ReactionView
from engine.text_spans import SpanKind, TextSpan
from tests.ui.driving import move_mouse
from tests.ui.timeline.timeline_stage import (
    MemoryPages,
    application,
    at,
    chatter,
    delivery,
    emitted,
    gap,
    message,
    opened_view,
    run,
    settled,
)
from ui.timeline.boxes import BubbleBox
from ui.timeline.buttons import RowButton
from ui.timeline.cards import CardBox
from ui.timeline.rows import message_key, message_of, row_key
from ui.timeline.text_block import TextBlock
from ui.timeline.view import TimelineView
from ui.tips import shown_tip

pytestmark = pytest.mark.usefixtures("qapp")

LINK = "https://tides.example/pier?unit=m"
WITH_LINK = f"Look 🌊 at {LINK} now"
NO_KEYS, LEFT = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton

ROWS = [
    message(10, "Maya", "first words", sent_ms=at(13, 0)),
    message(
        20, "Ines", "my own words", sent_ms=at(13, 10), delivery=delivery(DeliveryState.HELD, 4)
    ),
    message(
        30,
        "Luc",
        WITH_LINK,
        sent_ms=at(13, 20),
        spans=(TextSpan(kind=SpanKind.LINK, start=11, length=len(LINK), target=LINK),),
    ),
    message(
        40,
        "Ines",
        "never left",
        sent_ms=at(13, 30),
        delivery=delivery(DeliveryState.FAILED, failure=FailureReason.NOBODY_TOOK_IT),
    ),
]

Scenario = Callable[[TimelineView], Coroutine[object, object, None]]


def with_rows(scenario: Scenario, rows: list[MessageView] | None = None) -> None:
    async def whole() -> None:
        async with opened_view(MemoryPages(ROWS if rows is None else rows)) as view:
            view.scene.focus_key = None
            view.setFocus()
            QGuiApplication.clipboard().clear()
            await scenario(view)

    run(whole)


def bubble(view: TimelineView, shown: MessageView) -> tuple[BubbleBox, float]:
    for placed in view.scene.placed:
        if message_of(placed.row) == shown:
            box = view.scene.box(placed.row)
            assert isinstance(box, BubbleBox)
            return box, placed.y
    raise AssertionError(shown)


def text_point(view: TimelineView, shown: MessageView, index: int) -> QPoint:
    """Just inside the character at a UTF-16 index."""
    box, y = bubble(view, shown)
    text = box.body.blocks[0]
    assert isinstance(text, TextBlock)
    layout = text.shape.layout
    for number in range(layout.lineCount()):
        line = layout.lineAt(number)
        if line.textStart() <= index <= line.textStart() + line.textLength():
            x = line.cursorToX(index)
            assert isinstance(x, tuple)
            at_line = line.y() + line.height() / 2
            left = box.body_at.x() + float(x[0]) + 1
            return QPointF(left, box.body_at.y() + y + at_line).toPoint()
    raise AssertionError(index)


def button_point(view: TimelineView, button: RowButton) -> QPoint:
    for placed in view.scene.placed:
        box = view.scene.box(placed.row)
        for found, rect in box.buttons if isinstance(box, BubbleBox | CardBox) else ():
            if found is button:
                return rect.translated(0, placed.y).center().toPoint()
    raise AssertionError(button)


async def drag(view: TimelineView, start: QPoint, end: QPoint) -> None:
    QTest.mousePress(view.viewport(), LEFT, NO_KEYS, start)
    await move_mouse(view.viewport(), (start + end) / 2)
    await move_mouse(view.viewport(), end)
    QTest.mouseRelease(view.viewport(), LEFT, NO_KEYS, end)


def click(view: TimelineView, point: QPoint) -> None:
    QTest.mouseClick(view.viewport(), LEFT, NO_KEYS, point)


def copied(view: TimelineView) -> str:
    QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    return QGuiApplication.clipboard().text()


@pytest.mark.parametrize("backwards", [False, True])
def test_text_within_a_message_is_copied_bare(backwards: bool) -> None:
    async def scenario(view: TimelineView) -> None:
        ends = [text_point(view, ROWS[0], 0), text_point(view, ROWS[0], 5)]
        await drag(view, *(reversed(ends) if backwards else ends))
        assert copied(view) == "first"

    with_rows(scenario)


def test_text_across_messages_keeps_who_and_when() -> None:
    async def scenario(view: TimelineView) -> None:
        await drag(view, text_point(view, ROWS[0], 6), text_point(view, ROWS[1], 6))
        assert copied(view) == (
            "Maya, 20 November 2026, 13:00\nwords\n\nYou, 20 November 2026, 13:10\nmy own"
        )

    with_rows(scenario)


def test_indexes_beyond_an_emoji_are_those_of_qt() -> None:
    async def scenario(view: TimelineView) -> None:
        await drag(view, text_point(view, ROWS[2], 5), text_point(view, ROWS[2], 10))
        assert copied(view) == "🌊 at"

    with_rows(scenario)


def test_select_all_takes_every_loaded_message() -> None:
    async def scenario(view: TimelineView) -> None:
        QTest.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        text = copied(view)
        assert [row.text in text for row in ROWS] == [True] * 4
        QTest.keyClick(view, Qt.Key.Key_Escape)
        QGuiApplication.clipboard().clear()
        assert copied(view) == ""

    with_rows(scenario)


def test_a_selection_stays_on_its_text_when_rows_come_in_above() -> None:
    async def scenario(view: TimelineView) -> None:
        await drag(view, text_point(view, ROWS[1], 3), text_point(view, ROWS[1], 6))
        view.add(message(5, "Luc", "late", late=True))
        assert copied(view) == "own"
        view.remove(ROWS[1].message_id)
        QGuiApplication.clipboard().clear()
        assert copied(view) == ""

    with_rows(scenario)


def test_a_double_click_takes_the_word_and_a_triple_click_the_message() -> None:
    async def scenario(view: TimelineView) -> None:
        point = text_point(view, ROWS[1], 4)
        click(view, point)
        QTest.mouseDClick(view.viewport(), LEFT, NO_KEYS, point)
        assert copied(view) == "own"
        click(view, point)
        assert copied(view) == "my own words"

    with_rows(scenario)


def test_selected_text_is_painted_as_selected() -> None:
    async def scenario(view: TimelineView) -> None:
        box, y = bubble(view, ROWS[0])
        corner = (box.body_at + QPointF(1, y + 2)).toPoint()
        before = view.viewport().grab().toImage().pixelColor(corner)
        await drag(view, text_point(view, ROWS[0], 0), text_point(view, ROWS[0], 5))
        after = view.viewport().grab().toImage().pixelColor(corner)
        assert before == view.scene.theme.surface
        assert after == view.scene.theme.accent

    with_rows(scenario)


def test_a_link_shows_a_hand_and_a_click_asks_for_it() -> None:
    async def scenario(view: TimelineView) -> None:
        asked: list[str] = []
        view.linkActivated.connect(asked.append)
        inside, outside = text_point(view, ROWS[2], 15), text_point(view, ROWS[2], 2)
        await move_mouse(view.viewport(), outside)
        assert view.viewport().cursor().shape() is Qt.CursorShape.IBeamCursor
        await move_mouse(view.viewport(), inside)
        assert view.viewport().cursor().shape() is Qt.CursorShape.PointingHandCursor
        click(view, outside)
        assert asked == []
        click(view, inside)
        assert asked == [LINK]
        await drag(view, text_point(view, ROWS[2], 12), text_point(view, ROWS[2], 18))
        assert asked == [LINK]

    with_rows(scenario)


def test_buttons_in_rows_ask_the_window() -> None:
    async def scenario(view: TimelineView) -> None:
        asked: list[tuple[str, ...]] = []
        view.resendRequested.connect(lambda message_id: asked.append(("resend", message_id)))
        view.discardRequested.connect(lambda message_id: asked.append(("discard", message_id)))
        view.fetchRequested.connect(lambda: asked.append(("fetch",)))
        view.set_gap(gap())
        for button in (RowButton.RESEND, RowButton.DISCARD, RowButton.FETCH):
            click(view, button_point(view, button))
        failed = ROWS[3].message_id
        assert asked == [("resend", failed), ("discard", failed), ("fetch",)]

    with_rows(scenario)


def test_a_press_that_leaves_the_button_is_taken_back() -> None:
    async def scenario(view: TimelineView) -> None:
        asked: list[str] = []
        view.resendRequested.connect(asked.append)
        start = button_point(view, RowButton.RESEND)
        await drag(view, start, start - QPoint(0, 60))
        assert asked == []

    with_rows(scenario)


def test_the_details_of_a_gap_open_and_close_in_place() -> None:
    async def scenario(view: TimelineView) -> None:
        view.set_gap(gap())
        closed = view.scene.box(view.scene.loaded.rows[-1]).height
        click(view, button_point(view, RowButton.GAP_DETAILS))
        assert view.scene.box(view.scene.loaded.rows[-1]).height > closed
        click(view, button_point(view, RowButton.GAP_DETAILS))
        assert view.scene.box(view.scene.loaded.rows[-1]).height == closed

    with_rows(scenario)


def open_menu_by_mouse(view: TimelineView, shown: MessageView) -> list[str]:
    point = text_point(view, shown, 1)
    event = QContextMenuEvent(
        QContextMenuEvent.Reason.Mouse, point, view.viewport().mapToGlobal(point)
    )
    QApplication.sendEvent(view.viewport(), event)
    return entries(view)


def entries(view: TimelineView) -> list[str]:
    assert view.interaction.menu is not None
    return [action.text() for action in view.interaction.menu.actions() if not action.isSeparator()]


def choose(view: TimelineView, entry: str) -> None:
    menu = view.interaction.menu
    assert menu is not None
    next(action for action in menu.actions() if action.text() == entry).trigger()
    menu.close()
    assert view.interaction.menu is None


def test_the_menu_offers_what_makes_sense_for_the_message() -> None:
    async def scenario(view: TimelineView) -> None:
        view.allow_writing(False)
        assert open_menu_by_mouse(view, ROWS[0]) == [
            "Forward…",
            "Copy message",
            "Message info…",
            "Inspect",
            "About Maya",
            "Write to Maya",
            "Delete here…",
        ]
        choose(view, "Copy message")
        text = QGuiApplication.clipboard().text()
        assert text == "first words"
        view.allow_writing(True)
        assert open_menu_by_mouse(view, ROWS[1]) == [
            "React",
            "Reply",
            "Edit",
            "Forward…",
            "Copy message",
            "Message info…",
            "Inspect",
            "Who holds it…",
            "Delete…",
        ]
        asked: list[tuple[str, str]] = []
        for name in ("holders", "resend", "discard"):
            signal = getattr(view, f"{name}Requested")
            signal.connect(lambda message_id, name=name: asked.append((name, message_id)))
        view.deleteRequested.connect(lambda message: asked.append(("delete", message.message_id)))
        choose(view, "Who holds it…")
        for entry in ("Resend", "Discard…", "Delete here…"):
            open_menu_by_mouse(view, ROWS[3])
            choose(view, entry)
        failed = ROWS[3].message_id
        assert asked == [
            ("holders", ROWS[1].message_id),
            ("resend", failed),
            ("discard", failed),
            ("delete", failed),
        ]

    with_rows(scenario)


def test_the_menu_copies_a_link_and_a_selection() -> None:
    async def scenario(view: TimelineView) -> None:
        await drag(view, text_point(view, ROWS[0], 0), text_point(view, ROWS[0], 5))
        point = text_point(view, ROWS[2], 15)
        event = QContextMenuEvent(
            QContextMenuEvent.Reason.Mouse, point, view.viewport().mapToGlobal(point)
        )
        QApplication.sendEvent(view.viewport(), event)
        assert entries(view)[3:6] == ["Copy", "Copy message", "Copy link"]
        choose(view, "Copy link")
        assert QGuiApplication.clipboard().text() == LINK

    with_rows(scenario)


@pytest.mark.parametrize(
    ("key", "modifier"),
    [
        (Qt.Key.Key_Menu, NO_KEYS),
        (Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier),
    ],
)
def test_the_focused_message_has_its_menu_by_keyboard(
    key: Qt.Key, modifier: Qt.KeyboardModifier
) -> None:
    async def scenario(view: TimelineView) -> None:
        QTest.keyClick(view, Qt.Key.Key_Up)
        assert view.scene.focus_key == message_key(ROWS[3].message_id)
        QTest.keyClick(view, Qt.Key.Key_Up)
        QTest.keyClick(view, Qt.Key.Key_Up)
        assert view.scene.focus_key == message_key(ROWS[1].message_id)
        QTest.keyClick(view, key, modifier)
        assert "Who holds it…" in entries(view)
        choose(view, "Copy message")

    with_rows(scenario)


def test_arrow_keys_walk_through_all_messages_and_keep_them_in_view() -> None:
    rows = chatter(300)

    async def scenario(view: TimelineView) -> None:
        visited = []
        for _step in range(120):
            QTest.keyClick(view, Qt.Key.Key_Up)
            await settled(view)
            assert view.scene.focus_key is not None
            rect = view.scene.rect(view.scene.focus_key)
            assert rect is not None
            assert rect.top() >= 0
            assert rect.bottom() <= view.height()
            visited.append(view.scene.focus_key)
        assert visited == [message_key(m.message_id) for m in reversed(rows[180:])]
        QTest.keyClick(view, Qt.Key.Key_Down)
        assert view.scene.focus_key == message_key(rows[181].message_id)

    with_rows(scenario, rows)


def test_pages_home_and_end() -> None:
    rows = chatter(700)

    async def scenario(view: TimelineView) -> None:
        bottom = {row_key(p.row) for p in view.scene.placed}
        QTest.keyClick(view, Qt.Key.Key_PageUp)
        above = {row_key(p.row) for p in view.scene.placed}
        assert bottom & above
        assert above - bottom
        QTest.keyClick(view, Qt.Key.Key_PageDown)
        assert {row_key(p.row) for p in view.scene.placed} == bottom
        QTest.keyClick(view, Qt.Key.Key_Home)
        await settled(view)
        assert view.scene.rect(message_key(rows[0].message_id)) is not None
        QTest.keyClick(view, Qt.Key.Key_End)
        await settled(view)
        assert view.scene.rect(message_key(rows[-1].message_id)) is not None

    with_rows(scenario, rows)


def test_enter_does_what_the_focused_row_wants() -> None:
    async def scenario(view: TimelineView) -> None:
        asked: list[str] = []
        view.resendRequested.connect(asked.append)
        view.linkActivated.connect(asked.append)
        QTest.keyClick(view, Qt.Key.Key_Up)
        QTest.keyClick(view, Qt.Key.Key_Return)
        QTest.keyClick(view, Qt.Key.Key_Up)
        QTest.keyClick(view, Qt.Key.Key_Return)
        assert asked == [ROWS[3].message_id, LINK]

    with_rows(scenario)


def test_copy_without_a_selection_takes_the_focused_message() -> None:
    async def scenario(view: TimelineView) -> None:
        QTest.keyClick(view, Qt.Key.Key_Up)
        assert copied(view) == "never left"

    with_rows(scenario)


def test_the_focus_ring_is_seen_only_while_the_view_has_the_focus() -> None:
    async def scenario(view: TimelineView) -> None:
        await emitted_focus(view)
        QTest.keyClick(view, Qt.Key.Key_Up)
        assert view.scene.focus_key is not None
        rect = view.scene.rect(view.scene.focus_key)
        assert rect is not None
        ring = QPoint(round(rect.center().x()), round(rect.top()) - 3)
        focus = view.scene.theme.focus
        assert view.viewport().grab().toImage().pixelColor(ring) == focus
        view.clearFocus()
        assert view.viewport().grab().toImage().pixelColor(ring) != focus

    async def emitted_focus(view: TimelineView) -> None:
        view.activateWindow()
        while not view.hasFocus():
            await emitted(application().focusObjectChanged)

    with_rows(scenario)


def tip_at(view: TimelineView, point: QPoint) -> str:
    event = QHelpEvent(QHelpEvent.Type.ToolTip, point, view.viewport().mapToGlobal(point))
    QApplication.sendEvent(view.viewport(), event)
    return shown_tip()


def test_a_reaction_tells_who_chose_it() -> None:
    both = ReactionView(emoji="🎉", count=2, mine=True, names=("Luc",))
    reacted = replace(ROWS[0], reactions=(both, ReactionView(emoji="👍", count=1, names=("Maya",))))

    async def scenario(view: TimelineView) -> None:
        box, y = bubble(view, reacted)
        tips = [tip_at(view, c.rect.translated(0, y).center().toPoint()) for c in box.chips]
        assert tips == ["🎉 from you and Luc", "👍 from Maya"]

    with_rows(scenario, [reacted])


def test_ticks_tell_who_holds_a_message() -> None:
    async def scenario(view: TimelineView) -> None:
        box, y = bubble(view, ROWS[1])
        point = box.meta.rect.translated(0, y).center().toPoint()
        told = " ".join(tip_at(view, point).split())
        assert "20 November 2026, 13:10. Held by 4 of 5. Not yet: Tomas. It is with " in told
        assert "Maya" in told.partition("It is with")[2]

    with_rows(scenario)


def test_a_link_tells_where_it_really_leads() -> None:
    async def scenario(view: TimelineView) -> None:
        assert LINK in tip_at(view, text_point(view, ROWS[2], 15)).replace("\n", "")

    with_rows(scenario)
