"""Remembers by which way messages came that have no place yet.

A message may wait for others for hours, and its row is written when it gets its place.  What is
remembered here is lost when the program ends; the way is then unknown.
"""

from collections import OrderedDict
from typing import Final

from engine.core.ids import MessageId
from engine.session.rows import UNKNOWN_WAY, Way

MAX_REMEMBERED: Final = 8_192
"""More than can wait in a group."""


class Ways:
    def __init__(self) -> None:
        self._ways: OrderedDict[MessageId, Way] = OrderedDict()

    def note(self, message_id: MessageId, way: Way) -> None:
        """The message came by this way; only its first copy counts."""
        self._ways.setdefault(message_id, way)
        if len(self._ways) > MAX_REMEMBERED:
            self._ways.popitem(last=False)

    def look(self, message_id: MessageId) -> Way:
        """By which way the message came that still waits."""
        return self._ways.get(message_id, UNKNOWN_WAY)

    def take(self, message_id: MessageId) -> Way:
        """By which way the message came that has its place now; afterwards it is forgotten."""
        return self._ways.pop(message_id, UNKNOWN_WAY)
