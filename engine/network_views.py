"""What the network looks like from this device: peers, service nodes, Stores, what happened.

Read models of ``ChatEngine.network``, made when they are asked for.  Names, agents, protocols and
addresses are what others say of themselves: bounded where they came in, and to be cleaned before
they are shown.  None means that it is not known; nothing is made up.
"""

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.problems import LinkEnded, NodeProblem, PeerRefusal, StoreProblem, Unreachable
from engine.events import ConnectionView
from engine.history_views import StoreView

# --- peers --------------------------------------------------------------------------------------


class ScoreView(Struct, frozen=True, kw_only=True):
    """The parts of a peer's score in gossipsub 1.1, each with its weight; their sum is the score.

    Parts of topics are summed over the topics that we relay.
    """

    time_in_mesh: float = 0.0
    """P1."""
    first_deliveries: float = 0.0
    """P2: messages that this peer brought before anybody else."""
    missing_deliveries: float = 0.0
    """P3: it brings too few while it is in the mesh."""
    mesh_failures: float = 0.0
    """P3b: it brought too few when it left the mesh."""
    invalid_messages: float = 0.0
    """P4."""
    over_cap: float = 0.0
    """What the cap on the parts above takes away."""
    application: float = 0.0
    """P5."""
    same_address: float = 0.0
    """P6: too many peers at one address."""
    broken_rules: float = 0.0
    """P7."""

    @property
    def total(self) -> float:
        return float(sum(astuple(self)))


class RelayView(Struct, frozen=True, kw_only=True):
    """A peer as gossipsub sees it, over all topics that we relay."""

    topics: int
    """How many of them it subscribes to."""
    meshed: int
    """In how many of them it is in our mesh: it gets every message from us immediately."""
    of_topics: int
    score: ScoreView
    is_slow: bool
    """It accepted nothing for long, and has not caught up yet."""


class PeerView(Struct, frozen=True, kw_only=True):
    """A connected peer.  Everything but figures and times is what it says of itself."""

    peer_id: str
    agent: str
    protocols: tuple[str, ...]
    address: str
    """The multiaddr that the connection leads to."""
    outbound: bool
    """We dialled it."""
    is_kept: bool
    """It is dialled again when it is lost."""
    since_ms: UnixMs
    silent_ms: int
    """How long nothing has come from it."""
    bytes_in: int
    """Since ``since_ms``, inside the encryption."""
    bytes_out: int
    connections: int
    round_trip_ms: float | None
    """Of the last ping that it answered; None: none was measured yet."""
    measured_ago_ms: int | None
    relay: RelayView | None = None
    """None: gossipsub does not know it."""


# --- what happened ------------------------------------------------------------------------------


class LinkEventKind(StrEnum):
    CONNECTED = "connected"
    CLOSED = "closed"
    REFUSED = "refused"
    """We let an incoming connection not in, or it failed before we knew who it was."""
    NOT_REACHED = "not_reached"
    """We dialled in vain."""


LinkProblem: TypeAlias = LinkEnded | PeerRefusal | Unreachable


class LinkEvent(Struct, frozen=True, kw_only=True):
    """Refusals and vain dials of the same address for the same reason are one event."""

    kind: LinkEventKind
    at_ms: UnixMs
    """The last time, if it happened ``times`` times."""
    peer_id: str
    """Empty if it is not known."""
    address: str
    outbound: bool
    problem: LinkProblem | None = None
    times: int = 1
    first_ms: UnixMs


# --- services -----------------------------------------------------------------------------------


class ServiceResult(Struct, frozen=True, kw_only=True):
    """What became of one request to a service node."""

    at_ms: UnixMs
    service: str
    """"filter" or "lightpush"."""
    problem: NodeProblem | None


class ServiceNodeView(Struct, frozen=True, kw_only=True):
    """One of the nodes that relay for us, in the user's order."""

    peer_id: str
    name: str
    """Its host and port."""
    is_connected: bool
    holds_subscriptions: bool
    """It pushes all messages of our topics to us."""
    problem: NodeProblem | None
    rests_ms: int
    """How long it is not asked because it failed; 0 if it is."""
    results: tuple[ServiceResult, ...]
    """The last ones, oldest first."""


class StoreResult(Struct, frozen=True, kw_only=True):
    """One query, or one test, since the program started."""

    at_ms: UnixMs
    problem: StoreProblem | None
    """None: complete, and nothing is known to be left out."""
    is_complete: bool
    is_test: bool = False
    messages: int = 0
    round_trip_ms: int | None = None
    """The mean of its pages; None: no page came."""


class StorePast(Struct, frozen=True, kw_only=True):
    store: StoreView
    is_listed: bool = True
    """Whether it is asked, or switched off by the user.  Not so if it was found among peers and is
    not connected any more, or if the user's own Stores are asked instead."""
    results: tuple[StoreResult, ...]
    """The last ones, oldest first."""


# --- people -------------------------------------------------------------------------------------


class PersonHeard(Struct, frozen=True, kw_only=True):
    """When something live came from a person: a message or a sign of life, not from a Store."""

    participant_id: ParticipantId
    name: str
    conversations: tuple[ConversationId, ...]
    heard_ms: UnixMs | None
    """None: not since the program started; of a contact, never."""


class NetworkFacts(Struct, frozen=True, kw_only=True):
    """What a transport knows."""

    peers: tuple[PeerView, ...] = ()
    service_nodes: tuple[ServiceNodeView, ...] = ()
    events: tuple[LinkEvent, ...] = ()
    """Of the last connections and refusals, newest first."""


class NetworkView(Struct, frozen=True, kw_only=True):
    at_ms: UnixMs
    """By the system's time, as everything here: also while the user says that it is wrong."""
    connection: ConnectionView
    facts: NetworkFacts
    addresses: tuple[str, ...]
    """Where others can reach this device."""
    stores: tuple[StorePast, ...]
    people: tuple[PersonHeard, ...]
    """Who was heard last comes first."""
