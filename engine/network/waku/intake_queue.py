"""Messages that wait to be archived, queued by source, with fair turns.

Turns go round the networks, and within a network round its peers, so a source that sends much
delays only itself. When the queue is full, the newest message of the largest source is dropped, so
a flood displaces itself. Sources are opaque names; the disk is handled in ``store.intake``.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from engine.core.waku_archive import ArchivedMessage, Source

_ENTRY_OVERHEAD_BYTES: Final = 500


def _size_of(message: ArchivedMessage) -> int:
    return len(message.data) + _ENTRY_OVERHEAD_BYTES


@dataclass(slots=True)
class _Peer:
    messages: deque[ArchivedMessage] = field(default_factory=deque)
    bytes: int = 0


@dataclass(slots=True)
class _Network:
    peers: OrderedDict[str, _Peer] = field(default_factory=OrderedDict)
    bytes: int = 0


class IntakeQueue:
    def __init__(self, *, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._networks: OrderedDict[str, _Network] = OrderedDict()
        self._returned: deque[ArchivedMessage] = deque()
        """Taken and put back: next in line, and never dropped."""
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def below_half(self) -> bool:
        return self._count < self._max_messages // 2 and self._bytes < self._max_bytes // 2

    def has_most(self, source: Source) -> bool:
        """Whether the source has at least an even share of the queue."""
        network = self._networks.get(source.network)
        if network is None or network.bytes * len(self._networks) < self._bytes:
            return False
        peer = network.peers.get(source.peer)
        return peer is not None and peer.bytes * len(network.peers) >= network.bytes

    def put(self, message: ArchivedMessage) -> list[ArchivedMessage]:
        """Return the dropped messages, possibly including this one."""
        network = self._networks.setdefault(message.source.network, _Network())
        peer = network.peers.setdefault(message.source.peer, _Peer())
        peer.messages.append(message)
        self._changed(network, peer, message, 1)
        dropped: list[ArchivedMessage] = []
        while self._networks and (
            self._count > self._max_messages or self._bytes > self._max_bytes
        ):
            dropped.append(self._drop())
        return dropped

    def take(self, *, max_messages: int, max_bytes: int) -> list[ArchivedMessage]:
        """Take one message of each source in turn; at least one if there is any."""
        taken: list[ArchivedMessage] = []
        room = max_bytes
        while self._count and len(taken) < max_messages and (room > 0 or not taken):
            message = self._next()
            room -= len(message.data)
            taken.append(message)
        return taken

    def put_back(self, messages: list[ArchivedMessage]) -> None:
        """Return what was taken last, in its order."""
        self._returned.extendleft(reversed(messages))
        self._count += len(messages)
        self._bytes += sum(map(_size_of, messages))

    # --- inside ---------------------------------------------------------------------------------

    def _next(self) -> ArchivedMessage:
        if self._returned:
            message = self._returned.popleft()
            self._count -= 1
            self._bytes -= _size_of(message)
            return message
        network_name, network = next(iter(self._networks.items()))
        self._networks.move_to_end(network_name)
        peer_name, peer = next(iter(network.peers.items()))
        network.peers.move_to_end(peer_name)
        message = peer.messages.popleft()
        self._changed(network, peer, message, -1)
        return message

    def _drop(self) -> ArchivedMessage:
        network = max(self._networks.values(), key=lambda each: each.bytes)
        peer = max(network.peers.values(), key=lambda each: each.bytes)
        message = peer.messages.pop()
        self._changed(network, peer, message, -1)
        return message

    def _changed(self, network: _Network, peer: _Peer, message: ArchivedMessage, sign: int) -> None:
        size = sign * _size_of(message)
        network.bytes += size
        peer.bytes += size
        self._count += sign
        self._bytes += size
        if not peer.messages:
            del network.peers[message.source.peer]
        if not network.peers:
            del self._networks[message.source.network]
