"""Puts the chunks of admissions together, whoever may be flooding us with some.

One admission for each sender and group is collected at a time: whoever begins another one starts
anew.  All of them together have MAX_HELD_BYTES in memory; beyond, the oldest is dropped, and comes
again with the next answer.
"""

from collections import OrderedDict
from hashlib import sha256
from typing import Final

from engine.core.errors import RemoteProtocolError
from engine.core.ids import ConversationId
from engine.core.joining import MAX_PACKED_BYTES, Chunk

MAX_HELD_BYTES: Final = 2 * MAX_PACKED_BYTES


class _Whole:
    """An admission that is being collected."""

    def __init__(self, digest: bytes, count: int) -> None:
        self.digest = digest
        self.count = count
        self.parts: dict[int, bytes] = {}

    @property
    def size(self) -> int:
        return sum(map(len, self.parts.values()))


class ChunkBook:
    def __init__(self) -> None:
        self._wholes: OrderedDict[tuple[ConversationId, bytes], _Whole] = OrderedDict()

    @property
    def held_bytes(self) -> int:
        return sum(whole.size for whole in self._wholes.values())

    def take(self, conversation_id: ConversationId, sender: bytes, chunk: Chunk) -> bytes | None:
        """The whole admission, packed, once it is complete.

        ``sender``: public key.  Raises RemoteProtocolError ``join_bad_chunks``.
        """
        place = conversation_id, sender
        whole = self._wholes.get(place)
        if whole is None or (whole.digest, whole.count) != (chunk.digest, chunk.count):
            whole = self._wholes[place] = _Whole(chunk.digest, chunk.count)
        self._wholes.move_to_end(place)
        whole.parts.setdefault(chunk.number, chunk.part)
        if len(whole.parts) < whole.count:
            while self.held_bytes > MAX_HELD_BYTES:
                self._wholes.popitem(last=False)
            return None
        del self._wholes[place]
        joined = b"".join(whole.parts[number] for number in range(whole.count))
        if sha256(joined).digest() != whole.digest:
            raise RemoteProtocolError("join_bad_chunks")
        return joined

    def forget(self, conversation_id: ConversationId) -> None:
        for place in [place for place in self._wholes if place[0] == conversation_id]:
            del self._wholes[place]
