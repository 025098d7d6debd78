"""Engine events as Qt signals: the one place where the two worlds touch.

The engine calls its listener on the loop that also runs Qt, so nothing is queued between threads
here.  An event that this file does not know fails the type check, not the user.
"""

from typing import assert_never

from PySide6.QtCore import QObject, Signal

from engine.api import ChatEngine
from engine.events import (
    ClockJudged,
    ClockOffsetDropped,
    ConnectionChanged,
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    EngineEvent,
    FloodsChanged,
    ForksFound,
    GapUpdated,
    HeldUpdated,
    MessageAdded,
    MessageChanged,
    MessageRemoved,
    MessagesAdded,
    NoticeCleared,
    NoticeRaised,
    ReactionReceived,
    SearchIndexed,
    TimelineChanged,
    TypingChanged,
)
from engine.fault_views import FaultsChanged
from engine.file_views import FileProgressed
from engine.governance_views import GovernanceChanged, JoinsChanged
from engine.history_views import HistoryChanged, StoresChanged


class EngineBridge(QObject):
    conversation_added = Signal(ConversationAdded)
    conversation_changed = Signal(ConversationChanged)
    conversation_removed = Signal(ConversationRemoved)
    message_added = Signal(MessageAdded)
    messages_added = Signal(MessagesAdded)
    message_changed = Signal(MessageChanged)
    reaction_received = Signal(ReactionReceived)
    file_progressed = Signal(FileProgressed)
    message_removed = Signal(MessageRemoved)
    timeline_changed = Signal(TimelineChanged)
    floods_changed = Signal(FloodsChanged)
    gap_updated = Signal(GapUpdated)
    held_updated = Signal(HeldUpdated)
    forks_found = Signal(ForksFound)
    clock_judged = Signal(ClockJudged)
    clock_offset_dropped = Signal(ClockOffsetDropped)
    typing_changed = Signal(TypingChanged)
    connection_changed = Signal(ConnectionChanged)
    notice_raised = Signal(NoticeRaised)
    notice_cleared = Signal(NoticeCleared)
    history_changed = Signal(HistoryChanged)
    stores_changed = Signal(StoresChanged)
    search_indexed = Signal(SearchIndexed)
    faults_changed = Signal(FaultsChanged)
    governance_changed = Signal(GovernanceChanged)
    joins_changed = Signal(JoinsChanged)

    def __init__(self, engine: ChatEngine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._attached = True
        self._unsubscribe = engine.subscribe(self.publish)

    def detach(self) -> None:
        """Hear no more events; safe to call twice."""
        if self._attached:
            self._attached = False
            self._unsubscribe()

    def publish(self, event: EngineEvent) -> None:  # noqa: C901, PLR0912, PLR0915 - one flat table
        match event:
            case ConversationAdded():
                self.conversation_added.emit(event)
            case ConversationChanged():
                self.conversation_changed.emit(event)
            case ConversationRemoved():
                self.conversation_removed.emit(event)
            case MessageAdded():
                self.message_added.emit(event)
            case MessagesAdded():
                self.messages_added.emit(event)
            case MessageChanged():
                self.message_changed.emit(event)
            case ReactionReceived():
                self.reaction_received.emit(event)
            case FileProgressed():
                self.file_progressed.emit(event)
            case MessageRemoved():
                self.message_removed.emit(event)
            case TimelineChanged():
                self.timeline_changed.emit(event)
            case FloodsChanged():
                self.floods_changed.emit(event)
            case GapUpdated():
                self.gap_updated.emit(event)
            case HeldUpdated():
                self.held_updated.emit(event)
            case ForksFound():
                self.forks_found.emit(event)
            case ClockJudged():
                self.clock_judged.emit(event)
            case ClockOffsetDropped():
                self.clock_offset_dropped.emit(event)
            case TypingChanged():
                self.typing_changed.emit(event)
            case ConnectionChanged():
                self.connection_changed.emit(event)
            case NoticeRaised():
                self.notice_raised.emit(event)
            case NoticeCleared():
                self.notice_cleared.emit(event)
            case HistoryChanged():
                self.history_changed.emit(event)
            case StoresChanged():
                self.stores_changed.emit(event)
            case SearchIndexed():
                self.search_indexed.emit(event)
            case FaultsChanged():
                self.faults_changed.emit(event)
            case GovernanceChanged():
                self.governance_changed.emit(event)
            case JoinsChanged():
                self.joins_changed.emit(event)
            case _:
                assert_never(event)
