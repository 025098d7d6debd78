"""The second line of a conversation's row, and the sentence a screen reader hears.

The most urgent thing wins: not sent, then how far two people have come, then a draft, then somebody
typing, then the newest that was said: a message, or something about one.  The time beside it is
that one's, too.
"""

from datetime import datetime
from enum import Enum, auto

from msgspec import Struct

from engine.core.ids import DeliveryState
from engine.events import ConversationView, DeliveryView, MessageKind
from ui.conversation_words import annotation_words, is_group, kind_words, typing_line
from ui.foreign_text import one_line
from ui.glyphs import Glyph, glyph_of
from ui.mute_entries import mute_words
from ui.people import is_online, is_request, state_words
from ui.times import spoken_time
from ui.translate import tr


class Tone(Enum):
    PLAIN = auto()
    SENDER = auto()
    DANGER = auto()
    TYPING = auto()


class Preview(Struct, frozen=True, kw_only=True):
    prefix: str
    prefix_tone: Tone
    text: str
    glyph: Glyph | None
    """Beside the time: how far our own last message came."""


def _last_failed(conversation: ConversationView) -> str:
    """The message itself only if the time in its row is that message's."""
    last = conversation.last_message
    if (
        last is not None
        and conversation.last_annotation is None
        and last.delivery is not None
        and last.delivery.state is DeliveryState.FAILED
    ):
        return kind_words(last)
    return tr("%n messages", "%n message", conversation.failed)


def _glyph(delivery: DeliveryView | None) -> Glyph | None:
    return None if delivery is None else glyph_of(delivery)


def preview_of(
    conversation: ConversationView, *, typing: tuple[str, ...] = (), is_open: bool = False
) -> Preview:
    """``is_open``: its draft stands in the composer, so the row need not repeat it."""
    if conversation.failed:
        text = _last_failed(conversation)
        prefix = tr("Not sent: ") if is_group(conversation) else tr("Not delivered: ")
        return Preview(prefix=prefix, prefix_tone=Tone.DANGER, text=text, glyph=Glyph.FAILED)
    if standing := state_words(conversation):
        tone = Tone.TYPING if is_request(conversation) else Tone.PLAIN
        return Preview(prefix=standing, prefix_tone=tone, text="", glyph=None)
    if conversation.draft.strip() and not is_open:
        text = one_line(conversation.draft)
        return Preview(prefix=tr("Draft: "), prefix_tone=Tone.DANGER, text=text, glyph=None)
    if typing:
        return Preview(prefix=typing_line(typing), prefix_tone=Tone.TYPING, text="", glyph=None)
    return _last_words(conversation)


def _last_words(conversation: ConversationView) -> Preview:
    last = conversation.last_message
    if conversation.last_annotation is not None:
        words = annotation_words(conversation.last_annotation)
        return Preview(prefix="", prefix_tone=Tone.PLAIN, text=words, glyph=None)
    if last is None:
        return Preview(prefix="", prefix_tone=Tone.PLAIN, text=tr("No messages yet"), glyph=None)
    text = kind_words(last)
    if last.kind not in {MessageKind.TEXT, MessageKind.FILE} or last.retracted:
        return Preview(prefix="", prefix_tone=Tone.PLAIN, text=text, glyph=None)
    if last.is_own:
        return Preview(
            prefix=tr("You: "), prefix_tone=Tone.PLAIN, text=text, glyph=_glyph(last.delivery)
        )
    sender = f"{one_line(last.sender_name, 40)}: " if is_group(conversation) else ""
    return Preview(prefix=sender, prefix_tone=Tone.SENDER, text=text, glyph=None)


def _unread_words(conversation: ConversationView, *, marked: bool) -> list[str]:
    if is_request(conversation):
        return [tr("new request")]
    if conversation.unread:
        return [tr("%n unread", "%n unread", conversation.unread)]
    return [tr("marked as unread")] if marked else []


def row_sentence(
    conversation: ConversationView,
    now: datetime,
    *,
    typing: tuple[str, ...] = (),
    is_open: bool = False,
    marked_unread: bool = False,
) -> str:
    """Name, unread, the second line, time, and what needs care, in reading order."""
    preview = preview_of(conversation, typing=typing, is_open=is_open)
    parts = [one_line(conversation.name)]
    if conversation.open_channel is not None:
        has_key = conversation.open_channel.has_key
        parts.append(
            tr("channel with a shared key") if has_key else tr("open channel, not encrypted")
        )
    if is_online(conversation):
        parts.append(tr("online"))
    parts += _unread_words(conversation, marked=marked_unread)
    if conversation.mentions:
        mentions = conversation.mentions
        parts.append(tr("%n messages mention you", "%n message mentions you", mentions))
    parts.append(f"{preview.prefix}{preview.text}".strip())
    if conversation.last_message is not None:
        parts.append(spoken_time(conversation.last_said_ms, now))
    if conversation.missing:
        parts.append(tr("%n messages missing", "%n message missing", conversation.missing))
    if conversation.waiting_to_send:
        waiting = conversation.waiting_to_send
        parts.append(tr("%n waiting to send", "%n waiting to send", waiting))
    if conversation.muted:
        parts.append(mute_words(conversation, now))
    return ", ".join(parts)
