"""The window's menu and its keys.  Every action has a shortcut or stands in this menu, or both."""

from collections.abc import Callable

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from ui.icons import icon
from ui.menu import Menu
from ui.theme import current_theme, theme_changed
from ui.translate import tr
from ui.window.desktop import Desktop


class WindowMenu(Menu):
    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._icons: dict[QAction, str] = {}
        self.setAccessibleName(tr("Menu"))
        self.setToolTipsVisible(True)
        theme_changed.connect(self._dress)

    def add(
        self, text: str, keys: tuple[str, ...], run: Callable[[], None], *, icon_name: str = ""
    ) -> QAction:
        action = self.addAction(text)
        self.bind(action, keys, run)
        if icon_name:
            self._icons[action] = icon_name
            self._dress()
        return action

    def add_hidden(self, text: str, keys: tuple[str, ...], run: Callable[[], None]) -> QAction:
        """A key without a line in the menu."""
        action = QAction(text, self._window)
        self.bind(action, keys, run)
        return action

    def bind(self, action: QAction, keys: tuple[str, ...], run: Callable[[], None]) -> None:
        action.setShortcuts([QKeySequence(key) for key in keys])
        action.triggered.connect(lambda _checked=False: run())
        self._window.addAction(action)

    def add_quiet(self, desktop: Desktop) -> None:
        quiet = desktop.add_quiet_menu(self)
        self._icons[quiet.menuAction()] = "bell-off"
        self._dress()

    def _dress(self) -> None:
        theme = current_theme()
        for action, name in self._icons.items():
            action.setIcon(icon(name, theme.ink2, theme.metrics.scaled(16)))
