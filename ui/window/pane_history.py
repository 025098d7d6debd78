"""History in the open conversation: its request, the bar, the quiet line, and the row on top.

The bar is made when it is first needed.  What the engine tells of other conversations than the open
one is not shown: it is asked again when that one is opened.
"""

from collections.abc import Callable, Coroutine

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.api import ChatEngine
from engine.core.ids import ConversationId
from engine.history_views import HistoryState, HistoryView
from ui.history_words import history_title, is_requested, quiet_line
from ui.tasks import Tasks
from ui.timeline.view import TimelineView
from ui.translate import tr
from ui.window.header import ConversationHeader
from ui.window.history_bar import HistoryBar

_BAR_PLACE = 0
"""In the pane's column: directly below the header."""


class PaneHistory(QObject):
    stores_requested = Signal()
    bar_made = Signal()

    def __init__(
        self,
        engine: ChatEngine,
        tasks: Tasks,
        header: ConversationHeader,
        timeline: TimelineView,
        pane: QWidget,
    ) -> None:
        super().__init__(pane)
        self._engine = engine
        self._tasks = tasks
        self._header = header
        self._timeline = timeline
        self._pane = pane
        self._open_id: ConversationId | None = None
        self._asking = False
        self.bar: HistoryBar | None = None
        header.history_requested.connect(self._fetch_days)
        timeline.earlierRequested.connect(self._fetch_earlier)
        timeline.storesRequested.connect(self.stores_requested)

    def open(self, conversation_id: ConversationId) -> None:
        self._open_id = conversation_id
        history = self._engine.history.view(conversation_id)
        self._timeline.offer_earlier(history)
        self._header.show_history("" if history is None else quiet_line(history))
        going_on = history is not None and not history.is_over
        self._show_bar(history if going_on else None)

    def leave(self) -> None:
        self._open_id = None
        self._header.show_history("")
        self._show_bar(None)

    def show(self, history: HistoryView) -> None:
        """The engine told it, at most four times a second."""
        if history.conversation_id != self._open_id:
            return
        before = self.bar.history if self.bar is not None and self.bar.isVisible() else None
        self._header.show_history(quiet_line(history))
        if is_requested(history):
            if history.state is not HistoryState.RUNNING or before is None or before.is_over:
                self._timeline.offer_earlier(history)
            self._show_bar(history)
            if history.is_over:
                self._timeline.announcer.arrived(history_title(history))

    def _show_bar(self, history: HistoryView | None) -> None:
        if self.bar is None:
            if history is None or not is_requested(history):
                return
            self.bar = HistoryBar()
            self.bar.cancel_requested.connect(self._cancel)
            self.bar.stores_requested.connect(self.stores_requested)
            column = self._pane.layout()
            if isinstance(column, QVBoxLayout):
                column.insertWidget(_BAR_PLACE, self.bar)
            self.bar_made.emit()
        self.bar.show_history(history)

    # --- requests ---------------------------------------------------------------------------------

    def _fetch_days(self, days: int | None) -> None:
        open_id = self._open_id
        if open_id is not None:
            self._spawn(lambda: self._engine.history.fetch(open_id, days=days), tr("fetch history"))

    def _fetch_earlier(self) -> None:
        open_id = self._open_id
        if open_id is not None and not self._asking:
            self._asking = True
            self._spawn(
                lambda: self._engine.history.fetch_earlier(open_id), tr("fetch earlier messages")
            )

    def _cancel(self) -> None:
        open_id = self._open_id
        if open_id is not None:
            self._spawn(lambda: self._engine.history.cancel(open_id), tr("stop fetching history"))

    def _spawn(self, command: Callable[[], Coroutine[object, object, None]], purpose: str) -> None:
        async def work() -> None:
            try:
                await command()
            finally:
                self._asking = False

        self._tasks.spawn(work, purpose=purpose)
