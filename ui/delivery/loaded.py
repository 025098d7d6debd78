"""The messages that a delivery view has loaded: a connected part of the log up to its newest end.

Pages replace the part that they cover, so that what changed, came late or was removed is right
again; what is before them stays.  Bounded: beyond ``MOST_LOADED`` the oldest are let go.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from engine.core.ids import MessageId, Position
from engine.delivery_views import DeliveryMark, DeliveryMessage, DeliveryPage

MOST_LOADED: Final = 10_000
ABSENT: Final = frozenset({DeliveryMark.MISSING, DeliveryMark.LOST})
_OUT_OF_TURN: Final = ABSENT | {DeliveryMark.WAITING, DeliveryMark.LATE}
"""Their time says nothing of that of the messages before them."""
_Place = tuple[int, str, bool]


def place_of(message: DeliveryMessage) -> _Place:
    """Sorts messages as pages do: a missing one ahead of what depends on it."""
    if message.mark is DeliveryMark.WAITING:
        return message.lamport_timestamp or 0, message.message_id, True
    position = message.position or message.before
    if position is None:
        return 2**64, "", False
    return position.lamport_timestamp, position.message_id, message.position is not None


class LoadedMessages:
    def __init__(self) -> None:
        self.messages: list[DeliveryMessage] = []
        self.first: Position | None = None
        """The place of the oldest, before which an older page begins."""
        self.has_older = False
        self.is_full = False
        """Older ones were let go, or are not read any more."""
        self.page: DeliveryPage | None = None
        """The newest page, which says what holds for all."""
        self._places: list[_Place] = []
        self._ids: dict[MessageId, DeliveryMessage] = {}

    @property
    def wants_older(self) -> bool:
        return self.has_older and not self.is_full

    def find(self, message_id: MessageId) -> DeliveryMessage | None:
        return self._ids.get(message_id)

    def index(self, message: DeliveryMessage) -> int:
        """Where it is in ``messages``; several missing ones share a place."""
        at = bisect_left(self._places, place_of(message))
        while self.messages[at].message_id != message.message_id:
            at += 1
        return at

    def take_newest(self, page: DeliveryPage) -> int:
        """Returns the index of the first message that may have changed."""
        self.page = page
        begin = page.first if page.has_older else None
        cut = 0 if begin is None else bisect_left(self._places, (*_pair(begin), False))
        joins = begin is not None and begin.message_id in self._ids
        if not joins:
            # More has come than one page takes: what is loaded does not join it any more.
            cut, self.first, self.has_older = 0, page.first, page.has_older
            self._put(page.messages, 0, len(self.messages))
        else:
            self._put(page.messages, cut, len(self.messages))
        return self._let_go(cut)

    def take_older(self, page: DeliveryPage) -> bool:
        """Put a page ahead of all; False if it does not join what is loaded now."""
        if page.first is None or self.first is None:
            self.has_older = False
            return False
        if page.messages and place_of(page.messages[-1]) >= (*_pair(self.first), True):
            return False
        self._put(page.messages, 0, 0)
        self.first, self.has_older = page.first, page.has_older
        self.is_full = len(self.messages) >= MOST_LOADED
        return True

    def begin_of(self, since_ms: int | None) -> int:
        """The place of the first that came then, in the order of the log; None: of all."""
        if since_ms is None:
            return 0
        begin = len(self.messages)
        for at in range(len(self.messages) - 1, -1, -1):
            message = self.messages[at]
            if message.received_ms is None:
                continue
            if message.received_ms < since_ms:
                if message.mark in _OUT_OF_TURN:
                    continue
                break
            begin = at
        return begin

    def _put(self, messages: Sequence[DeliveryMessage], begin: int, end: int) -> None:
        for message in self.messages[begin:end]:
            self._ids.pop(message.message_id, None)
        self.messages[begin:end] = messages
        self._places[begin:end] = map(place_of, messages)
        self._ids.update((message.message_id, message) for message in messages)

    def _let_go(self, cut: int) -> int:
        beyond = len(self.messages) - MOST_LOADED
        if beyond <= 0:
            return cut
        # More than is needed, so that it is not done anew with every page.
        beyond += MOST_LOADED // 10
        self._put((), 0, beyond)
        placed = (each.position for each in self.messages if each.position is not None)
        self.first, self.has_older, self.is_full = next(placed, None), True, True
        return 0


def _pair(position: Position) -> tuple[int, str]:
    return position.lamport_timestamp, position.message_id
