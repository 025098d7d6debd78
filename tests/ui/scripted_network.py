"""A network to look at: four peers, two Stores, two service nodes, and what happened to them."""

from engine.core.errors import TransportFault
from engine.core.history.queries import End
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.problems import (
    ConnectionReason,
    LinkEnded,
    LinkReason,
    MessagesOmitted,
    NodeFailed,
    NodeFault,
    OtherCluster,
    QueryFailed,
    Unreachable,
)
from engine.events import ConnectionLevel, ConnectionView
from engine.history_views import StoreHealth, StoreOrigin, StoreView
from engine.network_views import (
    LinkEvent,
    LinkEventKind,
    LinkProblem,
    NetworkFacts,
    NetworkView,
    PeerView,
    PersonHeard,
    RelayView,
    ScoreView,
    ServiceNodeView,
    ServiceResult,
    StorePast,
    StoreResult,
)
from tests.ui.scripted_engine import START_MS

PEERS = (
    "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
    "12D3KooWGRUVh5Z9Lm2hVnd8T4ovVNZ3fZpYbUXGqBYLYW5bRqAD",
    "12D3KooWRBhwfeP2Y4CDkFRBAZ1pmxUadH36TKuk3KtKm5XXP8mA",
)
RELAY = "/vac/waku/relay/2.0.0"
STORE = "/vac/waku/store-query/3.0.0"
QUAY = f"/dns4/quay.example/tcp/443/wss/p2p/{PEERS[0]}"
NOW_MS = START_MS + 120_000


def ago(ms: int) -> UnixMs:
    return UnixMs(NOW_MS - ms)


def peer(number: int = 0, **changes: object) -> PeerView:
    facts: dict[str, object] = {
        "peer_id": PEERS[number],
        "agent": "nwaku/v0.36.0",
        "protocols": (RELAY, STORE, "/ipfs/id/1.0.0"),
        "address": f"/ip4/192.0.2.{number + 7}/tcp/60000",
        "outbound": True,
        "is_kept": True,
        "since_ms": ago(3_600_000),
        "silent_ms": 2_000,
        "bytes_in": 812_000,
        "bytes_out": 94_000,
        "connections": 1,
        "round_trip_ms": 23.4,
        "measured_ago_ms": 4_000,
        "relay": RelayView(
            topics=1,
            meshed=1,
            of_topics=1,
            score=ScoreView(time_in_mesh=3.6, first_deliveries=8.0, same_address=-2.5),
            is_slow=False,
        ),
    }
    return PeerView(**(facts | changes))  # type: ignore[arg-type]


def happened(
    kind: LinkEventKind, before_ms: int, problem: LinkProblem | None = None, times: int = 1
) -> LinkEvent:
    return LinkEvent(
        kind=kind,
        at_ms=ago(before_ms),
        peer_id="" if kind is LinkEventKind.REFUSED else PEERS[1],
        address="/ip4/192.0.2.8/tcp/60000",
        outbound=kind is not LinkEventKind.REFUSED,
        problem=problem,
        times=times,
        first_ms=ago(before_ms + times * 1_000),
    )


def store_past(
    multiaddr: str, *results: StoreResult, is_listed: bool = True, **changes: object
) -> StorePast:
    facts: dict[str, object] = {
        "multiaddr": multiaddr,
        "origin": StoreOrigin.USER,
        "enabled": True,
        "health": StoreHealth.GOOD,
        "problem": None,
        "version": "3.0.0",
        "queries": len(results),
        "complete": len(results),
        "messages": 40,
        "new": 12,
        "omitted": 0,
        "asked_ms": ago(60_000),
        "round_trip_ms": 41,
        "test": None,
    }
    store = StoreView(**(facts | changes))  # type: ignore[arg-type]
    return StorePast(store=store, is_listed=is_listed, results=results)


def result(before_ms: int, **changes: object) -> StoreResult:
    facts: dict[str, object] = {
        "at_ms": ago(before_ms),
        "problem": None,
        "is_complete": True,
        "messages": 12,
        "round_trip_ms": 41,
    }
    return StoreResult(**(facts | changes))  # type: ignore[arg-type]


def a_network(*people: PersonHeard) -> NetworkView:
    """``people``: Maya and Luc if nobody is named."""
    light = peer(
        2, agent="js-waku", protocols=("/ipfs/id/1.0.0",), outbound=False, is_kept=False,
        round_trip_ms=None, measured_ago_ms=None, relay=None, bytes_in=2_000, bytes_out=3_000,
    )  # fmt: skip
    omits = result(200_000, problem=MessagesOmitted(3))
    fails = result(90_000, problem=QueryFailed(End.TIMEOUT), is_complete=False, round_trip_ms=None)
    fine = ServiceResult(at_ms=ago(9_000), service="lightpush", problem=None)
    silent = NodeFailed(NodeFault.SILENT, "filter")
    failed = ServiceResult(at_ms=ago(5_000), service="filter", problem=silent)
    refused = LinkEnded(LinkReason.TOO_MANY_AT_ADDRESS)
    return NetworkView(
        at_ms=UnixMs(NOW_MS),
        connection=ConnectionView(
            level=ConnectionLevel.GOOD,
            peers=2,
            reason=ConnectionReason.PEERS,
            bytes_in=1_600_000,
            bytes_out=190_000,
        ),
        facts=NetworkFacts(
            peers=(peer(0), peer(1, agent="causerie", round_trip_ms=0.8), light),
            service_nodes=(
                ServiceNodeView(
                    peer_id=PEERS[0],
                    name="quay.example:443",
                    is_connected=True,
                    holds_subscriptions=False,
                    problem=silent,
                    rests_ms=12_000,
                    results=(fine, fine, failed),
                ),
            ),
            events=(
                happened(LinkEventKind.CONNECTED, 30_000),
                happened(LinkEventKind.CLOSED, 45_000, LinkEnded(LinkReason.SILENT)),
                happened(LinkEventKind.REFUSED, 50_000, refused, times=4),
                happened(
                    LinkEventKind.NOT_REACHED, 60_000, Unreachable(TransportFault.NO_ANSWER), 12
                ),
                happened(LinkEventKind.CLOSED, 70_000, OtherCluster(1, 16)),
            ),
        ),
        addresses=(f"/ip4/192.0.2.60/tcp/41313/p2p/{PEERS[2]}",),
        stores=(
            store_past(QUAY, *[result(600_000 - n * 20_000) for n in range(20)], omits, fails),
            store_past(f"/ip4/192.0.2.7/tcp/60000/p2p/{PEERS[1]}", health=StoreHealth.UNKNOWN),
        ),
        people=people
        or (
            person("Luc", 4_000),
            person("Maya", 720_000),
            person("Ann", None),
        ),
    )


def person(name: str, heard_before_ms: int | None, *conversations: ConversationId) -> PersonHeard:
    return PersonHeard(
        participant_id=ParticipantId(name.casefold()),
        name=name,
        conversations=conversations,
        heard_ms=None if heard_before_ms is None else ago(heard_before_ms),
    )
