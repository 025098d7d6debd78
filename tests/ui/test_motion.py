"""Small movements: none unless they are wanted, and nothing ever waits for one."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from tests.ui.driving import Key, group_stage, play, until
from ui.motion import Movement, allow_motion
from ui.side.dock import Dock

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def moving() -> Iterator[None]:
    allow_motion(True)
    yield
    allow_motion(False)


def test_without_motion_every_change_is_at_once() -> None:
    owner, seen = QObject(), list[float]()
    movement = Movement(owner)
    movement.changed.connect(lambda: seen.append(movement.value))
    movement.appear()
    movement.vanish()
    assert seen == [1.0, 0.0]
    assert not movement.is_running


@pytest.mark.usefixtures("moving")
def test_a_movement_ends_where_it_should_and_can_be_cut_short() -> None:
    async def scenario() -> None:
        owner, seen = QObject(), list[float]()
        movement = Movement(owner)
        movement.changed.connect(lambda: seen.append(movement.value))
        movement.appear()
        assert movement.is_running
        await until(lambda: not movement.is_running)
        assert (seen[-1], seen) == (1.0, sorted(seen))
        movement.vanish()
        movement.rest()
        assert (movement.value, movement.is_running) == (1.0, False)

    play(scenario)


@pytest.mark.usefixtures("moving")
def test_a_sheet_takes_keys_before_it_has_appeared() -> None:
    async def scenario() -> None:
        async with group_stage() as (it, _engine, _group):
            it.press(Key.Key_N, Qt.KeyboardModifier.ControlModifier)
            await until(lambda: it.window.flows.sheet is not None)
            it.press(Key.Key_Escape, on=it.window.flows.sheet)
            await until(lambda: it.window.flows.sheet is None)

    play(scenario)


@pytest.mark.usefixtures("moving")
@pytest.mark.parametrize("direction", list(Qt.LayoutDirection)[:2])
def test_a_panel_ends_in_its_place(direction: Qt.LayoutDirection) -> None:
    async def scenario() -> None:
        dock = Dock(QWidget())
        dock.setLayoutDirection(direction)
        dock.resize(1000, 400)
        dock.show()
        side = QWidget()
        dock.show_side(side)
        mirrored = direction is Qt.LayoutDirection.RightToLeft
        await until(lambda: side.x() != (0 if mirrored else 660))
        await until(lambda: side.x() == (0 if mirrored else 660))
        assert side.width() == 340
        dock.deleteLater()

    play(scenario)
