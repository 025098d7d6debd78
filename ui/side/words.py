"""What the side panels say of people: whether they are there, and what they hold of ours.

Pure functions over read models.  What a member holds is known from the newest messages alone, of
which the window reads a bounded number.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from engine.core.contacts import ContactState
from engine.core.ids import ParticipantId, UnixMs
from engine.events import ContactView, ConversationView, MemberView, MessageKind, MessageView
from engine.governance_views import DeedKind
from ui.people import seen_words
from ui.times import date_words, moment, moment_words, spoken_time
from ui.translate import tr

_SAID = {MessageKind.TEXT, MessageKind.FILE}


class Activity(Struct, frozen=True):
    """What the newest messages of a conversation tell of one member."""

    said_ms: UnixMs | None = None
    held_ms: UnixMs | None = None
    """When the newest of our messages was sent that they certainly hold."""
    holds_newest: bool = False
    joined_ms: UnixMs | None = None


def activities(newest: Sequence[MessageView]) -> dict[ParticipantId, Activity]:
    """``newest``: the end of the timeline, oldest first."""
    said: dict[ParticipantId, UnixMs] = {}
    held: dict[ParticipantId, UnixMs] = {}
    joined: dict[ParticipantId, UnixMs] = {}
    ours = [m for m in newest if m.is_own and m.kind in _SAID and m.delivery is not None]
    for message in newest:
        if message.kind in _SAID:
            said[message.sender_id] = max(message.sent_ms, said.get(message.sender_id, UnixMs(0)))
        if (who := _who_joined(message)) is not None:
            joined[who] = message.sent_ms
    for message in ours:
        holders = message.delivery.held_by if message.delivery is not None else ()
        held.update(dict.fromkeys(holders, message.sent_ms))
    last = ours[-1].delivery.held_by if ours and ours[-1].delivery is not None else ()
    return {
        who: Activity(said.get(who), held.get(who), who in last, joined.get(who))
        for who in said.keys() | held.keys() | joined.keys()
    }


def _who_joined(message: MessageView) -> ParticipantId | None:
    if message.kind is MessageKind.JOINED:
        return message.sender_id
    deed = message.deed
    return deed.about if deed is not None and deed.kind is DeedKind.ADDED else None


def member_words(
    member: MemberView, contact: ContactView | None, activity: Activity, now: datetime
) -> str:
    """Whether they are there, and what they hold; of ourselves nothing."""
    if member.is_self:
        return ""
    parts = []
    if contact is not None and contact.state is ContactState.ACCEPTED and contact.last_seen_ms:
        parts.append(seen_words(contact, now))
    elif contact is not None and contact.state is ContactState.ACCEPTED and contact.is_online:
        parts.append(tr("Online"))
    elif activity.said_ms is not None:
        parts.append(tr("Wrote {time}").format(time=spoken_time(activity.said_ms, now)))
    if activity.holds_newest:
        parts.append(tr("has your newest message"))
    elif activity.held_ms is not None:
        when = spoken_time(activity.held_ms, now)
        parts.append(tr("has your message of {time}").format(time=when))
    if not parts and activity.joined_ms is not None:
        parts.append(tr("Joined {time}").format(time=spoken_time(activity.joined_ms, now)))
    words = " · ".join(parts) or tr("No sign of them so far")
    return f"{words[:1].upper()}{words[1:]}"


def contacts_by_id(
    conversations: Iterable[ConversationView],
) -> Mapping[ParticipantId, ConversationView]:
    return {view.contact.participant_id: view for view in conversations if view.contact is not None}


def seal_words(contact: ContactView) -> str:
    """How far what the two write is protected from who gets hold of a device later."""
    since_ms = contact.forward_secret_ms
    if contact.state is not ContactState.ACCEPTED or since_ms is None:
        return ""
    if contact.below_olm_ms is not None:
        return tr(
            "Since {time} what comes in their name is sealed the old way, as by a version of "
            "Causerie without Olm. It is not read: a thief of their keys could write like that. "
            "Ask them by another way whether it is them, and to install the present version."
        ).format(time=moment_words(moment(contact.below_olm_ms)))
    if not since_ms:
        return tr(
            "Sealed for the two of you, but not forward secret yet: they have an earlier version "
            "of Causerie, or were not heard since both of you have this one."
        )
    return tr(
        "Forward secret since {date}: each message has a key of its own, which is forgotten. Who "
        "gets hold of a device later cannot open what was recorded on the way."
    ).format(date=date_words(moment(since_ms).date()))
