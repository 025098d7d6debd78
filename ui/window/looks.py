"""The user's choice of colours, density and text size, put into force at once and remembered."""

from PySide6.QtWidgets import QApplication

from ui.settings import Appearance, UiSettings
from ui.theme import set_theme, system_mode

_STEP_PERCENT = 10
_NORMAL_PERCENT = 100


class Looks:
    def __init__(self, settings: UiSettings) -> None:
        self._settings = settings

    def choose(self, appearance: Appearance) -> None:
        self._settings.appearance = appearance
        self.apply()

    def step_text_size(self, step: int) -> None:
        """One step larger or smaller; 0 is back to normal."""
        percent = self._settings.text_percent + step * _STEP_PERCENT if step else _NORMAL_PERCENT
        self._settings.text_percent = percent
        self.apply()

    @property
    def motion(self) -> str:
        """Where it is "off" nothing moves, whatever the desktop says."""
        return self._settings.get("motion") or "system"

    def apply(self) -> None:
        app = QApplication.instance()
        if not isinstance(app, QApplication):
            raise TypeError("a window needs a QApplication")
        mode = self._settings.appearance.mode(system_mode())
        set_theme(
            app,
            mode,
            text_percent=self._settings.text_percent,
            density=self._settings.density,
        )
