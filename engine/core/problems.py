"""What is wrong with a Store, a service node or the connection, and why a message was given up.

Codes with parameters, never sentences: ``ui/problem_words.py`` has the words, because they are
translated.  A ``detail`` is technical text of the system or a library, which is shown as it is.
"""

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from engine.core.errors import (
    AddressError,
    ChatError,
    RemoteProtocolError,
    StorageFault,
    TransportError,
    TransportFault,
)
from engine.core.history.queries import End

# --- Stores ---------------------------------------------------------------------------------------


class QueryFailed(Struct, frozen=True):
    """A query gave up on a Store.  ``reason``: that of ``End.FAULTED``, else empty."""

    end: End
    reason: str = ""


class MessagesOmitted(Struct, frozen=True):
    """It answered completely, but left out messages that others had."""

    number: int


class EntriesRefused(Struct, frozen=True):
    """It answered completely, but some entries could not be used."""

    number: int


class NoAnswer(Struct, frozen=True):
    timeout_s: float


class Unreachable(Struct, frozen=True):
    """A dial or a request failed; ``detail`` as that of a ``TransportError``."""

    fault: TransportFault
    detail: str = ""


def unreachable(error: ChatError) -> Unreachable:
    match error:
        case TransportError(fault=fault, detail=detail):
            return Unreachable(fault, detail)
        case RemoteProtocolError(reason=reason):
            return Unreachable(TransportFault.BROKEN_PROTOCOL, reason)
        case AddressError(flaw=flaw):
            return Unreachable(TransportFault.BAD_ADDRESS, flaw)
        case _:
            return Unreachable(TransportFault.FAILED)


class OtherCluster(Struct, frozen=True):
    theirs: int
    ours: int


class AnswersWrongly(Struct, frozen=True):
    detail: str


class Refuses(Struct, frozen=True):
    """The Store's own status code and words."""

    detail: str


StoreProblem: TypeAlias = (
    QueryFailed
    | MessagesOmitted
    | EntriesRefused
    | NoAnswer
    | Unreachable
    | OtherCluster
    | AnswersWrongly
    | Refuses
)
KEEPS_NO_MESSAGES = QueryFailed(End.FAULTED, "protocol_unsupported")


class NoStoreToAsk(Struct, frozen=True):
    """A fetch waits until there is a Store."""


HistoryProblem: TypeAlias = NoStoreToAsk | QueryFailed
"""Why a fetch waits or failed; ``QueryFailed`` is that of the Store that came furthest."""


# --- the connection -------------------------------------------------------------------------------


class NodeFault(StrEnum):
    """What a service node did."""

    CLOSED = "closed"
    SILENT = "silent"
    WRONG_ANSWER = "wrong_answer"
    SLOW = "slow"
    MESSAGE_REFUSED = "message_refused"
    BUSY = "busy"
    SUBSCRIPTIONS_REFUSED = "subscriptions_refused"


class NodeFailed(Struct, frozen=True):
    """``service``: filter or lightpush, if it is about one."""

    fault: NodeFault
    service: str = ""
    cause: str = ""
    """A status code or a reason of ours."""
    said: str = ""
    """The node's own words, which are never logged."""


class OffersNo(Struct, frozen=True):
    """The services that it does not have; at least one."""

    services: tuple[str, ...]


PeerRefusal: TypeAlias = OtherCluster | AnswersWrongly
"""Why we part from a peer that told its metadata."""
NodeProblem: TypeAlias = NodeFailed | OffersNo | Unreachable | PeerRefusal
CheckedProblem: TypeAlias = OffersNo | OtherCluster | NoAnswer | Unreachable
"""What one test of a service node found."""


class NodeTrouble(Struct, frozen=True):
    """``node``: its host and port."""

    node: str
    problem: NodeProblem


class ConnectionReason(StrEnum):
    """Why the connection is as good as it is."""

    NOT_STARTED = "not_started"
    NOBODY_CONNECTED = "nobody_connected"
    ONE_PEER = "one_peer"
    NO_MESH = "no_mesh"
    """Peers are connected, and none passes messages on yet."""
    PEERS = "peers"
    NO_SERVICE_NODE = "no_service_node"
    """None is set, and without relaying one is needed."""
    NO_NODE_ANSWERS = "no_node_answers"
    NO_NODE_SERVES = "no_node_serves"
    ONLY_SENDING = "only_sending"
    ONLY_RECEIVING = "only_receiving"
    ONE_SERVICE_NODE = "one_service_node"
    SERVICE_NODES = "service_nodes"


class LinkReason(StrEnum):
    """Why a connection ended, or why an incoming one was not let in."""

    PEER_CLOSED = "peer_closed"
    LOST = "lost"
    SILENT = "silent"
    """It answered no ping."""
    TAKES_NO_BYTES = "takes_no_bytes"
    TOO_MUCH_QUEUED = "too_much_queued"
    BROKE_PROTOCOL = "broke_protocol"
    UNUSED = "unused"
    SURPLUS = "surplus"
    """The peer has too many connections."""
    GAVE_WAY = "gave_way"
    """To another peer, while this device was full."""
    WE_CLOSED = "we_closed"
    TOO_MANY_AT_ADDRESS = "too_many_at_address"
    TOO_MANY_HANDSHAKES = "too_many_handshakes"
    NO_ROOM = "no_room"
    HANDSHAKE_FAILED = "handshake_failed"
    CUT_OFF = "cut_off"
    """On purpose, by the fault bench."""


class LinkEnded(Struct, frozen=True):
    """``detail``: of BROKE_PROTOCOL, a code of ours."""

    reason: LinkReason
    detail: str = ""


# --- delivery -------------------------------------------------------------------------------------


class FailureReason(StrEnum):
    """Why one of our messages was given up; stored with it."""

    NOBODY_TOOK_IT = "nobody_took_it"
    NOT_REACHED = "not_reached"
    """The other of two could not be reached for 30 days."""


# --- files ----------------------------------------------------------------------------------------


class FileFault(StrEnum):
    """Why a file is not here yet, or not with others."""

    NOBODY_CONNECTED = "nobody_connected"
    """We are offline."""
    NEEDS_SERVICE_NODE = "needs_service_node"
    """Nobody who could be asked is connected, and no node that keeps files for others."""
    NOBODY_HAS_IT = "nobody_has_it"
    """All that are connected were asked."""
    NOBODY_KEEPS_IT = "nobody_keeps_it"
    """Of ours: no connected node keeps it, so others get it only while we are connected."""
    NOT_AS_SAID = "not_as_said"
    """Its parts contradict what the message says about it; only its sender can be to blame."""
    NOT_HERE = "not_here"
    """Of ours or complete: a part of it cannot be read any more on this device."""
    STORAGE = "storage"
    """``FileProblem.storage`` says why the disk refused."""


class FileProblem(Struct, frozen=True, kw_only=True):
    """``peers`` and ``nodes`` are how many were asked; a node keeps files for others."""

    fault: FileFault
    peers: int = 0
    nodes: int = 0
    storage: StorageFault | None = None
