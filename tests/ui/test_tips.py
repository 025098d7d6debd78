"""Tool tips: ours, with whole lines, and gone with what they speak of."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from tests.ui.driving import pair_stage, play, until
from tests.ui.scripted_engine import member
from ui.controls import IconButton
from ui.tips import set_tip, shown_tip

pytestmark = pytest.mark.usefixtures("qapp")
LONG = "The last messages: everything is held by everybody. " * 3


def rest_on(widget: QWidget) -> None:
    """The mouse rests in its middle."""
    at = widget.rect().center()
    event = QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at))
    QApplication.sendEvent(widget, event)


def tip_of(widget: QWidget) -> QWidget:
    (tip,) = (
        each
        for each in widget.findChildren(QWidget)
        if each.windowType() == Qt.WindowType.ToolTip and each.isVisible()
    )
    return tip


def test_a_tip_is_whole_lines_of_what_was_typed_and_is_read_too() -> None:
    button = IconButton("plus", "Add <b>Maya</b> & co")
    button.show()
    rest_on(button)
    assert shown_tip() == "Add <b>Maya</b> & co"
    assert button.accessibleDescription() == "Add <b>Maya</b> & co"
    before = tip_of(button).size()
    set_tip(button, LONG)
    rest_on(button)
    assert " ".join(shown_tip().split()) == LONG.strip()
    assert max(map(len, shown_tip().split("\n"))) <= 60
    assert len(shown_tip().split("\n")) == 3
    assert tip_of(button).height() > before.height()
    set_tip(button, "")
    rest_on(button)
    button.close()


def test_its_corners_are_round() -> None:
    button = IconButton("plus", "Add a person")
    button.show()
    rest_on(button)
    tip = tip_of(button)
    if tip.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground):
        image = tip.grab().toImage()
        assert image.pixelColor(0, 0).alpha() < 20
        assert image.pixelColor(image.width() // 2, image.height() // 2).alpha() == 255
    else:
        assert not tip.mask().contains(QPoint(0, 0))
        assert tip.mask().contains(tip.rect().center())
    button.close()


@pytest.mark.parametrize("end", ["leave", "key", "press", "close"])
def test_it_goes_when_one_does_something_else(end: str) -> None:
    button = IconButton("plus", "Add a person")
    button.show()
    rest_on(button)
    assert shown_tip()
    match end:
        case "leave":
            QApplication.sendEvent(button, QEvent(QEvent.Type.Leave))
        case "key":
            QTest.keyClick(button, Qt.Key.Key_A)
        case "press":
            QTest.mousePress(button, Qt.MouseButton.LeftButton)
        case _:
            button.close()
    assert shown_tip() == ""
    button.close()


def test_rows_and_beads_have_the_same_tips() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya & <b>Jo</b>") as (it, engine, pair):
            engine.receive(pair, "Maya", "Low water is 10:52")
            rows = it.window.panel.rows
            at = rows.visualRect(rows.model().index(0, 0)).center()
            viewport = rows.viewport()
            event = QHelpEvent(QEvent.Type.ToolTip, at, viewport.mapToGlobal(at))
            QApplication.sendEvent(viewport, event)
            assert "Maya & <b>Jo</b>" in shown_tip()
            beads = it.window.pane.header.beads
            rest_on(beads)
            assert shown_tip() not in {"", beads.accessibleName()}

    play(scenario)


def test_a_bead_says_where_it_leads_and_what_its_colour_means() -> None:
    async def scenario() -> None:
        async with pair_stage("Maya") as (it, engine, pair):
            late = replace(engine.row(pair, member("Maya"), "Battery is low.", 5), late=True)
            beads = it.window.pane.header.beads
            before = beads.sizeHint()
            engine.arrive(late)
            await until(lambda: beads.sizeHint() != before)
            beads.setFocus()
            QTest.keyClick(beads, Qt.Key.Key_End)
            QTest.keyClick(beads, Qt.Key.Key_Right)
            assert beads.accessibleName() == "Look into “Maya: Battery is low.”, arrived late"

    play(scenario)
