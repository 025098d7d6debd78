"""Deliveries are recorded only after it was said what that means; then the key is shown."""

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from ui.dialogs.confirm import Confirm
from ui.dialogs.recording import RecordingKey
from ui.settings import UiSettings
from ui.window.looks import Looks
from ui.window.menu import WindowMenu

KEY = "the-key-of-the-group"


class Kept:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def save(self, key: str, value: str) -> None:
        self.values[key] = value
        if key == "record_deliveries" and value == "yes":
            self.values["delivery_key"] = KEY


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    return window


def _action(window: QWidget, kept: Kept) -> QAction:
    settings = UiSettings(load=kept.values.get, save=kept.save)
    menu = WindowMenu(window)
    menu.add_recording(settings, Looks(settings))
    (action,) = menu.actions()
    return action


def _open(window: QWidget, kind: type[QWidget]) -> QWidget:
    (found,) = [one for one in window.findChildren(kind) if one.isVisible()]
    return found


def test_it_is_switched_on_once_agreed_and_the_key_is_shown(window: QWidget, kept: Kept) -> None:
    action = _action(window, kept)
    assert action.isCheckable()
    action.trigger()
    ask = _open(window, Confirm)
    assert isinstance(ask, Confirm)
    words = " ".join(label.text() for label in ask.findChildren(QLabel))
    assert "not encrypted" in words
    assert "no text, no names and no keys" in words
    assert not action.isChecked()
    assert kept.values == {}
    ask.confirm.click()
    assert action.isChecked()
    assert kept.values["record_deliveries"] == "yes"
    shown = _open(window, RecordingKey)
    assert isinstance(shown, RecordingKey)
    assert shown.key.text() == KEY
    shown.reject()


def test_no_is_no_and_off_needs_no_question(window: QWidget, kept: Kept) -> None:
    action = _action(window, kept)
    action.trigger()
    ask = _open(window, Confirm)
    assert isinstance(ask, Confirm)
    ask.cancel.click()
    assert not action.isChecked()
    assert kept.values == {}
    kept.values |= {"record_deliveries": "yes", "delivery_key": KEY}
    on = _action(window, kept)
    assert on.isChecked()
    on.trigger()
    assert kept.values["record_deliveries"] == "no"
