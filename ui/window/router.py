"""Where each engine event goes: the list, the open conversation, the notices, the desktop."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from engine.core.ids import ConversationId
from engine.events import (
    ConversationAdded,
    ConversationChanged,
    ConversationRemoved,
    ConversationView,
    GapUpdated,
    HeldUpdated,
    MessageAdded,
    MessageChanged,
    MessageRemoved,
    MessagesAdded,
    NoticeCleared,
    NoticeLevel,
    NoticeRaised,
    ReactionReceived,
    TimelineChanged,
    TypingChanged,
)
from engine.file_views import FileProgressed
from engine.governance_views import AskingView, GovernanceView
from engine.history_views import HistoryChanged
from ui.bridge import EngineBridge
from ui.desktop.notifications import Notifications
from ui.list.model import ConversationModel
from ui.settings import UiSettings
from ui.tasks import Failure, Tasks
from ui.translate import tr
from ui.window.notices import Notice, NoticesBar, notice_words, offered
from ui.window.pane import ConversationPane
from ui.window.unsent import UnsentTexts


class Shown(Struct, frozen=True, kw_only=True):
    """The parts that events are led to."""

    model: ConversationModel
    pane: ConversationPane
    notices: NoticesBar
    notifications: Notifications
    settings: UiSettings
    outbox: UnsentTexts


def _key_of(purpose: str) -> str:
    """Of the notice about a task."""
    return f"task: {purpose}"


class EventRouter(QObject):
    open_conversation_removed = Signal()
    connection_changed = Signal()

    def __init__(self, bridge: EngineBridge, tasks: Tasks, shown: Shown, parent: QObject) -> None:
        super().__init__(parent)
        self._shown = shown
        bridge.conversation_added.connect(self._put)
        bridge.conversation_changed.connect(self._put)
        bridge.conversation_removed.connect(self._conversation_removed)
        bridge.message_added.connect(self._message_added)
        bridge.messages_added.connect(self._messages_added)
        bridge.message_changed.connect(self._message_changed)
        bridge.file_progressed.connect(self._file_progressed)
        bridge.message_removed.connect(self._message_removed)
        bridge.reaction_received.connect(self._reaction_received)
        bridge.timeline_changed.connect(self._timeline_changed)
        bridge.gap_updated.connect(self._gap_updated)
        bridge.held_updated.connect(self._held_updated)
        bridge.history_changed.connect(self._history_changed)
        bridge.typing_changed.connect(self._typing_changed)
        bridge.connection_changed.connect(self._connection_changed)
        bridge.notice_raised.connect(self._notice_raised)
        bridge.notice_cleared.connect(self._notice_cleared)
        shown.outbox.draft_saved.connect(self._draft_saved)
        tasks.failed.connect(self._task_failed)
        tasks.succeeded.connect(self._task_succeeded)

    def _put(self, event: ConversationAdded | ConversationChanged) -> None:
        view = event.conversation
        draft = self._shown.outbox.draft(view).text
        current = view if draft == view.draft else replace(view, draft=draft)
        self._shown.model.put(current)
        self._shown.pane.refresh(current)
        self._shown.notifications.changed(current)

    def _draft_saved(self, conversation_id: ConversationId, text: str) -> None:
        """What is being saved now; that an older draft was not saved matters no more."""
        self._shown.notices.clear(_key_of(tr("save the draft")))
        view = self._shown.model.conversation(conversation_id)
        if view is not None and view.draft != text:
            self._shown.model.put(replace(view, draft=text))

    def _conversation_removed(self, event: ConversationRemoved) -> None:
        self._shown.outbox.forget(event.conversation_id)
        self._shown.notifications.withdraw(event.conversation_id)
        was_open = self._shown.pane.is_open(event.conversation_id)
        self._shown.model.remove(event.conversation_id)
        self._shown.pane.writing.drop(event.conversation_id)
        if was_open:
            self._shown.pane.forget()
            self.open_conversation_removed.emit()

    def _message_added(self, event: MessageAdded) -> None:
        message, pane = event.message, self._shown.pane
        if pane.is_open(message.conversation_id):
            pane.add(message)
        if not event.notify or self._is_watched(message.conversation_id):
            return
        view: ConversationView | None = self._shown.model.conversation(message.conversation_id)
        if view is not None and self._shown.settings.notifications:
            show_text = self._shown.settings.show_message_text
            self._shown.notifications.tell(view, message, show_text=show_text)

    def _messages_added(self, event: MessagesAdded) -> None:
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.add(*event.messages)

    def _reaction_received(self, event: ReactionReceived) -> None:
        view = self._shown.model.conversation(event.conversation_id)
        settings = self._shown.settings
        if view is None or self._is_watched(event.conversation_id) or not settings.notifications:
            return
        show_text = settings.show_message_text
        self._shown.notifications.tell_reaction(view, event.annotation, show_text=show_text)

    def tell_asking(self, view: GovernanceView, new: Sequence[AskingView]) -> None:
        """``new``: who asks to be let into the group, and did not before."""
        notifications, settings = self._shown.notifications, self._shown.settings
        group = self._shown.model.conversation(view.conversation_id)
        notifications.asking_changed(view.conversation_id, view.asking)
        is_told = bool(new) and settings.notifications
        if group is not None and is_told and not self._is_watched(view.conversation_id):
            notifications.tell_asking(group, new, show_text=settings.show_message_text)

    def _is_watched(self, conversation_id: ConversationId) -> bool:
        pane = self._shown.pane
        return pane.is_open(conversation_id) and pane.isVisible() and pane.isActiveWindow()

    def _message_changed(self, event: MessageChanged) -> None:
        if self._shown.pane.is_open(event.message.conversation_id):
            self._shown.pane.change(event.message)
        else:
            self._shown.pane.writing.changed(event.message)
        self._shown.notifications.message_changed(event.message)

    def _file_progressed(self, event: FileProgressed) -> None:
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.timeline.progress(event.message_id, event.file)

    def _message_removed(self, event: MessageRemoved) -> None:
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.remove(event.message_id)
        else:
            self._shown.pane.writing.removed(event.message_id)
        self._shown.notifications.message_removed(event.conversation_id, event.message_id)

    def _timeline_changed(self, event: TimelineChanged) -> None:
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.read_again()

    def _gap_updated(self, event: GapUpdated) -> None:
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.set_gap(event.gap)

    def _held_updated(self, event: HeldUpdated) -> None:
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.set_held(event.held)

    def _history_changed(self, event: HistoryChanged) -> None:
        self._shown.pane.history.show(event.history)

    def _typing_changed(self, event: TypingChanged) -> None:
        self._shown.model.set_typing(event.conversation_id, event.names)
        if self._shown.pane.is_open(event.conversation_id):
            self._shown.pane.show_typing(event.names)

    def _connection_changed(self) -> None:
        self.connection_changed.emit()

    def _notice_raised(self, event: NoticeRaised) -> None:
        self._shown.notices.raise_notice(
            Notice(
                key=event.key,
                level=event.level,
                text=notice_words(event.content),
                actions=offered(event.content, self._shown.notices),
            )
        )

    def _notice_cleared(self, event: NoticeCleared) -> None:
        self._shown.notices.clear(event.key)

    def _task_failed(self, failure: Failure) -> None:
        self._shown.notices.raise_notice(
            Notice(
                key=_key_of(failure.purpose),
                level=NoticeLevel.ERROR,
                text=tr("Could not {purpose}: {why}").format(
                    purpose=failure.purpose, why=failure.text
                ),
                actions=() if failure.retry is None else ((tr("Try again"), failure.retry),),
            )
        )

    def _task_succeeded(self, purpose: str) -> None:
        self._shown.notices.clear(_key_of(purpose))
