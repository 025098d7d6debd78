"""The window's own memory kept in the settings file: theme, text size, notifications, recording.

The window knows short strings under fixed keys (ui/settings.py); the file knows typed settings.
A change that cannot be written is logged and lasts until the window closes.
"""

import logging
import os
from pathlib import Path

from msgspec import Struct

from chat_app.settings import Settings, load_settings
from chat_app.settings_file import change_setting
from engine.core.errors import ConfigError
from engine.delivery.pseudonym import KEY_BYTES, key_text

_log = logging.getLogger(__name__)


class WindowSettings(Struct, frozen=True):
    """``load`` and ``save`` as ``UiSettings`` takes them."""

    settings: Settings
    path: Path

    def load(self, key: str) -> str | None:
        match key:
            case "appearance":
                return self.settings.appearance.theme.replace("-", "_")
            case "text_percent":
                return str(self.settings.appearance.text_size)
            case "delivery_key":
                return load_settings(self.path).delivery.key
            case "notifications" | "show_message_text" | "record_deliveries":
                return "yes" if self._is_on(key) else "no"
            case _:
                return None

    def _is_on(self, key: str) -> bool:
        switches = {
            "notifications": self.settings.notifications.enabled,
            "show_message_text": self.settings.notifications.preview,
            "record_deliveries": self.settings.delivery.record,
        }
        return switches[key]

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
            case "record_deliveries":
                if value == "yes" and not load_settings(self.path).delivery.key:
                    key_made = key_text(os.urandom(KEY_BYTES))
                    change_setting(self.path, "delivery", "key", key_made)
                change_setting(self.path, "delivery", "record", value == "yes")
            case _:
                raise ConfigError(f"{key}: the window keeps nothing under this name")
