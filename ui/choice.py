"""A list that drops down, to choose one of many from."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox

from ui.icons import draw_icon
from ui.theme import current_theme


class Choice(QComboBox):
    """With an arrow of ours: a style sheet takes Qt's away."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scrolling the page under it must not change the choice."""
        event.ignore()

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """What has no room ends in an ellipsis, not in the middle of a letter."""
        super().initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, self)
        option.currentText = self.fontMetrics().elidedText(
            self.currentText(), Qt.TextElideMode.ElideRight, room.width() - 2
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        side = current_theme().metrics.scaled(14)
        place = QRectF(self.width() - 1.5 * side, (self.height() - side) / 2, side, side)
        draw_icon(QPainter(self), "down", place, current_theme().ink2)
