"""The settings page as a person finds it: opened, looked through, its controls by their labels."""

from typing import TypeVar

from PySide6.QtWidgets import QLineEdit, QWidget

from tests.ui.driving import Stage
from ui.choice import Choice
from ui.settings_page.page import SettingsPage
from ui.settings_page.rows import SettingRow
from ui.switch import Switch
from ui.window.main_window import MainWindow

W = TypeVar("W", bound=QWidget)


def open_settings(window: MainWindow, section: str = "") -> SettingsPage:
    window.settings.open(section)
    page = window.settings.page
    assert page is not None
    assert window.settings.is_shown
    return page


def is_shown(window: MainWindow) -> bool:
    return window.settings.is_shown


def rows_of(page: SettingsPage) -> list[SettingRow]:
    """All of them, in order, whatever is shown."""
    return [row for section in page.sections for row in section.rows]


def row_of(page: SettingsPage, label: str) -> SettingRow:
    (row,) = [row for row in rows_of(page) if row.label.text() == label]
    return row


def control_of(page: SettingsPage, label: str, kind: type[W]) -> W:
    """What a screen reader finds by its label."""
    row = row_of(page, label)
    control = row.label.buddy()
    assert isinstance(control, kind)
    assert control.accessibleName() == label
    return control


def switch_of(page: SettingsPage, label: str) -> Switch:
    return control_of(page, label, Switch)


def field_of(page: SettingsPage, label: str) -> QLineEdit:
    return control_of(page, label, QLineEdit)


async def turn_switch(window: MainWindow, section: str, label: str) -> bool:
    """As a person would, and back to the conversations.  Whether it is on then."""
    page = open_settings(window, section)
    switch = switch_of(page, label)
    switch.click()
    await window.tasks.settle()
    window.settings.close()
    return switch.isChecked()


def pick(it: Stage, page: SettingsPage, label: str, words: str) -> None:
    """By the keyboard: the letters of what is wanted, up to a space, which opens the list."""
    choice = control_of(page, label, Choice)
    choice.setFocus()
    it.write(words.partition(" ")[0], on=choice)
    assert choice.currentText() == words


def shown_labels(page: SettingsPage) -> list[str]:
    return [row.label.text() for row in rows_of(page) if row.isVisible()]
