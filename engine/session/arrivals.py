"""Remembers how messages arrived: live, from a Store or by repair.

A message may wait for others for hours, and its row is written when it gets its place.  This record
is in memory only; after a restart the way is unknown.
"""

from collections import OrderedDict
from typing import Final

from engine.core.ids import MessageId
from engine.session.rows import UNKNOWN_WAY, Way

MAX_REMEMBERED: Final = 8_192
"""More than can wait in a group."""


class Arrivals:
    def __init__(self) -> None:
        self._ways: OrderedDict[MessageId, Way] = OrderedDict()

    def note(self, message_id: MessageId, way: Way) -> None:
        """Only the way of the first copy counts."""
        self._ways.setdefault(message_id, way)
        if len(self._ways) > MAX_REMEMBERED:
            self._ways.popitem(last=False)

    def look(self, message_id: MessageId) -> Way:
        """How a message arrived that still waits."""
        return self._ways.get(message_id, UNKNOWN_WAY)

    def take(self, message_id: MessageId, otherwise: Way = UNKNOWN_WAY) -> Way:
        """How a message arrived that has its place now.  Forgets it."""
        return self._ways.pop(message_id, otherwise)
