"""The card "Who holds what": a legend, the matrix or the same as a table, and its exports."""

from typing import Final

from PySide6.QtCore import QRectF, QSize, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.events import ConversationView
from ui.controls import Text
from ui.delivery.buttons import Buttons
from ui.delivery.export import csv_of, png_of, svg_of
from ui.delivery.holding import Cell, Matrix, cell_words, matrix_of, table_of
from ui.delivery.loaded import LoadedMessages
from ui.delivery.matrix import HoldersMatrix, MatrixPainter, paint_cell
from ui.delivery.table import FigureTable
from ui.mirrored import draw_text, mirror_widget
from ui.own_frame import ms_to_own_frame
from ui.theme import current_theme, theme_changed
from ui.translate import tr

_LEGEND: Final = (Cell.HOLDS, Cell.MAYBE, Cell.NO_SIGN, Cell.MISSING_HERE)
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class HoldersContent(QWidget):
    message_chosen = Signal(str)
    export_ready = Signal(str, bytes)
    """The kind of file, and what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded: LoadedMessages | None = None
        self._conversation: ConversationView | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._show)
        self.legend = CellLegend()
        self.matrix = HoldersMatrix()
        self.matrix.message_chosen.connect(self.message_chosen)
        self.table = FigureTable(tr("Who holds what, as a table"))
        self.table.message_chosen.connect(self.message_chosen)
        self.table.hide()
        self.more = Text(face="caption", colour="ink3", wrap=True)
        self.more.hide()
        self.buttons = Buttons()
        self.buttons.table_wanted.connect(self._show_table)
        self.buttons.export_wanted.connect(self._export)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for part in (self.legend, self.matrix, self.table, self.more, self.buttons):
            column.addWidget(part)
        column.addStretch(1)

    def show_loaded(self, loaded: LoadedMessages, conversation: ConversationView) -> None:
        """At once if it is another conversation's."""
        is_new = loaded is not self._loaded
        self._loaded, self._conversation = loaded, conversation
        if is_new:
            self._show()
        elif not self._soon.isActive():
            self._soon.start(ms_to_own_frame())

    def _show(self) -> None:
        loaded, conversation = self._loaded, self._conversation
        if loaded is None or conversation is None:
            return
        matrix = matrix_of(loaded.messages, conversation.members, self.matrix.matrix)
        self.matrix.show_matrix(matrix)
        page = loaded.page
        words = ""
        if page is not None and page.is_open:
            words = tr("In an open channel nobody is proved to be anybody, so nothing is certain.")
        elif matrix.more_members:
            words = tr("%n members more", "%n member more", matrix.more_members)
        self.more.setText(words)
        self.more.setVisible(bool(words))
        self._fill_table()

    def _show_table(self, on: bool) -> None:
        self.table.setVisible(on)
        self.matrix.setVisible(not on)
        self.legend.setVisible(not on)
        self._fill_table()

    def _fill_table(self) -> None:
        if self.buttons.table.isChecked():
            matrix = self.matrix.matrix
            ids = [column.message_id for column in reversed(matrix.columns)]
            self.table.show_rows(*table_of(matrix), ids)

    def _export(self, kind: str) -> None:
        self.export_ready.emit(kind, exported(self.matrix.matrix, kind))


def exported(matrix: Matrix, kind: str) -> bytes:
    if kind == "csv":
        return csv_of(*table_of(matrix))
    drawn = MatrixPainter(matrix)
    size = QSizeF(drawn.size())
    if kind == "svg":
        return svg_of(size, tr("Who holds what"), drawn.paint)
    return png_of(size, drawn.paint)


class CellLegend(QWidget):
    """What the cells of the matrix mean."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(", ".join(map(cell_words, _LEGEND)))
        theme_changed.connect(self.updateGeometry)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines = {y for _, _, y in self._places(width)}
        return int(len(lines) * self._line())

    def sizeHint(self) -> QSize:
        return QSize(320, self.heightForWidth(320))

    def minimumSizeHint(self) -> QSize:
        return QSize(100, int(self._line()))

    def _line(self) -> float:
        return current_theme().type.caption.line_height + 4

    def _places(self, width: float) -> list[tuple[Cell, float, float]]:
        side = float(current_theme().metrics.scaled(14))
        places, x, y = [], 0.0, 0.0
        for cell in _LEGEND:
            needed = side + 6 + self._metrics_width(cell_words(cell))
            if x and x + needed > width:
                x, y = 0.0, y + self._line()
            places.append((cell, x, y))
            x += needed + 14
        return places

    def _metrics_width(self, words: str) -> float:
        return QFontMetricsF(current_theme().type.caption.font).horizontalAdvance(words) + 2

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        side = float(theme.metrics.scaled(14))
        for cell, x, y in self._places(self.width()):
            paint_cell(painter, QRectF(x, y, side, self._line()), cell)
            painter.setFont(theme.type.caption.font)
            painter.setPen(theme.ink2)
            words = cell_words(cell)
            box = QRectF(x + side + 6, y, self._metrics_width(words), self._line())
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            draw_text(painter, box, flags, words)
