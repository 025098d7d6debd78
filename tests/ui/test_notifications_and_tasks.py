"""What reaches the desktop, what reaches the user, and what reaches the loop."""

import asyncio

import pytest
from PySide6.QtWidgets import QSystemTrayIcon

from assets import app_icon_path, app_icon_pictures, icon_path
from engine.core.errors import StorageError, StorageFault
from engine.events import ConversationView, MessageView
from tests.patience import PATIENCE_S
from tests.ui.driving import play, stage, turn, until
from tests.ui.scripted_engine import ScriptedEngine
from ui.icons import app_icon, pixmap
from ui.notifications import Notifications
from ui.settings import Appearance, UiSettings
from ui.tasks import Failure, Tasks
from ui.theme import current_theme

pytestmark = pytest.mark.usefixtures("qapp")


class Heard(Notifications):
    """Writes down what would be shown; there is no tray on a test's screen."""

    def __init__(self) -> None:
        super().__init__(app_icon())
        self.told: list[tuple[str, str, bool]] = []

    def tell(
        self, conversation: ConversationView, message: MessageView, *, show_text: bool
    ) -> None:
        super().tell(conversation, message, show_text=show_text)
        self.told.append((conversation.name, message.text, show_text))


def test_only_what_is_not_in_view_is_told_to_the_desktop() -> None:
    async def scenario() -> None:
        engine = ScriptedEngine()
        group, other = engine.add_group("Tide Gauge"), engine.add_group("Rowing")
        async with stage(engine) as it:
            heard = Heard()
            it.window.router.use_notifications(heard)
            it.window.open_conversation(group)
            engine.receive(group, "Maya", "seen as it comes")
            engine.receive(other, "Maya", "elsewhere")
            engine.receive(other, "Maya", "old news", notify=False)
            engine.change(other, muted=True)
            engine.receive(other, "Maya", "muted")
            it.window.looks.choose_previews(False)
            engine.change(other, muted=False)
            engine.receive(other, "Maya", "secret")
            assert heard.told == [("Rowing", "elsewhere", True), ("Rowing", "secret", False)]
            it.window.notifications.activated.emit(other)
            assert it.window.pane.is_open(other)

    play(scenario)


def test_without_a_tray_nothing_is_shown_and_nothing_breaks() -> None:
    assert not QSystemTrayIcon.isSystemTrayAvailable()
    engine = ScriptedEngine()
    group = engine.add_group("Tide Gauge")
    notifications = Notifications(app_icon())
    message = engine.receive(group, "Maya", "hello")
    notifications.tell(engine.views[group], message, show_text=True)
    notifications.close()


def test_a_chat_error_is_said_with_a_way_to_try_again_and_a_bug_goes_to_the_loop() -> None:
    reported: list[object] = []
    tasks = Tasks()
    failures: list[Failure] = []
    tasks.failed.connect(failures.append)
    tries: list[int] = []

    async def work() -> None:
        tries.append(len(tries))
        if len(tries) == 1:
            raise StorageError("full", StorageFault.DISK_FULL)

    async def bug() -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: reported.append(type(context["exception"]))
        )
        tasks.spawn(work, purpose="do it")
        await until(lambda: len(failures) == 1)
        words = "The disk is full; nothing was saved."
        assert (failures[0].purpose, failures[0].text) == ("do it", words)
        assert failures[0].retry is not None
        failures[0].retry()
        await until(lambda: len(tries) == 2)
        tasks.spawn(bug, purpose="divide")
        await until(lambda: reported == [ZeroDivisionError])
        assert len(failures) == 1

    play(scenario)


def test_settling_waits_for_the_quick_and_cancels_the_stuck() -> None:
    tasks = Tasks()
    ends: list[str] = []

    async def quick() -> None:
        await turn(3)
        ends.append("quick")

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("stuck")

    async def scenario() -> None:
        tasks.spawn(quick, purpose="be quick")
        await tasks.settle(timeout_s=PATIENCE_S)
        assert ends == ["quick"]
        tasks.spawn(stuck, purpose="hang")
        await turn()
        await tasks.settle(timeout_s=0.05)
        assert ends == ["quick", "stuck"]
        await tasks.settle()

    play(scenario)


def test_every_icon_draws_something_in_its_colour() -> None:
    colour = current_theme().accent
    names = [path.stem for path in icon_path("search").parent.glob("*.svg")]
    assert "search" in names
    for name in names:
        image = pixmap(name, colour, 20, 2.0).toImage()
        drawn = {
            image.pixelColor(x, y).name()
            for x in range(image.width())
            for y in range(image.height())
            if image.pixelColor(x, y).alpha() == 255
        }
        assert colour.name() in drawn, name
    with pytest.raises(FileNotFoundError):
        icon_path("no such icon")


def test_the_programs_sign_is_there_in_every_size() -> None:
    assert app_icon_path().is_file()
    assert len(app_icon_pictures()) >= 5
    assert not app_icon().isNull()


def test_settings_are_written_once_and_nonsense_counts_as_not_set() -> None:
    stored = {"text_percent": "9999999", "appearance": "purple"}
    writes: list[tuple[str, str]] = []
    settings = UiSettings(load=stored.get, save=lambda key, value: writes.append((key, value)))
    assert settings.appearance is Appearance.SYSTEM
    assert settings.text_percent == 200
    settings.appearance = Appearance.DARK
    settings.appearance = Appearance.DARK
    settings.text_percent = 20
    assert writes == [("appearance", "dark"), ("text_percent", "85")]
    assert UiSettings().get("anything") is None
