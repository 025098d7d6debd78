"""Maps the hashes of pending hash lookups to message ids."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.core.history.inputs import HashLookup
from engine.core.ids import MessageId, UnixMs, WakuHash
from engine.core.sds.types import AskStore
from engine.core.waku_store import HASH_BYTES

MAX_HASHES: Final = 10_000


class HashIndex:
    """Keeps at most 10 000 entries and drops the oldest beyond that."""

    def __init__(self) -> None:
        self._ids: dict[WakuHash, MessageId] = {}

    @property
    def ids(self) -> Mapping[WakuHash, MessageId]:
        return self._ids

    def lookups(self, ask: AskStore) -> tuple[HashLookup, ...]:
        """The hash lookups for a session's request; entries whose hint is no hash are skipped."""
        lookups: list[HashLookup] = []
        for entry in ask.missing:
            hint = entry.retrieval_hint
            if hint is None or len(hint) != HASH_BYTES:
                continue
            around = ask.around.get(entry.message_id)
            waku_hash = WakuHash(hint)
            self._ids[waku_hash] = entry.message_id
            lookups.append(HashLookup(waku_hash, None if around is None else UnixMs(around)))
        while len(self._ids) > MAX_HASHES:
            del self._ids[next(iter(self._ids))]
        return tuple(lookups)

    def take(self, hashes: Sequence[WakuHash]) -> list[MessageId]:
        """Remove these hashes and return the message ids of those that were known."""
        return [self._ids.pop(one) for one in hashes if one in self._ids]

    def known(self, hashes: Sequence[WakuHash]) -> list[MessageId]:
        return [self._ids[one] for one in hashes if one in self._ids]
