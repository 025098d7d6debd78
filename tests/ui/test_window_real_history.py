"""History really fills the window: a Store node on a socket, engines on disk, and the real page."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from chat_app.network_control import store_problem
from engine.history_views import HistoryState, StoreHealth
from tests.runtime.history.history_stage import Person, StoreNode, say_in_a_group
from tests.ui.driving import play, until
from ui.app import build_window
from ui.dialogs.stores import Stores
from ui.settings import UiSettings
from ui.timeline.rows import message_of
from ui.window.main_window import MainWindow
from ui.window.window_context import WindowContext

pytestmark = pytest.mark.usefixtures("qapp")
SAID = 60


def test_a_store_added_on_its_page_fills_the_window(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = StoreNode(tmp_path, "store")
        address = await node.start()
        past = await say_in_a_group(tmp_path, SAID, node)
        bob = await Person("Bob", tmp_path).start()
        window = build_window(bob.engine, UiSettings(), WindowContext(store_problem=store_problem))
        window.resize(1000, 700)
        window.show()
        await window.start()
        assert await bob.engine.groups.join(past.link) == past.group
        await until(lambda: window.model.conversation(past.group) is not None)
        window.open_conversation(past.group)

        window.flows.stores()
        await until(lambda: window.flows.sheet is not None)
        sheet = window.flows.sheet
        assert isinstance(sheet, Stores)
        page = sheet.stores
        QTest.keyClicks(page.field, address)
        assert page.field_problem.text() == ""
        page.test_field.click()
        await until(lambda: page.field_result.text().startswith("Test: works."))
        assert "Store 3.0.0" in page.field_result.text()
        QTest.keyClick(page.field, Qt.Key.Key_Return)
        await until(lambda: len(page.rows()) == 1)

        timeline, words = window.pane.timeline, set(past.said)

        def shown() -> list[str]:
            messages = map(message_of, timeline.scene.loaded.rows)
            return [m.text for m in messages if m is not None and m.text in words]

        # Counting all rows would not do: that somebody joined is one as well.
        await until(lambda: len(shown()) >= SAID)
        assert shown() == past.said
        await until(lambda: page.rows()[0].store.health is StoreHealth.GOOD)
        await until(lambda: "answered to the end" in page.rows()[0].statistics.text())
        sheet.reject()

        window.pane.header.history_requested.emit(7)
        assert await _end_of_bar(window) == "History fetched: nothing new"

        window.close()
        await window.shutdown()
        window.deleteLater()
        await bob.stop()
        await node.stop()

    play(scenario)


async def _end_of_bar(window: MainWindow) -> str:
    """What the bar says once all is fetched."""

    def is_done() -> bool:
        bar = window.pane.history.bar
        history = None if bar is None else bar.history
        return history is not None and history.state is HistoryState.DONE

    await until(is_done)
    assert window.pane.history.bar is not None
    return window.pane.history.bar.title.text()
