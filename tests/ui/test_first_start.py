"""The first start in three steps: by the keyboard, a Store that is refused, and no word cut off."""

from functools import partial

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from chat_app.network_control import store_problem
from chat_app.settings_control import SettingsControl
from engine.core.errors import InputError, InputFlaw
from tests.ui.driving import Key, Stage, play, stage, turn, until
from tests.ui.on_settings import is_shown, open_settings
from tests.ui.scripted_engine import FINGERPRINT, ScriptedEngine
from tests.ui.seeing import seen_words, sheet_of
from ui.controls import Text
from ui.dialogs.first_start import FirstStart
from ui.dialogs.join import Join
from ui.dialogs.person import AddPerson
from ui.dialogs.sheet import Sheet
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
STORE = "/ip4/192.0.2.7/tcp/60000/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


async def name_oneself(it: Stage) -> FirstStart:
    it.write("Ines")
    it.press(Key.Key_Return)
    page = it.window.first_page.page
    await until(page.stores_step.isVisible)
    return page


def pasted_in(sheet: Sheet) -> str:
    assert isinstance(sheet, AddPerson | Join)
    form = sheet.theirs if isinstance(sheet, AddPerson) else sheet.form
    return form.field.toPlainText()


def test_return_leads_through_all_three_steps() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        async with stage(engine) as it:
            page = it.window.first_page.page
            assert "Step 1 of 3" in seen_words(page)
            await name_oneself(it)
            assert "Step 2 of 3" in seen_words(page)
            assert QApplication.focusWidget() is page.stores_step.next
            it.press(Key.Key_Return)
            await until(page.conversation_step.isVisible)
            words = seen_words(page)
            assert "Step 3 of 3" in words
            assert FINGERPRINT in words
            assert "Friends who compare it with you know that it is really you." in words
            assert engine.called("add_store") == []
            step = page.conversation_step
            words_begin = step.back.x() + step.back.inset()
            assert abs(words_begin - step.join.x()) <= 1, "below what stands above it"
            step.back.click()
            assert page.stores_step.isVisible()

    play(scenario)


@pytest.mark.parametrize("kind", ["causerie:nonsense", "causerie:contact/nonsense"])
def test_a_link_that_one_came_with_outlasts_return_at_every_step(kind: str) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None)) as it:
            it.window.outside_links.open(kind)
            page = await name_oneself(it)
            await turn()
            assert it.window.flows.sheet is None, "it would lie on the second step"
            it.press(Key.Key_Return)
            sheet = await sheet_of(it.window, AddPerson if "contact" in kind else Join)
            assert page.conversation_step.isVisible()
            it.press(Key.Key_Return)
            await until(lambda: it.window.flows.sheet is None)
            step = page.conversation_step
            again = step.add_person if "contact" in kind else step.join
            again.click()
            sheet = await sheet_of(it.window, AddPerson if "contact" in kind else Join)
            assert pasted_in(sheet) == kind
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            other = step.join if "contact" in kind else step.add_person
            other.click()
            sheet = await sheet_of(it.window, Join if "contact" in kind else AddPerson)
            assert not pasted_in(sheet), "the other kind is pasted"
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            step.later.click()
            await turn()
            it.window.commands.join()
            fresh = await sheet_of(it.window, Join)
            assert not pasted_in(fresh), "seen, put off, and no longer in the way"
            fresh.reject()

    play(scenario)


def test_a_link_waits_for_the_window_if_somebody_writes_amid_the_steps() -> None:
    async def scenario() -> None:
        async with stage(engine := ScriptedEngine(name=None)) as it:
            it.window.outside_links.open("causerie:nonsense")
            await name_oneself(it)
            engine.add_group("Tide Gauge")
            sheet = await sheet_of(it.window, Join)
            sheet.reject()

    play(scenario)


def test_a_store_of_ones_own_is_chosen_by_keys_judged_and_added_once() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine(name=None)
        around = WindowContext(store_problem=store_problem)
        async with stage(engine, around=around) as it:
            page = await name_oneself(it)
            step = page.stores_step
            step.usual.setFocus()
            it.press(Key.Key_Down)
            assert step.own.isChecked()
            it.press(Key.Key_Tab)
            assert QApplication.focusWidget() is step.address
            assert not step.next.isEnabled(), "it has no address yet"
            it.write("nonsense")
            assert 'must start with "/"' in step.problem.text()
            assert not step.next.isEnabled()
            it.press(Key.Key_Return)
            assert engine.called("add_store") == []
            step.address.setText(STORE)
            engine.fail("add_store", InputError(InputFlaw.STORES_FULL, limit=16))
            it.press(Key.Key_Return)
            await until(lambda: step.problem.text() == "There can be 16 Stores.")
            assert step.isVisible()
            it.press(Key.Key_Return)
            await until(page.conversation_step.isVisible)
            added = engine.called("add_store")
            page.conversation_step.back.click()
            step.next.click()
            assert page.conversation_step.isVisible()
            assert engine.called("add_store") == added
            assert added[-1] == STORE

    play(scenario)


def test_a_click_anywhere_on_a_choice_chooses_it() -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None)) as it:
            step = (await name_oneself(it)).stores_step
            corner = QPoint(step.own.width() - 8, step.own.height() - 8)
            QTest.mouseClick(step.own, Qt.MouseButton.LeftButton, pos=corner)
            assert step.own.isChecked()
            assert not step.usual.isChecked()

    play(scenario)


@pytest.mark.parametrize("percent", ["85", "100", "200"])
@pytest.mark.parametrize("width", [420, 1280])
def test_no_word_of_a_step_is_cut(percent: str, width: int) -> None:
    def cut(page: FirstStart) -> list[str]:
        found = []
        for text in page.findChildren(Text):
            right = text.mapTo(page, QPoint(text.width(), 0)).x()
            if text.isVisible() and (
                right > page.width() or text.height() < text.heightForWidth(text.width())
            ):
                found.append(text.text())
        return found

    async def scenario() -> None:
        stored = {"text_percent": percent}
        async with stage(ScriptedEngine(name=None), stored=stored, size=(width, 820)) as it:
            page = it.window.first_page.page
            await until(lambda: not cut(page))
            await name_oneself(it)
            await until(lambda: not cut(page))
            page.stores_step.next.click()
            await until(lambda: not cut(page))

    play(scenario)


def test_settings_can_be_opened_before_anybody_has_a_name(control: SettingsControl) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None), control=control) as it:
            page = open_settings(it.window, "network")
            assert "No Store yet" in seen_words(page)
            it.press(Key.Key_Escape)
            assert not is_shown(it.window)
            assert it.window.first_page.page.isVisible()

    play(scenario)


@pytest.mark.parametrize("height", [500, 570])
def test_in_a_low_window_the_way_on_is_in_view_at_every_step(height: int) -> None:
    async def scenario() -> None:
        async with stage(ScriptedEngine(name=None), size=(700, height)) as it:
            page = it.window.first_page.page

            def is_in_view(button: QWidget) -> bool:
                foot = button.mapTo(page, QPoint(0, button.height())).y()
                return button.isVisible() and 0 < foot <= page.height()

            await until(lambda: is_in_view(page.name_step.next))
            await name_oneself(it)
            await until(lambda: is_in_view(page.stores_step.next))
            page.stores_step.next.click()
            step = page.conversation_step
            for button in (step.join, step.new_group, step.later):
                await until(partial(is_in_view, button))
            it.window.resize(700, 900)
            await until(step.avatar.isVisible)

    play(scenario)
