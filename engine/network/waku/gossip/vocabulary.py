"""The vocabulary of the gossipsub router: its settings, inputs and outputs.

Parameters have the names and defaults of the gossipsub 1.0 and 1.1 specifications, except where
Waku sets another default.  Nothing here acts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct, field

from engine.codec.gossipsub import Rpc
from engine.core.errors import ConfigError
from engine.core.ids import PubsubTopic
from engine.core.waku import WakuMessage
from engine.network.libp2p.ports import PeerId
from engine.network.waku.gossip.score_params import ScoreParams


class GossipsubSettings(Struct, frozen=True, kw_only=True):
    """``history_length`` and ``history_gossip`` count heartbeats.  Caches have two bounds."""

    d: int = 6
    d_low: int = 4
    d_high: int = 8
    d_lazy: int = 6
    d_score: int = 4
    """How many of the best peers stay when a mesh is cut; the others are random."""
    d_out: int = 3
    """How many mesh peers should be ones that we dialled, if there are enough.  An attacker that
    dials us in numbers then cannot fill the mesh."""
    d_keep: int = 6
    """The size to which a mesh above ``d_high`` is cut; D in the specification."""
    gossip_factor: float = 0.25
    heartbeat_interval_ms: int = 1_000
    flood_publish: bool = True
    fanout_ttl_ms: int = 60_000
    history_length: int = 5
    history_gossip: int = 3
    max_cached_bytes: int = 16 * 1024 * 1024
    seen_ttl_ms: int = 120_000
    max_seen: int = 100_000
    prune_backoff_ms: int = 60_000
    unsubscribe_backoff_ms: int = 10_000
    max_backoff_ms: int = 3_600_000
    max_ihave_length: int = 2_000
    """Message ids in one IHAVE of ours, and requested from one peer per heartbeat."""
    max_ihave_messages: int = 10
    """RPCs with IHAVE accepted from one peer per heartbeat."""
    max_iwant_served: int = 5_000
    """Message ids that one peer may request per heartbeat."""
    gossip_retransmission: int = 3
    """How often one peer may request the same message."""
    iwant_followup_ms: int = 3_000
    graft_flood_threshold_ms: int = 10_000
    """A GRAFT this soon after the PRUNE counts twice, as in go-libp2p."""
    opportunistic_graft_ticks: int = 60
    """Heartbeats between two checks of the median."""
    opportunistic_graft_peers: int = 2
    score: ScoreParams = field(default_factory=ScoreParams)

    def __post_init__(self) -> None:
        if not 0 < self.d_low <= self.d <= self.d_high:
            raise ConfigError("gossipsub: 0 < d_low <= d <= d_high must hold")
        if not 0 <= self.d_out < self.d_low or self.d_out > self.d // 2:
            raise ConfigError("gossipsub: d_out must be below d_low and at most d / 2")
        if not (self.d_score <= self.d_keep and self.d_low <= self.d_keep <= self.d_high):
            raise ConfigError("gossipsub: d_score, d_low <= d_keep <= d_high must hold")
        if not 0 < self.history_gossip <= self.history_length:
            raise ConfigError("gossipsub: 0 < history_gossip <= history_length must hold")


PEER = GossipsubSettings()
"""What the specifications recommend for one node among many."""

HUB = GossipsubSettings(d_high=128, d_keep=96, score=ScoreParams(ip_colocation_factor_threshold=64))
"""For a node that many leaves depend on: every peer that grafts it stays in its mesh.  A leaf
beyond d_high would get only gossip, which loses part of every burst.  Leaves may share one address,
as in a team."""


class Refused(Struct, frozen=True, kw_only=True):
    """A validator's refusal.  ``penalize``: an honest relay would not have forwarded this."""

    reason: str
    penalize: bool


Validator: TypeAlias = Callable[[PubsubTopic, bytes], WakuMessage | Refused]
"""Judges a message's data before it is delivered or forwarded.  Pure; never raises."""


# --- inputs -------------------------------------------------------------------------------------


class PeerReady(Struct, frozen=True, kw_only=True):
    """A stream to the peer is being opened, for the first time or after the last one broke."""

    peer_id: PeerId
    outbound: bool = False
    """Whether we dialled the peer."""
    host: str = ""
    """The peer's IP address; any other text counts as unknown."""


class PeerGone(Struct, frozen=True, kw_only=True):
    peer_id: PeerId


class RpcReceived(Struct, frozen=True, kw_only=True):
    """``refused`` are the reasons for the parts that the codec left out."""

    peer_id: PeerId
    rpc: Rpc
    refused: tuple[str, ...] = ()


class MalformedReceived(Struct, frozen=True, kw_only=True):
    """The peer sent bytes that are not an RPC."""

    peer_id: PeerId
    reason: str


class Join(Struct, frozen=True, kw_only=True):
    topic: PubsubTopic


class Leave(Struct, frozen=True, kw_only=True):
    topic: PubsubTopic


class Publish(Struct, frozen=True, kw_only=True):
    """A message of our own, already valid."""

    topic: PubsubTopic
    data: bytes


class DeadlineReached(Struct, frozen=True, kw_only=True):
    """The time returned by ``next_deadline`` has come."""


Input: TypeAlias = (
    PeerReady
    | PeerGone
    | RpcReceived
    | MalformedReceived
    | Join
    | Leave
    | Publish
    | DeadlineReached
)


# --- outputs ------------------------------------------------------------------------------------


class SendMessage(Struct, frozen=True, kw_only=True):
    """One message to many peers, encoded once."""

    peer_ids: tuple[PeerId, ...]
    topic: PubsubTopic
    data: bytes
    requested: bool = False
    """Whether it answers IWANT.  It is then only sent to a peer that reads what it requests."""


class SendControl(Struct, frozen=True, kw_only=True):
    """Subscriptions and control to one peer, sent ahead of all queued messages."""

    peer_id: PeerId
    rpc: Rpc


Send: TypeAlias = SendMessage | SendControl


class MessageDelivered(Struct, frozen=True, kw_only=True):
    """A valid message of a joined topic, seen for the first time; ``data`` is unchanged."""

    topic: PubsubTopic
    message: WakuMessage
    data: bytes
    received_from: PeerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    sends: tuple[Send, ...] = ()
    delivered: tuple[MessageDelivered, ...] = ()
    membership_changed: bool = False
    """Whether peers, their subscriptions or a mesh changed."""
