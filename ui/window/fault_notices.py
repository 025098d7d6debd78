"""Says in the window that faults are made on purpose: in each conversation, and in the strip.

Nobody may take a network that was made bad for one that is.  The bar stands under the header of a
conversation that is affected and stays as long as it is; its button ends all faults.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from engine.api import ChatEngine
from engine.fault_views import FaultsChanged, FaultsView
from ui.controls import Area, Button, Text
from ui.fault_words import peers_words, said_of, skew_words
from ui.translate import tr

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


class FaultBar(Area):
    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__("dangerBg", edges=("bottom",))
        self.words = Text(face="label", colour="danger", strong=True, wrap=True)
        self.stop = Button(tr("Stop all faults"), kind="danger", size="small")
        self.stop.clicked.connect(lambda _checked=False: stop())
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 4, 10, 4)
        row.setSpacing(10)
        row.addWidget(self.words, 1)
        row.addWidget(self.stop)
        self.hide()

    def show_words(self, words: str) -> None:
        self.words.setText(words)
        self.setAccessibleName(words)
        self.setVisible(bool(words))


class FaultNotices(QObject):
    def __init__(
        self, engine: ChatEngine, window: "MainWindow", now: Callable[[], datetime]
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._window = window
        self._now = now
        self.bar = FaultBar(self._stop_all)
        column = window.pane.layout()
        if isinstance(column, QVBoxLayout):
            column.insertWidget(1, self.bar)  # Under the header.
        window.bridge.faults_changed.connect(self._changed)
        window.model.open_changed.connect(lambda: self._show(engine.faults.view()))
        window.strip.faults.clicked.connect(self._explain)

    def _changed(self, event: FaultsChanged) -> None:
        self._show(event.faults)

    def _show(self, faults: FaultsView) -> None:
        self._window.strip.faults.setVisible(faults.is_on)
        conversation = self._window.pane.conversation
        said = [] if conversation is None else said_of(faults, conversation, self._now())
        said += peers_words(faults, self._now())
        if faults.skew_ms:
            said.append(skew_words(faults.skew_ms))
        words = tr("Faults on purpose: {what}").format(what="; ".join(said))
        self.bar.show_words(words if said and conversation is not None else "")

    def _stop_all(self) -> None:
        self._engine.faults.stop_all()
        self._window.pane.take_focus()  # The button that was pressed is gone.

    def _explain(self) -> None:
        if self._window.settings.is_offered:
            self._window.settings.open("advanced")
        else:
            self._engine.faults.stop_all()
