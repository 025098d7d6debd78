"""Flows of the inspector: which message it is about, when it is read again, and where it leads.

It follows the message that is clicked or that the keys are about.  While it is closed nothing is
read; while it is open, the message is read again a moment after something happened that may concern
it, never more than twice a second.  Members say that they hold a message without any event, so it
is read every few seconds as well.
"""

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QWidget

from engine.api import ChatEngine
from engine.core.errors import CommandError
from engine.core.ids import ConversationId, MessageId
from engine.events import (
    ConversationRemoved,
)
from engine.inspection_views import LinkView
from ui.bridge import EngineBridge
from ui.inspector.panel import InspectorPanel
from ui.own_frame import own_frame
from ui.side.dock import Dock
from ui.tasks import Tasks
from ui.translate import tr
from ui.window.pane import ConversationPane
from ui.window.refresh import Refresh
from ui.window.side_flows import SideFlows


class InspectorFlows(QObject):
    left_by_key = Signal(bool)
    """As ``SideFlows.left_by_key``."""
    shown = Signal()
    """What was read last is in the panel."""

    def __init__(  # noqa: PLR0913 - the parts beside which it stands
        self,
        engine: ChatEngine,
        tasks: Tasks,
        window: QWidget,
        dock: Dock,
        *,
        pane: ConversationPane,
        side: SideFlows,
        bridge: EngineBridge,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(window)
        self._engine = engine
        self._tasks = tasks
        self._dock = dock
        self._pane = pane
        self._side = side
        self._now = now
        self._about: tuple[ConversationId, MessageId] | None = None
        self._before: QWidget | None = None
        self.refresh = Refresh(self, bridge)
        self.refresh.due.connect(self._read)
        bridge.conversation_removed.connect(self._conversation_removed)
        pane.timeline.inspectRequested.connect(self.show_message)
        pane.header.beads.message_chosen.connect(self.show_message)
        pane.timeline.messageChosen.connect(self._follow)

    @property
    def panel(self) -> InspectorPanel | None:
        side = self._dock.side
        return side if isinstance(side, InspectorPanel) else None

    def areas(self) -> tuple[QWidget, ...]:
        """What F6 leads to."""
        return () if self.panel is None else (self.panel.close_button,)

    # --- opening and closing ----------------------------------------------------------------------

    def toggle(self) -> None:
        """About the message that the keys are about, or else the newest one in view."""
        if self.panel is not None:
            self.close()
            return
        message = self._pane.timeline.chosen()
        if self._pane.conversation is not None and message is not None:
            self.show_message(message.message_id)

    def show_message(self, message_id: MessageId) -> None:
        """Of the open conversation."""
        if self._pane.conversation is None:
            return
        if self.panel is None:
            self._open()
        self._about = self._pane.conversation.conversation_id, message_id
        self._read()

    def _open(self) -> None:
        focused = QApplication.focusWidget()
        self._side.close()
        self._before = focused
        panel = InspectorPanel(self._now)
        panel.close_requested.connect(self.close)
        panel.left_by_key.connect(self.left_by_key)
        panel.link_chosen.connect(self._follow_link)
        panel.go_requested.connect(self._go)
        self._dock.show_side(panel)
        panel.take_focus()

    def close(self) -> None:
        if self.panel is None:
            return
        self._leave()
        self._dock.show_side(None)
        before, self._before = self._before, None
        if before is not None and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self._pane.take_focus()

    def conversation_opened(self) -> None:
        """What another conversation's message was is not what one looks at now."""
        conversation = self._pane.conversation
        if self._about and (conversation is None or conversation.conversation_id != self._about[0]):
            self.close()

    def _leave(self) -> None:
        self._about = None
        self.refresh.stop()

    # --- following --------------------------------------------------------------------------------

    def _follow(self, message_id: MessageId) -> None:
        """Another message was chosen in the conversation beside it."""
        conversation = self._pane.conversation
        if self.panel is None or conversation is None or self._dock.covers:
            return
        self._about = conversation.conversation_id, message_id
        self._read()

    def _follow_link(self, link: LinkView) -> None:
        """To a message that this one names, or that names it."""
        self.show_message(link.message_id)
        if link.position is not None and link.is_shown and not self._dock.covers:
            self._pane.timeline.go_to(link.position)

    def _go(self) -> None:
        panel = self.panel
        found = None if panel is None else panel.found
        if found is None or found.message is None:
            return
        if self._dock.covers:
            self.close()
        self._pane.timeline.enter_at(found.message.position)

    # --- events -----------------------------------------------------------------------------------

    def _conversation_removed(self, event: ConversationRemoved) -> None:
        if self._about and self._about[0] == event.conversation_id:
            self.close()

    def _read(self) -> None:
        about = self._about
        if self.panel is None:
            self._leave()
        elif about is not None:
            self.refresh.watch(about[0])

            async def work() -> None:
                await self._show(*about)

            self._tasks.spawn(work, purpose=tr("look into the message"), retry=False)

    async def _show(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        try:
            found = await self._engine.inspection.message(conversation_id, message_id)
        except CommandError:
            found = None
        await own_frame()
        panel = self.panel
        if panel is None or self._about != (conversation_id, message_id):
            return
        if found is None:
            panel.show_gone()
        else:
            people = self._engine.network().people
            panel.show_message(found, {one.participant_id: one.heard_ms for one in people})
        self.shown.emit()
