"""What the user did with rows of the list: pinned them, archived them, marked them as unread.

It is remembered with the window's place.  An archived conversation comes back when something in it
is unread that was not when it was archived, also if that came while the window was closed.  That is
known by the place of the last message, and for what slid in before it by the number of unread ones.
Of a muted conversation only what mentions the user counts.
"""

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine.core.ids import ConversationId, Position
from engine.events import ConversationView, MessageKind
from ui.bridge import EngineBridge
from ui.list.model import ConversationModel
from ui.list.panel import LeftPanel
from ui.settings import Archived, UiSettings

_SAID = frozenset({MessageKind.TEXT, MessageKind.FILE})


class ListMarks(QObject):
    def __init__(
        self,
        model: ConversationModel,
        settings: UiSettings,
        parent: QObject,
        *,
        read_up_to: Callable[[ConversationId, Position], None],
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._settings = settings
        self._read_up_to = read_up_to
        self._archived = dict(settings.archived)
        """As each was then, or later, if nothing in it brought it back."""
        model.set_pinned(settings.pinned)
        model.set_archived(frozenset(self._archived))
        model.set_marked_unread(settings.marked_unread)

    def follow(self, panel: LeftPanel, bridge: EngineBridge) -> None:
        """Do what is asked for in the list, and hear of what changes."""
        panel.pin_requested.connect(self.pin)
        panel.archive_requested.connect(self.archive)
        panel.mark_unread_requested.connect(self.mark_unread)
        bridge.conversation_added.connect(lambda event: self.heard(event.conversation))
        bridge.conversation_changed.connect(lambda event: self.heard(event.conversation))
        bridge.conversation_removed.connect(lambda event: self.forget(event.conversation_id))

    def began(self) -> None:
        """All conversations are known."""
        for view in self._model.conversations():
            self.heard(view)

    def heard(self, view: ConversationView) -> None:
        """A conversation is new or changed."""
        kept = self._archived.get(view.conversation_id)
        now = archived_now(view)
        if kept is None or kept == now:
            return
        if _brings_back(view, kept):
            self.archive(view.conversation_id, archived=False)
        else:
            self._archived[view.conversation_id] = now
            self._settings.archived = self._archived

    def forget(self, conversation_id: ConversationId) -> None:
        """It was left or removed."""
        self.pin(conversation_id, pinned=False)
        self.archive(conversation_id, archived=False)
        self.opened(conversation_id)

    def pin(self, conversation_id: ConversationId, pinned: bool) -> None:
        before, this = self._settings.pinned, frozenset((conversation_id,))
        self._settings.pinned = before | this if pinned else before - this
        self._model.set_pinned(self._settings.pinned)

    def archive(self, conversation_id: ConversationId, archived: bool) -> None:
        view = self._model.conversation(conversation_id)
        if archived and view is not None:
            self._archived[conversation_id] = archived_now(view)
            self.pin(conversation_id, pinned=False)
        elif self._archived.pop(conversation_id, None) is None:
            return
        self._settings.archived = self._archived
        self._model.set_archived(frozenset(self._archived))

    def mark_unread(self, conversation_id: ConversationId, unread: bool) -> None:
        """Or as read, with all that is unread in it."""
        before, this = self._settings.marked_unread, frozenset((conversation_id,))
        self._settings.marked_unread = before | this if unread else before - this
        self._model.set_marked_unread(self._settings.marked_unread)
        view = self._model.conversation(conversation_id)
        if not unread and view is not None and view.unread and view.last_message is not None:
            self._read_up_to(conversation_id, view.last_message.position)

    def opened(self, conversation_id: ConversationId) -> None:
        """One looks at it, so it is no more marked as unread."""
        marked = self._settings.marked_unread
        if conversation_id in marked:
            self._settings.marked_unread = marked - {conversation_id}
            self._model.set_marked_unread(self._settings.marked_unread)


def archived_now(view: ConversationView) -> Archived:
    last = view.last_message
    lamport = None if last is None else last.position.lamport_timestamp
    return Archived(unread=view.unread, mentions=view.mentions, lamport_timestamp=lamport)


def _brings_back(view: ConversationView, kept: Archived) -> bool:
    if view.mentions > kept.mentions or _is_later(view.first_mention, kept):
        return True
    if view.muted or not view.unread:
        return False
    last = view.last_message
    by_another = last is not None and last.kind in _SAID and not last.is_own
    is_new = last is not None and by_another and _is_later(last.position, kept)
    return is_new or view.unread > kept.unread


def _is_later(position: Position | None, kept: Archived) -> bool:
    """Nothing is later than what an earlier version did not remember."""
    if position is None or kept.lamport_timestamp is None:
        return False
    return position.lamport_timestamp > kept.lamport_timestamp
