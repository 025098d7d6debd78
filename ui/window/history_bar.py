"""The bar under the header while requested history is fetched, and how that ended.

It says how much was looked at, how much of it was new and how fast, and can be stopped.  Its end is
said in words and stays until one closes it; a failure leads to the Stores.  What is fetched by
itself has no bar.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.history_views import HistoryState, HistoryView
from ui.controls import Area, Button, IconButton, Text
from ui.history_words import (
    history_details,
    history_title,
    is_requested,
    percent_words,
)
from ui.problem_words import history_problem_words, sentence
from ui.progress_line import ProgressLine
from ui.theme import current_theme, theme_changed
from ui.tips import set_tip
from ui.translate import tr


class HistoryBar(Area):
    cancel_requested = Signal()
    stores_requested = Signal()

    def __init__(self) -> None:
        super().__init__("panel", edges=("bottom",))
        self.setAccessibleName(tr("History"))
        self._history: HistoryView | None = None
        self.title = Text(face="small", strong=True, wrap=True)
        self.percent = Text(face="small", colour="ink2")
        self.line = ProgressLine(tr("History fetched"))
        self.details = Text(face="caption", colour="ink2", wrap=True)
        self.cancel = Button(tr("Cancel"), size="small")
        self.stores = Button(tr("Stores…"), size="small")
        self.close_button = IconButton("close", tr("Close"), side=28)
        self._lay_out()
        self.cancel.clicked.connect(self.cancel_requested)
        self.stores.clicked.connect(self.stores_requested)
        self.close_button.clicked.connect(self.hide)
        theme_changed.connect(self._dress)
        self._dress()
        self.hide()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.percent)
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addLayout(head)
        words.addWidget(self.line)
        words.addWidget(self.details)
        self._row = QHBoxLayout(self)
        self._row.addLayout(words, 1)
        for button in (self.stores, self.cancel, self.close_button):
            self._row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)

    @property
    def history(self) -> HistoryView | None:
        return self._history

    def show_history(self, history: HistoryView | None) -> None:
        """What goes on, or has just ended, in the open conversation."""
        self._history = history
        if history is None or not is_requested(history):
            self.hide()
            return
        failed = history.state is HistoryState.FAILED
        had_focus = self.cancel.hasFocus()
        self.title.setText(history_title(history))
        self.title.recolour("danger" if failed else "ink")
        self.percent.setText("" if history.is_over else percent_words(history))
        self.line.setVisible(not history.is_over)
        self.line.show_fraction(history.fraction)
        self.details.setText(history_details(history))
        set_tip(self.details, sentence(history_problem_words(history.problem)))
        self.cancel.setVisible(not history.is_over)
        stuck = history.state is HistoryState.WAITING and history.problem is not None
        self.stores.setVisible(failed or stuck)
        self.close_button.setVisible(history.is_over)
        self.setAccessibleName(f"{self.title.text()}. {self.details.text()}")
        self.show()
        if had_focus and history.is_over:
            (self.stores if failed else self.close_button).setFocus()

    def _dress(self) -> None:
        gap = current_theme().metrics.gap
        self._row.setContentsMargins(gap(20), gap(8), gap(12), gap(8))
        self._row.setSpacing(gap(8))

    def buttons(self) -> tuple[QWidget, ...]:
        return self.stores, self.cancel, self.close_button
