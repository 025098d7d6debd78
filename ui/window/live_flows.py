"""Flows of what is beside the graph in a delivery view: who holds what, live figures, refusals.

Once a second, while the view is open and not paused, the engine says what passed; what it said is
kept for twenty minutes, as long as the view stays on one conversation.  When the view closes, the
engine stops counting.  What any card exports is written to a file here.
"""

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QStandardPaths, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.api import ChatEngine
from engine.core.errors import CommandError, StorageError, StorageFault
from engine.core.ids import ConversationId
from engine.events import ConversationView
from ui.delivery.series import LiveHistory
from ui.file_choice import chosen_path, usual_folder
from ui.foreign_text import one_line
from ui.own_frame import own_frame
from ui.speaking import announce
from ui.tasks import Tasks
from ui.translate import tr

if TYPE_CHECKING:
    from engine.live_views import DeliveryWatch
    from ui.delivery.contents import Contents
    from ui.delivery.loaded import LoadedMessages
    from ui.delivery.page import DeliveryPane

SAMPLE_MS: Final = 1_000
SPAN_MS: Final = 20 * 60_000
COLUMNS: Final = 40


class LiveFlows(QObject):
    sampled = Signal()
    """The newest figures are on the page."""
    saved = Signal()
    """What was exported is in its file."""

    def __init__(self, engine: ChatEngine, tasks: Tasks, window: QWidget) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._window = window
        self.page: DeliveryPane | None = None
        self.contents: Contents | None = None
        self._watch: DeliveryWatch | None = None
        self._of: ConversationId | None = None
        self._history = LiveHistory()
        self._is_paused = False
        self._is_sampling = False
        self._timer = QTimer(self)
        self._timer.setInterval(SAMPLE_MS)
        self._timer.timeout.connect(self._sample_soon)

    # --- opening and closing ----------------------------------------------------------------------

    def page_made(self, page: "DeliveryPane") -> None:
        from ui.delivery.contents import Contents  # noqa: PLC0415 - seldom wanted

        self.close()
        self.page, self.contents = page, Contents(page)
        self._is_paused = False
        page.loaded_changed.connect(self._show_loaded)
        page.graph_card.export_ready.connect(self._save_graph)
        page.paused.connect(self._pause)
        self.contents.holders.message_chosen.connect(page.message_chosen)
        self.contents.holders.export_ready.connect(self._save_holders)
        self.contents.live.export_ready.connect(self._save_live)
        page.destroyed.connect(self._gone)
        self._timer.start()
        QTimer.singleShot(0, self, self._sample_soon)

    def close(self) -> None:
        """The view is no longer open: the engine need not count any more."""
        if self.page is not None:
            self.page.destroyed.disconnect(self._gone)
        self._gone()

    def _gone(self) -> None:
        self.page = self.contents = None
        self._timer.stop()
        self._look_at(None)

    def _look_at(self, conversation_id: ConversationId | None) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch, self._of = None, conversation_id
        self._history = LiveHistory()
        if conversation_id is not None:
            self._watch = self._engine.inspection.watch(conversation_id)

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused

    # --- showing ----------------------------------------------------------------------------------

    def _show_loaded(self, loaded: "LoadedMessages") -> None:
        if self.page is not None and self.contents is not None and self.page.conversation:
            self.contents.holders.show_loaded(loaded, self.page.conversation)

    def _sample_soon(self) -> None:
        conversation = None if self.page is None else self.page.conversation
        if conversation is None or self._is_paused or self._is_sampling:
            return
        self._is_sampling = True

        async def work() -> None:
            try:
                await self._sample(conversation)
            except CommandError:
                self._look_at(None)  # It was removed meanwhile, and the view is about to close.
            finally:
                self._is_sampling = False

        self._tasks.spawn(work, purpose=tr("read how delivery goes"), retry=False)

    async def _sample(self, conversation: ConversationView) -> None:
        if self._of != conversation.conversation_id:
            self._look_at(conversation.conversation_id)
        watch = self._watch
        if watch is None:
            return
        sample = await watch.sample()
        is_pair = conversation.contact is not None
        records = None
        if is_pair:
            records = await self._engine.inspection.pair(conversation.conversation_id)
        await own_frame()
        contents = self.contents
        if watch is not self._watch or contents is None:
            return  # It was closed, or shows another conversation.
        self._history.add(sample)
        window = self._history.window(SPAN_MS, COLUMNS)
        is_open = conversation.open_channel is not None
        contents.show_window(window, is_pair=is_pair, is_open=is_open)
        contents.refusals.show_counters(sample.counted, self._engine.counters())
        contents.show_records(records)
        self.sampled.emit()

    # --- exports ----------------------------------------------------------------------------------

    def _save_graph(self, kind: str, data: bytes) -> None:
        self._save(tr("Causal order"), kind, data)

    def _save_holders(self, kind: str, data: bytes) -> None:
        self._save(tr("Who holds what"), kind, data)

    def _save_live(self, kind: str, data: bytes) -> None:
        self._save(tr("Live"), kind, data)

    def _save(self, name: str, kind: str, data: bytes) -> None:
        async def work() -> None:
            place = usual_folder(QStandardPaths.StandardLocation.DocumentsLocation)
            dialog = QFileDialog(self._window, tr("Save as"), str(place / f"{name}.{kind}"))
            dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
            path = await chosen_path(dialog)
            if path is None:
                return
            try:
                await asyncio.to_thread(path.write_bytes, data)
            except OSError as error:
                reason = os.strerror(error.errno or errno.EIO)
                raise StorageError("export", StorageFault.FILE_NOT_WRITTEN, reason) from error
            announce(self._window, tr("Saved as {name}").format(name=one_line(path.name, 80)))
            self.saved.emit()

        self._tasks.spawn(work, purpose=tr("export the figures"), retry=False)
