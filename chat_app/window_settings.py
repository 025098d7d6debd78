"""The window's own memory kept in the settings file: theme, text size, what notifications show.

The window knows short strings under fixed keys (ui/settings.py); the file knows typed settings.
A change that cannot be written is logged and lasts until the window closes.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from chat_app.settings import Settings
from chat_app.settings_file import change_setting
from engine.core.errors import ConfigError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """``load`` and ``save`` as ``UiSettings`` takes them."""

    settings: Settings
    path: Path

    def load(self, key: str) -> str | None:
        match key:
            case "appearance":
                return self.settings.appearance.theme.replace("-", "_")
            case "text_percent":
                return str(self.settings.appearance.text_size)
            case "notifications":
                return "yes" if self.settings.notifications.enabled else "no"
            case "show_message_text":
                return "yes" if self.settings.notifications.preview else "no"
            case _:
                return None

    def save(self, key: str, value: str) -> None:
        try:
            self._save(key, value)
        except ConfigError:
            _log.warning("A window setting could not be written.", extra={"reason": key})

    def _save(self, key: str, value: str) -> None:
        match key:
            case "appearance":
                change_setting(self.path, "appearance", "theme", value.replace("_", "-"))
            case "text_percent":
                change_setting(self.path, "appearance", "text_size", int(value))
            case "notifications":
                change_setting(self.path, "notifications", "enabled", value == "yes")
            case "show_message_text":
                change_setting(self.path, "notifications", "preview", value == "yes")
            case _:
                raise ConfigError(f"{key}: the window keeps nothing under this name")
