"""What the window remembers, through two callbacks: it knows neither files nor formats of others.

Values are short strings under fixed keys.  A value that cannot be read counts as not set, so a
damaged setting never keeps the window from opening.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from msgspec import Struct

from engine.core.ids import ConversationId
from ui.theme import Density, ThemeMode, clamp_percent

PICTURES_BELOW_MB = 2
"""Fetched by themselves unless the settings say otherwise."""
_DEFAULT_TEXT_PERCENT = 100
_MOST_DIGITS = 18


class Appearance(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
    HIGH_CONTRAST = "high_contrast"

    def mode(self, system: ThemeMode) -> ThemeMode:
        return system if self is Appearance.SYSTEM else ThemeMode(self.value)


class Language(StrEnum):
    """Of the window; ``SYSTEM``: the first of the user's languages that it speaks."""

    SYSTEM = "system"
    ENGLISH = "en"
    FRENCH = "fr"


class CloseToTray(StrEnum):
    """What closing the window means where there is a tray."""

    ASK = "ask"
    YES = "yes"
    NO = "no"


class Archived(Struct, frozen=True, kw_only=True):
    """What there was in a conversation when it was archived."""

    unread: int
    mentions: int = 0
    """Unread messages that mention us."""
    lamport_timestamp: int | None = None
    """Of the last message; None: there was none, or an earlier version did not remember it."""

    @classmethod
    def read(cls, numbers: Sequence[str]) -> Self | None:
        found = [int(each) for each in numbers if each.isdecimal() and len(each) <= _MOST_DIGITS]
        if len(found) != len(numbers) or not found:
            return None
        _, mentions, lamport = (*found, None, None)[:3]
        return cls(unread=found[0], mentions=mentions or 0, lamport_timestamp=lamport)

    def written(self) -> str:
        numbers = [self.unread, self.mentions]
        numbers += [] if self.lamport_timestamp is None else [self.lamport_timestamp]
        return ":".join(map(str, numbers))


def _nothing(key: str) -> str | None:
    del key
    return None


def _forget(key: str, value: str) -> None:
    del key, value


@dataclass(slots=True)
class UiSettings:
    """One profile's window settings; without callbacks nothing outlives the window."""

    load: Callable[[str], str | None] = _nothing
    save: Callable[[str, str], None] = _forget
    _known: dict[str, str] = field(default_factory=dict, init=False)

    def get(self, key: str) -> str | None:
        if key not in self._known:
            stored = self.load(key)
            if stored is None:
                return None
            self._known[key] = stored
        return self._known[key]

    def put(self, key: str, value: str) -> None:
        if self.get(key) != value:
            self._known[key] = value
            self.save(key, value)

    def reread(self) -> None:
        """Somebody else may have changed what is kept."""
        for key in self._known:
            stored = self.load(key)
            if stored is not None:
                self._known[key] = stored

    @property
    def appearance(self) -> Appearance:
        stored = self.get("appearance")
        known = {choice.value for choice in Appearance}
        return Appearance(stored) if stored in known else Appearance.SYSTEM

    @appearance.setter
    def appearance(self, choice: Appearance) -> None:
        self.put("appearance", choice.value)

    @property
    def language(self) -> Language:
        """Of the windows that are made from now on."""
        stored = self.get("language")
        known = {choice.value for choice in Language}
        return Language(stored) if stored in known else Language.SYSTEM

    @language.setter
    def language(self, choice: Language) -> None:
        self.put("language", choice.value)

    @property
    def text_percent(self) -> int:
        stored = self.get("text_percent") or ""
        return clamp_percent(int(stored)) if stored.isdecimal() else _DEFAULT_TEXT_PERCENT

    @text_percent.setter
    def text_percent(self, percent: int) -> None:
        self.put("text_percent", str(clamp_percent(percent)))

    @property
    def density(self) -> Density:
        stored = self.get("density")
        return Density.COMPACT if stored == Density.COMPACT else Density.COMFORTABLE

    @property
    def pinned(self) -> frozenset[str]:
        """Ids of the conversations that stay at the top of the list."""
        return frozenset((self.get("pinned") or "").split())

    @pinned.setter
    def pinned(self, ids: frozenset[str]) -> None:
        self.put("pinned", " ".join(sorted(ids)))

    @property
    def archived(self) -> Mapping[ConversationId, Archived]:
        """By the ids of the conversations."""
        entries = (entry.split(":") for entry in (self.get("archived") or "").split())
        found = ((entry[0], Archived.read(entry[1:])) for entry in entries)
        return {ConversationId(each): kept for each, kept in found if kept is not None}

    @archived.setter
    def archived(self, archived: Mapping[ConversationId, Archived]) -> None:
        entries = (f"{each}:{archived[each].written()}" for each in sorted(archived))
        self.put("archived", " ".join(entries))

    @property
    def marked_unread(self) -> frozenset[str]:
        """Ids of the conversations that the user marked as unread."""
        return frozenset((self.get("marked_unread") or "").split())

    @marked_unread.setter
    def marked_unread(self, ids: frozenset[str]) -> None:
        self.put("marked_unread", " ".join(sorted(ids)))

    @property
    def known_apart(self) -> frozenset[str]:
        """Keys of members of whom the user said that they only share a verified person's name."""
        return frozenset((self.get("known_apart") or "").split())

    @known_apart.setter
    def known_apart(self, keys: frozenset[str]) -> None:
        self.put("known_apart", " ".join(sorted(keys)))

    @property
    def notifications(self) -> bool:
        """Whether the desktop is told of new messages at all."""
        return self.get("notifications") != "no"

    @property
    def close_to_tray(self) -> CloseToTray:
        stored = self.get("close_to_tray")
        known = {choice.value for choice in CloseToTray}
        return CloseToTray(stored) if stored in known else CloseToTray.ASK

    @close_to_tray.setter
    def close_to_tray(self, choice: CloseToTray) -> None:
        self.put("close_to_tray", choice.value)

    @property
    def tray(self) -> bool:
        """Whether an icon is put into the desktop's tray."""
        return self.get("tray") != "no"

    @property
    def record_deliveries(self) -> bool:
        """Whether what happens to messages is written down, from the next start on."""
        return self.get("record_deliveries") == "yes"

    @property
    def delivery_key(self) -> str:
        """Of the records; "" until recording was first switched on."""
        return self.load("delivery_key") or ""

    @property
    def tell_typing(self) -> bool:
        """Whether the others hear that one is typing."""
        return self.get("tell_typing") != "no"

    @property
    def confirm_links(self) -> bool:
        """Whether it is asked before another program opens an address."""
        return self.get("confirm_links") != "no"

    @property
    def fetch_pictures_below_mb(self) -> int:
        """Pictures of at most so many megabytes are fetched by themselves; 0: none."""
        stored = self.get("fetch_pictures_below_mb") or ""
        return int(stored) if stored.isdecimal() else PICTURES_BELOW_MB

    @property
    def lock_after_minutes(self) -> int:
        """Without input in the window it is locked after so many; 0: never by itself."""
        stored = self.get("lock_after") or ""
        return int(stored) if stored.isdecimal() else 0

    @property
    def lock_with_screen(self) -> bool:
        """Whether it is locked when the desktop locks its screen."""
        return self.get("lock_with_screen") != "no"

    @property
    def show_message_text(self) -> bool:
        """Whether a desktop notification may carry what was written."""
        return self.get("show_message_text") != "no"
