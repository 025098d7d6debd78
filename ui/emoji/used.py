"""Which emoji were used last and in which skin tone, as the window remembers it.

Recent ones are kept as they were written.  What is read back is checked: the file may be damaged,
or written by a later version.
"""

from typing import Final

from engine.core.emoji import is_emoji, without_selectors
from ui.emoji.table import SKIN_TONES
from ui.settings import UiSettings

MAX_RECENT: Final = 32
_RECENT, _TONE = "recent_emoji", "skin_tone"


class UsedEmoji:
    def __init__(self, settings: UiSettings) -> None:
        self._settings = settings

    @property
    def recent(self) -> tuple[str, ...]:
        """The last one first."""
        kept = (self._settings.get(_RECENT) or "").split(" ")
        return tuple(text for text in kept[:MAX_RECENT] if is_emoji(text))

    def use(self, text: str) -> None:
        same = without_selectors(text)
        others = (each for each in self.recent if without_selectors(each) != same)
        self._settings.put(_RECENT, " ".join((text, *others)[:MAX_RECENT]))

    @property
    def tone(self) -> int:
        """An index of SKIN_TONES."""
        stored = self._settings.get(_TONE) or ""
        tone = int(stored) if stored.isascii() and stored.isdecimal() else 0
        return tone if tone < len(SKIN_TONES) else 0

    @tone.setter
    def tone(self, tone: int) -> None:
        self._settings.put(_TONE, str(tone))
