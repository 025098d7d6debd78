"""Steps that are taken one after the other, as in the first start: a card for each.

Beads on a thread say how far one is.  One step is shown at a time.
"""

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.controls import Card, Text
from ui.mirrored import mirror_widget
from ui.theme import Radius, current_theme
from ui.translate import tr

_STEPS = 3
_EDGE = 12


class _Beads(QWidget):
    """Beads on a thread: done is filled, now is ringed, to come is hollow."""

    def __init__(self, now: int) -> None:
        super().__init__()
        self._now = now
        self.setAccessibleName(tr("Step {number} of {steps}").format(number=now, steps=_STEPS))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(20 + 45 * (_STEPS - 1), 20)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mirror_widget(painter, self)
        for step in range(1, _STEPS + 1):
            centre = QPointF(10 + 45 * (step - 1), 10)
            if step < _STEPS:
                painter.setPen(QPen(theme.accent if step < self._now else theme.thread, 2))
                painter.drawLine(centre + QPointF(6, 0), centre + QPointF(39, 0))
            if step == self._now:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.accentSoft)
                painter.drawEllipse(centre, 9.5, 9.5)
            done = step < self._now
            painter.setPen(QPen(theme.accent if step <= self._now else theme.line2, 2))
            painter.setBrush(theme.accent if done else theme.surface)
            painter.drawEllipse(centre, 4.5, 4.5)


class Step(Card):
    """One card: beads, title, words, content, and a foot that stays at the bottom."""

    def __init__(self, number: int, title: str, words: str) -> None:
        super().__init__("surface", "line", radius=Radius.DIALOG)
        head = QHBoxLayout()
        head.addWidget(_Beads(number))
        head.addStretch(1)
        head.addWidget(
            Text(
                tr("Step {number} of {steps}").format(number=number, steps=_STEPS),
                face="caption",
                colour="ink3",
            )
        )
        self.rows = whole = QVBoxLayout(self)
        self.set_narrow(narrow=False)
        whole.setSpacing(0)
        whole.addLayout(head)
        whole.addSpacing(16)
        whole.addWidget(Text(title, face="title", strong=True, wrap=True))
        whole.addSpacing(6)
        whole.addWidget(Text(words, face="body", colour="ink2", wrap=True))
        whole.addSpacing(16)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        whole.addLayout(self.body)
        whole.addStretch(1)
        whole.addSpacing(20)
        self.foot = QHBoxLayout()
        whole.addLayout(self.foot)

    def decorations(self) -> tuple[QWidget, ...]:
        """What gives way where the buttons would not be seen without scrolling."""
        return ()

    def set_narrow(self, *, narrow: bool) -> None:
        edge = _EDGE if narrow else 2 * _EDGE
        self.rows.setContentsMargins(edge, 22, edge, 20)


class ShownStep(QWidget):
    """One step at a time.  Qt's own stack is as high as the highest of all."""

    changed = Signal()

    def __init__(self, *steps: Step) -> None:
        super().__init__()
        self.current = steps[0]
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for step in steps:
            column.addWidget(step)
            step.setVisible(step is self.current)

    def show_step(self, step: Step) -> None:
        if step is not self.current:
            self.current.hide()
            self.current = step
            step.show()
            self.changed.emit()
