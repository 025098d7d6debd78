"""A list that drops down, to choose one of many from."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QRegion, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QStyleOptionComboBox

from ui.icons import draw_icon
from ui.theme import Radius, current_theme


class Choice(QComboBox):
    """With an arrow of ours: a style sheet takes Qt's away."""

    def __init__(self) -> None:
        super().__init__()
        self._delegate = QStyledItemDelegate(self)
        """Qt's own knows no style sheet.  To set it keeps the width that the choice has just then,
        so it is set when all that one can choose is there."""

    def showPopup(self) -> None:
        """Rounded as menus are: cut out, since Qt's window for it is opaque."""
        self.setItemDelegate(self._delegate)
        super().showPopup()
        window = self.view().window()
        radius = current_theme().metrics.gap(Radius.BUTTON)
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(window.rect()), radius, radius)
        window.setMask(QRegion(shape.toFillPolygon().toPolygon()))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scrolling the page under it must not change the choice."""
        event.ignore()

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """What has no room ends in an ellipsis, not in the middle of a letter."""
        super().initStyleOption(option)
        metrics = self.fontMetrics()
        items = [self.itemText(number) for number in range(self.count())]
        longest = max((metrics.horizontalAdvance(each) for each in items), default=0)
        # What stands around the words; a style sheet says it of no part of the widget.
        room = self.width() - (self.sizeHint().width() - longest)
        side = Qt.TextElideMode.ElideRight
        option.currentText = metrics.elidedText(self.currentText(), side, room)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        side = current_theme().metrics.scaled(14)
        place = QRectF(self.width() - 1.5 * side, (self.height() - side) / 2, side, side)
        draw_icon(QPainter(self), "down", place, current_theme().ink2)
