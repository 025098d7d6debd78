"""Choose an emoji: by search, by category, among the last ones, in a skin tone.

``EmojiPicker`` floats over a window beside whatever asked for it, without covering that as far as
the window allows, and says ``picked`` with the emoji; a click elsewhere or Escape closes it.  Those
used last stand above the first category, so its page is full from the first use on.  Everything
works from the keyboard: it opens in the search field, Enter takes the first match, Down goes to the
cells, letters there go back to the search, Tab stays inside.
"""

import math
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QButtonGroup,
    QHBoxLayout,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ui.controls import Card, ElidedText, SearchLine, Text, pressed_by_enter
from ui.emoji.fonts import draw_emoji, emoji_table, has_emoji_font
from ui.emoji.grid import CELL, Cell, EmojiGrid, cell_of
from ui.emoji.table import SKIN_TONES
from ui.emoji.used import UsedEmoji
from ui.menu import Menu
from ui.settings import UiSettings
from ui.theme import Radius, current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr

_COLUMNS, _ROWS = 9, 7
_FEWEST_ROWS, _ENOUGH_ROWS = 2, 4
"""However little room there is; and above or below, before it stands beside."""
_EDGE = 8
_APART = 6
_TAB = 34
_LONGEST_SEARCH = 60
_HAND = "\u270b"
RECENT: Final = "recent"
_FIRST: Final = "smileys-emotion"
_SIGNS: Final = {
    RECENT: "\U0001f553",
    "smileys-emotion": "\U0001f600",
    "people-body": "\U0001f44b",
    "animals-nature": "\U0001f43b",
    "food-drink": "\U0001f34e",
    "travel-places": "\U0001f697",
    "activities": "\u26bd",
    "objects": "\U0001f4a1",
    "symbols": "\U0001f523",
    "flags": "\U0001f3c1",
}
"""What each category's button shows, in the order of the buttons."""


def group_words(key: str) -> str:
    words = {
        RECENT: tr("Used last"),
        "smileys-emotion": tr("Faces and feelings"),
        "people-body": tr("People and body"),
        "animals-nature": tr("Animals and nature"),
        "food-drink": tr("Food and drink"),
        "travel-places": tr("Travel and places"),
        "activities": tr("Activities"),
        "objects": tr("Objects"),
        "symbols": tr("Symbols"),
        "flags": tr("Flags"),
    }
    return words[key]


def tone_words(tone: int) -> str:
    return (
        tr("No skin tone"),
        tr("Light skin tone"),
        tr("Medium-light skin tone"),
        tr("Medium skin tone"),
        tr("Medium-dark skin tone"),
        tr("Dark skin tone"),
    )[tone]


class _Tab(QAbstractButton):
    """A category, shown by one of its emoji."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.setCheckable(True)
        self.setAccessibleName(group_words(key))
        set_tip(self, group_words(key))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        side = current_theme().metrics.scaled(_TAB)
        return QSize(side // 2, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1.5, 1.5, -1.5, -1.5)
        radius = theme.metrics.gap(Radius.GROUPED)
        if self.isChecked() or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.accentSoft if self.isChecked() else theme.hover)
            painter.drawRoundedRect(box, radius, radius)
        if self.isChecked():  # by shape as well, not by colour alone
            line = QRectF(0, 0, box.width() / 2, 2)
            line.moveCenter(QPointF(box.center().x(), box.bottom()))
            painter.fillRect(line, theme.accent)
        if self.hasFocus():
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, radius, radius)
        side = theme.metrics.scaled(20)
        sign = QRectF(0, 0, side, side)
        sign.moveCenter(box.center())
        if has_emoji_font():
            draw_emoji(painter, sign, _SIGNS[self.key])
        else:
            painter.setPen(theme.ink)
            painter.setFont(theme.type.caption.font)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, group_words(self.key)[:2])


class _Search(SearchLine):
    left_downward = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setPlaceholderText(tr("Search emoji"))
        self.setAccessibleName(tr("Search emoji by name"))
        self.setMaxLength(_LONGEST_SEARCH)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Escape if self.text():
                self.clear()
            case Qt.Key.Key_Down:
                self.left_downward.emit()
            case _:
                super().keyPressEvent(event)


class _ToneButton(QToolButton):
    """Shows a hand in the chosen skin tone; its menu has the six."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = Menu(self)
        menu.setAccessibleName(tr("Skin tone"))
        for tone in range(len(SKIN_TONES)):
            action = menu.addAction(_hand(tone), tone_words(tone))
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, tone=tone: self.chosen.emit(tone))
        self.setMenu(menu)
        theme_changed.connect(self._fit)
        self._fit()

    def show_tone(self, tone: int) -> None:
        for number, action in enumerate(self.menu().actions()):
            action.setChecked(number == tone)
        self.setIcon(_hand(tone))
        words = tr("Skin tone: {tone}").format(tone=tone_words(tone))
        self.setAccessibleName(words)
        set_tip(self, words)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def _fit(self) -> None:
        metrics = current_theme().metrics
        self.setFixedSize(metrics.scaled(_TAB), metrics.scaled(_TAB))
        self.setIconSize(QSize(metrics.scaled(20), metrics.scaled(20)))


def _hand(tone: int) -> QIcon:
    side = current_theme().metrics.scaled(20)
    result = QIcon()
    for scale in (1.0, 2.0):
        picture = QPixmap(round(side * scale), round(side * scale))
        picture.setDevicePixelRatio(scale)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        draw_emoji(painter, QRectF(0, 0, side, side), _HAND + SKIN_TONES[tone])
        painter.end()
        result.addPixmap(picture)
    return result


class EmojiPicker(Card):
    picked = Signal(str)
    closed = Signal()
    """While it still has the focus, which goes who knows where once it is hidden."""

    def __init__(self, settings: UiSettings, window: QWidget) -> None:
        """Floats over ``window`` and is deleted with it; nothing is read before it is opened."""
        super().__init__("surface", "line2", radius=Radius.BUBBLE, parent=window)
        self.hide()
        self._window = window
        self._used = UsedEmoji(settings)
        self._anchor = self._button = QRect()
        self._is_open = False
        self._whole = QRect()
        """Its place while all of a category is shown."""
        self._group = RECENT
        self.setAccessibleName(tr("Emoji"))
        self.search = _Search()
        self.tone = _ToneButton()
        self.tabs = {key: _Tab(key) for key in _SIGNS}
        self.grid = EmojiGrid()
        self._nothing = Text(face="label", colour="ink3", wrap=True)
        self._name = ElidedText(face="caption", colour="ink2")
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(_APART)
        head.addWidget(self.search, 1)
        head.addWidget(self.tone)
        tabs = QHBoxLayout()
        tabs.setSpacing(0)
        self._group_of_tabs = QButtonGroup(self)
        for tab in self.tabs.values():
            self._group_of_tabs.addButton(tab)
            tabs.addWidget(tab)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(_EDGE, _EDGE, _EDGE, _EDGE)
        whole.setSpacing(_APART)
        whole.addLayout(head)
        whole.addLayout(tabs)
        whole.addWidget(self._nothing)
        whole.addWidget(self.grid, 1)
        whole.addWidget(self._name)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._show_cells)
        self.search.returnPressed.connect(self._pick_first)
        self.search.left_downward.connect(self._enter_grid)
        self.tone.chosen.connect(self._choose_tone)
        self._group_of_tabs.buttonClicked.connect(self._tab_clicked)
        self.grid.chosen.connect(self._pick)
        self.grid.current_changed.connect(self._say_name)
        self.grid.left_upward.connect(self.search.setFocus)
        self.grid.left_downward.connect(self._step_down)
        self.grid.typed.connect(self._type)
        theme_changed.connect(self._place)

    # --- opening and closing ----------------------------------------------------------------------

    def open_at(self, anchor: QRect, *, is_button: bool = False) -> None:
        """``anchor``: what it stands above, below or beside, in the window's coordinates.

        A press on a button does not close the picker; its owner decides that.
        """
        self._anchor, self._button = anchor, anchor if is_button else QRect()
        self._is_open = True
        self.search.clear()
        self.tone.show_tone(self._used.tone)
        self._choose_group(RECENT if self._used.recent else _FIRST)
        self._place()
        self.show()
        self.raise_()
        self.search.setFocus(Qt.FocusReason.PopupFocusReason)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.installEventFilter(self)
            app.focusChanged.connect(self._focus_went)

    def close_picker(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.removeEventFilter(self)
            app.focusChanged.disconnect(self._focus_went)
        self.closed.emit()
        self.hide()

    def _place(self) -> None:
        """Above what asked for it or else below, or beside it where that leaves too few rows."""
        bar = self.grid.verticalScrollBar().sizeHint().width()
        wanted = _COLUMNS * current_theme().metrics.scaled(CELL) + 1 + 2 * _EDGE + bar
        room = self._window.rect().adjusted(_EDGE, _EDGE, -_EDGE, -_EDGE)
        taken = self._anchor.adjusted(-_EDGE, -_EDGE, _EDGE, _EDGE)
        above, below = taken.top() - room.top(), room.bottom() - taken.bottom()
        before, after = taken.left() - room.left(), room.right() - taken.right()
        width = min(wanted, room.width())
        least, enough, most = (
            min(self._height_of(rows), room.height())
            for rows in (_FEWEST_ROWS, _ENOUGH_ROWS, _ROWS)
        )
        if max(above, below) < enough and max(before, after) >= width:
            height = most
            y = min(max(room.top(), taken.center().y() - most // 2), room.bottom() + 1 - most)
            x = taken.right() + 1 if after >= before else taken.left() - width
        else:
            is_above = above >= min(below, most)
            height = max(least, min(most, above if is_above else below))
            y = taken.top() - height if is_above else taken.bottom() + 1
            y = min(max(room.top(), y), room.bottom() + 1 - height)
            ends_there = self._anchor.center().x() > self._window.rect().center().x()
            x = self._anchor.right() + 1 - width if ends_there else self._anchor.left()
            x = min(max(room.left(), x), room.right() + 1 - width)
        self._whole = QRect(x, y, width, height)
        self._fit_height()

    def _fit_height(self) -> None:
        """No more than what was found needs; the line in which one searches stays where it is."""
        if not self._whole.isValid():
            return
        self.setGeometry(self._whole)
        if self.search.text().strip():
            rows = math.ceil(len(self.grid.cells) / self.grid.columns())
            self.resize(self.width(), min(self._height_of(rows), self._whole.height()))

    def _height_of(self, rows: int) -> int:
        around = self.sizeHint().height() - self.grid.sizeHint().height()
        return around + rows * current_theme().metrics.scaled(CELL)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Between its parts, or on a free place: no press on what is behind it."""
        event.accept()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A press elsewhere closes it, and does what it does there; the window's size moves it."""
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonPress:
            at = self._window.mapFromGlobal(event.globalPosition().toPoint())
            elsewhere = isinstance(watched, QWidget) and not self._is_mine(watched)
            if elsewhere and not self._button.contains(at):
                self.close_picker()
        elif event.type() == QEvent.Type.Resize and watched is self._window:
            self.close_picker()
        return False

    def _is_mine(self, widget: QWidget | None) -> bool:
        return widget is not None and (
            widget is self or self.isAncestorOf(widget) or widget is self.tone.menu()
        )

    def _focus_went(self, _before: QWidget | None, after: QWidget | None) -> None:
        if after is not None and not self._is_mine(after):
            self.close_picker()

    def focusNextPrevChild(self, next_one: bool) -> bool:
        """Tab goes round within: search, skin tone, categories, cells."""
        tab = self.tabs[self._group]
        stops: list[QWidget] = [self.search, self.tone, tab, self.grid]
        focused = QApplication.focusWidget()
        at = stops.index(focused) if focused is not None and focused in stops else 0
        stops[(at + (1 if next_one else -1)) % len(stops)].setFocus(
            Qt.FocusReason.TabFocusReason if next_one else Qt.FocusReason.BacktabFocusReason
        )
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        on_tabs = isinstance(QApplication.focusWidget(), _Tab)
        match event.key():
            case Qt.Key.Key_Escape:
                self.close_picker()
            case Qt.Key.Key_PageDown if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
                self._step(1)
            case Qt.Key.Key_PageUp if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
                self._step(-1)
            case Qt.Key.Key_Right if on_tabs:
                self._step(1)
            case Qt.Key.Key_Left if on_tabs:
                self._step(-1)
            case Qt.Key.Key_Down | Qt.Key.Key_Return | Qt.Key.Key_Enter if on_tabs:
                self._enter_grid()
            case Qt.Key.Key_Up if on_tabs:
                self.search.setFocus()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                pass  # nothing behind it is meant
            case _ if on_tabs and event.text().isalnum():
                self._type(event.text())
            case _:
                super().keyPressEvent(event)

    # --- what is shown ----------------------------------------------------------------------------

    def _choose_group(self, key: str) -> None:
        on_tabs = isinstance(QApplication.focusWidget(), _Tab)
        self._group = key
        self.tabs[key].setChecked(True)
        if on_tabs:
            self.tabs[key].setFocus()
        self._show_cells()

    def _tab_clicked(self, tab: QAbstractButton) -> None:
        if isinstance(tab, _Tab):
            self.search.clear()
            self._choose_group(tab.key)

    def _step(self, by: int) -> None:
        """To the next category, and its first cell if one was among the cells."""
        keys = list(self.tabs)
        in_grid = self.grid.hasFocus()
        if self.search.text():
            return
        self._choose_group(keys[(keys.index(self._group) + by) % len(keys)])
        if in_grid:
            self.grid.go_to(0)

    def _step_down(self) -> None:
        """Below those used last was the first category, so its own page is passed over."""
        self._step(2 if self._group == RECENT else 1)

    def _cells(self) -> list[Cell]:
        table, tone = emoji_table(), self._used.tone
        if self.search.text().strip():
            found = table.search(self.search.text())
        else:
            group = _FIRST if self._group == RECENT else self._group
            found = [e for g in table.groups if g.key == group for e in g.emoji]
        return [cell_of(emoji, emoji.toned(tone)) for emoji in found]

    def _used_last(self) -> list[Cell]:
        if self._group != RECENT or self.search.text().strip():
            return []
        known = ((text, emoji_table().find(text)) for text in self._used.recent)
        return [cell_of(emoji, text) for text, emoji in known if emoji is not None]

    def _show_cells(self) -> None:
        cells, used = self._cells(), self._used_last()
        self.grid.show_cells(cells, above=used)
        is_search = bool(self.search.text().strip())
        if is_search:
            words = tr("No emoji is called so.")
            self.grid.go_to(0)
        else:
            words = tr("Emoji that you use are kept here.")
        if not has_emoji_font() and cells:
            words = tr("This system has no font for emoji, so they are shown by name.")
        is_unused = self._group == RECENT and not used and not is_search
        self._nothing.setText(words)
        self._nothing.setVisible(not cells or is_unused or not has_emoji_font())
        self._say_name()
        self._fit_height()

    def _say_name(self) -> None:
        cell = self.grid.cell_in_question()
        if cell is None:
            self._name.setText(group_words(self._group))
        else:
            self._name.setText(f"{cell.name}   :{cell.code}:")

    # --- choosing ---------------------------------------------------------------------------------

    def _enter_grid(self) -> None:
        if self.grid.cells:
            self.grid.setFocus()
            if not self.grid.currentIndex().isValid():
                self.grid.go_to(0)

    def _type(self, letter: str) -> None:
        self.search.setFocus()
        self.search.insert(letter)

    def _pick_first(self) -> None:
        if self.search.text().strip() and self.grid.cells:
            self._pick(self.grid.cells[0].text)

    def _pick(self, text: str) -> None:
        self._used.use(text)
        self.close_picker()
        self.picked.emit(text)

    def _choose_tone(self, tone: int) -> None:
        self._used.tone = tone
        self.tone.show_tone(tone)
        self._show_cells()
        self.search.setFocus()  # Where Return takes what was found.
