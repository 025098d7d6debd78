"""The settings page: a list of sections, the rows of the chosen one, and a search over all rows.

In a narrow window the list and the section stand in one place, one after the other.  What needs
another start of the program is counted above the rows, with a button that starts it again.
"""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.core.search_text import folded
from ui.controls import Area, Button, Card, IconButton, SearchLine, Text
from ui.error_words import error_words
from ui.fitted_scroll_area import FittedScrollArea
from ui.icons import icon
from ui.settings_page.rows import BoundRow
from ui.settings_page.section import SettingsSection
from ui.settings_port import SettingName, SettingsPort
from ui.speaking import tell_row
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_LIST_WIDTH = 232
_COLUMN_WIDTH = 860
_NARROW_BELOW = 720
_ROWS_NARROW_BELOW = 520
_EDGE = 24
_LONGEST_SEARCH = 80


class _Sections(QListWidget):
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        tell_row(self)


class SettingsPage(Area):
    closed = Signal()
    restart_requested = Signal()

    def __init__(
        self,
        port: SettingsPort,
        sections: Sequence[SettingsSection],
        *,
        open_file: Callable[[], None],
    ) -> None:
        super().__init__("canvas")
        self.setAccessibleName(tr("Settings"))
        self._port = port
        self.sections = tuple(sections)
        self._is_narrow = False
        self._shows_rows = False
        """In a narrow window, rather than the list."""
        self.back = IconButton("back", tr("Back to the conversations"))
        self.search = SearchLine()
        self.found = Text(face="caption", colour="ink3", wrap=True)
        self.list = _Sections()
        self.up = IconButton("back", tr("All sections"))
        self.restart = Button(tr("Restart now"), kind="primary", size="small")
        self.waiting = Text(face="label", wrap=True)
        self.trouble = Text(face="label", colour="warn", wrap=True)
        self.open_file = Button(tr("Open the file"), size="small")
        self._lay_out()
        self.back.clicked.connect(self.closed)
        self.up.clicked.connect(self._show_list)
        self.search.textChanged.connect(self._search)
        self.search.returnPressed.connect(self._enter)
        self.list.currentRowChanged.connect(self._choose)
        self.list.itemClicked.connect(lambda _item: self._enter_section())
        self.list.itemActivated.connect(lambda _item: self._enter_rows())
        self.restart.clicked.connect(self.restart_requested)
        self.open_file.clicked.connect(open_file)
        theme_changed.connect(self._dress)
        self.list.setCurrentRow(0)
        self._dress()
        self._tell()

    # --- building ---------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        self._whole = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._whole.setContentsMargins(0, 0, 0, 0)
        self._whole.setSpacing(0)
        self._whole.addWidget(self._lay_out_list())
        self._whole.addWidget(self._lay_out_rows(), 1)

    def _lay_out_list(self) -> QWidget:
        self._nav = Area("panel", edges=("right",))
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(self.back)
        head.addWidget(Text(tr("Settings"), face="heading", strong=True), 1)
        self.search.setPlaceholderText(tr("Search settings"))
        self.search.setAccessibleName(tr("Search settings"))
        self.search.setMaxLength(_LONGEST_SEARCH)
        self.search.setClearButtonEnabled(True)
        self.found.hide()
        self.list.setProperty("kind", "sections")
        self.list.setAccessibleName(tr("Sections"))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.viewport().setAutoFillBackground(False)
        for section in self.sections:
            self.list.addItem(QListWidgetItem(section.title))
        self._column = QVBoxLayout(self._nav)
        self._column.addLayout(head)
        self._column.addWidget(self.search)
        self._column.addWidget(self.found)
        self._column.addWidget(self.list, 1)
        return self._nav

    def _lay_out_rows(self) -> QWidget:
        self._content = QWidget()
        self._rows = QVBoxLayout(self._content)
        self._rows.addWidget(self._lay_out_notes())
        for section in self.sections:
            self._rows.addWidget(section)
        self._rows.addStretch(1)
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._content, 1000)
        row.addStretch(1)
        self.area = FittedScrollArea(centre)
        self._side = QWidget()
        column = QVBoxLayout(self._side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._top = QWidget()
        top = QHBoxLayout(self._top)
        top.setContentsMargins(10, 6, 10, 0)
        top.addWidget(self.up)
        top.addWidget(Text(tr("All sections"), face="label", colour="ink2"), 1)
        column.addWidget(self._top)
        column.addWidget(self.area, 1)
        return self._side

    def _lay_out_notes(self) -> QWidget:
        """What is to be known before one changes anything."""
        self._notes = Card("warnBg", "warnLine")
        column = QVBoxLayout(self._notes)
        column.setContentsMargins(18, 10, 12, 10)
        for words, button in ((self.waiting, self.restart), (self.trouble, self.open_file)):
            line = QHBoxLayout()
            line.addWidget(words, 1)
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
            column.addLayout(line)
        return self._notes

    # --- what is shown ----------------------------------------------------------------------------

    def section(self, name: str) -> SettingsSection:
        return next(section for section in self.sections if section.name == name)

    def show_section(self, name: str) -> None:
        """The first one if ``name`` is empty; in a narrow window the list of them."""
        self._port.reread()
        self.search.clear()
        names = [section.name for section in self.sections]
        self.list.setCurrentRow(names.index(name) if name else max(0, self.list.currentRow()))
        for section in self.sections:
            section.refresh()
        self._shows_rows = bool(name)
        self._choose(self.list.currentRow())
        self._tell()
        self._fit()
        self.take_focus()

    def take_focus(self) -> None:
        if self._is_narrow and self._shows_rows:
            self.up.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def current(self) -> SettingsSection:
        return self.sections[max(0, self.list.currentRow())]

    def _words(self) -> list[str]:
        return folded(self.search.text()).split()

    def _choose(self, number: int) -> None:
        if number < 0:
            return
        if self.search.text():
            self.search.clear()  # Which comes back here.
            return
        for section in self.sections:
            section.setVisible(section is self.sections[number])
            section.show_matches(())
        self.area.verticalScrollBar().setValue(0)
        self._dress_items()
        self.sections[number].shown_again.emit()

    def _search(self) -> None:
        words = self._words()
        self.found.setVisible(bool(words))
        if not words:
            self._choose(self.list.currentRow())
            self._fit()
            return
        found = 0
        for section in self.sections:
            shown = section.show_matches(words)
            section.setVisible(bool(shown))
            found += shown
        said = tr("%n settings found", "%n setting found", found)
        if not found:
            said = tr("No setting is called that.")
        self.found.setText(said)
        self.area.verticalScrollBar().setValue(0)
        self._dress_items()
        self._fit()
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.search, said))

    def _enter_section(self) -> None:
        """A section was clicked; in a narrow window it takes the list's place."""
        self.search.clear()
        self._shows_rows = True
        self._fit()

    def _enter_rows(self) -> None:
        """By Enter in the list."""
        self._enter_section()
        self._enter()

    def _enter(self) -> None:
        """Into the rows, by Enter in the search field."""
        controls = (row.control for section in self.sections for row in section.rows)
        usable = (each for each in controls if each is not None and each.isVisible())
        first = next((each for each in usable if each.isEnabled()), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.TabFocusReason)

    def _show_list(self) -> None:
        self._shows_rows = False
        self._fit()
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def next_area(self) -> None:
        """List and rows in turn."""
        focused = QApplication.focusWidget()
        if focused is not None and self._side.isAncestorOf(focused):
            (self.up if self._is_narrow else self.list).setFocus()
        else:
            self._enter()

    # --- what is to be told -----------------------------------------------------------------------

    def heard(self, name: SettingName) -> None:
        """It was changed, here or elsewhere."""
        for section in self.sections:
            for row in section.rows:
                if isinstance(row, BoundRow) and row.name == name:
                    row.refresh()
        self._tell()

    def _tell(self) -> None:
        waiting, trouble = len(self._port.waiting()), self._port.trouble
        words = tr(
            "%n changes count from the next start on.",
            "%n change counts from the next start on.",
            waiting,
        )
        self.waiting.setText(words if waiting else "")
        for part in (self.waiting, self.restart):
            part.setVisible(bool(waiting))
        self.trouble.setText("" if trouble is None else error_words(trouble))
        for part in (self.trouble, self.open_file):
            part.setVisible(trouble is not None)
        self._notes.setVisible(bool(waiting) or trouble is not None)

    def reread(self) -> None:
        """The window has the keys again: somebody may have changed the file meanwhile."""
        self._port.reread()
        self._tell()

    # --- keys and room ----------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif self.search.text():
            self.search.clear()
            self.search.setFocus()
        elif self._is_narrow and self._shows_rows:
            self._show_list()
        else:
            self.closed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        metrics = current_theme().metrics
        self._is_narrow = narrow = self.width() / metrics.factor < _NARROW_BELOW
        searching = bool(self._words())
        directions = QBoxLayout.Direction
        self._whole.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        if narrow:
            self._nav.setMinimumWidth(0)
            self._nav.setMaximumWidth(16_777_215)
        else:
            self._nav.setFixedWidth(metrics.scaled(_LIST_WIDTH))
        rows = not narrow or searching or self._shows_rows
        self._nav.setVisible(not narrow or searching or not self._shows_rows)
        self.list.setVisible(not (narrow and searching))
        self._side.setVisible(rows)
        self._top.setVisible(narrow and not searching)
        self._whole.setStretch(0, int(narrow and not rows))
        room = self.width() if narrow else self.width() - self._nav.width()
        beside = room / metrics.factor >= _ROWS_NARROW_BELOW
        for section in self.sections:
            section.set_narrow(not beside)
        edge = metrics.gap(12 if narrow else _EDGE)
        self._rows.setContentsMargins(edge, metrics.gap(12 if narrow else 22), edge, edge)

    # --- looks ------------------------------------------------------------------------------------

    def _dress(self) -> None:
        metrics = current_theme().metrics
        gap = metrics.gap
        self._column.setContentsMargins(gap(10), gap(8), gap(10), gap(8))
        self._column.setSpacing(gap(8))
        self._rows.setSpacing(gap(16))
        self._content.setMaximumWidth(metrics.scaled(_COLUMN_WIDTH) + 2 * gap(_EDGE))
        side = metrics.scaled(18)
        self.list.setIconSize(QSize(side, side))
        self._dress_items()
        self._fit()

    def _dress_items(self) -> None:
        theme = current_theme()
        side = theme.metrics.scaled(18)
        for number, section in enumerate(self.sections):
            chosen = number == self.list.currentRow() and not self._words()
            item = self.list.item(number)
            colour = theme.accentInk if chosen else theme.ink2
            item.setIcon(icon(section.icon_name, colour, side))
            font = QFont(theme.type.label.font)
            font.setWeight(QFont.Weight.DemiBold if chosen else QFont.Weight.Medium)
            item.setFont(font)
            item.setForeground(colour)
