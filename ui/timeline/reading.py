"""What has been seen: the read marker, how many are unread below, and which late ones wait.

Fed with the rows that are wholly in view of somebody (the view knows whether the window is
active).  The marker only moves forward; rows that wait for earlier ones do not move it, because
their place is not certain yet.
"""

from collections import OrderedDict
from collections.abc import Iterable

from engine.core.ids import MessageId, Position
from engine.events import ConversationView, MessageView
from ui.timeline.loaded import LoadedMessages
from ui.timeline.rows import is_system

_MAX_LATE = 1000
_FEW_LATE = 20


class Reading:
    def __init__(self) -> None:
        self._seen_up_to: Position | None = None
        self._late: OrderedDict[MessageId, Position] = OrderedDict()
        self._late_uncounted = 0
        """More than can be kept one by one: known by number and by the first of them."""
        self._late_first: Position | None = None
        self._unread: dict[MessageId, Position] = {}
        self._unread_elsewhere = 0
        """Unread when the conversation was opened and not loaded since: known by number only."""

    def open(self, conversation: ConversationView) -> None:
        self._seen_up_to = None
        self.dismiss_late()
        self._unread.clear()
        self._unread_elsewhere = max(0, conversation.unread)

    @property
    def seen_up_to(self) -> Position | None:
        return self._seen_up_to

    @property
    def unread(self) -> int:
        return len(self._unread) + self._unread_elsewhere

    @property
    def late(self) -> int:
        return len(self._late) + self._late_uncounted

    def first_late(self) -> Position | None:
        kept = min(self._late.values(), default=None)
        if self._late_first is None or kept is None:
            return self._late_first or kept
        return min(kept, self._late_first)

    def followed_late(self) -> None:
        """Somebody was led to the first: few are seen one by one, of many that was the news."""
        if self.late > _FEW_LATE:
            self.dismiss_late()

    def dismiss_late(self) -> None:
        self._late.clear()
        self._late_uncounted, self._late_first = 0, None

    def caught_up(self) -> None:
        """The newest message is in view: nothing below can be unread."""
        self._unread.clear()
        self._unread_elsewhere = 0

    def arrived(self, message: MessageView) -> None:
        """Somebody else's message that is not known to have been seen."""
        if not is_system(message):
            self._unread[message.message_id] = message.position

    def arrived_late(self, message: MessageView) -> None:
        """Its place is above what one reads: it would go unnoticed there."""
        if len(self._late) < _MAX_LATE or message.message_id in self._late:
            self._late[message.message_id] = message.position
            return
        self._late_uncounted += 1
        if self._late_first is None or message.position < self._late_first:
            self._late_first = message.position

    def first_unread(self) -> MessageId | None:
        """The first in the conversation's order that arrived and was not seen yet."""
        return min(self._unread, key=self._unread.__getitem__, default=None)

    def is_ahead(self, position: Position) -> bool:
        """Whether the marker is known not to have come here yet."""
        return self._seen_up_to is not None and position > self._seen_up_to

    def is_passed(self, position: Position) -> bool:
        """Whether the marker is already beyond this place."""
        return self._seen_up_to is not None and position < self._seen_up_to

    def removed(self, message_id: MessageId) -> None:
        self._late.pop(message_id, None)
        self._unread.pop(message_id, None)

    def seen(self, messages: Iterable[MessageView], loaded: LoadedMessages) -> Position | None:
        """These are wholly in view; returns the new marker if it moved."""
        newest, in_view = self._seen_up_to, list(messages)
        for message in in_view:
            if not message.waiting and (newest is None or message.position > newest):
                newest = message.position
        moved = newest is not None and newest != self._seen_up_to
        if newest is not None and moved:
            self._count_down(loaded, newest)
            self._seen_up_to = newest
        for message in in_view:
            self.removed(message.message_id)
        return newest if moved else None

    def _count_down(self, loaded: LoadedMessages, newest: Position) -> None:
        """Rows that the marker passed are read, whether they were looked at or jumped over."""
        first = self._seen_up_to or loaded.first_unread
        if first is None:
            return
        begin, end = loaded.index_at_or_after(first), loaded.index_at_or_after(newest)
        for message in loaded.messages[begin : end + 1]:
            fresh = message.position > first or self._seen_up_to is None
            if message.message_id in self._unread:
                del self._unread[message.message_id]
            elif fresh and not message.is_own and not is_system(message):
                self._unread_elsewhere = max(0, self._unread_elsewhere - 1)
