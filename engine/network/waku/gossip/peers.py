"""The gossipsub router's memory of peers: subscriptions, score, back-off and promises.

Back-off and a bad score outlive a connection, so that a peer cannot shed them by reconnecting.
``scoring`` computes the score; this module compares it with the thresholds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.score_params import ScoreParams, colocation_key
from engine.network.waku.gossip.scoring import PeerScores

MAX_TOPICS_PER_PEER = 256
MAX_DONT_WANT = 1_000


@dataclass(slots=True)
class PeerState:
    """One connected peer.  The counts start again with every heartbeat."""

    outbound: bool = False
    topics: set[PubsubTopic] = field(default_factory=set)
    dont_want: set[bytes] = field(default_factory=set)
    ihave_rpcs: int = 0
    asked: int = 0
    iwant_ids: int = 0

    def begin_heartbeat(self) -> None:
        self.ihave_rpcs = 0
        self.asked = 0
        self.iwant_ids = 0
        self.dont_want.clear()

    def refuse(self, message_ids: Iterable[bytes]) -> None:
        for message_id in message_ids:
            if len(self.dont_want) >= MAX_DONT_WANT:
                return
            self.dont_want.add(message_id)


class PeerBook:
    """The connected peers, and what gossipsub 1.1's score thresholds allow each of them."""

    def __init__(self, params: ScoreParams) -> None:
        self._params = params
        self._peers: dict[PeerId, PeerState] = {}
        self.scores = PeerScores(params)

    def __contains__(self, peer_id: PeerId) -> bool:
        return peer_id in self._peers

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._peers)

    def __getitem__(self, peer_id: PeerId) -> PeerState:
        return self._peers[peer_id]

    def add(self, peer_id: PeerId, *, outbound: bool, host: str) -> None:
        self._peers.setdefault(peer_id, PeerState()).outbound = outbound
        self.scores.connected(peer_id, address=colocation_key(host))

    def remove(self, peer_id: PeerId, *, now_ms: int) -> None:
        """Forget the peer, but keep a bad score."""
        self._peers.pop(peer_id, None)
        self.scores.disconnected(peer_id, now_ms=now_ms)

    def subscribers(self, topic: PubsubTopic) -> frozenset[PeerId]:
        """Peers that are connected, have been heard from, and subscribe to ``topic``."""
        return frozenset(
            peer_id
            for peer_id, peer in self._peers.items()
            if topic in peer.topics and not self.is_graylisted(peer_id)
        )

    def is_meshable(self, peer_id: PeerId) -> bool:
        return self.scores.score(peer_id) >= 0

    def is_gossiped_with(self, peer_id: PeerId) -> bool:
        return self.scores.score(peer_id) >= self._params.gossip_threshold

    def is_published_to(self, peer_id: PeerId) -> bool:
        """Whether our own messages are sent to the peer."""
        return self.scores.score(peer_id) >= self._params.publish_threshold

    def is_graylisted(self, peer_id: PeerId) -> bool:
        return self.scores.score(peer_id) < self._params.graylist_threshold

    def begin_heartbeat(self, *, now_ms: int) -> None:
        self.scores.refresh(now_ms=now_ms)
        for peer in self._peers.values():
            peer.begin_heartbeat()


class Backoffs:
    """Until when a peer and we must not graft each other for a topic."""

    def __init__(self, *, max_entries: int = 10_000) -> None:
        self._max_entries = max_entries
        self._until_ms: dict[tuple[PubsubTopic, PeerId], int] = {}

    def __len__(self) -> int:
        return len(self._until_ms)

    def is_active(self, topic: PubsubTopic, peer_id: PeerId, *, now_ms: int) -> bool:
        return self._until_ms.get((topic, peer_id), now_ms) > now_ms

    def until_ms(self, topic: PubsubTopic, peer_id: PeerId) -> int:
        """Return 0 if there is no back-off."""
        return self._until_ms.get((topic, peer_id), 0)

    def extend(self, topic: PubsubTopic, peer_id: PeerId, *, until_ms: int) -> None:
        """Never shortens a back-off."""
        key = (topic, peer_id)
        self._until_ms[key] = max(until_ms, self._until_ms.get(key, until_ms))
        if len(self._until_ms) > self._max_entries:
            del self._until_ms[next(iter(self._until_ms))]

    def expire(self, *, now_ms: int) -> None:
        if self._until_ms:
            self._until_ms = {
                key: until_ms for key, until_ms in self._until_ms.items() if until_ms > now_ms
            }


class Promises:
    """Peers that advertised a message we asked for.

    An IHAVE that no message follows is a broken promise.  One randomly chosen id per IWANT is
    tracked, as in gossipsub 1.1.
    """

    def __init__(self, *, max_entries: int = 10_000) -> None:
        self._max_entries = max_entries
        self._until_ms: dict[bytes, dict[PeerId, int]] = {}

    def __len__(self) -> int:
        return len(self._until_ms)

    def add(self, message_id: bytes, peer_id: PeerId, *, until_ms: int) -> None:
        if message_id in self._until_ms or len(self._until_ms) < self._max_entries:
            self._until_ms.setdefault(message_id, {}).setdefault(peer_id, until_ms)

    def keep(self, message_id: bytes) -> None:
        """The message has arrived, from any peer, so no promise is broken."""
        self._until_ms.pop(message_id, None)

    def forget_peer(self, peer_id: PeerId) -> None:
        for message_id in [m for m, peers in self._until_ms.items() if peer_id in peers]:
            del self._until_ms[message_id][peer_id]
            if not self._until_ms[message_id]:
                del self._until_ms[message_id]

    def broken(self, *, now_ms: int) -> list[PeerId]:
        """Yield the peer of each broken promise, once."""
        liars: list[PeerId] = []
        for message_id, peers in list(self._until_ms.items()):
            for peer_id in [p for p, until_ms in peers.items() if until_ms <= now_ms]:
                del peers[peer_id]
                liars.append(peer_id)
            if not peers:
                del self._until_ms[message_id]
        return liars
