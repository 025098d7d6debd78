"""The words about people: how far two have come, when somebody was last there, what can be done.

Pure functions over read models.  Names are strangers' text: they are on one line and bounded here,
and whoever asks to talk is shown with the name *they gave*, beside the fingerprint that is theirs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import assert_never

from engine.answers import ContactPreview
from engine.core.contacts import CONTACT_PREFIX, ContactState
from engine.core.ids import DeliveryState, MessageId, ParticipantId, UnixMs
from engine.events import ContactView, ConversationView, MessageKind
from ui.words import moment, one_line, spoken_time

_NAME = 40
_GROUP_DIGITS = 5
_SAFETY_DIGITS = 60
JOIN_PREFIX = "causerie:join/"


def short_name(conversation: ConversationView) -> str:
    return one_line(conversation.name, _NAME) or "?"


def avatar_id(conversation: ConversationView) -> str:
    """A person has the colour here that they have in every group."""
    contact = conversation.contact
    return conversation.conversation_id if contact is None else contact.participant_id


def picture_of(conversation: ConversationView) -> bytes:
    """Of somebody both of whom want to talk: a stranger's is neither shown nor decoded."""
    return b"" if conversation.contact is None else face_of(conversation.contact)


def face_of(contact: ContactView) -> bytes:
    return contact.picture if contact.state is ContactState.ACCEPTED else b""


def faces_of(
    group: ConversationView, conversations: Iterable[ConversationView]
) -> dict[ParticipantId, bytes]:
    """Of those members whom the user talks to one to one; nobody else's is known."""
    members = {member.participant_id for member in group.members}
    contacts = (one.contact for one in conversations if one.contact is not None)
    faces = {c.participant_id: face_of(c) for c in contacts if c.participant_id in members}
    return {who: face for who, face in faces.items() if face}


def is_online(conversation: ConversationView) -> bool:
    contact = conversation.contact
    return contact is not None and contact.state is ContactState.ACCEPTED and contact.is_online


def is_request(conversation: ConversationView) -> bool:
    """Somebody waits for our answer."""
    contact = conversation.contact
    return contact is not None and contact.state is ContactState.ASKING


def is_blocked(conversation: ConversationView) -> bool:
    contact = conversation.contact
    return contact is not None and contact.state is ContactState.BLOCKED


def we_declined(conversation: ConversationView) -> bool:
    last = conversation.last_message
    return last is not None and last.kind is MessageKind.DECLINED and last.is_own


def withdrawn_by_us(conversation: ConversationView) -> bool | None:
    """Whether it was our request that was withdrawn, or theirs; None if none was."""
    last = conversation.last_message
    if last is None or last.kind is not MessageKind.WITHDRAWN:
        return None
    return last.is_own


def lost_request(conversation: ConversationView) -> MessageId | None:
    """Our request, if it was given up before it reached anybody."""
    last = conversation.last_message
    if last is None or last.kind is not MessageKind.ASKED or last.delivery is None:
        return None
    return last.message_id if last.delivery.state is DeliveryState.FAILED else None


def seen_words(contact: ContactView, now: datetime) -> str:
    if contact.is_online:
        return "Online"
    if contact.last_seen_ms is None:
        return "Not seen yet"
    return f"Last seen {spoken_time(contact.last_seen_ms, now)}"


def state_words(conversation: ConversationView) -> str:
    """The second line of a row while two do not talk (yet); "" once they do."""
    contact = conversation.contact
    if contact is None:
        return ""
    match contact.state:
        case ContactState.ACCEPTED:
            return ""
        case ContactState.ASKING:
            return "Wants to talk to you"
        case ContactState.ASKED:
            return "Waiting for an answer"
        case ContactState.DECLINED:
            return _ended_words(conversation)
        case ContactState.BLOCKED:
            return "Blocked"
        case _:
            assert_never(contact.state)


def _ended_words(conversation: ConversationView) -> str:
    if withdrawn_by_us(conversation) is not None:
        return "Request withdrawn"
    return "You declined" if we_declined(conversation) else "Declined"


def person_line(conversation: ConversationView, contact: ContactView, now: datetime) -> str:
    """Under the name in the header."""
    words = state_words(conversation) or seen_words(contact, now)
    own_name = one_line(contact.name, _NAME)
    if contact.local_name and own_name and own_name != short_name(conversation):
        return f"{words} · calls themselves {own_name}"
    return words


def cannot_write_words(conversation: ConversationView) -> str:
    """Why nothing can be written now; "" if it can."""
    contact, name = conversation.contact, short_name(conversation)
    if contact is None:
        return ""
    match contact.state:
        case ContactState.ACCEPTED:
            return ""
        case ContactState.ASKING:
            return f"Accept {name} to write to them"
        case ContactState.ASKED:
            return f"You can write once {name} accepts"
        case ContactState.DECLINED:
            return f"You and {name} do not talk"
        case ContactState.BLOCKED:
            return f"You blocked {name}"
        case _:
            assert_never(contact.state)


class Answer(Enum):
    """What can be done about somebody with whom one does not talk."""

    ACCEPT = auto()
    DECLINE = auto()
    BLOCK = auto()
    UNBLOCK = auto()
    ASK_AGAIN = auto()
    WITHDRAW = auto()
    SEND_AGAIN = auto()


ANSWER_WORDS = {
    Answer.ACCEPT: "Accept",
    Answer.DECLINE: "Decline",
    Answer.BLOCK: "Block",
    Answer.UNBLOCK: "Unblock",
    Answer.ASK_AGAIN: "Ask again",
    Answer.WITHDRAW: "Withdraw request",
    Answer.SEND_AGAIN: "Resend",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the bar in a conversation says while two do not talk."""

    title: str
    words: str
    fingerprint: str
    answers: tuple[Answer, ...]
    """The most wanted one last."""


def standing_of(conversation: ConversationView) -> Standing | None:
    """None if the two talk, or if it is a group."""
    contact, name = conversation.contact, short_name(conversation)
    if contact is None:
        return None
    match contact.state:
        case ContactState.ACCEPTED:
            return None
        case ContactState.ASKING:
            return Standing(
                title=f"{name} wants to talk to you",
                words="Anyone can take any name: compare the fingerprint if you can. They learn"
                " only that their request arrived.",
                fingerprint=contact.fingerprint,
                answers=(Answer.BLOCK, Answer.DECLINE, Answer.ACCEPT),
            )
        case ContactState.ASKED:
            return _asked(conversation, name, contact.fingerprint)
        case ContactState.DECLINED:
            title, words = _ended(conversation, name)
            return Standing(
                title=title,
                words=words,
                fingerprint=contact.fingerprint,
                answers=(Answer.ASK_AGAIN,),
            )
        case ContactState.BLOCKED:
            return Standing(
                title=f"You blocked {name}",
                words="They are not told. Nothing of theirs is taken in or answered.",
                fingerprint="",
                answers=(Answer.UNBLOCK,),
            )
        case _:
            assert_never(contact.state)


def _ended(conversation: ConversationView, name: str) -> tuple[str, str]:
    withdrawn = withdrawn_by_us(conversation)
    if withdrawn is not None:
        title = f"You withdrew your request to {name}" if withdrawn else f"{name} asks no longer"
        return title, "They are told. You can ask again." if withdrawn else "You can ask them."
    if we_declined(conversation):
        return f"You declined {name}", "They were told. You can still ask them."
    words = "You may ask again. They hear of it a day after they declined, not before."
    return f"{name} declined", words


def _request_arrived(conversation: ConversationView) -> bool:
    last = conversation.last_message
    if last is None or last.kind is not MessageKind.ASKED or last.delivery is None:
        return False
    return last.delivery.state is DeliveryState.HELD


def _asked(conversation: ConversationView, name: str, fingerprint: str) -> Standing:
    if lost_request(conversation) is not None:
        return Standing(
            title=f"Your request did not reach {name}",
            words="It was given up. It is safe on this device and can be sent again.",
            fingerprint=fingerprint,
            answers=(Answer.WITHDRAW, Answer.SEND_AGAIN),
        )
    return Standing(
        title=f"Waiting for {name} to accept",
        words="Your request is on their device. You see here when they answer."
        if _request_arrived(conversation)
        else "Your request reaches them as soon as they can be reached.",
        fingerprint=fingerprint,
        answers=(Answer.WITHDRAW,),
    )


# --- adding somebody ----------------------------------------------------------------------------


def known_words(preview: ContactPreview) -> str:
    """How far we have come with the person of a link."""
    match preview.known:
        case None:
            return "They are asked whether they want to talk to you."
        case ContactState.ASKED:
            return "You asked them already and they have not answered."
        case ContactState.ASKING:
            return "They asked you already: this accepts."
        case ContactState.ACCEPTED:
            return "You talk to them already."
        case ContactState.DECLINED:
            return "You two did not come together before. This asks again."
        case ContactState.BLOCKED:
            return "You blocked them. Unblock them first, in the conversation."
        case _:
            assert_never(preview.known)


def adding_words(preview: ContactPreview | None) -> str:
    """What the button of "Add a person" says."""
    if preview is None:
        return "Ask"
    verbs = {None: "Ask", ContactState.ASKING: "Accept", ContactState.DECLINED: "Ask"}
    return f"{verbs.get(preview.known, 'Open')} {one_line(preview.name, 30)}".rstrip()


def only_opens(preview: ContactPreview) -> bool:
    """Nothing is left to ask: the conversation is there."""
    return preview.known in {ContactState.ASKED, ContactState.ACCEPTED, ContactState.BLOCKED}


def misplaced_link_words(link: str, *, wanted: str) -> str:
    """A link of the other kind, and where it belongs; "" for all others."""
    if wanted == CONTACT_PREFIX and link.startswith(JOIN_PREFIX):
        return "This is an invitation to a group. Choose “Join with an invitation” for it."
    if wanted == JOIN_PREFIX and link.startswith(CONTACT_PREFIX):
        return "This is a person's contact link. Choose “Add a person” for it."
    return ""


def date_words(at_ms: UnixMs, now: datetime) -> str:
    at = moment(at_ms).astimezone(now.tzinfo)
    return f"{at.day} {at:%B} {at.year}"


def digit_groups(safety_number: str) -> tuple[str, ...]:
    """Twelve groups of five; shorter if the number is."""
    digits = "".join(filter(str.isdecimal, safety_number))[:_SAFETY_DIGITS]
    return tuple(digits[i : i + _GROUP_DIGITS] for i in range(0, len(digits), _GROUP_DIGITS))
