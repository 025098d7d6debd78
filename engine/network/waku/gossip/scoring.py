"""Peer scoring of gossipsub 1.1 ("The Score Function"), sans-I/O.

    score = cap(Σ topic_weight · (w1·P1 + w2·P2 + w3·P3 + w3b·P3b + w4·P4)) + w5·P5 + w6·P6 + w7·P7

- P1: time in the mesh.
- P2: messages that this peer delivered first.
- P3: too few deliveries while in the mesh; P3b: the same when the peer leaves it.
- P4: invalid messages, squared.
- P5: the application's own score.
- P6: peers at one address beyond the threshold, squared.
- P7: broken rules, squared.

Counters decay once per decay interval, also for intervals that passed unobserved, and become zero
below ``decay_to_zero``.  A score below zero outlives the connection for ``retain_score_ms`` and
does not decay during that time.  As in go-libp2p and nim-libp2p, a good score is not kept.  There
is one entry per connected peer, plus the worst ``MAX_RETAINED`` of those that left.

The router acts on scores.  The mesh and messages are handled there, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.core.ids import PubsubTopic
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.score_params import ScoreParams, TopicScoreParams
from engine.network_views import ScoreView

MAX_RETAINED = 1_000
MAX_DELIVERIES = 10_000


@dataclass(slots=True)
class _TopicStats:
    grafted_ms: int | None = None
    """When it joined the mesh; None if it is not in it."""
    mesh_ms: int = 0
    """Time in the mesh, as of the last refresh."""
    is_active: bool = False
    """Whether it has been in the mesh longer than P3's activation window."""
    first_message_deliveries: float = 0.0
    mesh_message_deliveries: float = 0.0
    mesh_failure_penalty: float = 0.0
    invalid_message_deliveries: float = 0.0


@dataclass(slots=True)
class _PeerStats:
    topics: dict[PubsubTopic, _TopicStats] = field(default_factory=dict)
    behaviour_penalty: float = 0.0
    address: str | None = None
    until_ms: int | None = None
    """The peer is gone and its score is kept until then; None if it is connected."""


class PeerScores:
    """Scores of all known peers.  ``address`` is the result of ``colocation_key``."""

    def __init__(
        self, params: ScoreParams, *, app_specific: Callable[[PeerId], float] = lambda _peer: 0.0
    ) -> None:
        self._params = params
        self._app_specific = app_specific
        self._peers: dict[PeerId, _PeerStats] = {}
        self._at_address: dict[str, set[PeerId]] = {}
        self._scores: dict[PeerId, float] = {}
        """Computed scores that are still valid."""
        self._deliveries: dict[bytes, tuple[int, set[PeerId]]] = {}
        """For P3: when each message first arrived, and which peers sent it.  Oldest first."""
        self._decayed_ms: int | None = None

    def __len__(self) -> int:
        return len(self._peers)

    @property
    def is_settled(self) -> bool:
        """Whether nothing decays, no time in a mesh counts, and no departed peer is remembered."""
        return all(
            stats.until_ms is None
            and not stats.behaviour_penalty
            and all(_is_settled(each, self._params.topic) for each in stats.topics.values())
            for stats in self._peers.values()
        )

    def score(self, peer_id: PeerId) -> float:
        """Return 0 for an unknown peer."""
        known = self._scores.get(peer_id)
        if known is None:
            stats = self._peers.get(peer_id)
            known = 0.0 if stats is None else self._compute(peer_id, stats)
            if stats is not None:
                self._scores[peer_id] = known
        return known

    def _compute(self, peer_id: PeerId, stats: _PeerStats) -> float:
        params, total = self._params, 0.0
        for topic_stats in stats.topics.values():
            total += params.topic.topic_weight * _topic_score(topic_stats, params.topic)
        if params.topic_score_cap > 0:
            total = min(total, params.topic_score_cap)
        if params.app_specific_weight:
            total += params.app_specific_weight * self._app_specific(peer_id)
        return total + self._same_address(stats) + self._broken_rules(stats)

    def _same_address(self, stats: _PeerStats) -> float:
        """P6."""
        if stats.address is None:
            return 0.0
        at_address = len(self._at_address[stats.address])
        surplus = max(0, at_address - self._params.ip_colocation_factor_threshold)
        return self._params.ip_colocation_factor_weight * surplus**2

    def _broken_rules(self, stats: _PeerStats) -> float:
        """P7."""
        excess = max(0.0, stats.behaviour_penalty - self._params.behaviour_penalty_threshold)
        return self._params.behaviour_penalty_weight * excess**2

    def parts(self, peer_id: PeerId) -> ScoreView:
        """What the score consists of; all zero for an unknown peer."""
        stats = self._peers.get(peer_id)
        if stats is None:
            return ScoreView()
        weight, topics = self._params.topic.topic_weight, stats.topics.values()
        of_topics = [_topic_parts(each, self._params.topic) for each in topics]
        sums = [weight * sum(part) for part in zip(*of_topics, strict=True)] or [0.0] * 5
        cap, total = self._params.topic_score_cap, sum(sums)
        return ScoreView(
            time_in_mesh=sums[0],
            first_deliveries=sums[1],
            missing_deliveries=sums[2],
            mesh_failures=sums[3],
            invalid_messages=sums[4],
            over_cap=min(0.0, cap - total) if cap > 0 else 0.0,
            application=self._params.app_specific_weight * self._app_specific(peer_id),
            same_address=self._same_address(stats),
            broken_rules=self._broken_rules(stats),
        )

    # --- peers come and go ----------------------------------------------------------------------

    def connected(self, peer_id: PeerId, *, address: str | None) -> None:
        """Add a connected peer, restoring a bad score.  May be repeated."""
        stats = self._peers.setdefault(peer_id, _PeerStats())
        stats.until_ms = None
        if stats.address != address:
            self._leave_address(peer_id, stats)
            stats.address = address
            if address is not None:
                self._at_address.setdefault(address, set()).add(peer_id)
                self._forget_scores_at(address)
        self._scores.pop(peer_id, None)

    def disconnected(self, peer_id: PeerId, *, now_ms: int) -> None:
        stats = self._peers.get(peer_id)
        if stats is None or stats.until_ms is not None:
            return
        for topic in stats.topics:
            self.pruned(peer_id, topic)
        if self.score(peer_id) >= 0:
            self._drop(peer_id)
            return
        for topic_stats in stats.topics.values():
            topic_stats.first_message_deliveries = 0.0
        stats.until_ms = now_ms + self._params.retain_score_ms
        self._scores.pop(peer_id, None)
        self._drop_least_of_retained()

    def _drop_least_of_retained(self) -> None:
        retained = [p for p, stats in self._peers.items() if stats.until_ms is not None]
        if len(retained) > MAX_RETAINED:
            self._drop(max(retained, key=self.score))

    def _drop(self, peer_id: PeerId) -> None:
        self._leave_address(peer_id, self._peers.pop(peer_id))
        self._scores.pop(peer_id, None)

    def _leave_address(self, peer_id: PeerId, stats: _PeerStats) -> None:
        if stats.address is None:
            return
        others = self._at_address[stats.address]
        others.discard(peer_id)
        if not others:
            del self._at_address[stats.address]
        self._forget_scores_at(stats.address)

    def _forget_scores_at(self, address: str) -> None:
        for peer_id in self._at_address.get(address, ()):
            self._scores.pop(peer_id, None)

    # --- what they do ---------------------------------------------------------------------------

    def grafted(self, peer_id: PeerId, topic: PubsubTopic, *, now_ms: int) -> None:
        stats = self._of(peer_id, topic)
        if stats is not None and stats.grafted_ms is None:
            stats.grafted_ms, stats.mesh_ms, stats.is_active = now_ms, 0, False
            self._scores.pop(peer_id, None)

    def pruned(self, peer_id: PeerId, topic: PubsubTopic) -> None:
        """The peer left the mesh, on either side's initiative.  Missing deliveries become P3b."""
        peer = self._peers.get(peer_id)
        stats = None if peer is None else peer.topics.get(topic)
        if stats is None or stats.grafted_ms is None:
            return
        stats.mesh_failure_penalty += _deficit(stats, self._params.topic) ** 2
        stats.grafted_ms, stats.mesh_ms, stats.is_active = None, 0, False
        self._scores.pop(peer_id, None)

    def delivered_first(
        self, peer_id: PeerId, topic: PubsubTopic, message_id: bytes, *, now_ms: int
    ) -> None:
        """The peer was the first to deliver a valid message."""
        stats, params = self._of(peer_id, topic), self._params.topic
        if stats is None:
            return
        if stats.first_message_deliveries < params.first_message_deliveries_cap:
            stats.first_message_deliveries = min(
                stats.first_message_deliveries + 1, params.first_message_deliveries_cap
            )
            self._scores.pop(peer_id, None)
        if params.expects_deliveries:
            self._deliveries[message_id] = (now_ms, {peer_id})
            if len(self._deliveries) > MAX_DELIVERIES:
                del self._deliveries[next(iter(self._deliveries))]
            self._count_delivery(peer_id, stats)

    def delivered_again(
        self, peer_id: PeerId, topic: PubsubTopic, message_id: bytes, *, now_ms: int
    ) -> None:
        """A further copy.  Within the window it counts for P3 like the first, once per peer."""
        if (first := self._deliveries.get(message_id)) is None:
            return
        came_ms, came_from = first
        stats = self._of(peer_id, topic)
        in_window = now_ms - came_ms <= self._params.topic.mesh_message_deliveries_window_ms
        if stats is not None and in_window and peer_id not in came_from:
            came_from.add(peer_id)
            self._count_delivery(peer_id, stats)

    def _count_delivery(self, peer_id: PeerId, stats: _TopicStats) -> None:
        if stats.grafted_ms is not None:
            stats.mesh_message_deliveries = min(
                stats.mesh_message_deliveries + 1, self._params.topic.mesh_message_deliveries_cap
            )
            self._scores.pop(peer_id, None)

    def delivered_invalid(self, peer_id: PeerId, topic: PubsubTopic) -> None:
        if (stats := self._of(peer_id, topic)) is not None:
            stats.invalid_message_deliveries += 1
            self._scores.pop(peer_id, None)

    def misbehaved(self, peer_id: PeerId, amount: float = 1.0) -> None:
        """Add to P7."""
        if (stats := self._peers.get(peer_id)) is not None:
            stats.behaviour_penalty += amount
            self._scores.pop(peer_id, None)

    def _of(self, peer_id: PeerId, topic: PubsubTopic) -> _TopicStats | None:
        """The entry of a known peer.  ``topic`` is one of ours, so entries are few."""
        peer = self._peers.get(peer_id)
        return None if peer is None else peer.topics.setdefault(topic, _TopicStats())

    # --- time -----------------------------------------------------------------------------------

    def refresh(self, *, now_ms: int) -> None:
        """Apply decay and elapsed time.  Cheap until a decay interval has passed."""
        if self._decayed_ms is None:
            self._decayed_ms = now_ms
        intervals = (now_ms - self._decayed_ms) // self._params.decay_interval_ms
        if intervals < 1:
            return
        self._decayed_ms += intervals * self._params.decay_interval_ms
        self._scores.clear()
        for peer_id, stats in list(self._peers.items()):
            if stats.until_ms is None:
                self._decay(stats, intervals, now_ms)
            elif stats.until_ms <= now_ms:
                self._drop(peer_id)
        window_ms = self._params.topic.mesh_message_deliveries_window_ms
        while self._deliveries:
            message_id = next(iter(self._deliveries))
            if self._deliveries[message_id][0] + window_ms >= now_ms:
                break
            del self._deliveries[message_id]

    def _decay(self, stats: _PeerStats, intervals: int, now_ms: int) -> None:
        params = self._params.topic

        def faded(value: float, decay: float) -> float:
            rest = value * decay**intervals
            return rest if rest >= self._params.decay_to_zero else 0.0

        for each in stats.topics.values():
            each.first_message_deliveries = faded(
                each.first_message_deliveries, params.first_message_deliveries_decay
            )
            each.mesh_message_deliveries = faded(
                each.mesh_message_deliveries, params.mesh_message_deliveries_decay
            )
            each.mesh_failure_penalty = faded(
                each.mesh_failure_penalty, params.mesh_failure_penalty_decay
            )
            each.invalid_message_deliveries = faded(
                each.invalid_message_deliveries, params.invalid_message_deliveries_decay
            )
            if each.grafted_ms is not None:
                each.mesh_ms = now_ms - each.grafted_ms
                each.is_active = each.mesh_ms > params.mesh_message_deliveries_activation_ms
        stats.behaviour_penalty = faded(
            stats.behaviour_penalty, self._params.behaviour_penalty_decay
        )


def _topic_score(stats: _TopicStats, params: TopicScoreParams) -> float:
    return sum(_topic_parts(stats, params))


def _topic_parts(
    stats: _TopicStats, params: TopicScoreParams
) -> tuple[float, float, float, float, float]:
    """P1, P2, P3, P3b and P4 of one topic, weighted."""
    p1 = min(stats.mesh_ms // params.time_in_mesh_quantum_ms, params.time_in_mesh_cap)
    return (
        params.time_in_mesh_weight * p1,
        params.first_message_deliveries_weight * stats.first_message_deliveries,
        params.mesh_message_deliveries_weight * _deficit(stats, params) ** 2,
        params.mesh_failure_penalty_weight * stats.mesh_failure_penalty,
        params.invalid_message_deliveries_weight * stats.invalid_message_deliveries**2,
    )


def _is_settled(stats: _TopicStats, params: TopicScoreParams) -> bool:
    grows = stats.grafted_ms is not None and (
        stats.mesh_ms < params.time_in_mesh_cap * params.time_in_mesh_quantum_ms
        or not stats.is_active
    )
    return not (
        grows
        or stats.first_message_deliveries
        or stats.mesh_message_deliveries
        or stats.mesh_failure_penalty
        or stats.invalid_message_deliveries
    )


def _deficit(stats: _TopicStats, params: TopicScoreParams) -> float:
    if not stats.is_active:
        return 0.0
    return max(0.0, params.mesh_message_deliveries_threshold - stats.mesh_message_deliveries)
