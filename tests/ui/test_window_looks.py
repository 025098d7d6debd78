"""What one sees of sheets, menus, tips and edges, measured where it is drawn."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from shiboken6 import isValid

from engine.api import MAX_TEXT_BYTES
from tests.ui.driving import Key, group_stage, play, stage, turn, until
from tests.ui.scripted_engine import GOOD_LINK, ScriptedEngine
from tests.ui.seeing import add_person, join, sheet_of
from ui.choice import Choice
from ui.dialogs.group import CreateGroup, InviteLink
from ui.menu import Menu
from ui.theme import ThemeMode, set_theme
from ui.timeline.geometry import geometry_for
from ui.tips import plain_tip

pytestmark = pytest.mark.usefixtures("qapp")
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
_DARK = 140
"""Lightness: letters are darker than this on a light ground."""


def in_window(widget: QWidget) -> QRect:
    return QRect(widget.mapTo(widget.window(), QPoint(0, 0)), widget.size())


def left_of_ink(image: QImage, area: QRect) -> int:
    """The first column in ``area`` with something dark in it."""
    return next(
        x
        for x in range(area.left(), area.right())
        if any(image.pixelColor(x, y).lightness() < _DARK for y in range(area.top(), area.bottom()))
    )


def test_a_sheet_lies_in_its_window_and_keeps_the_keys_to_itself() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            box = it.window.pane.composer.box
            box.setFocus()
            sheet = await add_person(it.window)
            assert sheet.window() is it.window
            assert it.window.rect().contains(in_window(sheet))
            seen = set()
            for _step in range(30):
                it.press(Key.Key_Tab)
                focused = QApplication.focusWidget()
                assert focused is not None
                assert sheet.isAncestorOf(focused)
                seen.add(focused)
            assert len(seen) > 3
            it.press(Key.Key_Backtab, SHIFT)
            assert sheet.isAncestorOf(QApplication.focusWidget() or it.window)
            it.press(Key.Key_N, CTRL)
            await turn()
            assert it.window.flows.sheet is sheet
            it.press(Key.Key_Escape)
            await until(lambda: it.window.flows.sheet is None)
            assert QApplication.focusWidget() is box
            assert not engine.called("send_text")

    play(scenario)


def test_a_sheet_walked_with_tab_takes_nothing_of_its_window_with_it() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, engine, _group):
            other = engine.add_group("Rowing")
            sheet = await add_person(it.window)
            for key, modifiers in ((Key.Key_Tab, None), (Key.Key_Backtab, SHIFT)):
                for _step in range(30):
                    it.press(key, modifiers or Qt.KeyboardModifier.NoModifier)
            it.press(Key.Key_Escape)
            await until(lambda: not isValid(sheet))
            it.window.open_conversation(other)
            header = it.window.pane.header
            assert header.accessibleName() == "Rowing, group"
            assert all(isValid(action) for action in it.window.findChildren(QAction))
            assert not any(mutes.unmute.isVisible() for mutes in header.mutes)

    play(scenario)


def test_a_sheet_goes_with_its_window() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            sheet = await add_person(it.window)
            for size in ((420, 500), (1280, 820)):
                it.window.resize(*size)
                await until(lambda: it.window.rect().contains(in_window(sheet)))
                middle = in_window(sheet).center() - it.window.rect().center()
                assert middle.manhattanLength() <= 4

    play(scenario)


def test_a_sheet_that_grows_stays_in_the_middle() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            sheet = await join(it.window)
            height = sheet.height()
            sheet.form.field.setPlainText(GOOD_LINK)
            await until(lambda: sheet.height() > height)
            middle = in_window(sheet).center() - it.window.rect().center()
            assert middle.manhattanLength() <= 4

    play(scenario)


def test_words_of_a_button_without_an_edge_stand_below_the_text() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.flows.new_group()
            sheet = await sheet_of(it.window, CreateGroup)
            image = sheet.grab().toImage()
            title = QRect(sheet.title.mapTo(sheet, QPoint(0, 0)), sheet.title.size())
            below = QRect(title.left() - 12, sheet.height() - 50, 200, 20)
            assert abs(left_of_ink(image, below) - left_of_ink(image, title)) <= 1

    play(scenario)


def test_menus_open_towards_the_inside_of_their_window() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.move(0, 0)
            more = it.window.pane.header.more
            menu = more.menu()
            assert isinstance(menu, Menu)
            menu.popup(more.mapToGlobal(QPoint(0, more.height())))
            assert menu.geometry().right() <= it.window.geometry().right()
            assert menu.isVisible()
            menu.close()
            menu.popup(it.window.mapToGlobal(QPoint(40, 90)))
            assert menu.pos() == it.window.mapToGlobal(QPoint(40, 90))
            menu.close()
            it.window.resize(760, 560)  # Below it there is room on the screen.
            low = it.window.mapToGlobal(QPoint(40, it.window.height() - 60))
            menu.popup(low)
            assert menu.geometry().bottom() < low.y()
            menu.close()

    play(scenario)


def test_corners_of_a_menu_let_through_what_lies_behind(qapp: QApplication) -> None:
    set_theme(qapp, ThemeMode.LIGHT)
    window = QWidget()
    menu = Menu(window)
    menu.addAction(QAction("About this group", menu))
    menu.ensurePolished()
    menu.resize(menu.sizeHint())
    image = QImage(menu.size(), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    menu.render(image, QPoint(0, 0), renderFlags=QWidget.RenderFlag.DrawChildren)
    assert image.pixelColor(0, 0).alpha() == 0
    assert image.pixelColor(menu.rect().center()).alpha() == 255
    shadow = image.pixelColor(menu.width() // 2, menu.height() - 3).alpha()
    assert 0 < shadow < 255
    window.close()


def test_corners_of_a_list_that_drops_down_are_round(qapp: QApplication) -> None:
    set_theme(qapp, ThemeMode.LIGHT)
    choice = Choice()
    choice.addItems(["1 person", "2 people", "5 people"])
    choice.show()
    choice.showPopup()
    shown = choice.view().window()
    assert not shown.mask().contains(QPoint(0, 0))
    assert not shown.mask().contains(shown.rect().bottomRight())
    assert shown.mask().contains(shown.rect().center())
    choice.hidePopup()
    choice.close()


@pytest.mark.parametrize("words", ["Send (Enter)", "Send a picture or a file", "Held by 2 of 2."])
def test_a_short_tip_is_one_line(words: str) -> None:
    tip = QLabel(plain_tip(words))
    tip.setWordWrap(True)
    assert tip.sizeHint().height() < 2 * tip.fontMetrics().lineSpacing()
    assert tip.sizeHint().width() >= tip.fontMetrics().horizontalAdvance(words)


def test_a_long_tip_has_lines_of_a_readable_length_and_no_markup() -> None:
    tip = QLabel(plain_tip("<b>Maya</b> & Jo " * 20 + "\nsecond"))
    tip.setWordWrap(True)
    assert "&lt;b&gt;" in tip.text()
    lines = tip.sizeHint().height() // tip.fontMetrics().lineSpacing()
    assert lines >= 6
    assert tip.sizeHint().width() <= 70 * tip.fontMetrics().averageCharWidth()


@pytest.mark.parametrize("width", [1280, 1700, 2200])
def test_header_column_and_composer_share_one_axis(width: int) -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.window.resize(width, 820)
            await turn()
            pane = it.window.pane
            column = pane.timeline.scene.geometry
            left = in_window(pane.timeline.viewport()).left()
            begins, ends = left + column.left, left + column.right
            assert abs(in_window(pane.header.about).left() - begins) <= 6
            assert abs(in_window(pane.composer.send).right() - ends) <= 16
            assert abs(in_window(pane.header.more).right() - ends) <= 16
            assert abs(in_window(pane.composer.attach).left() - begins) <= 16
            assert column == geometry_for(
                pane.timeline.viewport().width(),
                narrow=False,
                theme=pane.timeline.scene.theme,
            )

    play(scenario)


def test_an_empty_group_offers_to_invite_where_one_looks() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        async with stage(engine) as it:
            group = await engine.groups.create("Field Notes")
            it.window.open_conversation(group)
            hint = it.window.pane.alone_hint
            await until(hint.isVisible)
            timeline = in_window(it.window.pane.timeline)
            away = in_window(hint).center() - timeline.center()
            assert away.manhattanLength() <= 4
            hint.invite.click()
            sheet = await sheet_of(it.window, InviteLink)
            sheet.reject()
            await until(lambda: it.window.flows.sheet is None)
            await it.send("a note to myself")
            await until(lambda: not hint.isVisible())

    play(scenario)


def test_a_field_for_a_link_never_shows_half_a_line() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            sheet = await add_person(it.window)
            field = sheet.theirs.field
            field.setPlainText("causerie:contact/" + "x" * 900)
            assert len(field.toPlainText()) < MAX_TEXT_BYTES
            for focused in (field, sheet.reader.screen_button):
                focused.setFocus()
                await turn()
                inside = field.viewport().height() - field.document().documentMargin()
                lines = inside / field.line_height()
                assert abs(lines - round(lines)) < 0.06

    play(scenario)
