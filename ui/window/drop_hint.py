"""The hint shown while files are dragged over the conversation: where they will go."""

from PySide6.QtCore import QMimeData, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QWidget

from ui.foreign_text import one_line
from ui.icons import draw_icon
from ui.theme import Radius, current_theme
from ui.translate import tr

_INSET = 12
_ICON = 36
_VEIL = 0.88


class DropHint(QWidget):
    """Lies over all of its parent, and takes the drop in its stead."""

    dropped = Signal(QMimeData)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = parent
        self._words = ""
        self.setAcceptDrops(True)
        self.hide()

    def show_for(self, name: str) -> None:
        self._words = tr("Drop here to send to {name}").format(name=one_line(name, 60))
        self.setAccessibleName(self._words)
        self.setGeometry(self._over.rect())
        self.raise_()
        self.show()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.hide()
        self.dropped.emit(event.mimeData())

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(theme.canvas)
        veil.setAlphaF(_VEIL)
        painter.fillRect(self.rect(), veil)
        inset = theme.metrics.gap(_INSET)
        pen = QPen(theme.accent, 2)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        painter.setBrush(theme.accentSoft)
        radius = theme.metrics.gap(Radius.DIALOG)
        box = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(box, radius, radius)
        side = theme.metrics.scaled(_ICON)
        face = theme.type.heading
        top = box.center().y() - (side + face.line_height + inset) / 2
        sign = QRectF(box.center().x() - side / 2, top, side, side)
        draw_icon(painter, "attach", sign, theme.accentInk)
        painter.setFont(face.font)
        painter.setPen(theme.accentInk)
        below = QRectF(box.left(), sign.bottom() + inset, box.width(), face.line_height)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, self._words)
