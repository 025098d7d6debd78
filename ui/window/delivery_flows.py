"""Flows of the delivery view: when it is open, what it reads, and where it leads.

While it is closed there is no page and nothing is read.  While it is open, its newest part is read
again a moment after something happened that may concern it, never more than twice a second; older
parts are read as one looks at them.  Members say that they hold a message without any event, so it
is read every few seconds as well.  Pause keeps what is shown; on the way back all is read anew.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from engine.api import ChatEngine
from engine.core.errors import CommandError
from engine.events import ConversationChanged
from ui.bridge import EngineBridge
from ui.delivery.loaded import LoadedMessages
from ui.own_frame import own_frame
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.live_flows import LiveFlows
from ui.window.pane import ConversationPane
from ui.window.refresh import Refresh

if TYPE_CHECKING:
    from engine.core.ids import ConversationId
    from ui.delivery.page import DeliveryPane


class DeliveryFlows(QObject):
    page_made = Signal(QWidget)
    """A ``DeliveryPane``, whose cards may be filled.  It is deleted when the view is closed."""
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
        self.refresh = Refresh(self, bridge)
        self.refresh.due.connect(self._read)
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
        self.refresh.stop()
        self.loaded = LoadedMessages()
        self._of = None
        if conversation is None or not self._is_wished:
            if self.page is not None:
                self.page = None
                self._pane.show_instead(None)
            return
        self._of = conversation.conversation_id
        page = self._make_page() if self.page is None else self.page
        page.show_conversation(conversation)
        if not self._is_paused:
            self.refresh.watch(self._of)
        self._read()

    def _make_page(self) -> "DeliveryPane":
        from ui.delivery.page import DeliveryPane  # noqa: PLC0415 - seldom wanted

        page = self.page = DeliveryPane(self._now)
        self._is_paused = False
        page.message_chosen.connect(self.inspect_requested)
        page.older_wanted.connect(self._read_older)
        page.paused.connect(self._pause)
        self._pane.show_instead(page)
        self.page_made.emit(page)
        return page

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if is_paused:
            self.refresh.stop()
        elif self._of is not None:
            self.refresh.watch(self._of)
            self._read()

    # --- events -----------------------------------------------------------------------------------

    def _conversation_changed(self, event: ConversationChanged) -> None:
        conversation = event.conversation
        if self.page is not None and self._of == conversation.conversation_id:
            self.page.show_conversation(conversation)
            self.refresh.soon(conversation.conversation_id)

    # --- reading ----------------------------------------------------------------------------------

    def _read(self) -> None:
        of = self._of
        if of is None or self._is_reading:
            return
        self._is_reading = True

        async def work() -> None:
            try:
                page = await self._engine.inspection.delivery(of)
                await own_frame()
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
