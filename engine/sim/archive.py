"""A Store in the simulated network: keeps each copy that reaches it, by hash and time of arrival.

Members that are given one ask it when their channel says so (``AskStore``), and are answered at
once, as the history service answers a session.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from engine.core.ids import UnixMs
from engine.core.sds.vocabulary import StoreWindow
from engine.sim.network import Outgoing


class SimArchive:
    """A participant that only listens, so the network's faults are its own."""

    def __init__(self) -> None:
        self._times: list[UnixMs] = []
        self._copies: list[bytes] = []
        self._by_hash: dict[bytes, bytes] = {}
        self.asked_windows: list[StoreWindow] = []

    # --- SimParticipant ---

    def receive(self, payload: bytes, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        digest = hashlib.sha256(payload).digest()
        if digest not in self._by_hash:
            self._by_hash[digest] = payload
            self._times.append(now_ms)
            self._copies.append(payload)
        return []

    def advance(self, *, now_ms: UnixMs) -> Sequence[Outgoing]:
        del now_ms
        return []

    def next_deadline(self) -> UnixMs | None:
        return None

    # --- queries ---

    def find(self, retrieval_hint: bytes) -> bytes | None:
        """The copy with this hash."""
        return self._by_hash.get(retrieval_hint)

    def between(self, window: StoreWindow) -> list[bytes]:
        """All copies of this time, oldest first."""
        self.asked_windows.append(window)
        first = bisect_left(self._times, window.since_ms)
        return self._copies[first : bisect_right(self._times, window.until_ms)]
