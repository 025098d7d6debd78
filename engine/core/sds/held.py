"""Content messages from the future, held aside until their time has come.

A Lamport timestamp far ahead of the corrected clock is never adopted: one wrong clock would push
everybody's ahead for good.  The message is kept like one that waits for a dependency (and saved in
the same place: that it is held follows from its timestamp), and received when it is no longer
ahead, because time passed or the clock was corrected.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from engine.core.sds.config import SdsConfig
from engine.core.sds.types import HeldAsideChanged, HeldMessage, IncomingEntry
from engine.core.types import MessageId, UnixMs


class HeldAside:
    """Held messages by id, and by when each is no longer ahead."""

    def __init__(self, config: SdsConfig) -> None:
        self._config = config
        self._entries: dict[MessageId, IncomingEntry] = {}
        self._due: list[tuple[int, MessageId]] = []
        """By the corrected clock."""

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_full(self) -> bool:
        return len(self._entries) >= self._config.max_held_ahead

    def entries(self) -> Iterator[IncomingEntry]:
        return iter(self._entries.values())

    def due_ms(self, entry: IncomingEntry) -> UnixMs:
        """When a message is no longer ahead, by the corrected clock."""
        return UnixMs((entry.message.lamport_timestamp or 0) - self._config.max_ahead_ms)

    def add(self, entry: IncomingEntry) -> None:
        message_id = entry.message.message_id
        self._entries[message_id] = entry
        heappush(self._due, (self.due_ms(entry), message_id))

    def next_deadline(self, offset_ms: int) -> UnixMs | None:
        """By our own clock, which is ``offset_ms`` behind."""
        return UnixMs(self._due[0][0] - offset_ms) if self._due else None

    def take_due(self, corrected_ms: UnixMs) -> list[IncomingEntry]:
        """What is no longer ahead, oldest first."""
        due: list[IncomingEntry] = []
        while self._due and self._due[0][0] <= corrected_ms:
            due.append(self._entries.pop(heappop(self._due)[1]))
        return due

    def event(self, offset_ms: int, now_ms: UnixMs) -> HeldAsideChanged:
        """All that is held now, the soonest due first."""
        soonest = sorted(self._due)[: self._config.held_event_entries]
        entries = [self._entries[message_id] for _, message_id in soonest]
        return HeldAsideChanged(
            held=tuple(
                HeldMessage(
                    message_id=entry.message.message_id,
                    sender_id=entry.message.sender_id,
                    ahead_ms=(entry.message.lamport_timestamp or 0) - now_ms - offset_ms,
                    due_ms=UnixMs(self.due_ms(entry) - offset_ms),
                )
                for entry in entries
            ),
            held_total=len(self._entries),
            clock_offset_ms=offset_ms,
        )
