"""What fits one payload: encoded sizes, never too small, without encoding anything.

The specification's field numbers are the larger ones of the two generations, so they bound both.  A
test compares these numbers with the codec.
"""

from operator import attrgetter
from typing import Final

from engine.core.mvds.peer import Peer
from engine.core.mvds.vocabulary import MvdsId, Record, RecordType, SendPayload

ID_ENTRY_BYTES: Final = 36
"""Field number, length, 32 bytes."""
MESSAGE_FRAME_BYTES: Final = 61
"""A message without its body: two lengths, group id, a timestamp of up to ten bytes."""


class Packing:
    """A payload while it is being filled."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._acks: list[MvdsId] = []
        self._records: list[Record] = []

    def take(self, record: Record, spare: int) -> bool:
        """Add ``record`` if that leaves ``spare`` bytes; True if it was added."""
        message = record.type is RecordType.MESSAGE
        room = self._room - (MESSAGE_FRAME_BYTES + record.body_bytes if message else ID_ENTRY_BYTES)
        if room < spare:
            return False
        self._room = room
        self._records.append(record)
        return True

    def take_ack(self, message_id: MvdsId) -> bool:
        if self._room < ID_ENTRY_BYTES:
            return False
        self._room -= ID_ENTRY_BYTES
        self._acks.append(message_id)
        return True

    def payload(self, peer: Peer) -> SendPayload | None:
        """The payload, in order of creation; None if it is empty."""
        if not self._acks and not self._records:
            return None
        offers: list[MvdsId] = []
        requests: list[MvdsId] = []
        messages: list[MvdsId] = []
        for record in sorted(self._records, key=_created_ms):
            if record.type is RecordType.OFFER:
                offers.append(record.message_id)
            elif record.type is RecordType.MESSAGE:
                messages.append(record.message_id)
            else:
                requests.append(record.message_id)
        return SendPayload(
            peer.peer_id,
            tuple(self._acks),
            tuple(offers),
            tuple(requests),
            tuple(messages),
            peer.generation,
        )


_created_ms: Final = attrgetter("created_ms")
