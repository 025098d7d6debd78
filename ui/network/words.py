"""Words of the network view: is it my network or theirs, and what is known of each peer.

Pure functions over ``engine.network_views``.  What peers say of themselves is cleaned here.  What
is not known is said to be unknown, and nothing is concluded but what follows from a measurement.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, assert_never

from engine.core.ids import ConversationId
from engine.core.problems import (
    AnswersWrongly,
    LinkEnded,
    LinkReason,
    OtherCluster,
    Unreachable,
)
from engine.events import ConnectionLevel
from engine.network_views import (
    LinkEvent,
    LinkEventKind,
    NetworkView,
    PeerView,
    PersonHeard,
    RelayView,
    ScoreView,
)
from ui.connection_words import connection_line, connection_reason, traffic
from ui.foreign_text import one_line, short_peer
from ui.history_words import short_address
from ui.problem_words import node_problem_words, sentence
from ui.regional import clock_with_seconds, decimal, grouped
from ui.times import moment, off_words, spoken_time
from ui.translate import tr
from ui.transport_words import transport_words

RECENT_MS: Final = 12_000
"""A peer is pinged after eight seconds of silence; one that is well has answered by then."""
_MOST_NAMED: Final = 3
_NAME: Final = 40
_AGENT: Final = 60
_PEER_ID: Final = 80
_PROTOCOL: Final = 60
_ADDRESS: Final = 200
_EXACT_BELOW_MS: Final = 10

_SERVICES: Final[Mapping[str, Callable[[], str]]] = {
    "/vac/waku/relay/": lambda: tr("relays"),
    "/vac/waku/store": lambda: tr("Store"),
    "/vac/waku/filter-subscribe/": lambda: tr("filter"),
    "/vac/waku/lightpush/": lambda: tr("lightpush"),
}
"""What a peer does for others, by how its protocols begin."""

_ENDED: Final[Mapping[LinkReason, Callable[[], str]]] = {
    LinkReason.PEER_CLOSED: lambda: tr("the other side closed the connection"),
    LinkReason.LOST: lambda: tr("the connection was lost"),
    LinkReason.SILENT: lambda: tr("it did not answer any more"),
    LinkReason.TAKES_NO_BYTES: lambda: tr("it took no more data"),
    LinkReason.TOO_MUCH_QUEUED: lambda: tr("too much waited to be sent to it"),
    LinkReason.BROKE_PROTOCOL: lambda: tr("it breaks the protocol ({detail})"),
    LinkReason.UNUSED: lambda: tr("nobody used the connection"),
    LinkReason.SURPLUS: lambda: tr("there were too many connections to it"),
    LinkReason.GAVE_WAY: lambda: tr("it gave way to another peer while this device was full"),
    LinkReason.WE_CLOSED: lambda: tr("this device closed it"),
    LinkReason.TOO_MANY_AT_ADDRESS: lambda: tr("too many connections from one address"),
    LinkReason.TOO_MANY_HANDSHAKES: lambda: tr("too many connections at once"),
    LinkReason.NO_ROOM: lambda: tr("this device has no room for more peers"),
    LinkReason.CUT_OFF: lambda: tr("it is cut off on purpose, by the fault bench"),
    LinkReason.HANDSHAKE_FAILED: lambda: tr("it went away before it said who it is"),
}


def not_measured() -> str:
    return tr("not measured yet")


# --- is it mine or theirs -----------------------------------------------------------------------


def verdict(view: NetworkView, here: ConversationId | None, *, faults: bool = False) -> list[str]:
    """Sentences, most important first.

    ``here``: the conversation that is open; ``faults``: the fault bench is on.
    """
    said = [_own_side(view)]
    if faults:
        purpose = tr(
            "Faults are made on purpose on this device:"
            " they spoil messages, not what is measured here."
        )
        said.insert(0, purpose)
    people = _asked_about(view.people, here)
    said.extend(_person_words(one, view.at_ms) for one in people[:_MOST_NAMED])
    return said


def _own_side(view: NetworkView) -> str:
    peers, connection = view.facts.peers, view.connection
    if connection.level is ConnectionLevel.OFFLINE or not peers:
        reason = connection_reason(connection)
        line = sentence(connection_line(connection))
        return f"{line} {reason} {_last_contact(view)}".replace("  ", " ").strip()
    heard = tr(
        "This device is connected to %n peers.", "This device is connected to %n peer.", len(peers)
    )
    silent_ms = min(peer.silent_ms for peer in peers)
    if silent_ms <= RECENT_MS:
        works = tr("The last sign of life came {time} ago, so your own connection works.")
    else:
        works = tr("Nothing came from any of them for {time}: your own connection may be broken.")
    reason = connection_reason(connection)
    return f"{heard} {works.format(time=off_words(silent_ms))} {reason}".strip()


def _last_contact(view: NetworkView) -> str:
    """Of an unconnected device: since when, and what the last dial said since."""
    said: list[str] = []
    dialled = False
    for event in view.facts.events:
        if event.kind is LinkEventKind.CLOSED:
            ago = off_words(view.at_ms - event.at_ms)
            words = tr("The last peer was lost {time} ago: {why}.")
            said.insert(0, words.format(time=ago, why=event_reason(event)))
            break
        if event.kind is LinkEventKind.NOT_REACHED and not dialled:
            dialled = True
            where, why = short_address(event.address), event_reason(event)
            words = tr("{address} could not be reached: {why}.")
            said.append(words.format(address=where, why=why))
    return " ".join(said) or tr("No peer was connected since the start.")


def _asked_about(people: Sequence[PersonHeard], here: ConversationId | None) -> list[PersonHeard]:
    """Those of the open conversation, or else of all, the longest silent first."""
    found = [one for one in people if here is None or here in one.conversations]
    return sorted(found or people, key=lambda one: one.heard_ms or 0)


def _person_words(one: PersonHeard, at_ms: int) -> str:
    name = one_line(one.name, _NAME) or tr("Somebody")
    if one.heard_ms is None:
        return tr("{name} was not heard since the start.").format(name=name)
    ago = off_words(max(0, at_ms - one.heard_ms))
    return tr("{name} was last heard {time} ago.").format(name=name, time=ago)


def heard_words(one: PersonHeard, at_ms: int) -> str:
    if one.heard_ms is None:
        return tr("not since the start")
    return tr("{time} ago").format(time=off_words(max(0, at_ms - one.heard_ms)))


# --- peers --------------------------------------------------------------------------------------


def services_words(peer: PeerView) -> str:
    """What it does for others, by the protocols that it says it speaks."""
    found = [
        words()
        for begins, words in _SERVICES.items()
        if any(protocol.startswith(begins) for protocol in peer.protocols)
    ]
    return ", ".join(found) if found else tr("only asks")


def mesh_words(relay: RelayView | None) -> str:
    if relay is None:
        return tr("no relay")
    if relay.meshed:
        return tr("in the mesh")
    return tr("beside the mesh") if relay.topics else tr("other topics")


def round_trip_words(peer: PeerView) -> str:
    if peer.round_trip_ms is None:
        return not_measured()
    exact = peer.round_trip_ms < _EXACT_BELOW_MS
    number = decimal(peer.round_trip_ms) if exact else grouped(round(peer.round_trip_ms))
    return tr("{number} ms").format(number=number)


def score_number(relay: RelayView | None) -> str:
    return "—" if relay is None else decimal(relay.score.total)


def score_parts(score: ScoreView) -> str:
    """Why the score is what it is: the parts that are not zero."""
    parts = (
        (score.time_in_mesh, tr("time in the mesh")),
        (score.first_deliveries, tr("messages that it brought first")),
        (score.missing_deliveries, tr("too few messages while in the mesh")),
        (score.mesh_failures, tr("too few messages when it left the mesh")),
        (score.invalid_messages, tr("invalid messages")),
        (score.over_cap, tr("more than counts")),
        (score.application, tr("application")),
        (score.same_address, tr("many peers at one address")),
        (score.broken_rules, tr("broken rules")),
    )
    said = [
        tr("{number} {why}").format(number=_signed(number), why=why)
        for number, why in parts
        if round(number, 1)
    ]
    return ", ".join(said) if said else tr("nothing counts for or against it")


def _signed(number: float) -> str:
    return f"+{decimal(number)}" if number > 0 else f"−{decimal(-number)}"  # noqa: RUF001 - a minus


def peer_details(peer: PeerView, now: datetime) -> list[tuple[str, str]]:
    """Everything that is known of one peer: names and values."""
    direction = tr("dialled by this device") if peer.outbound else tr("dialled by the peer")
    kept = tr("{way}; dialled again when it is lost").format(way=direction)
    rows = [
        (tr("Peer"), one_line(peer.peer_id, _PEER_ID)),
        (tr("Program"), one_line(peer.agent, _AGENT) or tr("it does not say")),
        (tr("Address"), one_line(peer.address, _ADDRESS)),
        (tr("Connected"), tr("since {time}").format(time=spoken_time(peer.since_ms, now))),
        (tr("Direction"), kept if peer.is_kept else direction),
        (tr("Last heard"), tr("{time} ago").format(time=off_words(peer.silent_ms))),
        (tr("Round trip"), _measured(peer)),
        (tr("Received, sent"), f"{traffic(peer.bytes_in)}, {traffic(peer.bytes_out)}"),
    ]
    if peer.relay is not None:
        relay = peer.relay
        topics = tr("{meshed} of {all} topics in the mesh, {shared} shared")
        rows += [
            (
                tr("Mesh"),
                topics.format(meshed=relay.meshed, all=relay.of_topics, shared=relay.topics),
            ),
            (tr("Score"), f"{score_number(relay)}: {score_parts(relay.score)}"),
        ]
        if relay.is_slow:
            rows.append((tr("Pace"), tr("it accepts messages too slowly")))
    protocols = [one_line(name, _PROTOCOL) for name in sorted(peer.protocols)]
    rows.append((tr("Protocols"), "\n".join(protocols) or tr("it does not say")))
    return rows


def _measured(peer: PeerView) -> str:
    if peer.round_trip_ms is None or peer.measured_ago_ms is None:
        return not_measured()
    words = tr("{trip}, measured {time} ago")
    return words.format(trip=round_trip_words(peer), time=off_words(peer.measured_ago_ms))


# --- what happened ------------------------------------------------------------------------------


def event_words(event: LinkEvent) -> str:
    match event.kind:
        case LinkEventKind.CONNECTED:
            words = tr("Connected, by this device") if event.outbound else tr("Connected, by it")
        case LinkEventKind.CLOSED:
            words = tr("Closed: {why}")
        case LinkEventKind.REFUSED:
            words = tr("Refused: {why}")
        case LinkEventKind.NOT_REACHED:
            words = tr("Not reached: {why}")
        case _:
            assert_never(event.kind)
    said = words.format(why=event_reason(event))
    if event.times > 1:
        return tr("{what} (%n times)", "{what} (%n time)", event.times).format(what=said)
    return said


def event_reason(event: LinkEvent) -> str:
    match event.problem:
        case None:
            return ""
        case LinkEnded(reason=reason, detail=detail):
            return _ENDED[reason]().format(detail=one_line(detail, _NAME))
        case Unreachable(fault=fault, detail=detail):
            return transport_words(fault, detail)
        case OtherCluster() | AnswersWrongly():
            return node_problem_words(event.problem)
        case _:
            assert_never(event.problem)


def event_who(event: LinkEvent) -> str:
    where = short_address(event.address)
    return f"{short_peer(event.peer_id)} {where}" if event.peer_id else where


def event_time(event: LinkEvent, now: datetime) -> str:
    """Of today to the second: several things happen within a minute."""
    at = moment(event.at_ms)
    return clock_with_seconds(at) if at.date() == now.date() else spoken_time(event.at_ms, now)
