"""People at desks: each a real engine with the real window on it, in one network in memory."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from chat_app.settings_control import SettingsControl
from engine.network.memory import MemoryNetwork
from tests.runtime.conftest import Person
from tests.ui.driving import play
from tests.ui.seeing import spoken_rows
from ui.app import build_window
from ui.settings import UiSettings
from ui.window.window_context import WindowContext


class Desk:
    """A person with a window in front of them."""

    def __init__(self, person: Person, control: SettingsControl | None = None) -> None:
        """``control``: settings in a file, and a page for them."""
        self.person = person
        self.engine = person.engine
        self.chosen_file: Path | None = None
        """What they pick where the program asks for a file."""
        around = WindowContext(choose_picture=self._choose, settings_port=control)
        self.window = build_window(person.engine, UiSettings(), around)

    async def _choose(self, _parent: QWidget) -> Path | None:
        return self.chosen_file

    async def open(self) -> None:
        self.window.resize(1000, 700)
        self.window.show()
        await self.window.start()

    def type_and_enter(self, text: str) -> None:
        box = self.window.pane.composer.box
        QTest.keyClicks(box, text)
        QTest.keyClick(box, Qt.Key.Key_Return)

    def rows(self) -> list[str]:
        return spoken_rows(self.window.pane.timeline)

    def has_row(self, *parts: str) -> bool:
        return any(all(part in row for part in parts) for row in self.rows())

    async def close(self) -> None:
        self.window.close()
        await self.window.shutdown()
        self.window.deleteLater()


def at_desks(place: Path, names: tuple[str, ...], scenario: Callable[..., Awaitable[None]]) -> None:
    async def whole() -> None:
        network = MemoryNetwork()
        people = [await Person(name, place, network).start() for name in names]
        desks = [Desk(person) for person in people]
        for desk in desks:
            await desk.open()
        await scenario(*desks)
        for desk in desks:
            await desk.close()
            await desk.engine.stop()

    play(whole)
