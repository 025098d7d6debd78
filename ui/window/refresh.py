"""When to read again what is shown of a conversation: soon after something happened there.

That is at most twice a second.  Some things change without an event, such as what members' claims
say, so it is also every few seconds.
"""

from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from engine.core.ids import ConversationId
from engine.events import (
    GapUpdated,
    MessageAdded,
    MessageChanged,
    MessageRemoved,
    MessagesAdded,
    TimelineChanged,
)
from ui.bridge import EngineBridge

AGAIN_MS: Final = 500
EVERY_MS: Final = 5_000


class Refresh(QObject):
    due = Signal()

    def __init__(self, parent: QObject, bridge: EngineBridge) -> None:
        super().__init__(parent)
        self._of: ConversationId | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(AGAIN_MS)
        self._soon.timeout.connect(self.due)
        self.regularly = QTimer(self)
        self.regularly.setInterval(EVERY_MS)
        self.regularly.timeout.connect(self.due)
        bridge.message_added.connect(self._heard_message)
        bridge.message_changed.connect(self._heard_message)
        for signal in (
            bridge.messages_added,
            bridge.message_removed,
            bridge.timeline_changed,
            bridge.gap_updated,
        ):
            signal.connect(self._heard)

    def watch(self, conversation_id: ConversationId) -> None:
        """From now on; what was about to be read of another one is not."""
        self._of = conversation_id
        self._soon.stop()
        self.regularly.start()

    def stop(self) -> None:
        self._of = None
        self._soon.stop()
        self.regularly.stop()

    def soon(self, conversation_id: ConversationId) -> None:
        """Something happened there."""
        if self._of == conversation_id and not self._soon.isActive():
            self._soon.start()

    def _heard_message(self, event: MessageAdded | MessageChanged) -> None:
        self.soon(event.message.conversation_id)

    def _heard(self, event: MessagesAdded | MessageRemoved | TimelineChanged | GapUpdated) -> None:
        self.soon(event.conversation_id)
