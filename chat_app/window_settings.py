"""The settings file as the window's memory of its looks, notifications, privacy and recording.

The window knows short strings under fixed keys (ui/settings.py); the file knows typed settings.
A change that cannot be written is logged and lasts until the window closes.
"""

import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from chat_app.settings_control import SettingsControl
from engine.core.errors import ConfigError
from ui.settings_port import SettingName, SettingValue

_log = logging.getLogger(__name__)

_NAMES: Final[Mapping[str, SettingName]] = {
    "appearance": ("appearance", "theme"),
    "language": ("appearance", "language"),
    "motion": ("appearance", "motion"),
    "density": ("appearance", "density"),
    "text_percent": ("appearance", "text_size"),
    "notifications": ("notifications", "enabled"),
    "show_message_text": ("notifications", "preview"),
    "tray": ("desktop", "tray"),
    "close_to_tray": ("desktop", "close_to_tray"),
    "tell_typing": ("privacy", "typing"),
    "tell_presence": ("privacy", "presence"),
    "confirm_links": ("privacy", "confirm_links"),
    "fetch_pictures_below_mb": ("privacy", "fetch_pictures_below_mb"),
    "lock_after": ("privacy", "lock_after"),
    "lock_with_screen": ("privacy", "lock_with_screen"),
    "record_deliveries": ("delivery", "record"),
    "delivery_key": ("delivery", "key"),
}


class WindowSettings(Struct, frozen=True):
    """``load`` and ``save`` as ``UiSettings`` takes them."""

    control: SettingsControl

    def load(self, key: str) -> str | None:
        name = _NAMES.get(key)
        if name is None:
            return None
        value = self.control.value(name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return str(value).replace("-", "_") if key == "appearance" else str(value)

    def save(self, key: str, value: str) -> None:
        try:
            self._save(key, value)
        except ConfigError:
            _log.warning("A window setting could not be written.", extra={"reason": key})

    def _save(self, key: str, value: str) -> None:
        name = _NAMES.get(key)
        if name is None:
            raise ConfigError(f"{key}: the window keeps nothing under this name")
        typed: SettingValue = value.replace("_", "-") if key == "appearance" else value
        before = self.control.value(name)
        if isinstance(before, bool):
            typed = value == "yes"
        elif isinstance(before, int):
            typed = int(value)
        self.control.write(name, typed)
