"""What the user did with rows of the list: pinned them, archived them, marked them as unread.

It is remembered with the window's place.  An archived conversation comes back when something in it
is unread that was not when it was archived, unless it is muted; so it comes back also for what
arrived while the window was closed.
"""

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine.core.ids import ConversationId, Position
from engine.events import ConversationView
from ui.list.model import ConversationModel
from ui.settings import UiSettings


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
        """How many messages were unread in each then, or fewer once some were read."""
        model.set_pinned(settings.pinned)
        model.set_archived(frozenset(self._archived))
        model.set_marked_unread(settings.marked_unread)

    def began(self) -> None:
        """All conversations are known."""
        for view in self._model.conversations():
            self.heard(view)

    def heard(self, view: ConversationView) -> None:
        """A conversation is new or changed."""
        kept = self._archived.get(view.conversation_id)
        if kept is None or kept == view.unread:
            return
        if view.muted:
            self._archived[view.conversation_id] = view.unread
        elif view.unread > kept:
            self.archive(view.conversation_id, archived=False)
        else:
            self._archived[view.conversation_id] = view.unread
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
            self._archived[conversation_id] = view.unread
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
