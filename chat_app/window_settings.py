"""The settings that the window changes in the file: looks, notifications, privacy, recording.

The window knows short strings under fixed keys (ui/settings.py); the file knows typed settings.
A change that cannot be written is logged and lasts until the window closes.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct, field

from chat_app.settings import Settings, load_what_is_right
from chat_app.settings_file import change_setting
from engine.core.errors import ConfigError
from engine.delivery.pseudonym import KEY_BYTES, key_text

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Announcing:
    """What others learn of us without a message of ours; the engine asks each time."""

    presence: bool = True
    pictures_below_mb: int = 2
    """Pictures up to here are fetched by themselves."""

    def announces_presence(self) -> bool:
        return self.presence

    def fetches_pictures_below_mb(self) -> int:
        return self.pictures_below_mb


class WindowSettings(Struct, frozen=True):
    """``load`` and ``save`` as ``UiSettings`` takes them."""

    settings: Settings
    path: Path
    announcing: Announcing = field(default_factory=Announcing)
    """Follows a change at once."""

    def load(self, key: str) -> str | None:
        match key:
            case "appearance":
                return self.settings.appearance.theme.replace("-", "_")
            case "text_percent":
                return str(self.settings.appearance.text_size)
            case "fetch_pictures_below_mb":
                return str(self.settings.privacy.fetch_pictures_below_mb)
            case "language" | "close_to_tray":
                return self._choices()[key]
            case "delivery_key":
                return load_what_is_right(self.path).settings.delivery.key
            case _:
                on = self._switches().get(key)
                return None if on is None else "yes" if on else "no"

    def _choices(self) -> dict[str, str]:
        return {
            "language": self.settings.appearance.language,
            "close_to_tray": self.settings.desktop.close_to_tray,
        }

    def _switches(self) -> dict[str, bool]:
        return {
            "notifications": self.settings.notifications.enabled,
            "show_message_text": self.settings.notifications.preview,
            "tray": self.settings.desktop.tray,
            "tell_typing": self.settings.privacy.typing,
            "tell_presence": self.settings.privacy.presence,
            "record_deliveries": self.settings.delivery.record,
        }

    def save(self, key: str, value: str) -> None:
        if key == "tell_presence":
            self.announcing.presence = value == "yes"
        elif key == "fetch_pictures_below_mb":
            self.announcing.pictures_below_mb = int(value)
        try:
            self._save(key, value)
        except ConfigError:
            _log.warning("A window setting could not be written.", extra={"reason": key})

    def _save(self, key: str, value: str) -> None:  # noqa: C901 - a flat table of keys
        match key:
            case "appearance":
                change_setting(self.path, "appearance", "theme", value.replace("_", "-"))
            case "language":
                change_setting(self.path, "appearance", key, value)
            case "text_percent":
                change_setting(self.path, "appearance", "text_size", int(value))
            case "notifications":
                change_setting(self.path, "notifications", "enabled", value == "yes")
            case "show_message_text":
                change_setting(self.path, "notifications", "preview", value == "yes")
            case "close_to_tray":
                change_setting(self.path, "desktop", key, value)
            case "tell_typing":
                change_setting(self.path, "privacy", "typing", value == "yes")
            case "tell_presence":
                change_setting(self.path, "privacy", "presence", value == "yes")
            case "fetch_pictures_below_mb":
                change_setting(self.path, "privacy", key, int(value))
            case "record_deliveries":
                if value == "yes" and not load_what_is_right(self.path).settings.delivery.key:
                    key_made = key_text(os.urandom(KEY_BYTES))
                    change_setting(self.path, "delivery", "key", key_made)
                change_setting(self.path, "delivery", "record", value == "yes")
            case _:
                raise ConfigError(f"{key}: the window keeps nothing under this name")
