"""Drives the real window on one qasync loop: open it, press keys, wait for what comes true."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import qasync
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt, QUrl, SignalInstance
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from chat_app.settings_control import SettingsControl
from chat_app.window_memory import WindowMemory
from chat_app.window_settings import WindowSettings
from engine.core.contacts import ContactState
from engine.core.ids import ConversationId
from engine.events import ConversationView
from tests.patience import PATIENCE_S
from tests.ui.scripted_engine import START_MS, ScriptedEngine
from ui.app import build_window
from ui.desktop.autostart import AutostartPort
from ui.dialogs.profile import ChoosePicture, choose_picture_file
from ui.screen import GrabScreens, grab_screens
from ui.settings import UiSettings
from ui.window.window_context import WindowContext

NOW = datetime.fromtimestamp(START_MS / 1000 + 120, tz=UTC)
Key = Qt.Key
_LOOK_AGAIN_S = 0.002  # looking all the time would keep the storage thread from its work
_NO_KEYS = Qt.KeyboardModifier.NoModifier


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run it on a loop of its own; whatever escapes from any task fails the test."""
    escaped: list[dict[str, object]] = []

    async def guarded() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: escaped.append(dict(context))
        )
        await asyncio.wait_for(scenario(), PATIENCE_S * 3)

    with asyncio.Runner(loop_factory=qasync.QEventLoop) as runner:
        runner.run(guarded())
    assert escaped == [], escaped


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until it holds."""
    loop = asyncio.get_running_loop()
    reached: asyncio.Future[None] = loop.create_future()

    def look() -> None:
        if reached.done():
            return
        if condition():
            reached.set_result(None)
        else:
            loop.call_later(_LOOK_AGAIN_S, look)

    look()
    await asyncio.wait_for(reached, PATIENCE_S)


async def move_mouse(on: QWidget, point: QPoint | QPointF) -> None:
    """Qt gives all that waits its turn, also other tasks: inside this one they could not run."""
    loop = asyncio.get_running_loop()
    moved: asyncio.Future[None] = loop.create_future()

    def move() -> None:
        QTest.mouseMove(on, QPointF(point).toPoint())
        moved.set_result(None)

    loop.call_soon(move)
    await moved


async def turn(times: int = 20) -> None:
    """Give everything that is ready its turn; for showing that something does not happen."""
    for _ in range(times):
        await asyncio.sleep(0)


def heard(signal: SignalInstance) -> asyncio.Future[object]:
    """A future of the signal's next first argument."""
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def settle(*arguments: object) -> None:
        if not future.done():
            future.set_result(arguments[0] if arguments else None)

    signal.connect(settle)
    return future


class Stage:
    """An engine, the window on it, and the user's hands."""

    def __init__(
        self,
        engine: ScriptedEngine,
        stored: dict[str, str],
        settings: UiSettings,
        surroundings: WindowContext,
    ) -> None:
        self.engine = engine
        self.stored = stored
        self.opened_urls: list[str] = []
        self.window = build_window(engine, settings, replace(surroundings, open_url=self._open_url))
        self.first_size = self.window.size()
        """Before a test made it larger or smaller."""

    def press(
        self,
        key: Qt.Key,
        modifiers: Qt.KeyboardModifier = _NO_KEYS,
        *,
        on: QWidget | None = None,
    ) -> None:
        QTest.keyClick(on or self._focused(), key, modifiers)

    def write(self, text: str, *, on: QWidget | None = None) -> None:
        QTest.keyClicks(on or self._focused(), text)

    async def send(self, text: str) -> None:
        box = self.window.pane.composer.box
        self.write(text, on=box)
        before = len(self.engine.called("send_text"))
        self.press(Key.Key_Return, on=box)
        await until(lambda: len(self.engine.called("send_text")) > before)

    def listed(self, conversation_id: ConversationId) -> ConversationView:
        """A conversation as the list has it."""
        view = self.window.model.conversation(conversation_id)
        assert view is not None
        return view

    def _focused(self) -> QWidget:
        return QApplication.focusWidget() or self.window

    def _open_url(self, url: QUrl) -> bool:
        self.opened_urls.append(url.toString())
        return True


@asynccontextmanager
async def stage(  # noqa: PLR0913 - each is another thing that some test sets
    engine: ScriptedEngine,
    *,
    opening: ConversationId | None = None,
    stored: dict[str, str] | None = None,
    size: tuple[int, int] = (1280, 820),
    choose_picture: ChoosePicture = choose_picture_file,
    grab_screens: GrabScreens = grab_screens,
    explains_closing: bool = False,
    autostart: AutostartPort | None = None,
    control: SettingsControl | None = None,
    around: WindowContext | None = None,
) -> AsyncIterator[Stage]:
    """The window is shown, active and started, with ``opening`` open; afterwards it is gone.

    ``control``: settings in a file, and a page for them; else they are ``stored`` only.
    """
    kept = stored if stored is not None else {}
    kept.setdefault("appearance", "light")
    settings = UiSettings(load=kept.get, save=kept.__setitem__)
    if control is not None:
        memory = WindowMemory(WindowSettings(control), Path(control.file).parent / "window.json")
        settings = UiSettings(load=memory.load, save=memory.save)
    surroundings = replace(
        around or WindowContext(),
        version=lambda: "0.1.0",
        now=lambda: NOW,
        choose_picture=choose_picture,
        grab_screens=grab_screens,
        explains_closing=explains_closing,
        autostart=autostart,
        settings_port=control,
        settings_file="" if control is None else control.file,
    )
    it = Stage(engine, kept, settings, surroundings)
    it.window.resize(*size)
    it.window.show()
    it.window.activateWindow()
    await it.window.start()
    await until(it.window.isActiveWindow)
    try:
        if opening is not None:
            it.window.open_conversation(opening)
        yield it
    finally:
        if it.window.flows.sheet is not None:
            it.window.flows.sheet.reject()
        await it.window.shutdown()
        it.window.hide()
        it.window.deleteLater()
        await turn()


@asynccontextmanager
async def group_stage(
    name: str = "Tide Gauge",
) -> AsyncIterator[tuple[Stage, ScriptedEngine, ConversationId]]:
    """A window in which the only conversation, a group, is open."""
    engine = ScriptedEngine()
    group = engine.add_group(name)
    async with stage(engine, opening=group) as it:
        yield it, engine, group


@asynccontextmanager
async def pair_stage(
    name: str, state: ContactState = ContactState.ACCEPTED
) -> AsyncIterator[tuple[Stage, ScriptedEngine, ConversationId]]:
    """A window in which the only conversation, one with a person, is open."""
    engine = ScriptedEngine()
    pair = engine.add_person(name, state)
    async with stage(engine, opening=pair) as it:
        yield it, engine, pair
