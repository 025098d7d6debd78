"""Sentences about people: the state of a contact, when they were last seen, what can be done.

Pure functions over read models.  Names are strangers' text: they are on one line and bounded here,
and people who ask to talk are shown with the name *they gave*, beside their fingerprint.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import assert_never

from msgspec import Struct

from engine.answers import ContactPreview
from engine.core.contacts import CONTACT_PREFIX, ContactState
from engine.core.ids import DeliveryState, MessageId, ParticipantId
from engine.events import ContactView, ConversationView, MemberView, MessageKind
from ui.foreign_text import one_line
from ui.times import spoken_time
from ui.translate import tr

_NAME = 40
_NAMED_GROUPS = 3
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
        return tr("Online")
    if contact.last_seen_ms is None:
        return tr("Not seen yet")
    return tr("Last seen {time}").format(time=spoken_time(contact.last_seen_ms, now))


def state_words(conversation: ConversationView) -> str:
    """The second line of a row while two do not talk (yet); "" once they do."""
    contact = conversation.contact
    if contact is None:
        return ""
    match contact.state:
        case ContactState.ACCEPTED:
            return ""
        case ContactState.ASKING:
            return tr("Wants to talk to you")
        case ContactState.ASKED:
            return tr("Waiting for an answer")
        case ContactState.DECLINED:
            return _ended_words(conversation)
        case ContactState.BLOCKED:
            return tr("Blocked")
        case _:
            assert_never(contact.state)


def _ended_words(conversation: ConversationView) -> str:
    if withdrawn_by_us(conversation) is not None:
        return tr("Request withdrawn")
    return tr("You declined") if we_declined(conversation) else tr("Declined")


def person_line(conversation: ConversationView, contact: ContactView, now: datetime) -> str:
    """Under the name in the header."""
    words = state_words(conversation) or seen_words(contact, now)
    own_name = one_line(contact.name, _NAME)
    if contact.local_name and own_name and own_name != short_name(conversation):
        return tr("{words} · calls themselves {name}").format(words=words, name=own_name)
    return words


def cannot_write_words(conversation: ConversationView) -> str:
    """Why nothing can be written now; "" if it can."""
    contact, name = conversation.contact, short_name(conversation)
    if contact is None:
        return tr("The key of this group was lost") if conversation.key_is_lost else ""
    match contact.state:
        case ContactState.ACCEPTED:
            return ""
        case ContactState.ASKING:
            return tr("Accept {name} to write to them").format(name=name)
        case ContactState.ASKED:
            return tr("You can write once {name} accepts").format(name=name)
        case ContactState.DECLINED:
            return tr("You and {name} do not talk").format(name=name)
        case ContactState.BLOCKED:
            return tr("You blocked {name}").format(name=name)
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


def answer_words(answer: Answer) -> str:
    match answer:
        case Answer.ACCEPT:
            words = tr("Accept")
        case Answer.DECLINE:
            words = tr("Decline")
        case Answer.BLOCK:
            words = tr("Block")
        case Answer.UNBLOCK:
            words = tr("Unblock")
        case Answer.ASK_AGAIN:
            words = tr("Ask again")
        case Answer.WITHDRAW:
            words = tr("Withdraw request")
        case Answer.SEND_AGAIN:
            words = tr("Resend")
        case _:
            assert_never(answer)
    return words


class Standing(Struct, frozen=True, kw_only=True):
    """What the bar in a conversation says while two do not talk."""

    title: str
    words: str
    fingerprint: str
    answers: tuple[Answer, ...]
    """The most wanted one last."""


def groups_with(
    participant_id: ParticipantId, conversations: Iterable[ConversationView]
) -> tuple[ConversationView, ...]:
    """The groups in which both of us are now."""
    return tuple(
        view
        for view in conversations
        if view.contact is None
        and not we_left(view)
        and any(m.participant_id == participant_id and not m.has_left for m in view.members)
    )


def we_left(group: ConversationView) -> bool:
    """Whether we are no member any more."""
    return any(member.is_self and member.has_left for member in group.members)


def write_words(*, asks: bool) -> str:
    """On a button or in a menu.  ``asks``: there is no conversation with them yet."""
    return tr("Write to them…") if asks else tr("Write to them")


def may_be_asked(member: MemberView) -> bool:
    """As far as it depends on them."""
    return member.has_keys and not member.has_left


def cannot_ask_words(member: MemberView, group: ConversationView) -> str:
    """Why somebody in a group cannot be asked to talk from there; "" if they can."""
    if we_left(group):
        return tr(
            "You are not in this group any more. To write to them alone, one of you needs the"
            " other's contact link."
        )
    if member.has_left:
        return tr(
            "They are not in this group any more. To write to them alone, one of you needs the"
            " other's contact link."
        )
    if not member.has_keys:
        return tr(
            "Nothing of theirs has come here yet, so their keys are not known. Once it has, you can"
            " ask them to talk; before that, one of you needs the other's contact link."
        )
    return ""


def asking_member_words() -> str:
    """Before a member of a group is asked to talk."""
    return tr(
        "They have to agree before either of you can write. They see your name, your picture, your"
        " fingerprint, and which groups you are both in. They can decline or block you."
    )


def shared_groups_words(groups: Sequence[ConversationView]) -> str:
    """Of somebody who asks to talk."""
    names = [one_line(group.name, _NAME) for group in groups[:_NAMED_GROUPS]]
    more = len(groups) - len(names)
    if not names:
        return tr("You share no group with them.")
    said = ", ".join(names)
    if more:
        words = tr(
            "They are in {groups} and %n more of your groups.",
            "They are in {groups} and %n more of your groups.",
            more,
        )
        return words.format(groups=said)
    return tr("They are in {groups}, as you are.").format(groups=said)


def standing_of(
    conversation: ConversationView, groups: Sequence[ConversationView] = ()
) -> Standing | None:
    """None if the two talk, or if it is a group.  ``groups``: in which both are."""
    contact, name = conversation.contact, short_name(conversation)
    if contact is None:
        return None
    match contact.state:
        case ContactState.ACCEPTED:
            return None
        case ContactState.ASKING:
            return Standing(
                title=tr("{name} wants to talk to you").format(name=name),
                words=f"{shared_groups_words(groups)} {_asking_words()}",
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
                title=tr("You blocked {name}").format(name=name),
                words=tr("They are not told. Nothing of theirs is taken in or answered."),
                fingerprint="",
                answers=(Answer.UNBLOCK,),
            )
        case _:
            assert_never(contact.state)


def _asking_words() -> str:
    return tr(
        "Anyone can take any name: compare the fingerprint if you can. They learn only that their"
        " request arrived."
    )


def _ended(conversation: ConversationView, name: str) -> tuple[str, str]:
    withdrawn = withdrawn_by_us(conversation)
    if withdrawn is not None:
        title, words = tr("{name} asks no longer"), tr("You can ask them.")
        if withdrawn:
            title = tr("You withdrew your request to {name}")
            words = tr("They are told. You can ask again.")
        return title.format(name=name), words
    if we_declined(conversation):
        words = tr("They were told. You can still ask them.")
        return tr("You declined {name}").format(name=name), words
    words = tr("You may ask again. They hear of it a day after they declined, not before.")
    return tr("{name} declined").format(name=name), words


def _request_arrived(conversation: ConversationView) -> bool:
    last = conversation.last_message
    if last is None or last.kind is not MessageKind.ASKED or last.delivery is None:
        return False
    return last.delivery.state is DeliveryState.HELD


def _asked(conversation: ConversationView, name: str, fingerprint: str) -> Standing:
    if lost_request(conversation) is not None:
        return Standing(
            title=tr("Your request did not reach {name}").format(name=name),
            words=tr("It was given up. It is safe on this device and can be sent again."),
            fingerprint=fingerprint,
            answers=(Answer.WITHDRAW, Answer.SEND_AGAIN),
        )
    return Standing(
        title=tr("Waiting for {name} to accept").format(name=name),
        words=tr("Your request is on their device. You see here when they answer.")
        if _request_arrived(conversation)
        else tr("Your request reaches them as soon as they can be reached."),
        fingerprint=fingerprint,
        answers=(Answer.WITHDRAW,),
    )


# --- adding somebody ----------------------------------------------------------------------------


def known_words(preview: ContactPreview) -> str:
    """How far we have come with the person of a link."""
    match preview.known:
        case None:
            return tr("They are asked whether they want to talk to you.")
        case ContactState.ASKED:
            return tr("You asked them already and they have not answered.")
        case ContactState.ASKING:
            return tr("They asked you already: this accepts.")
        case ContactState.ACCEPTED:
            return tr("You talk to them already.")
        case ContactState.DECLINED:
            return tr("You two did not come together before. This asks again.")
        case ContactState.BLOCKED:
            return tr("You blocked them. Unblock them first, in the conversation.")
        case _:
            assert_never(preview.known)


def adding_words(preview: ContactPreview | None) -> str:
    """What the button of "Add a person" says."""
    if preview is None:
        return tr("Ask")
    match preview.known:
        case None | ContactState.DECLINED:
            words = tr("Ask {name}")
        case ContactState.ASKING:
            words = tr("Accept {name}")
        case ContactState.ASKED | ContactState.ACCEPTED | ContactState.BLOCKED:
            words = tr("Open {name}")
        case _:
            assert_never(preview.known)
    return words.format(name=one_line(preview.name, 30)).rstrip()


def only_opens(preview: ContactPreview) -> bool:
    """Nothing is left to ask: the conversation is there."""
    return preview.known in {ContactState.ASKED, ContactState.ACCEPTED, ContactState.BLOCKED}


def misplaced_link_words(link: str, *, wanted: str) -> str:
    """A link of the other kind, and where it belongs; "" for all others."""
    if wanted == CONTACT_PREFIX and link.startswith(JOIN_PREFIX):
        return tr("This is an invitation to a group. Choose “Join with an invitation” for it.")
    if wanted == JOIN_PREFIX and link.startswith(CONTACT_PREFIX):
        return tr("This is a person's contact link. Choose “Add a person” for it.")
    return ""


def digit_groups(safety_number: str) -> tuple[str, ...]:
    """Twelve groups of five; shorter if the number is."""
    digits = "".join(filter(str.isdecimal, safety_number))[:_SAFETY_DIGITS]
    return tuple(digits[i : i + _GROUP_DIGITS] for i in range(0, len(digits), _GROUP_DIGITS))
