"""The bar that offers to keep a message after all, for as long as its deletion waits.

It floats above the messages and moves nothing; it is there in every conversation, because one may
have gone on to another meanwhile.  The row itself has the same button.
"""

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QWidget

from ui.controls import Button, Text
from ui.motion import Movement
from ui.shadow import draw_shadow
from ui.speaking import announce
from ui.theme import SHADOW_REACH, Radius, current_theme, theme_changed
from ui.timeline.view import TimelineView
from ui.translate import tr
from ui.window.message_commands import Deletions

_BELOW = 66
"""The header's height and a little air."""
_BESIDE = 12
_CORNER = QPoint(0, 0)
_MOVES = {QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide}


class UndoBar(QWidget):
    undo_pressed = Signal()

    def __init__(self, pages: QWidget, main: QWidget) -> None:
        """It floats over ``main``, or over all of ``pages`` while that is not shown.

        It is a sibling of the pages, so that a change of pages does not hide it.
        """
        super().__init__(pages.parentWidget())
        self._pages = pages
        self._main = main
        self.setAccessibleName(tr("Deleting a message"))
        self._words = Text(face="label")
        self.button = Button(tr("Undo"), size="small")
        self.button.clicked.connect(self.undo_pressed)
        row = QHBoxLayout(self)
        reach = SHADOW_REACH
        row.setContentsMargins(16 + reach, 8 + reach, 8 + reach, 8 + reach)
        row.setSpacing(12)
        row.addWidget(self._words)
        row.addWidget(self.button)
        self._fade = Movement(self)
        self._fade.changed.connect(self.update)
        theme_changed.connect(self._place)
        for each in (pages, main):
            each.installEventFilter(self)
        self.hide()

    def follow(self, deletions: Deletions, timeline: TimelineView) -> None:
        """Show what waits, here and in its rows; take it back from both."""

        def show() -> None:
            timeline.show_leaving(deletions.leaving)
            self.show_waiting(len(deletions.waiting))

        deletions.changed.connect(show)
        self.undo_pressed.connect(deletions.undo_last)
        timeline.keepRequested.connect(deletions.undo)

    def words(self) -> str:
        return self._words.text()

    def show_waiting(self, number: int) -> None:
        """How many messages are about to be deleted."""
        more = self.isVisible()
        self.setVisible(number > 0)
        if number == 0:
            return
        self._words.setText(
            tr(
                "%n messages will be deleted for everybody",
                "%n message will be deleted for everybody",
                number,
            )
        )
        self._place()
        self.raise_()
        if not more:
            self._fade.appear()
        announce(self, self._words.text())

    def _place(self) -> None:
        metrics = current_theme().metrics
        over = self._main if self._main.isVisible() else self._pages
        corner = self._pages.mapFromGlobal(over.mapToGlobal(_CORNER)) + self._pages.pos()
        room = QRect(corner, over.size())
        self.resize(self.sizeHint())
        most = room.width() - 2 * _BESIDE
        if self.width() > most:
            self.resize(most, self.height())
        self.move(
            room.center().x() - self.width() // 2,
            room.top() + metrics.scaled(_BELOW) - SHADOW_REACH,
        )

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self.isVisible() and event.type() in _MOVES:
            self._place()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = current_theme(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(self._fade.value)
        reach = SHADOW_REACH
        box = QRectF(self.rect()).adjusted(reach, reach, -reach, -reach)
        radius = theme.metrics.gap(Radius.ROW)
        draw_shadow(painter, box, radius, theme)
        painter.setPen(QPen(theme.line, 1))
        painter.setBrush(theme.surface)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
