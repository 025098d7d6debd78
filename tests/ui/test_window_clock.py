"""Our clock in the window: the quiet line, the banner, the sheet, and what a person decides."""

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QAccessible

from engine.core.errors import InputError, InputFlaw
from engine.core.ids import UnixMs
from engine.events import ClockOffsetDropped, OwnClockView
from tests.ui.driving import NOW, Key, Stage, group_stage, play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from tests.ui.seeing import sheet_of, words_of
from ui.controls import Button
from ui.dialogs.clock import CheckClock
from ui.window.notices import Notice

pytestmark = pytest.mark.usefixtures("qapp")
HOUR_MS = 3_600_000
BEHIND = OwnClockView(behind_ms=HOUR_MS, by=("Maya", "Luc"), heard=2, known_long=True)
QUIET = replace(BEHIND, behind_ms=20_000)


def notice_of(it: Stage) -> Notice | None:
    notices = {notice.key: notice for notice in it.window.notices.notices()}
    return notices.get("clock")


def act(it: Stage, name: str) -> Button:
    buttons = [button for row in it.window.notices.rows for button in row.acts]
    return next(button for button in buttons if button.accessibleName() == name)


def test_a_little_off_is_a_quiet_line_that_leads_to_the_sheet_by_keyboard() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            strip = it.window.strip
            assert not strip.clock.isVisible()
            engine.judge_clock(QUIET)
            assert strip.clock.isVisible()
            assert strip.clock.accessibleName() == "Clock 20 s behind"
            assert notice_of(it) is None
            strip.clock.setFocus()
            it.press(Key.Key_Return, on=strip.clock)
            sheet = await sheet_of(it.window, CheckClock)
            assert "This device's clock is 20 s behind the others'." in words_of(sheet)
            engine.judge_clock(None)
            assert not strip.clock.isVisible()
            assert "Nobody says that this device's clock is wrong." in words_of(sheet)
            assert not sheet.go_by.isVisible()

    play(scenario)


def test_far_off_is_a_banner_and_going_by_the_others_is_said_and_taken_back() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.judge_clock(BEHIND)
            banner = notice_of(it)
            assert banner is not None
            assert banner.text.startswith("This device's clock is 1 h behind the others'. Maya")
            button = act(it, "Go by the others")
            button.setFocus()
            it.press(Key.Key_Return, on=button)
            await until(lambda: bool(engine.called("set_clock_offset")))
            assert engine.called("set_clock_offset") == [HOUR_MS]
            await until(lambda: (notice_of(it) or banner) is not banner)
            going = notice_of(it)
            assert going is not None
            assert going.text.startswith("You go by the others' clock, 1 h ahead of this device's")
            assert it.window.strip.clock.accessibleName() == "By the others' clock"
            act(it, "Go by this device's clock again").click()
            await until(lambda: notice_of(it) is None)
            assert engine.called("set_clock_offset") == [HOUR_MS, None]
            assert not it.window.strip.clock.isVisible()

    play(scenario)


def test_a_banner_that_was_closed_comes_back_only_for_other_news() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.judge_clock(BEHIND)
            it.window.notices.rows[0].close_button.click()
            engine.judge_clock(replace(BEHIND, behind_ms=HOUR_MS + 3_000))
            assert notice_of(it) is None
            assert it.window.strip.clock.isVisible(), "the quiet line stays"
            engine.judge_clock(replace(BEHIND, behind_ms=-HOUR_MS))
            assert notice_of(it) is not None

    play(scenario)


def test_a_banner_that_is_open_follows_what_is_said() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.judge_clock(BEHIND)
            engine.judge_clock(replace(BEHIND, behind_ms=2 * HOUR_MS))
            banner = notice_of(it)
            assert banner is not None
            assert "2 h behind" in banner.text
            engine.judge_clock(QUIET)
            assert notice_of(it) is None

    play(scenario)


def test_both_clocks_tick_in_the_sheet_and_looking_again_asks_the_engine() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.judge_clock(replace(BEHIND, offset_ms=HOUR_MS, since_ms=UnixMs(1)))
            it.window.clock.check()
            sheet = await sheet_of(it.window, CheckClock)
            assert sheet.ours.time.text() == f"{NOW:%H:%M:%S}"
            assert sheet.theirs.time.accessibleName().startswith("The others: ")
            ours, theirs = (int(face.time.text()[:2]) for face in (sheet.ours, sheet.theirs))
            assert (theirs - ours) % 24 == 2, "the offset in force and what is said beside it"
            engine.clock_view = None
            sheet.again.click()
            assert not sheet.theirs.time.isVisible()
            sheet.close_button.click()
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


def test_who_set_the_clock_after_going_by_the_others_is_led_back() -> None:
    """The offset in force is what is wrong now: without it the clock agrees."""

    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.judge_clock(OwnClockView(offset_ms=HOUR_MS, since_ms=UnixMs(1)))
            it.window.clock.check()
            sheet = await sheet_of(it.window, CheckClock)
            assert sheet.go_by.accessibleName() == "Go by this device's clock again"
            sheet.go_by.click()
            await until(lambda: it.window.flows.sheet is None)
            assert engine.called("set_clock_offset") == [None]

    play(scenario)


def test_an_offset_that_was_dropped_is_said_quietly() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.tell(ClockOffsetDropped(offset_ms=HOUR_MS))
            (notice,) = it.window.notices.notices()
            assert notice.text == "The time of this device was set, so Causerie goes by it again."
            assert notice.level == "info"

    play(scenario)


def test_what_cannot_be_set_is_said_and_the_banner_stays() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _):
            engine.judge_clock(BEHIND)
            engine.fail("set_clock_offset", InputError(InputFlaw.OFFSET))
            act(it, "Go by the others").click()
            await until(lambda: len(it.window.notices.notices()) == 2)
            words = [notice.text for notice in it.window.notices.notices()]
            assert any("A clock can be set by a hundred years" in text for text in words)
            assert notice_of(it) is not None

    play(scenario)


def test_what_was_judged_before_the_window_was_there_is_shown() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        engine.clock_view = BEHIND
        async with stage(engine) as it:
            await turn()
            assert notice_of(it) is not None
            assert it.window.strip.clock.isVisible()

    play(scenario)


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_the_banner_keeps_its_words_and_buttons_at_every_width(width: int) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Tide Gauge")
        async with stage(engine, opening=group, size=(width, 700)) as it:
            engine.judge_clock(BEHIND)
            await turn()
            (row,) = it.window.notices.rows
            assert row.words.height() >= row.words.heightForWidth(row.words.width())
            for button in row.acts:
                assert button.width() >= button.sizeHint().width()
                assert row.rect().contains(button.geometry())
                name = QAccessible.queryAccessibleInterface(button).text(QAccessible.Text.Name)
                assert name

    play(scenario)
