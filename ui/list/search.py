"""The search field: filters the list by name while one types."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from ui.controls import KeyCap, SearchLine
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_LONGEST = 100
_ICON_AND_EDGES = 50


class SearchField(SearchLine):
    left_downward = Signal()
    """Down: the list takes over."""
    confirmed = Signal()
    """Enter: the first match is meant."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPlaceholderText(tr("Search people and groups"))
        self.setAccessibleName(tr("Search people and groups by name"))
        self.setMaxLength(_LONGEST)
        self._hint = KeyCap(tr("Ctrl Shift F"), parent=self)
        self._hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.textChanged.connect(self._show_hint)
        theme_changed.connect(self._place_hint)
        self._place_hint()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Escape if self.text():
                self.clear()
            case Qt.Key.Key_Down:
                self.left_downward.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.confirmed.emit()
            case _:
                super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show_hint()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_hint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_hint()
        self._place_hint()

    def _show_hint(self) -> None:
        words = self.fontMetrics().horizontalAdvance(self.placeholderText())
        edges = current_theme().metrics.scaled(_ICON_AND_EDGES)
        has_room = self.width() >= edges + words + 2 * self._hint.width()
        self._hint.setVisible(has_room and not self.text() and not self.hasFocus())

    def _place_hint(self) -> None:
        size = self._hint.sizeHint()
        left = 10 if self.isRightToLeft() else self.width() - size.width() - 10
        self._hint.setGeometry(
            left, (self.height() - size.height()) // 2, size.width(), size.height()
        )
