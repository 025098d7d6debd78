"""The section of what is held aside: after the end, without a place, gone when it takes one."""

from collections.abc import Callable, Coroutine

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from engine.core.ids import DeliveryState, Position, UnixMs
from engine.events import (
    ClockView,
    HeldView,
    MessageKind,
    MessageView,
)
from engine.text_spans import SpanKind, TextSpan
from tests.ui.seeing import spoken_rows
from tests.ui.timeline.timeline_stage import (
    CONVERSATION,
    IDS,
    NOW,
    MemoryPages,
    active,
    application,
    at,
    chatter,
    colours,
    conversation,
    delivery,
    message,
    opened_view,
    run,
    settled,
)
from ui.theme import ThemeMode, set_theme
from ui.timeline.boxes import BubbleBox
from ui.timeline.buttons import RowButton
from ui.timeline.cards import CardBox
from ui.timeline.row_words import claimed_words, held_details, held_title
from ui.timeline.rows import HELD_SHOWN, HeldRow, HeldTitleRow, held_rows, row_key
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")

HOUR_MS = 3_600_000
PLACED = [
    message(10, "Maya", "before"),
    message(20, "Ines", "mine", delivery=delivery(DeliveryState.HELD, 5)),
]


def clock(name: str = "Luc", ahead_ms: int = 3 * HOUR_MS) -> ClockView:
    return ClockView(participant_id=IDS[name], name=name, is_self=name == "Ines", ahead_ms=ahead_ms)


def future(number: int, who: str = "Luc", text: str = "") -> MessageView:
    sent_ms = UnixMs(NOW + 3 * HOUR_MS + number)
    return replace(message(sent_ms, who, text or f"held {number}", sent_ms=sent_ms), held=True)


def held(*messages: MessageView, total: int = 0) -> HeldView:
    return HeldView(
        conversation_id=CONVERSATION,
        messages=messages,
        total=total or len(messages),
        next_due_ms=at(17, 4),
        clocks=(clock(),),
    )


def with_view(scenario: Callable[[TimelineView], Coroutine[object, object, None]]) -> None:
    async def whole() -> None:
        async with opened_view(MemoryPages(PLACED)) as view:
            await scenario(view)

    run(whole)


def point_of(view: TimelineView, button: RowButton) -> QPoint:
    for placed in view.scene.placed:
        box = view.scene.box(placed.row)
        if isinstance(box, BubbleBox | CardBox):
            for name, rect in box.buttons:
                if name is button:
                    return rect.translated(0, placed.y).center().toPoint()
    pytest.fail(f"{button} is not in view")


def test_it_stands_after_the_end_and_is_read_aloud_with_what_it_claims() -> None:
    async def scenario(view: TimelineView) -> None:
        section = held(future(0), future(1, "Maya", "two"), future(2, "Maya"))
        view.set_held(section)
        assert spoken_rows(view)[-5:] == [
            "You, mine, 14:09, Held by 5 of 5",
            f"{held_title(section)}. {held_details(section, 3, NOW)}".rstrip("."),
            "Luc, held 0, says 17:09, held",
            "Maya, two, says 17:09, held",
            "Maya, held 2, says 17:09, held",
        ]
        first = [row.first for row in view.scene.loaded.rows if isinstance(row, HeldRow)]
        assert first == [True, True, False]
        assert view.scene.layout.sticks
        assert view.scene.loaded.total == 2
        view.set_held(None)
        assert not any("held" in row_key(row) for row in view.scene.loaded.rows)

    with_view(scenario)


def test_what_takes_its_place_leaves_the_section_at_once() -> None:
    async def scenario(view: TimelineView) -> None:
        view.set_held(held(future(0), future(1)))
        view.add(replace(future(0), held=False))
        assert [row_key(row).split()[0] for row in view.scene.loaded.rows][-3:] == [
            "message",
            "held",
            "held",
        ]
        view.add(replace(future(1), held=False))
        assert spoken_rows(view)[-1] == "Luc, held 1, 17:09"
        view.set_held(None)
        assert spoken_rows(view)[-1] == "Luc, held 1, 17:09"

    with_view(scenario)


def test_it_is_never_read_up_to_selected_or_deleted() -> None:
    async def scenario(view: TimelineView) -> None:
        await active(view)
        marks: list[Position] = []
        view.visibleUpTo.connect(marks.append)
        view.set_held(held(future(0)))
        view.read_tracker.note_seen()
        assert {*marks} <= {one.position for one in PLACED}
        QTest.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        view.interaction.copy_selection()
        assert "held 0" not in QGuiApplication.clipboard().text()
        view.scene.selection.clear()
        view.interaction.open_menu(future(0), QPoint(0, 0), link=None)
        menu = view.interaction.menu
        assert isinstance(menu, QMenu)
        said = ["Copy message", "About Luc", "Write to Luc"]
        assert [action.text() for action in menu.actions()] == said
        menu.close()

    with_view(scenario)


def test_a_key_leads_to_it_and_copies_it() -> None:
    async def scenario(view: TimelineView) -> None:
        await active(view)
        view.set_held(held(future(0)))
        for _ in range(2):
            QTest.keyClick(view, Qt.Key.Key_Up)
        assert view.scene.focus_key == "held"
        QTest.keyClick(view, Qt.Key.Key_Down)
        assert view.scene.focus_key == f"held {future(0).message_id}"
        view.interaction.copy_selection()
        assert QGuiApplication.clipboard().text().endswith("held 0")

    with_view(scenario)


def test_many_are_folded_and_open_in_place() -> None:
    async def scenario(view: TimelineView) -> None:
        view.set_held(held(*(future(n) for n in range(9)), total=70))

        def shown() -> int:
            return sum(isinstance(row, HeldRow) for row in view.scene.loaded.rows)

        assert shown() == HELD_SHOWN
        assert "70 messages, 3 shown." in spoken_rows(view)[-4]
        QTest.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=point_of(view, RowButton.HELD_ALL)
        )
        assert shown() == 9
        QTest.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=point_of(view, RowButton.HELD_FEWER)
        )
        assert shown() == HELD_SHOWN

    with_view(scenario)


def test_one_scrolls_through_many_without_a_jump() -> None:
    async def scenario(view: TimelineView) -> None:
        view.set_held(held(*(future(n, text=f"{n} " + "word " * 40) for n in range(40))))
        view.scene.loaded.fold_held()
        view.canvas.refresh()
        for down in [37] * 60 + [-41] * 40:
            before = {row_key(p.row): p.y for p in view.scene.placed}
            at_end = view.scene.layout.sticks
            view.canvas.scroll_by(down)
            after = {row_key(p.row): p.y for p in view.scene.placed}
            moved = {round(after[key] - before[key]) for key in before.keys() & after.keys()}
            beginning = view.scene.placed[0].index == 0
            assert moved == {down} or beginning or (at_end and down < 0), moved

    with_view(scenario)


def test_it_waits_below_the_newest_page_only() -> None:
    async def scenario() -> None:
        async with opened_view(MemoryPages(chatter(400))) as view:
            view.set_held(held(future(0)))
            assert isinstance(view.scene.loaded.rows[-1], HeldRow)
            view.navigation.go_to_beginning()
            await settled(view)
            assert view.scene.loaded.has_newer
            assert not any(
                isinstance(row, HeldRow | HeldTitleRow) for row in view.scene.loaded.rows
            )

    run(scenario)


def test_another_conversations_is_not_shown_and_opening_one_forgets_the_last() -> None:
    async def scenario(view: TimelineView) -> None:
        view.set_held(replace(held(future(0)), conversation_id=type(CONVERSATION)("other")))
        assert view.scene.loaded.held is None
        view.set_held(held(future(0)))
        view.open(conversation())
        await settled(view)
        assert view.scene.loaded.held is None

    with_view(scenario)


def test_links_work_and_the_text_cannot_be_selected() -> None:
    link = TextSpan(kind=SpanKind.LINK, start=0, length=20, target="https://example.org/")
    one = replace(future(0, text="https://example.org/"), spans=(link,))

    async def scenario(view: TimelineView) -> None:
        asked: list[str] = []
        view.linkActivated.connect(asked.append)
        view.set_held(held(one))
        (placed,) = [p for p in view.scene.placed if isinstance(p.row, HeldRow)]
        box = view.scene.box(placed.row)
        assert isinstance(box, BubbleBox)
        inside = (box.body_at.toPoint()) + QPoint(30, int(placed.y) + 8)
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=inside)
        assert asked == ["https://example.org/"]
        QTest.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=inside)
        assert view.scene.selection.copied(view.scene.loaded.messages) == ""

    with_view(scenario)


@pytest.mark.parametrize("mode", list(ThemeMode))
def test_it_is_seen_in_every_theme(mode: ThemeMode) -> None:
    async def scenario(view: TimelineView) -> None:
        view.set_held(held(future(0), future(1, "Maya")))
        theme = set_theme(application(), mode)
        seen = colours(view)
        for colour in (theme.warnBg, theme.warnDot, theme.ink2, theme.warn, theme.ink3):
            assert colour.rgb() in seen, colour.name()

    try:
        with_view(scenario)
    finally:
        set_theme(application(), ThemeMode.LIGHT)


@pytest.mark.parametrize("width", [330, 968])
def test_long_names_take_more_lines_and_nothing_is_cut_off(width: int) -> None:
    long = replace(clock(), name="W" * 300)
    section = replace(
        held(*(future(n, text="x" * 400) for n in range(5))),
        clocks=(long, long, long),
    )

    async def scenario() -> None:
        async with opened_view(MemoryPages(PLACED), width=width, height=1600) as view:
            view.set_held(section)
            for placed in view.scene.placed:
                box = view.scene.box(placed.row)
                rects = [rect for _button, rect in getattr(box, "buttons", ())]
                if isinstance(box, CardBox):
                    rects += [box.card, box.title_at, box.details_at]
                    assert box.title_at.bottom() <= box.details_at.top()
                elif isinstance(box, BubbleBox):
                    rects.append(box.bubble)
                for rect in rects:
                    assert rect.left() >= 0
                    assert rect.right() <= view.viewport().width()
                    assert rect.bottom() <= placed.height + 1

    run(scenario)


# --- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clocks", "words"),
    [
        ((clock(),), "Held: Luc's clock is 3 h ahead"),
        ((clock("Ines"),), "Held: your clock was 3 h ahead"),
        (
            (clock(), clock("Maya", 600_000)),
            "Held: the clocks of Luc and Maya are up to 3 h ahead",
        ),
        (
            (clock(), clock("Maya"), clock("Ines")),
            "Held: the clocks of Luc and 2 others are up to 3 h ahead",
        ),
        ((replace(clock(), name="\n\u202e "),), "Held: ?'s clock is 3 h ahead"),
        ((), "Held: their time has not come"),
    ],
)
def test_the_title_says_whose_clock_is_wrong(clocks: tuple[ClockView, ...], words: str) -> None:
    assert held_title(replace(held(), clocks=clocks)) == words


@pytest.mark.parametrize(
    ("due_ms", "words"),
    [
        (at(17, 4), "1 message. It takes its place at 17:04, or when the clocks agree."),
        (
            at(9, 0, 21),
            "1 message. It takes its place on 21 November, 09:00, or when the clocks agree.",
        ),
    ],
)
def test_the_details_say_when_it_takes_its_place(due_ms: UnixMs, words: str) -> None:
    section = replace(held(future(0)), next_due_ms=due_ms)
    assert held_details(section, 1, NOW) == f"{words} If yours is wrong, set it right."


def test_of_many_the_details_say_from_when_on() -> None:
    section = held(future(0), future(1), total=9)
    assert held_details(section, 2, NOW).startswith(
        "9 messages, 2 shown. They take their places from 17:04 on, or when the clocks agree."
    )


def test_a_claim_is_shown_as_one_whatever_it_is() -> None:
    other_day = future(24 * HOUR_MS)
    assert claimed_words(other_day, NOW) == "says 21 November, 17:09"
    far = replace(other_day, position=replace(other_day.position, lamport_timestamp=2**53 - 1))
    assert claimed_words(far, NOW).startswith("says ")


def test_somebody_who_joined_in_the_future_is_a_line_of_its_own() -> None:
    joined = replace(future(0), kind=MessageKind.JOINED)

    async def scenario(view: TimelineView) -> None:
        view.set_held(held(joined, future(1)))
        assert spoken_rows(view)[-2] == "Luc joined, says 17:09, held"
        view.grab()

    with_view(scenario)


def test_nothing_held_and_all_placed_make_no_rows() -> None:
    assert held_rows(None, unfolded=False, placed=()) == []
    section = held(future(0))
    assert held_rows(section, unfolded=True, placed={future(0).message_id}) == []
