"""What a desktop says of movements, over a real bus with a stand-in for its settings portal."""

from typing import Any

import pytest
from jeepney import Message, new_error, new_method_return

from chat_app.motion import begin_motion, says_less, wants_less
from tests.ui.desktop.private_bus import Watcher, private_bus
from ui.motion import allow_motion, is_motion_allowed

APPEARANCE, GNOME, KDE = (
    "org.freedesktop.appearance",
    "org.gnome.desktop.interface",
    "org.kde.kdeglobals.KDE",
)


class Portal(Watcher):
    NAME = "org.freedesktop.portal.Desktop"
    said: dict[str, dict[str, tuple[str, Any]]] | None = None

    def _answer(self, call: Message) -> Message:
        if self.said is None:
            return new_error(call, "org.freedesktop.DBus.Error.UnknownMethod")
        return new_method_return(call, "a{sa{sv}}", (self.said,))


async def test_the_portal_is_asked_and_its_silence_is_no_answer(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with private_bus(tmp_path_factory.mktemp("b")) as address:
        assert not await wants_less(address), "nobody is there"
        portal = await Portal.start(address)
        assert not await wants_less(address), "it does not know"
        portal.said = {APPEARANCE: {"reduced-motion": ("u", 1)}}
        assert await wants_less(address)
        await begin_motion("system", address)
        assert not is_motion_allowed()
        portal.said = {APPEARANCE: {"reduced-motion": ("u", 0), "color-scheme": ("u", 1)}}
        await begin_motion("off", address)
        assert not is_motion_allowed()
        await begin_motion("system", address)
        assert is_motion_allowed()
        allow_motion(False)
        await portal.stop()
    assert not await wants_less(address), "the bus is gone"


@pytest.mark.parametrize(
    ("said", "less"),
    [
        ({}, False),
        ({APPEARANCE: {"reduced-motion": ("u", 1)}}, True),
        ({APPEARANCE: {"reduced-motion": ("u", 7)}}, False),
        ({GNOME: {"enable-animations": ("b", False)}}, True),
        ({GNOME: {"enable-animations": ("b", True)}}, False),
        ({KDE: {"AnimationDurationFactor": ("s", "0")}}, True),
        ({KDE: {"AnimationDurationFactor": ("d", 0.0)}}, True),
        ({KDE: {"AnimationDurationFactor": ("s", "0.5")}}, False),
        ({APPEARANCE: "nonsense", GNOME: {"enable-animations": "nonsense"}}, False),
        ("nonsense", False),
    ],
)
def test_what_desktops_say(said: object, less: bool) -> None:
    assert says_less(said) is less
