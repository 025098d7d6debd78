"""The matrix "Who holds what": members down, messages across, the newest at the end.

Only the cells in view are painted.  The arrow keys go from cell to cell, whose words a screen
reader hears, and Enter opens the inspector.
"""

from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QSizePolicy

from engine.core.ids import MessageId, ParticipantId
from engine.delivery_views import DeliveryMark
from ui.avatar import AvatarImages, draw_avatar
from ui.delivery.holding import EMPTY, Cell, Column, Holder, Matrix, spoken_cell
from ui.delivery.painting import draw_mark
from ui.mirrored import draw_text, mirror_widget, mirrored_point
from ui.regional import clock
from ui.speaking import told_as
from ui.theme import Theme, current_theme, theme_changed
from ui.times import moment
from ui.tips import set_tip
from ui.translate import tr

_CELL: Final = 18
_BEAD: Final = 3.5
_STEP: Final = 24
_AVATAR: Final = 20
_NAMES: Final = 106
_MOST_NAMES: Final = 0.45
"""Of the whole width."""
_MOST_ROWS: Final = 12
"""More members scroll."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class CellImages:
    """Each kind of cell is drawn once, as long as the theme is the same; an image is far quicker.

    There are few kinds: one for each state, and one for each member who wrote something.
    """

    def __init__(self) -> None:
        self.avatars = AvatarImages()
        self._known: dict[tuple[Cell, ParticipantId | None], QPixmap] = {}
        self._kind: tuple[Theme, float, float] | None = None

    def paint(self, painter: QPainter, box: QRectF, cell: Cell, holder: Holder) -> None:
        kind = (current_theme(), box.width(), painter.device().devicePixelRatio())
        if kind != self._kind:
            self._known.clear()
            self._kind = kind
        key = cell, holder.participant_id if cell is Cell.WROTE else None
        image = self._known.get(key)
        if image is None:
            image = self._known[key] = _cell_image(box.width(), kind[2], cell, holder)
        painter.drawPixmap(box.topLeft(), image)


def _cell_image(side: float, ratio: float, cell: Cell, holder: Holder) -> QPixmap:
    image = QPixmap(round(side * ratio), round(side * ratio))
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint_cell(painter, QRectF(0, 0, side, side), cell, holder)
    painter.end()
    return image


class MatrixPainter:
    """Draws a matrix, from a column and a row on; the same on the screen and in pictures."""

    def __init__(self, matrix: Matrix, images: CellImages | None = None) -> None:
        """``images``: of cells, on the screen; None: they are drawn, as for a file."""
        theme = current_theme()
        self.matrix = matrix
        self._paint_one = paint_cell if images is None else images.paint
        self._paint_avatar = draw_avatar if images is None else images.avatars.paint
        self.step = theme.metrics.scaled(_STEP)
        self.head = theme.type.micro.line_height + theme.metrics.scaled(12)
        self.foot = float(self.step)
        self.widest = self.names = self._names_width()

    def _names_width(self) -> float:
        theme = current_theme()
        metrics = QFontMetricsF(theme.type.caption.font)
        words = [holder.name for holder in self.matrix.holders]
        widest = max(map(metrics.horizontalAdvance, words), default=0.0)
        foot = metrics.horizontalAdvance(self.foot_words())
        least = theme.metrics.scaled(_AVATAR) + 8
        return min(max(widest + least, foot), theme.metrics.scaled(_NAMES) + least) + 8

    def fit(self, width: float) -> None:
        """Names leave room for columns where it is narrow."""
        self.names = min(self.widest, width * _MOST_NAMES)

    def foot_words(self) -> str:
        """Of how many differs: of a message of ours by one more than of others'."""
        return tr("Held by")

    def size(self) -> QSize:
        columns, rows = len(self.matrix.columns), len(self.matrix.holders)
        width = self.names + columns * self.step
        return QSize(int(width + 1), int(self.head + rows * self.step + self.foot + 1))

    def paint(  # noqa: PLR0913 - where, and what of it
        self,
        painter: QPainter,
        box: QRectF,
        *,
        first: int = 0,
        top: int = 0,
        chosen: tuple[int, int] | None = None,
        focused: bool = False,
    ) -> None:
        """``first``: the column at the left; ``top``: the row on top."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        columns = self.matrix.columns[first : first + int((box.width() - self.names) // self.step)]
        room = int((box.height() - self.head - self.foot) // self.step + 0.01)
        holders = self.matrix.holders[top : top + room]
        if chosen is not None and 0 <= chosen[0] - first < len(columns):
            self._paint_band(painter, box, chosen[0] - first, len(holders))
        self._paint_names(painter, box, holders)
        self._paint_times(painter, box, columns)
        for place, column in enumerate(columns):
            x = box.left() + self.names + place * self.step
            for row, holder in enumerate(holders):
                y = box.top() + self.head + row * self.step
                cell = QRectF(x, y, self.step, self.step)
                self._paint_one(painter, cell, column.cells[top + row], holder)
                if focused and chosen == (first + place, top + row):
                    _paint_focus(painter, cell)
            y = box.top() + self.head + len(holders) * self.step
            self._paint_held(painter, QRectF(x, y, self.step, self.foot), column)

    def _paint_band(self, painter: QPainter, box: QRectF, place: int, rows: int) -> None:
        x = box.left() + self.names + place * self.step
        band = QRectF(x, box.top() + self.head - 2, self.step, rows * self.step + 4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(current_theme().accentSoft)
        painter.drawRoundedRect(band, 6, 6)

    def _paint_names(self, painter: QPainter, box: QRectF, holders: tuple[Holder, ...]) -> None:
        theme = current_theme()
        side = float(theme.metrics.scaled(_AVATAR))
        room = self.names - side - 14
        for row, holder in enumerate(holders):
            y = box.top() + self.head + row * self.step
            face = QRectF(box.left(), y + (self.step - side) / 2, side, side)
            self._paint_avatar(
                painter, face, stable_id=holder.participant_id, name=holder.known_as, is_group=False
            )
            painter.setFont(theme.type.caption.font)
            painter.setPen(theme.ink)
            words = QFontMetricsF(painter.font()).elidedText(
                holder.name, Qt.TextElideMode.ElideRight, room
            )
            draw_text(painter, QRectF(face.right() + 8, y, room, self.step), _LEFT, words)
        y = box.top() + self.head + len(holders) * self.step
        painter.setFont(theme.type.caption.font)
        painter.setPen(theme.ink2)
        words = QFontMetricsF(painter.font()).elidedText(
            self.foot_words(), Qt.TextElideMode.ElideRight, self.names - 4
        )
        draw_text(painter, QRectF(box.left(), y, self.names, self.foot), _LEFT, words)

    def _paint_times(self, painter: QPainter, box: QRectF, columns: tuple[Column, ...]) -> None:
        """The minute where it changes and there is room, and below it the mark of each."""
        theme = current_theme()
        painter.setFont(theme.type.micro.font)
        metrics = QFontMetricsF(painter.font())
        line = theme.type.micro.line_height
        free, said = box.left(), ""
        for place, column in enumerate(columns):
            x = box.left() + self.names + place * self.step
            at_ms = column.message.sent_ms or column.message.received_ms
            words = "" if at_ms is None else clock(moment(at_ms))
            width = metrics.horizontalAdvance(words)
            if words and words != said and x >= free and x + width <= box.right():
                painter.setPen(theme.ink3)
                draw_text(painter, QRectF(x + 3, box.top(), width + 2, line), _LEFT, words)
                free, said = x + width + 8, words
            centre = QPointF(x + self.step / 2, box.top() + line + theme.metrics.scaled(6))
            if column.message.mark is not DeliveryMark.HERE:
                draw_mark(painter, column.message, centre, theme.metrics.scaled(_BEAD), theme)

    def _paint_held(self, painter: QPainter, box: QRectF, column: Column) -> None:
        theme = current_theme()
        painter.setFont(theme.type.micro.strong())
        painter.setPen(theme.ok if column.message.is_held_by_all else theme.ink2)
        draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, column.held_words)


def paint_cell(painter: QPainter, box: QRectF, cell: Cell, holder: Holder | None = None) -> None:
    """``holder``: whose colour marks what they wrote; None in a legend."""
    theme = current_theme()
    side = min(float(theme.metrics.scaled(_CELL)), box.width())
    square = QRectF(0, 0, side, side)
    square.moveCenter(box.center())
    radius = side * 0.28
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if cell is Cell.NO_SIGN:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.line2)
        painter.drawEllipse(square.center(), 1.5, 1.5)
    elif cell is Cell.MAYBE:
        painter.setPen(QPen(theme.accent, 1.5))
        painter.drawRoundedRect(square.adjusted(1.5, 1.5, -1.5, -1.5), radius, radius)
    elif cell is Cell.MISSING_HERE:
        painter.setPen(_dashed(theme.warnDot))
        painter.setBrush(theme.warnBg)
        painter.drawRoundedRect(square.adjusted(1, 1, -1, -1), radius, radius)
    elif cell is Cell.NOT_SENT:
        painter.setPen(QPen(theme.danger, 1.5))
        painter.setBrush(theme.dangerBg)
        painter.drawRoundedRect(square.adjusted(1, 1, -1, -1), radius, radius)
        _paint_dot(painter, square, theme.danger)
    else:
        wrote = cell is Cell.WROTE
        fill = theme.accent
        if wrote and holder is not None:
            fill = theme.sender_colour(holder.participant_id)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        painter.drawRoundedRect(square, radius, radius)
        if wrote:
            _paint_dot(painter, square, theme.surface)


@told_as(QAccessible.Role.Chart)
class HoldersMatrix(QAbstractScrollArea):
    message_chosen = Signal(str)
    """The id of a message into which one wants to look."""

    def __init__(self) -> None:
        super().__init__()
        self._matrix = EMPTY
        self._images = CellImages()
        self._painter = MatrixPainter(EMPTY, self._images)
        self._chosen: tuple[int, int] | None = None
        """Column and row."""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)
        self.verticalScrollBar().valueChanged.connect(self.viewport().update)
        self.setAccessibleName(tr("Who holds what"))
        theme_changed.connect(self._dress)

    @property
    def matrix(self) -> Matrix:
        return self._matrix

    @property
    def chosen(self) -> tuple[int, int] | None:
        return self._chosen

    def show_matrix(self, matrix: Matrix) -> None:
        if matrix == self._matrix:
            return
        chosen_id = self._chosen_id()
        bar = self.horizontalScrollBar()
        at_end = bar.value() >= bar.maximum()
        left_id = None if at_end or not self._matrix.columns else self._left_id()
        before = self.sizeHint()
        self._matrix = matrix
        self._keep_chosen(chosen_id)
        self._draw_anew(before)
        place = None if left_id is None else self._place_of(left_id)
        bar.setValue(bar.maximum() if place is None else place)

    def _dress(self) -> None:
        self._draw_anew(self.sizeHint())

    def _draw_anew(self, before: QSize) -> None:
        """``before``: the room that it wanted until now."""
        self._painter = MatrixPainter(self._matrix, self._images)
        self._painter.fit(self.viewport().width())
        self._set_bars()
        if self.sizeHint() != before:  # Else the whole page would be laid out for nothing.
            self.updateGeometry()
        self.viewport().update()

    def _left_id(self) -> MessageId:
        first = min(self.horizontalScrollBar().value(), len(self._matrix.columns) - 1)
        return self._matrix.columns[first].message_id

    def _chosen_id(self) -> MessageId | None:
        return None if self._chosen is None else self._matrix.columns[self._chosen[0]].message_id

    def _place_of(self, message_id: MessageId) -> int | None:
        columns = self._matrix.columns
        return next((n for n, each in enumerate(columns) if each.message_id == message_id), None)

    def _keep_chosen(self, message_id: MessageId | None) -> None:
        place = None if message_id is None else self._place_of(message_id)
        if place is None or self._chosen is None or not self._matrix.holders:
            self._chosen = None
        else:
            self._chosen = place, min(self._chosen[1], len(self._matrix.holders) - 1)

    def _columns_in_view(self) -> int:
        return max(int((self.viewport().width() - self._painter.names) // self._painter.step), 1)

    def _rows_in_view(self) -> int:
        room = self.viewport().height() - self._painter.head - self._painter.foot
        return max(int(room // self._painter.step + 0.01), 1)

    def _set_bars(self) -> None:
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setRange(0, max(len(self._matrix.columns) - self._columns_in_view(), 0))
        across.setPageStep(self._columns_in_view())
        down.setRange(0, max(len(self._matrix.holders) - self._rows_in_view(), 0))
        down.setPageStep(self._rows_in_view())

    # --- choosing ---------------------------------------------------------------------------------

    def _choose(self, column: int, row: int) -> None:
        matrix = self._matrix
        if not matrix.columns or not matrix.holders:
            return
        column = max(0, min(column, len(matrix.columns) - 1))
        row = max(0, min(row, len(matrix.holders) - 1))
        self._chosen = column, row
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setValue(_into_view(across.value(), self._columns_in_view(), column))
        down.setValue(_into_view(down.value(), self._rows_in_view(), row))
        self.setAccessibleDescription(spoken_cell(matrix, column, row))
        QAccessible.updateAccessibility(
            QAccessibleEvent(self, QAccessible.Event.DescriptionChanged)
        )
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        newest = len(self._matrix.columns) - 1
        column, row = self._chosen or (newest, 0)
        back = 1 if self.isRightToLeft() else -1
        page = self._columns_in_view()
        moves = {
            Qt.Key.Key_Left: (column + back, row),
            Qt.Key.Key_Right: (column - back, row),
            Qt.Key.Key_Up: (column, row - 1),
            Qt.Key.Key_Down: (column, row + 1),
            Qt.Key.Key_Home: (0, row),
            Qt.Key.Key_End: (newest, row),
            Qt.Key.Key_PageUp: (column - page, row),
            Qt.Key.Key_PageDown: (column + page, row),
        }
        key = Qt.Key(event.key())
        if key in moves:
            self._choose(*(moves[key] if self._chosen is not None else (column, row)))
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._chosen is not None:
            self.message_chosen.emit(self._matrix.columns[self._chosen[0]].message_id)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._cell_at(event.position())
        if place is not None and event.button() is Qt.MouseButton.LeftButton:
            self._choose(*place)
            self.message_chosen.emit(self._matrix.columns[place[0]].message_id)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = self._cell_at(event.position())
        set_tip(self.viewport(), "" if place is None else spoken_cell(self._matrix, *place))

    def _cell_at(self, position: QPointF) -> tuple[int, int] | None:
        at = mirrored_point(position, self.viewport())
        x, y = at.x() - self._painter.names, at.y() - self._painter.head
        if x < 0 or y < 0:
            return None
        column = self.horizontalScrollBar().value() + int(x // self._painter.step)
        row = self.verticalScrollBar().value() + int(y // self._painter.step)
        inside = column < len(self._matrix.columns) and row < len(self._matrix.holders)
        return (column, row) if inside else None

    # --- Qt ---------------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        rows = min(max(len(self._matrix.holders), 1), _MOST_ROWS)
        painter = self._painter
        bar = self.horizontalScrollBar().sizeHint().height()
        height = painter.head + rows * painter.step + painter.foot + bar
        return QSize(int(painter.widest + 8 * painter.step), int(height + 1))

    def minimumSizeHint(self) -> QSize:
        return QSize(int(6 * self._painter.step), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        bar = self.horizontalScrollBar()
        at_end = bar.value() >= bar.maximum()
        super().resizeEvent(event)
        self._painter.fit(self.viewport().width())
        self._set_bars()
        if at_end:
            bar.setValue(bar.maximum())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._chosen is None:
            self._choose(len(self._matrix.columns) - 1, 0)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.LayoutDirectionChange:
            self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        mirror_widget(painter, self.viewport())
        if not self._matrix.columns:
            painter.setFont(current_theme().type.caption.font)
            painter.setPen(current_theme().ink3)
            box = QRectF(self.viewport().rect())
            draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, tr("No messages yet"))
            return
        self._painter.paint(
            painter,
            QRectF(self.viewport().rect()),
            first=self.horizontalScrollBar().value(),
            top=self.verticalScrollBar().value(),
            chosen=self._chosen,
            focused=self.hasFocus(),
        )


# --- parts ----------------------------------------------------------------------------------------


def _into_view(first: int, room: int, place: int) -> int:
    if place < first:
        return place
    return max(first, place - room + 1)


def _dashed(colour: QColor) -> QPen:
    pen = QPen(colour, 1.5, Qt.PenStyle.CustomDashLine)
    pen.setDashPattern([2, 1.6])
    return pen


def _paint_dot(painter: QPainter, square: QRectF, colour: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(square.center(), square.width() * 0.16, square.width() * 0.16)


def _paint_focus(painter: QPainter, cell: QRectF) -> None:
    theme = current_theme()
    painter.setPen(QPen(theme.focus, theme.focus_width))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(cell.adjusted(1, 1, -1, -1), 6, 6)
