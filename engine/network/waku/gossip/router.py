"""The gossipsub 1.1 router, sans-I/O, as required by 11/WAKU2-RELAY.

Messages go to the topic's *mesh* (``mesh``): a few peers that accepted each other by GRAFT.  Every
heartbeat refills the mesh and sends IHAVE to some peers outside it.  Own messages are flooded to
every subscriber above the publish threshold.  A peer's behaviour becomes its score (``scoring``);
docs/waku.md describes the consequences clause by clause.  A message's id is the SHA-256 of its
data.  The codec enforces StrictNoSign, and the injected validator checks Waku messages.

Three deviations, all harmless to others:

- While the mesh is small, a new subscriber is grafted immediately and not at the next heartbeat.
- Peers offered by PRUNE are not dialled, as no Waku node offers any.
- There are no explicit peers.

Time is any integer of milliseconds that the driver counts.  Streams, queues and clocks are the
driver's.
"""

import hashlib
from random import Random
from typing import assert_never

from engine.codec.gossipsub import IHave, PublishedMessage, Rpc
from engine.core.counters import Counters
from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.cache import MessageCache, SeenCache
from engine.network.waku.gossip.effects import Effects
from engine.network.waku.gossip.mesh import Mesh
from engine.network.waku.gossip.peers import PeerBook, PeerState, Promises
from engine.network.waku.gossip.vocabulary import (
    DeadlineReached,
    GossipsubSettings,
    Input,
    Join,
    Leave,
    MalformedReceived,
    MessageDelivered,
    PeerGone,
    PeerReady,
    Publish,
    Refused,
    RpcReceived,
    SendMessage,
    Transition,
    Validator,
)
from engine.network_views import ScoreView

TOO_MUCH = 0.1
"""P7 penalty for exceeding a limit of ours that an honest peer might not know."""
MAX_INVALID_REMEMBERED = 10_000


def message_id_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class GossipRouter:
    """One node's view of its peers and topics.  ``handle`` never raises for a peer's input."""

    def __init__(
        self,
        *,
        settings: GossipsubSettings,
        validate: Validator,
        random: Random,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._validate = validate
        self._random = random
        self._counters = counters
        self._peers = PeerBook(settings.score)
        self._mesh = Mesh(settings=settings, peers=self._peers, random=random, counters=counters)
        self._promises = Promises()
        self._seen = SeenCache(ttl_ms=settings.seen_ttl_ms, max_entries=settings.max_seen)
        self._invalid = SeenCache(ttl_ms=settings.seen_ttl_ms, max_entries=MAX_INVALID_REMEMBERED)
        """The seen ids that were invalid.  A peer that repeats one is penalised like the first."""
        self._cache = MessageCache(
            history_length=settings.history_length,
            history_gossip=settings.history_gossip,
            max_bytes=settings.max_cached_bytes,
        )
        self._heartbeat_at_ms: int | None = None

    # --- questions ------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When ``DeadlineReached`` is due.  None: not before another input."""
        return self._heartbeat_at_ms

    def topic_peers(self, topic: PubsubTopic) -> frozenset[PeerId]:
        """Peers that are connected, have been heard from, and subscribe to ``topic``."""
        return self._peers.subscribers(topic)

    def mesh_peers(self, topic: PubsubTopic) -> frozenset[PeerId]:
        return self._mesh.members(topic)

    def is_graylisted(self, peer_id: PeerId) -> bool:
        """Whether all input from this peer is ignored, so that decoding it is wasted work."""
        return self._peers.is_graylisted(peer_id)

    def score(self, peer_id: PeerId) -> float:
        return self._peers.scores.score(peer_id)

    def score_parts(self, peer_id: PeerId) -> ScoreView:
        return self._peers.scores.parts(peer_id)

    # --- the machine ----------------------------------------------------------------------------

    def handle(self, input_: Input, *, now_ms: int) -> Transition:
        if self._heartbeat_at_ms is None and not isinstance(input_, DeadlineReached):
            self._heartbeat_at_ms = now_ms + self._settings.heartbeat_interval_ms
            # Heartbeats resume.  Nothing decayed while they rested.
            self._peers.scores.refresh(now_ms=now_ms)
        effects = Effects()
        match input_:
            case RpcReceived(peer_id=peer_id, rpc=rpc, refused=refused):
                self._receive(peer_id, rpc, refused, effects, now_ms=now_ms)
            case Publish(topic=topic, data=data):
                self._publish(topic, data, effects, now_ms=now_ms)
            case DeadlineReached():
                self._heartbeat(effects, now_ms=now_ms)
            case PeerReady(peer_id=peer_id, outbound=outbound, host=host):
                self._peers.add(peer_id, outbound=outbound, host=host)
                self._mesh.welcome(peer_id, effects, now_ms=now_ms)
                effects.membership_changed = True
            case PeerGone(peer_id=peer_id):
                self._mesh.forget(peer_id)
                self._peers.remove(peer_id, now_ms=now_ms)
                self._promises.forget_peer(peer_id)  # Leaving breaks no promise.
                effects.membership_changed = True
            case MalformedReceived(peer_id=peer_id, reason=reason):
                self._refuse(peer_id, reason)
            case Join(topic=topic):
                self._mesh.join(topic, effects, now_ms=now_ms)
            case Leave(topic=topic):
                self._mesh.leave(topic, effects, now_ms=now_ms)
            case _:
                assert_never(input_)
        return effects.transition()

    def _refuse(self, peer_id: PeerId, reason: str) -> None:
        """Penalise an RPC, or part of one, that an honest peer would not send."""
        self._counters.add(f"relay.{reason}")
        self._peers.scores.misbehaved(peer_id, TOO_MUCH if reason.startswith("too_many") else 1.0)

    # --- messages -------------------------------------------------------------------------------

    def _publish(self, topic: PubsubTopic, data: bytes, effects: Effects, *, now_ms: int) -> None:
        self._remember(message_id_of(data), topic, data, now_ms=now_ms)
        recipients = self._mesh.recipients(topic, now_ms=now_ms)
        effects.send(SendMessage(peer_ids=tuple(sorted(recipients)), topic=topic, data=data))

    def _receive(
        self,
        peer_id: PeerId,
        rpc: Rpc,
        refused: tuple[str, ...],
        effects: Effects,
        *,
        now_ms: int,
    ) -> None:
        if peer_id not in self._peers:
            self._counters.add("relay.unknown_peer")
            return
        if self._peers.is_graylisted(peer_id):
            self._counters.add("relay.graylisted")
            return
        for reason in refused:
            self._refuse(peer_id, reason)
        for subscription in rpc.subscriptions:
            self._mesh.note_subscription(peer_id, subscription, effects, now_ms=now_ms)
        for published in rpc.publish:
            self._receive_message(peer_id, published, effects, now_ms=now_ms)
        for topic in rpc.graft:
            self._mesh.receive_graft(peer_id, topic, effects, now_ms=now_ms)
        for prune in rpc.prune:
            self._mesh.receive_prune(peer_id, prune, effects, now_ms=now_ms)
        peer = self._peers[peer_id]
        if rpc.ihave:
            self._receive_ihave(peer_id, peer, rpc.ihave, effects, now_ms=now_ms)
        if rpc.iwant:
            self._receive_iwant(peer_id, peer, rpc.iwant, effects)
        peer.refuse(rpc.idontwant)

    def _receive_message(
        self, peer_id: PeerId, published: PublishedMessage, effects: Effects, *, now_ms: int
    ) -> None:
        topic, data, scores = published.topic, published.data, self._peers.scores
        if topic not in self._mesh:
            self._counters.add("relay.topic_not_joined")
            return
        message_id = message_id_of(data)
        self._promises.keep(message_id)
        if message_id in self._seen:
            self._counters.add("relay.duplicate")
            if message_id in self._invalid:
                scores.delivered_invalid(peer_id, topic)
            else:
                scores.delivered_again(peer_id, topic, message_id, now_ms=now_ms)
            return
        verdict = self._validate(topic, data)
        if isinstance(verdict, Refused):
            self._note_seen(message_id, now_ms=now_ms)
            self._counters.add(f"relay.{verdict.reason}")
            if verdict.penalize:
                self._invalid.add(message_id, now_ms=now_ms)
                scores.delivered_invalid(peer_id, topic)
            return
        scores.delivered_first(peer_id, topic, message_id, now_ms=now_ms)
        self._remember(message_id, topic, data, now_ms=now_ms)
        self._counters.add("relay.received")
        effects.deliver(
            MessageDelivered(topic=topic, message=verdict, data=data, received_from=peer_id)
        )
        recipients = tuple(
            member
            for member in sorted(self._mesh.members(topic))
            if member != peer_id and message_id not in self._peers[member].dont_want
        )
        if recipients:
            effects.send(SendMessage(peer_ids=recipients, topic=topic, data=data))

    def _remember(self, message_id: bytes, topic: PubsubTopic, data: bytes, *, now_ms: int) -> None:
        self._note_seen(message_id, now_ms=now_ms)
        if evicted := self._cache.put(message_id, topic, data):
            self._counters.add("relay.message_cache_full", evicted)

    def _note_seen(self, message_id: bytes, *, now_ms: int) -> None:
        if evicted := self._seen.add(message_id, now_ms=now_ms):
            self._counters.add("relay.seen_cache_full", evicted)

    # --- gossip ---------------------------------------------------------------------------------

    def _receive_ihave(
        self,
        peer_id: PeerId,
        peer: PeerState,
        ihaves: tuple[IHave, ...],
        effects: Effects,
        *,
        now_ms: int,
    ) -> None:
        peer.ihave_rpcs += 1
        if (
            not self._peers.is_gossiped_with(peer_id)
            or peer.ihave_rpcs > self._settings.max_ihave_messages
        ):
            self._counters.add("relay.ihave_ignored")
            return
        wanted = [
            message_id
            for ihave in ihaves
            if ihave.topic in self._mesh
            for message_id in dict.fromkeys(ihave.message_ids)
            if message_id not in self._seen
        ]
        room = self._settings.max_ihave_length - peer.asked
        if len(wanted) > room:
            self._counters.add("relay.ihave_flood")
            self._random.shuffle(wanted)
            del wanted[room:]
        if wanted:
            peer.asked += len(wanted)
            effects.iwant(peer_id, wanted)
            self._promises.add(
                self._random.choice(wanted),
                peer_id,
                until_ms=now_ms + self._settings.iwant_followup_ms,
            )

    def _receive_iwant(
        self, peer_id: PeerId, peer: PeerState, message_ids: tuple[bytes, ...], effects: Effects
    ) -> None:
        if not self._peers.is_gossiped_with(peer_id):
            self._counters.add("relay.iwant_ignored")
            return
        for message_id in message_ids:
            peer.iwant_ids += 1
            if peer.iwant_ids > self._settings.max_iwant_served:
                self._counters.add("relay.iwant_flood")
                self._peers.scores.misbehaved(peer_id, TOO_MUCH)
                return
            message = self._cache.get(message_id)
            if message is None:
                continue
            served = message.served.get(peer_id, 0)
            if served >= self._settings.gossip_retransmission:
                self._counters.add("relay.iwant_repeated")
                continue
            message.served[peer_id] = served + 1
            effects.send(
                SendMessage(
                    peer_ids=(peer_id,), topic=message.topic, data=message.data, requested=True
                )
            )

    # --- heartbeat ------------------------------------------------------------------------------

    def _heartbeat(self, effects: Effects, *, now_ms: int) -> None:
        if self._heartbeat_at_ms is not None and now_ms < self._heartbeat_at_ms:
            return  # Timers round, so this one fired early.
        self._heartbeat_at_ms = now_ms + self._settings.heartbeat_interval_ms
        self._peers.begin_heartbeat(now_ms=now_ms)
        self._seen.expire(now_ms=now_ms)
        self._invalid.expire(now_ms=now_ms)
        for peer_id in self._promises.broken(now_ms=now_ms):
            self._counters.add("relay.promise_broken")
            self._peers.scores.misbehaved(peer_id)
        self._mesh.maintain(effects, now_ms=now_ms)
        self._gossip(effects)
        self._cache.shift()
        if self._is_at_rest():
            self._heartbeat_at_ms = None

    def _is_at_rest(self) -> bool:
        """Whether heartbeats would do nothing until the next input."""
        pending = len(self._seen) + len(self._cache) + len(self._promises)
        may_improve = self._settings.score.opportunistic_graft_threshold > 0
        return (
            not pending
            and not may_improve
            and self._mesh.is_settled
            and self._peers.scores.is_settled
        )

    def _gossip(self, effects: Effects) -> None:
        for topic, message_ids in self._cache.gossip_ids().items():
            outside = self._mesh.gossip_candidates(topic)
            count = max(self._settings.d_lazy, int(self._settings.gossip_factor * len(outside)))
            for peer_id in outside[:count]:
                chosen = message_ids
                if len(message_ids) > self._settings.max_ihave_length:
                    chosen = self._random.sample(message_ids, self._settings.max_ihave_length)
                effects.ihave(peer_id, IHave(topic=topic, message_ids=tuple(chosen)))
