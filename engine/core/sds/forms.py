"""Detects other signed bytes under a known message id; only the first form counts.

An id commits to the content and its dependencies, not to what is signed beside it (claims, hints, a
filter, the time).  So an author could sign other bytes under a known id and tell different people
different things there.  The first form stays; a retransmission is identical to the last byte.
"""

from typing import Final

from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId
from engine.core.sds.shared_state import SharedState

_KEPT: Final = 4_096


class Forms:
    """Hashes of the signed bytes of the messages logged last."""

    def __init__(self, parts: SharedState) -> None:
        self._parts = parts
        self._newer: dict[MessageId, int] = {}
        self._older: dict[MessageId, int] = {}
        """The previous generation; it is dropped when the next one is full."""

    def check(self, message_id: MessageId, raw: bytes) -> None:
        """Check a message that came again.  Raises RemoteProtocolError ``another_form``.

        For messages logged before the start, the first bytes that arrive count.
        """
        parts = self._parts
        if message_id in parts.incoming:
            first = hash(parts.incoming.waiting[message_id].entry.raw)
        elif message_id in parts.held:
            first = hash(parts.held.waiting[message_id].raw)
        else:
            first = self._newer.get(message_id) or self._older.get(message_id, 0)
        if not first:
            self.note(message_id, raw)
        elif first != hash(raw):
            raise RemoteProtocolError("another_form")

    def note(self, message_id: MessageId, raw: bytes) -> None:
        """Note the form of a logged message."""
        if len(self._newer) >= _KEPT:
            self._newer, self._older = {}, self._newer
        self._newer[message_id] = hash(raw)
