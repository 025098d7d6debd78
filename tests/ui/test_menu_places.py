"""Menus at the edges of a screen: whole on it, wherever their window was pushed."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from engine.core.admin_log.acts import Role
from tests.ui.driving import play, stage, until
from tests.ui.scripted_engine import ScriptedEngine, member
from ui.side.group import GroupPanel

pytestmark = pytest.mark.usefixtures("qapp")

_SIZE = (700, 600)
_SEEN = 120
"""What is left of the window on the screen."""


@pytest.mark.parametrize("edge", ["left", "right", "top", "bottom"])
def test_a_menu_is_whole_on_the_screen_at_each_of_its_edges(edge: str) -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group = engine.add_group("Harbour Watch", ("Olga", "Luc"))
        engine.governing.govern(group, Ines=Role.OWNER)
        async with stage(engine, opening=group, size=_SIZE) as it:
            window = it.window
            screen = window.screen().availableGeometry()
            window.move(
                {
                    "left": QPoint(screen.left() - _SIZE[0] + _SEEN, screen.top() + 40),
                    "right": QPoint(screen.right() - _SEEN, screen.top() + 40),
                    "top": QPoint(screen.left() + 40, screen.top() - _SIZE[1] + _SEEN),
                    "bottom": QPoint(screen.left() + 40, screen.bottom() - _SEEN),
                }[edge]
            )

            async def is_whole(menu: QMenu) -> None:
                await until(menu.isVisible)
                assert screen.contains(menu.geometry()), menu.geometry()
                menu.close()

            window.side.show_open()
            panel = window.side.panel
            assert isinstance(panel, GroupPanel)
            assert window.rect().contains(panel.mapTo(window, panel.rect().bottomRight()))
            row = panel.rows[member("Luc").participant_id]
            QTest.mouseClick(row.more, Qt.MouseButton.LeftButton)
            assert row.menu is not None
            await is_whole(row.menu)
            window.side.close()
            more = window.pane.header.more
            menu = more.menu()
            menu.popup(more.mapToGlobal(more.rect().bottomLeft()))
            await is_whole(menu)

    play(scenario)
