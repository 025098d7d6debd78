"""A section of the settings page: its title, words, and cards of rows."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.core.search_text import folded
from ui.controls import Card, Text
from ui.settings_page.rows import SettingRow
from ui.theme import current_theme, theme_changed


class _Card(Struct, frozen=True):
    widget: QWidget
    heading: QWidget | None
    """Above it."""
    rows: Sequence[SettingRow] = ()
    words: str = ""
    """By which one without rows is found."""
    set_narrow: Callable[[bool], None] = lambda _: None
    """Of one without rows."""

    def matches(self, words: Sequence[str]) -> bool:
        text = folded(self.words).strip()
        return bool(words and text) and all(word in text for word in words)

    def show(self, shown: bool) -> None:
        for part in (self.widget, self.heading):
            if part is not None:
                part.setVisible(shown)


class SettingsSection(QWidget):
    """``name`` is how the rest of the window calls it; ``icon_name`` stands in the list."""

    shown_again = Signal()
    """It was chosen: what it tells of may have changed."""

    def __init__(self, name: str, icon_name: str, title: str, words: str = "") -> None:
        super().__init__()
        self.name = name
        self.icon_name = icon_name
        self.title = title
        self.rows: list[SettingRow] = []
        self._cards: list[_Card] = []
        self._heading = Text(title, face="title", strong=True, wrap=True)
        self._words = Text(words, face="body", colour="ink2", wrap=True)
        if not words:
            self._words.hide()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        head = QVBoxLayout()
        head.setSpacing(2)
        head.addWidget(self._heading)
        head.addWidget(self._words)
        self._column.addLayout(head)
        theme_changed.connect(self._dress)
        self._dress()

    def add_rows(self, *rows: SettingRow, heading: str = "") -> None:
        """In a card of their own."""
        card = Card("surface", "line")
        column = QVBoxLayout(card)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for row in rows:
            column.addWidget(row)
        self.rows.extend(rows)
        self._add(_Card(card, self._add_heading(heading), rows=rows))
        self._mark_first()

    def add_part(
        self,
        part: QWidget,
        *,
        heading: str = "",
        words: str = "",
        set_narrow: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """What has no rows; it is found by ``words``, if there are any."""
        shown = f"{heading} {words}"
        self._add(_Card(part, self._add_heading(heading), words=shown, set_narrow=set_narrow))

    def _add_heading(self, words: str) -> QWidget | None:
        if not words:
            return None
        heading = Text(words, face="small", colour="ink2", strong=True)
        self._column.addWidget(heading)
        return heading

    def _add(self, card: "_Card") -> None:
        self._column.addWidget(card.widget)
        self._cards.append(card)

    def show_matches(self, words: Sequence[str]) -> int:
        """Only rows with all the words; with none of them, everything.  How many are shown."""
        is_title = bool(words) and all(word in folded(self.title) for word in words)
        found = 0
        for card in self._cards:
            shown = int(not card.rows and (is_title or card.matches(words)))
            for row in card.rows:
                matches = not words or is_title or row.matches(words)
                row.setVisible(matches)
                shown += matches
            found += shown
            card.show(bool(shown) or not words)
        self._words.setVisible(bool(self._words.text()) and not words)
        self._mark_first()
        return found

    def set_narrow(self, narrow: bool) -> None:
        for row in self.rows:
            row.set_narrow(narrow)
        for card in self._cards:
            card.set_narrow(narrow)

    def refresh(self) -> None:
        for row in self.rows:
            row.refresh()

    def _mark_first(self) -> None:
        for card in self._cards:
            shown = [row for row in card.rows if not row.isHidden()]
            for row in shown:
                row.is_first = row is shown[0]

    def _dress(self) -> None:
        self._column.setSpacing(current_theme().metrics.gap(12))
