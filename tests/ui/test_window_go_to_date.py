"""From the menu of a conversation to any day of it, through a calendar, in the real window."""

from datetime import date, datetime, time
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QDate, Qt
from PySide6.QtGui import QAccessible, QImage, QPainter
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QTableView

from engine.core.ids import UnixMs
from tests.ui.desks import Desk, at_desks
from tests.ui.driving import Key, Stage, group_stage, pair_stage, play, until
from tests.ui.scripted_engine import member
from tests.ui.seeing import choose, entries, sheet_of
from tests.ui.timeline.timeline_stage import (
    MemoryPages,
    at,
    message,
    opened_view,
    places,
    run,
    settled,
)
from ui.dialogs.go_to_date import GoToDate
from ui.theme import current_theme
from ui.timeline.rows import DayRow, MessageRow
from ui.timeline.view import TimelineView

pytestmark = pytest.mark.usefixtures("qapp")


def daily(days: int, each: int) -> MemoryPages:
    """Messages of every second day of November, whose timestamps are times, as in the engine."""
    made = [
        message(at(9, n, 2 * day + 1) + n, sent_ms=at(9, n, 2 * day + 1))
        for day in range(days)
        for n in range(each)
    ]
    return MemoryPages(made)


def day_at_top(view: TimelineView) -> tuple[date, str]:
    """The first day that begins in view, and the message below it."""
    placed = [p for p in view.scene.placed if p.y >= 0]
    row = placed[0].row
    assert isinstance(row, DayRow)
    below = placed[1].row
    assert isinstance(below, MessageRow)
    return row.day, below.message.message_id


def test_a_day_begins_at_the_top_also_if_it_was_not_loaded() -> None:
    source = daily(14, 50)

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.go_to_day(date(2026, 11, 5))
            await settled(view)
            assert day_at_top(view) == (date(2026, 11, 5), source.messages[100].message_id)
            view.go_to_day(date(2026, 11, 4))  # nothing was said: the next day there is
            await settled(view)
            assert day_at_top(view)[0] == date(2026, 11, 5)
            asked = len(source.asked)
            view.go_to_day(date(2026, 11, 7))
            assert day_at_top(view)[0] == date(2026, 11, 7)
            assert "around" not in source.asked[asked:]
            assert view.day_in_view() == date(2026, 11, 7)

    run(scenario)


def test_before_the_beginning_and_after_the_end_are_the_first_and_the_last() -> None:
    source = daily(14, 50)

    async def scenario() -> None:
        async with opened_view(source) as view:
            view.go_to_day(date(1971, 1, 1))
            await settled(view)
            assert source.messages[0].message_id in places(view)
            view.go_to_day(date(2030, 1, 1))
            await settled(view)
            assert source.messages[-1].message_id in places(view)

    run(scenario)


def test_days_with_messages_are_found_by_reading_one_row_of_each() -> None:
    source = daily(3, 50)

    async def scenario() -> None:
        async with opened_view(source) as view:
            source.asked.clear()
            found = await view.days_with_messages(date(2026, 10, 25), date(2026, 11, 6))
            assert found == {date(2026, 11, day) for day in (1, 3, 5)}
            assert source.asked == ["after"] * 4
            assert await view.days_with_messages(date(2026, 11, 2), date(2026, 11, 2)) == set()
            assert await view.days_with_messages(date(2026, 12, 1), date(2026, 12, 31)) == set()

    run(scenario)


def test_the_calendar_marks_the_days_with_messages_and_says_it_of_the_chosen_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        "ui.dialogs.go_to_date.announce", lambda _calendar, words: said.append(words)
    )
    days = (date(2026, 11, 3), date(2026, 10, 31))

    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            for day in reversed(days):
                noon = UnixMs(int(datetime.combine(day, time(12)).timestamp() * 1000))
                row = engine.row(group, member("Maya"), "hello")
                place = replace(row.position, lamport_timestamp=noon)
                engine.arrive(replace(row, position=place, sent_ms=noon), notify=False)
            await until(lambda: it.window.pane.timeline.day_in_view() is not None)
            sheet = await calendar(it)
            sheet.calendar.setSelectedDate(QDate(2026, 11, 3))
            await until(lambda: set(days) <= sheet.calendar.marked)
            assert sheet.about.text() == "3 November 2026: there are messages."
            it.press(Key.Key_Left)
            none = "2 November 2026: no messages. The next ones after it are shown."
            assert sheet.about.text() == none
            assert said[-1] == none
            assert sheet.about.height() >= sheet.about.heightForWidth(sheet.about.width())
            marked, plain = dots(sheet, QDate(2026, 10, 31)), dots(sheet, QDate(2026, 11, 1))
            assert marked > plain
            sheet.calendar.setCurrentPage(2026, 9)
            await until(lambda: not sheet.calendar.marked)
            it.press(Key.Key_Escape, on=sheet)
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def dots(sheet: GoToDate, day: QDate) -> int:
    """Pixels in the colour of the marks that painting this day makes."""
    image = QImage(60, 40, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    sheet.calendar.paintCell(painter, image.rect(), day)
    painter.end()
    accent = current_theme().accent.rgb()
    return sum(image.pixel(x, y) == accent for x in range(60) for y in range(40))


def test_the_menu_opens_a_calendar_and_the_arrows_choose() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, group):
            engine.receive(group, "Maya", "hello")
            sheet = await calendar(it)
            today = sheet.day
            days = sheet.calendar.findChild(QTableView)
            assert isinstance(days, QTableView)
            await until(days.hasFocus)
            it.press(Key.Key_Up)
            assert (today - sheet.day).days == 7
            it.press(Key.Key_Return)
            await until(lambda: it.window.flows.sheet is None)
            timeline = it.window.pane.timeline
            await until(timeline.hasFocus)

    play(scenario)


def test_escape_goes_nowhere_and_no_day_after_today_can_be_chosen() -> None:
    async def scenario() -> None:
        async with pair_stage("Luc") as (it, _engine, _pair):
            sheet = await calendar(it)
            today = sheet.day
            sheet.calendar.setSelectedDate(QDate(2100, 1, 1))
            assert sheet.day == today
            it.press(Key.Key_Escape, on=sheet)
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def test_every_part_of_the_calendar_has_a_name() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            sheet = await calendar(it)
            nameless = [
                part.objectName()
                for kind in (QAbstractButton, QAbstractItemView)
                for part in sheet.findChildren(kind)
                if part.isVisible()
                and not QAccessible.queryAccessibleInterface(part).text(QAccessible.Text.Name)
            ]
            assert nameless == []
            it.press(Key.Key_Escape, on=sheet)
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def test_it_works_on_the_real_engine(tmp_path: Path) -> None:
    async def scenario(alice: Desk) -> None:
        group = await alice.engine.groups.create("Tide Gauge")
        alice.window.open_conversation(group)
        alice.type_and_enter("first words")
        await until(lambda: alice.has_row("first words"))
        timeline = alice.window.pane.timeline
        for day in (date(1971, 1, 1), date.today(), date(2100, 1, 1)):  # noqa: DTZ011 - where one is
            timeline.go_to_day(day)
            await until(lambda: not timeline.navigation.loading)
            assert alice.has_row("first words")

    at_desks(tmp_path, ("Alice",), scenario)


async def calendar(it: Stage) -> GoToDate:
    menu = it.window.pane.header.more.menu()
    assert "Go to date…" in entries(menu)
    choose(menu, "Go to date…")
    sheet = await sheet_of(it.window, GoToDate)
    assert sheet.isVisible()
    return sheet
