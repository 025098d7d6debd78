"""A segmented control: two or three choices side by side, one of them chosen.

Where their words have no room beside each other they may stand below each other instead.
"""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QRadioButton, QSizePolicy, QWidget

from ui.controls import literal
from ui.theme import Radius, current_theme, theme_changed

_HEIGHT = 34
_TRACK = 3
_INSET = 14


class _Segment(QRadioButton):
    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words
        self.setText(literal(words))
        self.setAccessibleName(words)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme_changed.connect(self._dress)
        self._dress()

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)  # There is no dot that one would have to meet.

    def sizeHint(self) -> QSize:
        theme = current_theme()
        words = QFontMetricsF(self.font()).horizontalAdvance(self._words)
        return QSize(int(words) + 2 * theme.metrics.gap(_INSET), self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize()  # Where there is no room, there is no dot to keep room for either.

    def _dress(self) -> None:
        theme = current_theme()
        self.setFont(theme.type.small.strong())
        line = int(theme.type.small.line_height) + 2 * theme.metrics.gap(6)
        self.setFixedHeight(max(theme.metrics.scaled(_HEIGHT) - 2 * _TRACK, line))
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        radius = theme.metrics.gap(Radius.BUTTON) - 1
        ink = theme.ink2
        if self.isChecked():
            strong = theme.is_high_contrast
            painter.setPen(QPen(theme.line, 1))
            painter.setBrush(theme.ink if strong else theme.surface)
            painter.drawRoundedRect(box, radius, radius)
            ink = theme.canvas if strong else theme.ink
        elif self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.hover)
            painter.drawRoundedRect(box, radius, radius)
        if self.hasFocus():
            painter.setPen(QPen(theme.focus, theme.focus_width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, radius, radius)
        painter.setFont(self.font())
        painter.setPen(ink)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self._words)


class Segments(QWidget):
    """Arrow keys go from one to the next, as with radio buttons."""

    chosen = Signal(int)

    def __init__(self, name: str, words: Sequence[str], *, stacks: bool = False) -> None:
        """``stacks``: rather below each other than cut off."""
        super().__init__()
        self._stacks = stacks
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        self._row = row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(_TRACK, _TRACK, _TRACK, _TRACK)
        row.setSpacing(2)
        self.buttons = [_Segment(each) for each in words]
        for number, button in enumerate(self.buttons):
            self._group.addButton(button, number)
            row.addWidget(button)
        self._group.idToggled.connect(self._toggled)
        theme_changed.connect(self.update)

    @property
    def chosen_number(self) -> int:
        return self._group.checkedId()

    def choose(self, number: int) -> None:
        self.buttons[number].setChecked(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._stacks:
            wanted = 2 * _TRACK + sum(each.sizeHint().width() + 2 for each in self.buttons)
            directions = QBoxLayout.Direction
            fits = wanted <= self.width()
            self._row.setDirection(directions.LeftToRight if fits else directions.TopToBottom)

    def _toggled(self, number: int, on: bool) -> None:
        policies = Qt.FocusPolicy  # Tab comes to the chosen one; Qt sees to it only later.
        policy = policies.StrongFocus if on else policies.ClickFocus
        self.buttons[number].setFocusPolicy(policy)
        if on:
            self.chosen.emit(number)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.surface2)
        radius = theme.metrics.gap(Radius.ROW)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
