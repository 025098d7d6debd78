"""Content messages from the future, held aside until their time comes.

A Lamport timestamp far ahead of our clock is never adopted: one wrong clock would push everyone's
ahead for good.  The message is kept like one that waits for a dependency, and saved in the same
place; its timestamp shows that it is held.  It is received once it is no longer ahead, because time
passed or our clock was set.

The room is bounded per sender and per channel, so that one wrong clock leaves the others theirs.
If a sender's share is full, its message furthest ahead gives way to one that is less far.  If the
channel's room is full, the message furthest ahead of all gives way, or one of the sender with most:
identities cost nothing, and eight of them could fill the room for a year.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from operator import itemgetter

from engine.core.ids import MessageId, ParticipantId, UnixMs
from engine.core.sds.config import SdsConfig
from engine.core.sds.vocabulary import HeldAsideChanged, HeldMessage, IncomingEntry


class HeldAside:
    """Held messages by id, and by when each is no longer ahead."""

    def __init__(self, config: SdsConfig) -> None:
        self._config = config
        self.waiting: dict[MessageId, IncomingEntry] = {}
        """By id; other parts may only test whether a message is held."""
        self._due: list[tuple[int, MessageId]] = []
        """By our clock."""
        self._shares: dict[ParticipantId, list[tuple[int, MessageId]]] = {}
        """Each sender's messages, ascending by due time."""

    def __contains__(self, message_id: MessageId) -> bool:
        return message_id in self.waiting

    def __len__(self) -> int:
        return len(self.waiting)

    def entries(self) -> Iterator[IncomingEntry]:
        return iter(self.waiting.values())

    def newest_ids(self, count: int) -> tuple[MessageId, ...]:
        """The messages that came last, in order of arrival."""
        return tuple(islice(self.waiting, max(len(self.waiting) - count, 0), None))

    def due_ms(self, entry: IncomingEntry) -> UnixMs:
        """When a message is no longer ahead, by our clock; at once where none is held for that."""
        if self._config.is_open:
            return UnixMs(0)
        return UnixMs((entry.message.lamport_timestamp or 0) - self._config.max_ahead_ms)

    def make_room(self, entry: IncomingEntry) -> list[IncomingEntry] | None:
        """The held messages that must give way to ``entry``; None: ``entry`` is refused."""
        config, place = self._config, self._place(entry)
        share = self._shares.get(entry.message.sender_id, [])
        if len(share) >= config.max_held_ahead_per_sender:
            giving = share
        elif len(self.waiting) >= config.max_held_ahead:
            giving = max(self._shares.values(), key=itemgetter(-1))
            if giving[-1] <= place:
                giving = max(self._shares.values(), key=lambda held: (len(held), held[-1]))
        else:
            return []
        if giving[-1] <= place and len(giving) <= len(share) + 1:
            return None
        return [self.waiting[giving[-1][1]]]

    def add(self, entry: IncomingEntry) -> None:
        message_id, place = entry.message.message_id, self._place(entry)
        self.waiting[message_id] = entry
        heappush(self._due, place)
        insort(self._shares.setdefault(entry.message.sender_id, []), place)

    def remove(self, entry: IncomingEntry) -> None:
        """Remove a message that gives way."""
        self._due.remove(self._place(entry))
        heapify(self._due)
        self._leave(entry)

    def _place(self, entry: IncomingEntry) -> tuple[int, MessageId]:
        return self.due_ms(entry), entry.message.message_id

    def _leave(self, entry: IncomingEntry) -> None:
        del self.waiting[entry.message.message_id]
        share = self._shares[entry.message.sender_id]
        del share[bisect_left(share, self._place(entry))]
        if not share:
            del self._shares[entry.message.sender_id]

    def next_deadline(self) -> UnixMs | None:
        """By our clock."""
        return UnixMs(self._due[0][0]) if self._due else None

    def take_due(self, clock_ms: UnixMs) -> list[IncomingEntry]:
        """Remove and return what is no longer ahead, oldest first."""
        due: list[IncomingEntry] = []
        while self._due and self._due[0][0] <= clock_ms:
            entry = self.waiting[heappop(self._due)[1]]
            self._leave(entry)
            due.append(entry)
        return due

    def event(self, clock_offset_ms: int) -> HeldAsideChanged:
        """All messages held now, the soonest due first; due times are by our clock."""
        soonest = sorted(self._due)[: self._config.held_event_entries]
        entries = [self.waiting[message_id] for _, message_id in soonest]
        return HeldAsideChanged(
            held=tuple(
                HeldMessage(
                    message=entry.message,
                    ahead_ms=(entry.message.lamport_timestamp or 0)
                    - entry.received_ms
                    - clock_offset_ms,
                    due_ms=self.due_ms(entry),
                )
                for entry in entries
            ),
            held_total=len(self.waiting),
        )
