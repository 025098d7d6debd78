"""The mesh and fanout of every topic: who is in, who may come in, who has to go.

Gossipsub 1.1's JOIN, LEAVE, GRAFT, PRUNE and the mesh part of the heartbeat.  Rules kept at all
times: a mesh never grows past ``d_high``; nobody is grafted, and nobody gets in, while a back-off
between the two lasts or while its penalty is high.  Knows nothing of messages.
"""

from random import Random

from engine.codec.gossipsub import Prune, Subscription
from engine.core.counters import Counters
from engine.core.types import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip_effects import Effects
from engine.network.waku.gossip_peers import MAX_TOPICS_PER_PEER, Backoffs, PeerBook
from engine.network.waku.gossip_types import GossipsubSettings

_PENALTY_BACKOFF = 5.0


class Mesh:
    """Peers by topic.  ``peers`` is shared with the router, which adds to it and takes away."""

    def __init__(
        self,
        *,
        settings: GossipsubSettings,
        peers: PeerBook,
        random: Random,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._peers = peers
        self._random = random
        self._counters = counters
        self._members: dict[PubsubTopic, set[PeerId]] = {}
        self._fanout: dict[PubsubTopic, set[PeerId]] = {}
        self._fanout_until_ms: dict[PubsubTopic, int] = {}
        self._backoffs = Backoffs()

    def __contains__(self, topic: PubsubTopic) -> bool:
        """Whether we joined ``topic``."""
        return topic in self._members

    def members(self, topic: PubsubTopic) -> frozenset[PeerId]:
        return frozenset(self._members.get(topic, ()))

    def candidates(self, topic: PubsubTopic) -> list[PeerId]:
        """Acceptable subscribers in random order."""
        subscribers = self._peers.subscribers(topic)
        candidates = sorted(p for p in subscribers if self._peers.is_acceptable(p))
        self._random.shuffle(candidates)
        return candidates

    def gossip_candidates(self, topic: PubsubTopic) -> list[PeerId]:
        """Acceptable subscribers outside mesh and fanout, in random order."""
        inside = self._members.get(topic) or self._fanout.get(topic) or set()
        return [peer_id for peer_id in self.candidates(topic) if peer_id not in inside]

    # --- own topics -----------------------------------------------------------------------------

    def join(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        if topic in self._members:
            return
        self._members[topic] = set()
        self._fanout_until_ms.pop(topic, None)
        known = self._fanout.pop(topic, set())
        effects.membership_changed = True
        for peer_id in self._peers:
            effects.subscribe(peer_id, Subscription(topic=topic, subscribe=True))
        for peer_id in sorted(self.candidates(topic), key=lambda peer_id: peer_id not in known):
            self._graft_if_wanted(topic, peer_id, effects, now_ms=now_ms)

    def leave(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        if topic not in self._members:
            return
        backoff_ms = self._settings.unsubscribe_backoff_ms
        for peer_id in sorted(self._members.pop(topic)):
            self._backoffs.extend(topic, peer_id, until_ms=now_ms + backoff_ms)
            effects.prune(peer_id, Prune(topic=topic, backoff_s=backoff_ms // 1_000))
        effects.membership_changed = True
        for peer_id in self._peers:
            effects.subscribe(peer_id, Subscription(topic=topic, subscribe=False))

    def fanout(self, topic: PubsubTopic, *, now_ms: int) -> frozenset[PeerId]:
        """Up to ``d`` peers for publishing to a topic that we did not join; kept for a while."""
        chosen = self._fanout.setdefault(topic, set())
        self._fanout_until_ms[topic] = now_ms + self._settings.fanout_ttl_ms
        fresh = [peer_id for peer_id in self.candidates(topic) if peer_id not in chosen]
        chosen.update(fresh[: max(0, self._settings.d - len(chosen))])
        return frozenset(chosen)

    # --- peers ----------------------------------------------------------------------------------

    def welcome(self, peer_id: PeerId, effects: Effects, *, now_ms: int) -> None:
        """Tell a peer our topics; what was said on an earlier stream may have been lost."""
        for topic, members in self._members.items():
            effects.subscribe(peer_id, Subscription(topic=topic, subscribe=True))
            if peer_id in members:
                effects.graft(peer_id, topic)
            elif topic in self._peers[peer_id].topics:
                self._graft_if_wanted(topic, peer_id, effects, now_ms=now_ms)

    def forget(self, peer_id: PeerId) -> None:
        for members in (*self._members.values(), *self._fanout.values()):
            members.discard(peer_id)

    def note_subscription(
        self, peer_id: PeerId, subscription: Subscription, effects: Effects, *, now_ms: int
    ) -> None:
        topics, topic = self._peers[peer_id].topics, subscription.topic
        if not subscription.subscribe:
            topics.discard(topic)
            self._members.get(topic, set()).discard(peer_id)
            self._fanout.get(topic, set()).discard(peer_id)
        elif topic in topics:
            return
        elif len(topics) >= MAX_TOPICS_PER_PEER:
            self._counters.add("relay.too_many_subscriptions")
            return
        else:
            topics.add(topic)
            self._graft_if_wanted(topic, peer_id, effects, now_ms=now_ms)
        effects.membership_changed = True

    def receive_graft(
        self, peer_id: PeerId, topic: PubsubTopic, effects: Effects, *, now_ms: int
    ) -> None:
        members = self._members.get(topic)
        if members is None:  # No answer: it would tell which topics we do not know.
            self._counters.add("relay.graft_unknown_topic")
        elif peer_id in members:
            return
        elif self._backoffs.is_active(topic, peer_id, now_ms=now_ms):
            self._counters.add("relay.graft_during_backoff")
            self._peers.penalize(peer_id, _PENALTY_BACKOFF)
            self._prune(topic, peer_id, effects, now_ms=now_ms)
        elif len(members) >= self._settings.d_high or not self._peers.is_acceptable(peer_id):
            self._counters.add("relay.graft_refused")
            self._prune(topic, peer_id, effects, now_ms=now_ms)
        else:
            members.add(peer_id)
            effects.membership_changed = True

    def receive_prune(
        self, peer_id: PeerId, prune: Prune, effects: Effects, *, now_ms: int
    ) -> None:
        members = self._members.get(prune.topic)
        if members is None:
            return
        backoff_ms = self._settings.prune_backoff_ms
        if prune.backoff_s:
            backoff_ms = min(prune.backoff_s * 1_000, self._settings.max_backoff_ms)
        self._backoffs.extend(prune.topic, peer_id, until_ms=now_ms + backoff_ms)
        if peer_id in members:
            members.discard(peer_id)
            effects.membership_changed = True

    # --- heartbeat ------------------------------------------------------------------------------

    def maintain(self, effects: Effects, *, now_ms: int) -> None:
        self._backoffs.expire(now_ms=now_ms)
        for topic, members in self._members.items():
            for peer_id in sorted(p for p in members if not self._peers.is_acceptable(p)):
                self._prune(topic, peer_id, effects, now_ms=now_ms)
            if len(members) < self._settings.d_low:
                for peer_id in self.candidates(topic):
                    self._graft_if_wanted(topic, peer_id, effects, now_ms=now_ms)
        for topic, until_ms in list(self._fanout_until_ms.items()):
            if until_ms <= now_ms:
                del self._fanout_until_ms[topic]
                del self._fanout[topic]
            else:
                self._fanout[topic] &= self._peers.subscribers(topic)

    def _graft_if_wanted(
        self, topic: PubsubTopic, peer_id: PeerId, effects: Effects, *, now_ms: int
    ) -> None:
        members = self._members.get(topic)
        if members is None or peer_id in members or len(members) >= self._settings.d:
            return
        backing_off = self._backoffs.is_active(topic, peer_id, now_ms=now_ms)
        if self._peers.is_acceptable(peer_id) and not backing_off:
            members.add(peer_id)
            effects.graft(peer_id, topic)
            effects.membership_changed = True

    def _prune(self, topic: PubsubTopic, peer_id: PeerId, effects: Effects, *, now_ms: int) -> None:
        """Out of the mesh, if it was in, and not back before the back-off is over."""
        backoff_ms = self._settings.prune_backoff_ms
        self._backoffs.extend(topic, peer_id, until_ms=now_ms + backoff_ms)
        effects.prune(peer_id, Prune(topic=topic, backoff_s=backoff_ms // 1_000))
        self._members[topic].discard(peer_id)
        effects.membership_changed = True
