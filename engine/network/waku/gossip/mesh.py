"""The mesh and fanout of every topic: which peers are in, which may join, which must leave.

Implements gossipsub 1.1's JOIN, LEAVE, GRAFT, PRUNE and the mesh part of the heartbeat.  Two rules
always hold:

- Only peers that we dialled can grow a mesh beyond ``d_high``.
- A peer is neither grafted nor let in during a back-off, or while its score is below zero.

Messages are handled in ``router``.
"""

from collections.abc import Callable
from random import Random

from engine.codec.gossipsub import Prune, Subscription
from engine.core.counters import Counters
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.effects import Effects
from engine.network.waku.gossip.peers import MAX_TOPICS_PER_PEER, Backoffs, PeerBook
from engine.network.waku.gossip.vocabulary import GossipsubSettings


class Mesh:
    """Mesh peers by topic.  ``peers`` is shared with the router, which adds and removes peers."""

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
        self._heartbeats = 0

    def __contains__(self, topic: PubsubTopic) -> bool:
        """Whether we joined ``topic``."""
        return topic in self._members

    @property
    def is_settled(self) -> bool:
        """Whether nothing would change by the passage of time alone."""
        return not self._backoffs and not self._fanout

    def members(self, topic: PubsubTopic) -> frozenset[PeerId]:
        return frozenset(self._members.get(topic, ()))

    def candidates(self, topic: PubsubTopic, fit: Callable[[PeerId], bool]) -> list[PeerId]:
        """Subscribers accepted by ``fit``, in random order."""
        candidates = sorted(p for p in self._peers.subscribers(topic) if fit(p))
        self._random.shuffle(candidates)
        return candidates

    def gossip_candidates(self, topic: PubsubTopic) -> list[PeerId]:
        """Subscribers above the gossip threshold and outside mesh and fanout, in random order."""
        inside = self._members.get(topic) or self._fanout.get(topic) or set()
        fit = self._peers.is_gossiped_with
        return [peer_id for peer_id in self.candidates(topic, fit) if peer_id not in inside]

    def recipients(self, topic: PubsubTopic, *, now_ms: int) -> frozenset[PeerId]:
        """The peers to which a message of our own is sent."""
        fit = self._peers.is_published_to
        in_mesh = frozenset(filter(fit, self.members(topic)))
        if self._settings.flood_publish:
            return in_mesh.union(self.candidates(topic, fit))
        return in_mesh if topic in self._members else self._fanout_of(topic, now_ms=now_ms)

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
        candidates = self.candidates(topic, self._peers.is_meshable)
        for peer_id in sorted(candidates, key=lambda peer_id: peer_id not in known):
            self._graft_if_wanted(topic, peer_id, effects, now_ms=now_ms)

    def leave(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        if topic not in self._members:
            return
        backoff_ms = self._settings.unsubscribe_backoff_ms
        for peer_id in sorted(self._members.pop(topic)):
            self._peers.scores.pruned(peer_id, topic)
            self._backoffs.extend(topic, peer_id, until_ms=now_ms + backoff_ms)
            effects.prune(peer_id, Prune(topic=topic, backoff_s=backoff_ms // 1_000))
        effects.membership_changed = True
        for peer_id in self._peers:
            effects.subscribe(peer_id, Subscription(topic=topic, subscribe=False))

    def _fanout_of(self, topic: PubsubTopic, *, now_ms: int) -> frozenset[PeerId]:
        """Up to ``d`` peers for publishing to a topic that we did not join.  Kept for a while."""
        chosen = self._fanout.setdefault(topic, set())
        self._fanout_until_ms[topic] = now_ms + self._settings.fanout_ttl_ms
        candidates = self.candidates(topic, self._peers.is_published_to)
        fresh = [peer_id for peer_id in candidates if peer_id not in chosen]
        chosen.update(fresh[: max(0, self._settings.d - len(chosen))])
        return frozenset(chosen)

    # --- peers ----------------------------------------------------------------------------------

    def welcome(self, peer_id: PeerId, effects: Effects, *, now_ms: int) -> None:
        """Tell a peer our topics.  Messages on an earlier stream may have been lost."""
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
            self._take_out(topic, peer_id)
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
        if members is None:  # No answer, because it would tell which topics we do not know.
            self._counters.add("relay.graft_unknown_topic")
        elif peer_id in members:
            return
        elif self._backoffs.is_active(topic, peer_id, now_ms=now_ms):
            self._counters.add("relay.graft_during_backoff")
            self._peers.scores.misbehaved(peer_id)
            if now_ms < self._flooding_until_ms(topic, peer_id):
                self._peers.scores.misbehaved(peer_id)
            self._prune(topic, peer_id, effects, now_ms=now_ms)
        elif not self._peers.is_meshable(peer_id) or (
            len(members) >= self._settings.d_high and not self._peers[peer_id].outbound
        ):
            self._counters.add("relay.graft_refused")
            self._prune(topic, peer_id, effects, now_ms=now_ms)
        else:
            self._take_in(topic, peer_id, now_ms=now_ms)
            effects.membership_changed = True

    def _flooding_until_ms(self, topic: PubsubTopic, peer_id: PeerId) -> int:
        pruned_ms = self._backoffs.until_ms(topic, peer_id) - self._settings.prune_backoff_ms
        return pruned_ms + self._settings.graft_flood_threshold_ms

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
            self._take_out(prune.topic, peer_id)
            effects.membership_changed = True

    # --- heartbeat ------------------------------------------------------------------------------

    def maintain(self, effects: Effects, *, now_ms: int) -> None:
        self._heartbeats += 1
        self._backoffs.expire(now_ms=now_ms)
        for topic in self._members:
            self._maintain_mesh(topic, effects, now_ms=now_ms)
        for topic, until_ms in list(self._fanout_until_ms.items()):
            if until_ms <= now_ms:
                del self._fanout_until_ms[topic]
                del self._fanout[topic]
            else:
                fit = filter(self._peers.is_published_to, self._peers.subscribers(topic))
                self._fanout[topic].intersection_update(fit)

    def _maintain_mesh(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        members, settings = self._members[topic], self._settings
        for peer_id in sorted(p for p in members if not self._peers.is_meshable(p)):
            self._counters.add("relay.pruned_for_score")
            self._prune(topic, peer_id, effects, now_ms=now_ms)
        if len(members) < settings.d_low:
            for peer_id in self.candidates(topic, self._peers.is_meshable):
                self._graft_if_wanted(topic, peer_id, effects, now_ms=now_ms)
        if len(members) > settings.d_high:
            self._cut(topic, effects, now_ms=now_ms)
        if len(members) >= settings.d_low:
            self._dial_quota(topic, effects, now_ms=now_ms)
        if self._heartbeats % settings.opportunistic_graft_ticks == 0 and len(members) > 1:
            self._improve(topic, effects, now_ms=now_ms)

    def _cut(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        """Cut to ``d_keep`` peers: the best ``d_score``, then random ones, ``d_out`` outbound."""
        settings, score = self._settings, self._peers.scores.score
        ranked = sorted(self._members[topic])
        self._random.shuffle(ranked)
        ranked.sort(key=score, reverse=True)
        best, others = ranked[: settings.d_score], ranked[settings.d_score :]
        self._random.shuffle(others)
        ranked = best + others
        staying, leaving = ranked[: settings.d_keep], ranked[settings.d_keep :]
        lacking = settings.d_out - sum(self._peers[p].outbound for p in staying)
        for peer_id in [p for p in leaving if self._peers[p].outbound][: max(0, lacking)]:
            inbound = [p for p in staying if not self._peers[p].outbound]
            leaving.append(inbound[-1])
            staying.remove(inbound[-1])
            leaving.remove(peer_id)
            staying.append(peer_id)
        for peer_id in leaving:
            self._prune(topic, peer_id, effects, now_ms=now_ms)

    def _dial_quota(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        """Graft outbound peers, so that part of the mesh is our choice and not the peers'."""
        members = self._members[topic]
        lacking = self._settings.d_out - sum(self._peers[p].outbound for p in members)
        if lacking > 0:
            candidates = self.candidates(topic, self._peers.is_meshable)
            outbound = [p for p in candidates if self._peers[p].outbound]
            self._graft_some(topic, outbound, lacking, effects, now_ms=now_ms)

    def _improve(self, topic: PubsubTopic, effects: Effects, *, now_ms: int) -> None:
        """Opportunistic grafting: adds better peers to a mesh that does little."""
        score = self._peers.scores.score
        members = sorted(self._members[topic], key=score)
        median = score(members[len(members) // 2])
        if median < self._settings.score.opportunistic_graft_threshold:
            better = self.candidates(topic, lambda peer_id: score(peer_id) > median)
            wanted = self._settings.opportunistic_graft_peers
            if self._graft_some(topic, better, wanted, effects, now_ms=now_ms):
                self._counters.add("relay.grafted_opportunistically")

    # --- in and out -----------------------------------------------------------------------------

    def _graft_if_wanted(
        self, topic: PubsubTopic, peer_id: PeerId, effects: Effects, *, now_ms: int
    ) -> None:
        members = self._members.get(topic)
        if members is not None and len(members) < self._settings.d:
            self._graft_some(topic, [peer_id], 1, effects, now_ms=now_ms)

    def _graft_some(
        self,
        topic: PubsubTopic,
        candidates: list[PeerId],
        count: int,
        effects: Effects,
        *,
        now_ms: int,
    ) -> int:
        """Graft the first ``count`` eligible candidates; return how many were grafted."""
        members = self._members[topic]
        eligible = [
            peer_id
            for peer_id in candidates
            if peer_id not in members
            and self._peers.is_meshable(peer_id)
            and not self._backoffs.is_active(topic, peer_id, now_ms=now_ms)
        ][:count]
        for peer_id in eligible:
            self._take_in(topic, peer_id, now_ms=now_ms)
            effects.graft(peer_id, topic)
            effects.membership_changed = True
        return len(eligible)

    def _take_in(self, topic: PubsubTopic, peer_id: PeerId, *, now_ms: int) -> None:
        self._members[topic].add(peer_id)
        self._peers.scores.grafted(peer_id, topic, now_ms=now_ms)

    def _take_out(self, topic: PubsubTopic, peer_id: PeerId) -> None:
        self._members.get(topic, set()).discard(peer_id)
        self._peers.scores.pruned(peer_id, topic)

    def _prune(self, topic: PubsubTopic, peer_id: PeerId, effects: Effects, *, now_ms: int) -> None:
        """Remove the peer from the mesh, if it is in, and start a back-off."""
        backoff_ms = self._settings.prune_backoff_ms
        self._backoffs.extend(topic, peer_id, until_ms=now_ms + backoff_ms)
        effects.prune(peer_id, Prune(topic=topic, backoff_s=backoff_ms // 1_000))
        self._take_out(topic, peer_id)
        effects.membership_changed = True
