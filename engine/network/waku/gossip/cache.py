"""The gossipsub router's memory of messages: the ids it has seen, and the newest messages.

The seen-cache prevents a message from being handled twice.  The message cache ("mcache" in the
specification) answers IWANT and provides the ids to gossip about.  Both are bounded by age and by
number or bytes.  When full, they evict the oldest and return how many were evicted.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId

_ENTRY_OVERHEAD_BYTES = 500


class SeenCache:
    """Message ids for ``ttl_ms`` from when they were first seen."""

    def __init__(self, *, ttl_ms: int, max_entries: int) -> None:
        self._ttl_ms = ttl_ms
        self._max_entries = max_entries
        self._until_ms: dict[bytes, int] = {}  # insertion order is order of expiry

    def __contains__(self, message_id: bytes) -> bool:
        return message_id in self._until_ms

    def __len__(self) -> int:
        return len(self._until_ms)

    def add(self, message_id: bytes, *, now_ms: int) -> int:
        """Return how many ids were evicted before they expired."""
        self._until_ms.setdefault(message_id, now_ms + self._ttl_ms)
        evicted = 0
        while len(self._until_ms) > self._max_entries:
            del self._until_ms[next(iter(self._until_ms))]
            evicted += 1
        return evicted

    def expire(self, *, now_ms: int) -> None:
        while self._until_ms:
            message_id = next(iter(self._until_ms))
            if self._until_ms[message_id] > now_ms:
                return
            del self._until_ms[message_id]


@dataclass(slots=True)
class CachedMessage:
    topic: PubsubTopic
    data: bytes
    served: dict[PeerId, int] = field(default_factory=dict)


class MessageCache:
    """Messages of the last ``history_length`` heartbeats, newest window first."""

    def __init__(self, *, history_length: int, history_gossip: int, max_bytes: int) -> None:
        self._messages: dict[bytes, CachedMessage] = {}  # oldest first
        self._windows: deque[list[bytes]] = deque([[] for _ in range(history_length)])
        self._history_gossip = history_gossip
        self._max_bytes = max_bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def get(self, message_id: bytes) -> CachedMessage | None:
        return self._messages.get(message_id)

    def put(self, message_id: bytes, topic: PubsubTopic, data: bytes) -> int:
        """Return how many older messages were evicted before they expired."""
        if message_id in self._messages:
            return 0
        self._messages[message_id] = CachedMessage(topic=topic, data=data)
        self._windows[0].append(message_id)
        self._bytes += len(data) + _ENTRY_OVERHEAD_BYTES
        evicted = 0
        while self._bytes > self._max_bytes and len(self._messages) > 1:
            self._drop(next(iter(self._messages)))
            evicted += 1
        return evicted

    def gossip_ids(self) -> dict[PubsubTopic, list[bytes]]:
        """Ids in the newest ``history_gossip`` windows, by topic."""
        by_topic: dict[PubsubTopic, list[bytes]] = {}
        for message_id in self._gossip_window_ids():
            if (message := self._messages.get(message_id)) is not None:
                by_topic.setdefault(message.topic, []).append(message_id)
        return by_topic

    def shift(self) -> None:
        """Drop the oldest window.  Called at every heartbeat."""
        for message_id in self._windows.pop():
            self._drop(message_id)
        self._windows.appendleft([])

    def _gossip_window_ids(self) -> Iterator[bytes]:
        for index in range(self._history_gossip):
            yield from self._windows[index]

    def _drop(self, message_id: bytes) -> None:
        if (message := self._messages.pop(message_id, None)) is not None:
            self._bytes -= len(message.data) + _ENTRY_OVERHEAD_BYTES
