"""The parameters of gossipsub 1.1's peer score, under the specification's names.

The values are Waku's, the same in nwaku (``waku_relay/protocol.nim``) and go-waku
(``protocol/relay/config.go``), so that different implementations judge a third node alike.  The
mesh's values are in 29/WAKU2-CONFIG.  Three differ, because Causerie's networks are small:

- ``behaviour_penalty_threshold`` is 6, as in go-libp2p and Ethereum.  Waku's is 0: a single early
  GRAFT (after a lost PRUNE or a restart) then keeps an idle peer out of the mesh for half an hour.
  In a network of three that is a third of the network.
- ``ip_colocation_factor_threshold`` is higher on a hub, because a team sits behind one address.
- ``colocation_key`` exempts addresses that are not global from P6.  On a LAN, or behind a proxy on
  this machine, an address says nothing.

``scoring`` applies these values to peers.
"""

import ipaddress
from dataclasses import dataclass, field, fields

from engine.core.errors import ConfigError

_IPV6_HOST_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicScoreParams:
    """Parameters of every joined topic.  Weight 0 switches a part off."""

    topic_weight: float = 1.0
    # P1
    time_in_mesh_weight: float = 0.01
    time_in_mesh_quantum_ms: int = 1_000
    time_in_mesh_cap: float = 10.0
    # P2
    first_message_deliveries_weight: float = 1.0
    first_message_deliveries_decay: float = 0.5
    first_message_deliveries_cap: float = 10.0
    # P3: off, because Waku's messages have no expected rate.
    mesh_message_deliveries_weight: float = 0.0
    mesh_message_deliveries_decay: float = 0.5
    mesh_message_deliveries_cap: float = 0.0
    mesh_message_deliveries_threshold: float = 0.0
    mesh_message_deliveries_window_ms: int = 5
    mesh_message_deliveries_activation_ms: int = 0
    # P3b
    mesh_failure_penalty_weight: float = 0.0
    mesh_failure_penalty_decay: float = 0.5
    # P4
    invalid_message_deliveries_weight: float = -100.0
    invalid_message_deliveries_decay: float = 0.5

    def __post_init__(self) -> None:
        _check_signs(
            self,
            positive=("time_in_mesh_weight", "first_message_deliveries_weight", "topic_weight"),
            negative=(
                "mesh_message_deliveries_weight",
                "mesh_failure_penalty_weight",
                "invalid_message_deliveries_weight",
            ),
        )
        if self.time_in_mesh_quantum_ms <= 0:
            raise ConfigError("gossipsub: time_in_mesh_quantum_ms must be above 0")
        if self.mesh_message_deliveries_cap < self.mesh_message_deliveries_threshold:
            raise ConfigError(
                "gossipsub: mesh_message_deliveries_threshold must not be above its cap"
            )

    @property
    def expects_deliveries(self) -> bool:
        """Whether P3 or P3b is in use.  Only then are deliveries remembered."""
        return bool(self.mesh_message_deliveries_weight or self.mesh_failure_penalty_weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreParams:
    gossip_threshold: float = -100.0
    """No gossip is exchanged with a peer below this."""
    publish_threshold: float = -1_000.0
    """Own messages are not sent to a peer below this."""
    graylist_threshold: float = -10_000.0
    """All input from a peer below this is ignored."""
    opportunistic_graft_threshold: float = 0.0
    """Compared with a mesh's median.  0 as in Waku, so never: no mesh peer is below 0."""
    decay_interval_ms: int = 12_000
    decay_to_zero: float = 0.01
    retain_score_ms: int = 600_000
    topic_score_cap: float = 0.0
    """0: no cap."""
    app_specific_weight: float = 0.0
    ip_colocation_factor_weight: float = -50.0
    ip_colocation_factor_threshold: int = 5
    behaviour_penalty_weight: float = -10.0
    behaviour_penalty_decay: float = 0.986
    behaviour_penalty_threshold: float = 6.0
    """Only the part above this counts."""
    topic: TopicScoreParams = field(default_factory=TopicScoreParams)

    def __post_init__(self) -> None:
        _check_signs(
            self,
            positive=("app_specific_weight", "opportunistic_graft_threshold", "topic_score_cap"),
            negative=("ip_colocation_factor_weight", "behaviour_penalty_weight"),
        )
        if not self.graylist_threshold < self.publish_threshold < self.gossip_threshold < 0:
            raise ConfigError(
                "gossipsub: graylist_threshold < publish_threshold < gossip_threshold < 0 must hold"
            )
        if not 0 < self.decay_to_zero < 1:
            raise ConfigError("gossipsub: decay_to_zero must lie between 0 and 1")
        if self.decay_interval_ms <= 0 or self.ip_colocation_factor_threshold < 1:
            raise ConfigError(
                "gossipsub: decay_interval_ms and ip_colocation_factor_threshold must be above 0"
            )


def _check_signs(
    params: TopicScoreParams | ScoreParams, *, positive: tuple[str, ...], negative: tuple[str, ...]
) -> None:
    values: dict[str, float] = {each.name: getattr(params, each.name) for each in fields(params)}
    for name in positive:
        if values[name] < 0:
            raise ConfigError(f"gossipsub: {name} must not be below 0")
    for name in negative:
        if values[name] > 0:
            raise ConfigError(f"gossipsub: {name} must not be above 0")
    for name, value in values.items():
        if name.endswith("_decay") and not 0 < value < 1:
            raise ConfigError(f"gossipsub: {name} must lie between 0 and 1")


def colocation_key(host: str) -> str | None:
    """The address to count peers by for P6, or None if it is exempt or not an address.

    An IPv6 host has a whole /64.
    """
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return None  # a name, or an address rewritten by a proxy
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    if not ip.is_global:
        return None
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ipaddress.ip_network((ip, _IPV6_HOST_BITS), strict=False))
