"""What the window remembers: settings in the settings file, the rest in a file of its own.

Where the window stood, what was open, pinned or archived, what was told once, which emoji and which
folders were used last is nobody's setting, so it lies in ``window.json`` in the profile directory.
A file that cannot be read counts as empty; one that cannot be written is logged and forgotten at
the end.
"""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chat_app.window_settings import WindowSettings
from engine.persistence.profile_directory import write_private_file

KEPT_HERE: Final = frozenset(
    {
        "geometry",
        "list_width",
        "conversation",
        "earlier_profile",
        "recent_emoji",
        "skin_tone",
        "sent_from",
        "saved_to",
        "pinned",
        "archived",
        "marked_unread",
        "quiet_until",
        "closing_explained",
        "locked",
    }
)
MAX_FILE_BYTES: Final = 1024 * 1024

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class WindowMemory:
    """``load`` and ``save`` as ``UiSettings`` takes them."""

    settings: WindowSettings
    path: Path
    _values: dict[str, str] | None = field(default=None, init=False)

    def load(self, key: str) -> str | None:
        return self._read().get(key) if key in KEPT_HERE else self.settings.load(key)

    def save(self, key: str, value: str) -> None:
        if key not in KEPT_HERE:
            self.settings.save(key, value)
            return
        values = self._read()
        values[key] = value
        try:
            write_private_file(self.path, json.dumps(values, ensure_ascii=True) + "\n")
        except OSError as error:
            logger.warning(
                "the window's place was not saved", extra={"error": type(error).__name__}
            )

    def _read(self) -> dict[str, str]:
        if self._values is None:
            self._values = self._parsed()
        return self._values

    def _parsed(self) -> dict[str, str]:
        try:
            with self.path.open("rb") as file:
                found = json.loads(file.read(MAX_FILE_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {k: v for k, v in found.items() if k in KEPT_HERE and isinstance(v, str)}
