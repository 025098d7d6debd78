"""Sentences about a conversation: its members, what happened in it, who types, what is quoted.

Pure functions over read models, so that every sentence can be tested without a window.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

from engine.events import (
    AnnotationKind,
    AnnotationView,
    ConversationView,
    FloodView,
    MemberView,
    MessageKind,
    MessageView,
    OpenChannelView,
    QuoteView,
)
from engine.file_views import FileView
from ui.deed_words import deed_words
from ui.file_words import is_picture, titled, with_caption
from ui.foreign_text import one_line
from ui.marked_text import shown_text
from ui.regional import decimal
from ui.translate import tr

_MAX_NAME = 40
_LONGEST_NAME = 64
_QUOTED = 80
_QUOTE = 280
"""Of a message that another one answers."""
NO_TEXT = "binary"
"""The kind of content in an open channel that cannot be shown."""
_LEAST_PERCENT = 0.0001
_Event: TypeAlias = Literal[
    MessageKind.CREATED,
    MessageKind.JOINED,
    MessageKind.LEFT,
    MessageKind.RENAMED,
    MessageKind.ASKED,
    MessageKind.ACCEPTED,
    MessageKind.DECLINED,
    MessageKind.WITHDRAWN,
]


def chance_words(probability: float) -> str:
    """A chance to two digits: "0.098 % chance"; what is smaller than a millionth is just that."""
    percent = 100 * min(max(probability, 0.0), 1.0)
    if percent < _LEAST_PERCENT:
        return tr("under {percent} % chance").format(percent=decimal(_LEAST_PERCENT, 4))
    rounded = float(f"{percent:.2g}")
    places = len(f"{rounded:.6f}".rstrip("0").partition(".")[2])
    return tr("{percent} % chance").format(percent=decimal(rounded, places))


def present_members(conversation: ConversationView) -> tuple[MemberView, ...]:
    return tuple(member for member in conversation.members if not member.has_left)


def is_alone(conversation: ConversationView) -> bool:
    """In a group that nobody else is in."""
    is_open = conversation.open_channel is not None
    return is_group(conversation) and not is_open and len(present_members(conversation)) <= 1


def is_group(conversation: ConversationView) -> bool:
    """Whether several may talk in it: a group or an open channel."""
    return conversation.contact is None


def shard_words(channel: OpenChannelView) -> str:
    if channel.shard is None:
        return tr("Cluster {cluster}, shard by content topic").format(cluster=channel.cluster_id)
    words = tr("Cluster {cluster}, shard {shard}")
    return words.format(cluster=channel.cluster_id, shard=channel.shard)


def open_channel_line(channel: OpenChannelView) -> str:
    if not channel.is_served:
        return unserved_words(channel)
    return tr("Channel with a shared key") if channel.has_key else tr("Open channel, not encrypted")


def shared_key_words() -> str:
    """What stands where one types, and where one agrees to it."""
    return tr("Encrypted with a key that everybody with the link has; senders are not verified")


def unserved_words(channel: OpenChannelView) -> str:
    return tr(
        "This channel is on cluster {cluster} and this device is not: nothing is sent or received."
    ).format(cluster=channel.cluster_id)


def members_line(conversation: ConversationView, *, short: bool = False) -> str:
    members = present_members(conversation)
    total = tr("%n members", "%n member", len(members))
    if short or not members:
        return total
    others = [one_line(member.name, _MAX_NAME) for member in members if not member.is_self]
    if not others:
        if len(conversation.members) > 1:
            return tr("{members}: only you").format(members=total)
        return tr("{members}: only you so far").format(members=total)
    names = [*others, tr("you")] if len(others) < len(members) else others
    return tr("{members}: {names}").format(members=total, names=", ".join(names))


def sender_words(message: MessageView) -> str:
    return tr("You") if message.is_own else one_line(message.sender_name, _LONGEST_NAME) or "?"


def kind_words(message: MessageView) -> str:
    """What happened, for rows that carry no text of their own."""
    if message.retracted:
        return _retracted_words(message)
    if message.kind in {MessageKind.TEXT, MessageKind.FILE}:
        return with_caption(message, one_line(shown_text(message)))
    if message.kind is MessageKind.UNSUPPORTED:
        if message.text == NO_TEXT:
            return tr("Content that is no text")
        return tr("A message that needs a newer version")
    if message.kind is MessageKind.DEED:
        return deed_words(message, message.deed) if message.deed else ""
    old, new = _names_in(message)
    yours, theirs = _event_words(message.kind)
    name = one_line(message.sender_name, _MAX_NAME)
    words = yours if message.is_own else theirs
    return words.format(name=name, old=old or tr("A member"), new=new)


def _retracted_words(message: MessageView) -> str:
    if message.is_own and not message.retracted_by:
        return tr("You deleted this message")
    by = message.retracted_by or message.sender_name
    return tr("{name} deleted this message").format(name=one_line(by, _MAX_NAME) or "?")


def _event_words(kind: _Event) -> tuple[str, str]:
    """Of what we did, and of what somebody else did."""
    match kind:
        case MessageKind.CREATED:
            words = tr("You started this group"), tr("{name} started this group")
        case MessageKind.JOINED:
            words = tr("You joined"), tr("{name} joined")
        case MessageKind.LEFT:
            words = tr("You left"), tr("{name} left")
        case MessageKind.RENAMED:
            words = tr("You are now called {new}"), tr("{old} is now called {new}")
        case MessageKind.ASKED:
            words = tr("You asked to talk"), tr("{name} asked to talk")
        case MessageKind.ACCEPTED:
            words = tr("You accepted"), tr("{name} accepted")
        case MessageKind.DECLINED:
            words = tr("You declined"), tr("{name} declined")
        case MessageKind.WITHDRAWN:
            words = tr("You withdrew the request"), tr("{name} withdrew the request")
        case _:
            assert_never(kind)
    return words


def _names_in(message: MessageView) -> tuple[str, str]:
    """The old name and the new one, of somebody who was renamed."""
    old, _, new = (one_line(name, _MAX_NAME) for name in message.text.partition("\n"))
    return old, new


def annotation_words(annotation: AnnotationView) -> str:
    """What somebody said about a message, for the conversation's row in the list."""
    name = one_line(annotation.sender_name, _MAX_NAME) or "?"
    yours, theirs = _annotation_words(annotation)
    words = yours if annotation.is_own else theirs
    text = one_line(_said(annotation.target_text, annotation.target_file), _QUOTED)
    return words.format(name=name, emoji=annotation.emoji, text=text).rstrip(": ")


def _annotation_words(annotation: AnnotationView) -> tuple[str, str]:
    match annotation.kind:
        case AnnotationKind.REACTION:
            return tr("You reacted {emoji} to: {text}"), tr("{name} reacted {emoji} to: {text}")
        case AnnotationKind.EDIT:
            return tr("You edited: {text}"), tr("{name} edited: {text}")
        case AnnotationKind.RETRACTION:
            return tr("You deleted a message"), tr("{name} deleted a message")


def typing_line(names: Sequence[str]) -> str:
    shown = [one_line(name, _MAX_NAME) for name in names]
    match shown:
        case []:
            return ""
        case [one]:
            return tr("{name} is typing…").format(name=one)
        case [one, other]:
            return tr("{name} and {other} are typing…").format(name=one, other=other)
        case _:
            words = tr(
                "{name} and %n others are typing…",
                "{name} and %n other are typing…",
                len(shown) - 1,
            )
            return words.format(name=shown[0])


def muted_words(names: Sequence[str]) -> str:
    """Whose messages are not shown here; at least one name."""
    shown = [one_line(name, _MAX_NAME) for name in names]
    match shown:
        case [one]:
            return tr("You muted {name}.").format(name=one)
        case [one, other]:
            return tr("You muted {name} and {other}.").format(name=one, other=other)
        case _:
            words = tr(
                "You muted {name} and %n others.",
                "You muted {name} and %n other.",
                len(shown) - 1,
            )
            return words.format(name=shown[0])


def flood_words(flood: FloodView, group_name: str) -> str:
    """Of somebody who sends more than anybody can want, and what became of it."""
    if flood.name:
        words = tr(
            "{name} is sending unusually much. "
            "Messages beyond a day's limit are kept aside and not shown."
        ).format(name=one_line(flood.name, _MAX_NAME))
    else:
        words = tr(
            "Unusually much is sent here. "
            "Messages beyond a day's limit are kept aside and not shown."
        )
    if not group_name:
        return words
    return tr("{group}: {words}").format(group=one_line(group_name, 60), words=words)


def forwarded_words() -> str:
    return tr("Forwarded")


def not_shown_words() -> str:
    return tr("Not shown on this device")


def from_before_words() -> tuple[str, str]:
    return tr("A message from before you came"), tr("You were not given its key")


def quote_words(quote: QuoteView, *, asked: bool = False) -> tuple[str, str]:
    """Who is quoted, and what they say now; of a message that is not here, what one can do.

    ``asked``: one has done that.
    Of one from before we came it is said why it does not come; of one that was deleted here, or
    whose sender is hidden, nothing is known but who said it.
    """
    if quote.from_before:
        return from_before_words()
    if quote.position is None:
        what = tr("Asked for, and fetched by and by") if asked else tr("Click to ask for it")
        return tr("A message that is not here yet"), what
    name = tr("You") if quote.is_own else one_line(quote.sender_name, _LONGEST_NAME) or "?"
    if quote.retracted:
        return name, tr("Deleted message")
    if quote.hidden:
        return name, not_shown_words()
    return name, one_line(_said(quote.text, quote.file), _QUOTE)


def _said(text: str, file: FileView | None) -> str:
    """A picture has a name of letters and digits, as a rule: it is said to be one instead."""
    if file is None or not is_picture(file):
        return text
    return titled(file, "" if text == file.name else text)
