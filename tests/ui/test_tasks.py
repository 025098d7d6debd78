"""What reaches the user, and what reaches the loop."""

import asyncio

import pytest

from assets import app_icon_path, app_icon_pictures, icon_path
from engine.core.errors import StorageError, StorageFault
from tests.patience import PATIENCE_S
from tests.ui.driving import play, turn, until
from ui.icons import app_icon, pixmap
from ui.settings import Appearance, UiSettings
from ui.tasks import Failure, Tasks
from ui.theme import current_theme

pytestmark = pytest.mark.usefixtures("qapp")


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


def test_settling_waits_for_what_is_started_meanwhile() -> None:
    """An answer to a notification, in the last moment before the program ends."""
    tasks = Tasks()
    sent: list[str] = []

    async def reply() -> None:
        await turn(3)
        sent.append("on my way")

    async def save_draft() -> None:
        await turn(1)
        tasks.spawn(reply, purpose="send the reply")

    async def scenario() -> None:
        tasks.spawn(save_draft, purpose="save the draft")
        await tasks.settle(timeout_s=PATIENCE_S)
        assert sent == ["on my way"]

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
