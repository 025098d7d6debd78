"""Makes the read model of the network: what the transport, the Stores and conversations know.

Nothing is kept for it here.  A look costs a walk over the connected peers and the members of
conversations, both bounded; while nobody looks, nothing is done.
"""

from collections.abc import Iterator
from heapq import nlargest
from typing import Final

from engine.core.contacts import ContactState
from engine.core.ids import ParticipantId, UnixMs
from engine.core.records import ContactRecord
from engine.events import ConnectionView
from engine.network.transport import Transport
from engine.network_views import NetworkFacts, NetworkView, PersonHeard
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.history.service import HistoryService
from engine.runtime.own_clock import OwnClock

MOST_PEOPLE: Final = 256
"""Those who were heard last."""


def network_view(  # noqa: PLR0913 - what knows a part of it
    transport: Transport | None,
    history: HistoryService | None,
    conversations: Conversations,
    *,
    connection: ConnectionView,
    clock: OwnClock,
    own_id: ParticipantId,
) -> NetworkView:
    """``transport`` and ``history`` are None before there is an identity."""
    at_ms = clock.system_ms()
    return NetworkView(
        at_ms=at_ms,
        connection=connection,
        facts=NetworkFacts() if transport is None else transport.facts(),
        addresses=() if transport is None else tuple(transport.addresses()),
        stores=() if history is None else tuple(history.stores_past()),
        people=people_heard(conversations, own_id, ahead_ms=at_ms - clock.steady_ms()),
    )


def people_heard(
    conversations: Conversations, own_id: ParticipantId, *, ahead_ms: int
) -> tuple[PersonHeard, ...]:
    """``ahead_ms``: how far the system's time is ahead of the sessions'."""
    found: dict[ParticipantId, PersonHeard] = {}
    for runner in conversations.runners():
        for one in _heard(runner):
            if one.participant_id != own_id:
                known = found.get(one.participant_id)
                found[one.participant_id] = one if known is None else _both(known, one)
    newest = nlargest(MOST_PEOPLE, found.values(), key=lambda one: one.heard_ms or 0)
    return tuple(_by_clock(one, ahead_ms) for one in newest)


def _heard(runner: ConversationRunner) -> Iterator[PersonHeard]:
    """The people of one conversation; of those who only asked to talk, nothing is known."""
    heard, record, here = runner.heard(), runner.record, (runner.conversation_id,)
    if not isinstance(record, ContactRecord):
        for who, member in runner.members.items():
            if member.left_ms is None:
                yield PersonHeard(
                    participant_id=who,
                    name=member.name,
                    conversations=here,
                    heard_ms=heard.get(who),
                )
    elif record.state is ContactState.ACCEPTED:
        who = record.participant_id
        yield PersonHeard(
            participant_id=who,
            name=record.local_name or record.name,
            conversations=here,
            heard_ms=heard.get(who, record.last_seen_ms),
        )


def _both(known: PersonHeard, again: PersonHeard) -> PersonHeard:
    """Pairs come last, and have the name that the user gave."""
    times = [one.heard_ms for one in (known, again) if one.heard_ms is not None]
    return PersonHeard(
        participant_id=known.participant_id,
        name=again.name,
        conversations=(*known.conversations, *again.conversations),
        heard_ms=max(times, default=None),
    )


def _by_clock(one: PersonHeard, ahead_ms: int) -> PersonHeard:
    if one.heard_ms is None or not ahead_ms:
        return one
    return PersonHeard(
        participant_id=one.participant_id,
        name=one.name,
        conversations=one.conversations,
        heard_ms=UnixMs(one.heard_ms + ahead_ms),
    )
