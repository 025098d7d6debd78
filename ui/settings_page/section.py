"""A section of the settings page: its title, words, and cards of rows."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.controls import Card, Text
from ui.settings_page.rows import SettingRow
from ui.theme import current_theme, theme_changed


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
        self._cards: list[tuple[QWidget, list[SettingRow]]] = []
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
        if heading:
            self._column.addWidget(Text(heading, face="small", colour="ink2", strong=True))
        for row in rows:
            column.addWidget(row)
        self.rows.extend(rows)
        self._cards.append((card, list(rows)))
        self._column.addWidget(card)
        self._mark_first()

    def add_part(self, part: QWidget) -> None:
        """What is no row and is not found by searching."""
        self._column.addWidget(part)
        self._cards.append((part, []))

    def show_matches(self, words: Sequence[str]) -> int:
        """Only rows with all the words; with none of them, everything.  How many are shown."""
        is_title = bool(words) and all(word in self.title.casefold() for word in words)
        for card, rows in self._cards:
            shown = 0
            for row in rows:
                matches = not words or is_title or row.matches(words)
                row.setVisible(matches)
                shown += matches
            card.setVisible(bool(shown) or not words)
        self._words.setVisible(bool(self._words.text()) and not words)
        self._mark_first()
        return sum(not row.isHidden() for row in self.rows)

    def set_narrow(self, narrow: bool) -> None:
        for row in self.rows:
            row.set_narrow(narrow)

    def refresh(self) -> None:
        for row in self.rows:
            row.refresh()

    def _mark_first(self) -> None:
        for _, rows in self._cards:
            shown = [row for row in rows if not row.isHidden()]
            for row in shown:
                row.is_first = row is shown[0]

    def _dress(self) -> None:
        self._column.setSpacing(current_theme().metrics.gap(12))
