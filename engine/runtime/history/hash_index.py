"""Messages that were asked for by a hash of theirs: which hash meant which message."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.core.history.inputs import HashLookup
from engine.core.ids import MessageId, UnixMs, WakuHash
from engine.core.sds.types import AskStore
from engine.core.waku_store import HASH_BYTES

MAX_HASHES: Final = 10_000


class HashIndex:
    def __init__(self) -> None:
        self._ids: dict[WakuHash, MessageId] = {}

    @property
    def ids(self) -> Mapping[WakuHash, MessageId]:
        return self._ids

    def lookups(self, ask: AskStore) -> tuple[HashLookup, ...]:
        """What of it can be looked up; a hint that is no hash is of no use."""
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
        """Those that are known, and are done with now."""
        return [self._ids.pop(one) for one in hashes if one in self._ids]

    def known(self, hashes: Sequence[WakuHash]) -> list[MessageId]:
        return [self._ids[one] for one in hashes if one in self._ids]
