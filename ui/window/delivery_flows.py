"""Flows of the delivery view: when it is open, what it reads, and where it leads.

While it is closed there is no page and nothing is read.  While it is open, its newest part is read
again a moment after something happened that may concern it, never more than twice a second; older
parts are read as one looks at them.  Members say that they hold a message without any event, so it
is read every few seconds as well.  Pause keeps what is shown; on the way back all is read anew.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication, QFileDialog

from engine.api import ChatEngine
from engine.core.errors import CommandError, StorageError, StorageFault
from engine.core.ids import ConversationId
from engine.events import (
    ConversationChanged,
    GapUpdated,
    MessageAdded,
    MessageChanged,
    MessageRemoved,
    TimelineChanged,
)
from ui.bridge import EngineBridge
from ui.delivery.export import write_file
from ui.delivery.loaded import LoadedMessages
from ui.delivery.page import DeliveryPane
from ui.file_choice import chosen_path
from ui.foreign_text import one_line
from ui.speaking import announce
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.live_flows import LiveFlows
from ui.window.pane import ConversationPane

AGAIN_MS = 500
EVERY_MS = 5_000


class DeliveryFlows(QObject):
    page_made = Signal(DeliveryPane)
    """A view was opened: its cards may be filled.  It is deleted when it is closed."""
    shown = Signal()
    """What was read last is on the page."""
    inspect_requested = Signal(str)

    def __init__(  # noqa: PLR0913 - the parts beside which it stands
        self,
        engine: ChatEngine,
        tasks: Tasks,
        parent: QObject,
        *,
        pane: ConversationPane,
        bridge: EngineBridge,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._pane = pane
        self._now = now
        self.page: DeliveryPane | None = None
        self.loaded = LoadedMessages()
        self._of: ConversationId | None = None
        self._is_wished = False
        self._is_paused = False
        self._is_reading = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(AGAIN_MS)
        self._soon.timeout.connect(self._read)
        self.regularly = QTimer(self)
        self.regularly.setInterval(EVERY_MS)
        self.regularly.timeout.connect(self._read_regularly)
        bridge.message_added.connect(self._heard_message)
        bridge.message_changed.connect(self._heard_message)
        for signal in (bridge.message_removed, bridge.timeline_changed, bridge.gap_updated):
            signal.connect(self._heard)
        bridge.conversation_changed.connect(self._conversation_changed)
        pane.header.delivery_wished.connect(self._wish)
        pane.opened.connect(self._look_anew)
        self.live = LiveFlows(engine, tasks, pane)
        self.page_made.connect(self.live.page_made)

    # --- opening and closing ----------------------------------------------------------------------

    def show_chat(self) -> None:
        """Whatever is about to be shown is in the chat."""
        self._pane.header.views.choose(0)

    def _wish(self, wished: bool) -> None:
        self._is_wished = wished
        focused = QApplication.focusWidget()
        page = self.page
        had_focus = page is not None and focused is not None and page.isAncestorOf(focused)
        self._look_anew()
        if self.page is not None:
            self.page.take_focus()
        elif had_focus:
            self._pane.take_focus()

    def _look_anew(self) -> None:
        """The view was opened or closed, or it is another conversation's from now on."""
        conversation = self._pane.conversation
        self._soon.stop()
        self.regularly.stop()
        self.loaded = LoadedMessages()
        self._of = None
        if conversation is None or not self._is_wished:
            if self.page is not None:
                self.page = None
                self._pane.show_instead(None)
            return
        self._of = conversation.conversation_id
        if self.page is None:
            self.page = DeliveryPane(self._now)
            self.page.message_chosen.connect(self.inspect_requested)
            self.page.older_wanted.connect(self._read_older)
            self.page.paused.connect(self._pause)
            self.page.graph_card.save_requested.connect(self._save)
            self._pane.show_instead(self.page)
            self.page_made.emit(self.page)
        self.page.show_conversation(conversation)
        self.regularly.start()
        self._read()

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if is_paused:
            self._soon.stop()
        else:
            self._read()

    def _save(self, kind: str) -> None:
        """``kind``: the ending of the file's name."""
        if self.page is None:
            return
        card = self.page.graph_card

        async def work() -> None:
            dialog = QFileDialog(self._pane.window(), tr("Save as"))
            dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
            dialog.setDefaultSuffix(kind)
            dialog.setNameFilter(f"*.{kind}")
            dialog.selectFile(f"delivery.{kind}")
            data = card.as_file(kind)
            path = await chosen_path(dialog)
            if path is None:
                return
            try:
                await asyncio.to_thread(write_file, path, data)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise StorageError("save", StorageFault.FILE_NOT_WRITTEN, reason) from error
            announce(self._pane, tr("Saved as {name}").format(name=one_line(path.name, 80)))

        self._tasks.spawn(work, purpose=tr("save the file"), retry=False)

    # --- events -----------------------------------------------------------------------------------

    def _heard_message(self, event: MessageAdded | MessageChanged) -> None:
        self._heard_of(event.message.conversation_id)

    def _heard(self, event: MessageRemoved | TimelineChanged | GapUpdated) -> None:
        self._heard_of(event.conversation_id)

    def _conversation_changed(self, event: ConversationChanged) -> None:
        conversation = event.conversation
        if self.page is not None and self._of == conversation.conversation_id:
            self.page.show_conversation(conversation)
            self._heard_of(conversation.conversation_id)

    def _heard_of(self, conversation_id: ConversationId) -> None:
        if self._of == conversation_id and not self._is_paused and not self._soon.isActive():
            self._soon.start()

    # --- reading ----------------------------------------------------------------------------------

    def _read_regularly(self) -> None:
        if not self._is_paused:
            self._read()

    def _read(self) -> None:
        of = self._of
        if of is None or self._is_reading:
            return
        self._is_reading = True

        async def work() -> None:
            try:
                page = await self._engine.inspection.delivery(of)
            except CommandError:
                return  # It was removed meanwhile, and the view is about to close.
            finally:
                self._is_reading = False
            if self._of == of and self.page is not None:
                changed = self.loaded.take_newest(page)
                self.page.show_loaded(self.loaded, changed)
                self.shown.emit()
            elif self._of is not None:
                self._read()  # Another conversation was opened meanwhile.

        self._tasks.spawn(work, purpose=tr("read how delivery goes"), retry=False)

    def _read_older(self) -> None:
        """One page more of the past, if there is any and room for it."""
        of, loaded, before = self._of, self.loaded, self.loaded.first
        if of is None or self._is_reading or not loaded.wants_older or before is None:
            return
        self._is_reading = True

        async def work() -> None:
            try:
                page = await self._engine.inspection.delivery(of, before=before)
            except CommandError:
                return
            finally:
                self._is_reading = False
            if self.loaded is loaded and self.page is not None:
                loaded.take_older(page)
                self.page.show_loaded(loaded, 0)
                self.shown.emit()
            elif self._of is not None:
                self._read()

        self._tasks.spawn(work, purpose=tr("read how delivery goes"), retry=False)
