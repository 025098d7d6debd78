"""Qt without a screen; closing a test's window must not end its loop, as in the program itself."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from chat_app.settings import DEFAULTS
from chat_app.settings_control import SettingsControl
from ui.languages import speak

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
_HERE = Path(__file__).parent
_OF_OFFSCREEN = r"^This plugin does not support |No such signal .*::systemTrayWindowChanged"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The offscreen platform says of every dialog and of a tray what it cannot do."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.qt_log_ignore(_OF_OFFSCREEN, extend=True))


@pytest.fixture(autouse=True, scope="session")
def _collect_on_this_thread() -> Iterator[None]:
    """As in the program: no other thread may destroy Qt's objects (chat_app/main_thread_gc.py)."""
    gc.disable()
    gc.freeze()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def _keep_the_loop(qapp: QApplication) -> Iterator[None]:
    qapp.setQuitOnLastWindowClosed(False)
    speak("en")
    gc.collect()  # what the test before held until its very end
    gc.freeze()  # and what lives on is not looked through at each end of a test
    yield
    qapp.clipboard().clear()
    gc.collect()


@pytest.fixture
def control(tmp_path: Path) -> SettingsControl:
    """Settings in a file of their own."""
    return SettingsControl(tmp_path / "settings.toml", DEFAULTS)
