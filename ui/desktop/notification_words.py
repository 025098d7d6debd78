"""What a notification says: its title and its lines, short and without line breaks in them.

Where the user wants no preview, nothing of what was written is in them, and nothing of it is kept.
"""

from collections.abc import Sequence

from engine.events import AnnotationView, ConversationView, MessageView
from ui.conversation_words import annotation_words, is_group, kind_words
from ui.foreign_text import one_line
from ui.translate import tr

LONGEST_LINE = 200
_LONGEST_TITLE = 60
_LONGEST_NAME = 40


def message_line(conversation: ConversationView, message: MessageView, *, show_text: bool) -> str:
    sender = one_line(message.sender_name, _LONGEST_NAME)
    if not is_group(conversation):  # The title says already who it is.
        line = kind_words(message) if show_text else tr("New message")
    elif show_text and message.retracted:
        line = kind_words(message)
    elif show_text:
        line = f"{sender}: {kind_words(message)}"
    else:
        line = tr("New message from {sender}").format(sender=sender)
    return one_line(line, LONGEST_LINE)


def reaction_line(annotation: AnnotationView, *, show_text: bool) -> str:
    """For a reaction to a message of ours."""
    if show_text:
        return one_line(annotation_words(annotation), LONGEST_LINE)
    sender = one_line(annotation.sender_name, _LONGEST_NAME)
    return tr("New reaction from {sender}").format(sender=sender)


def title_words(conversation: ConversationView, messages: int) -> str:
    name = one_line(conversation.name, _LONGEST_TITLE)
    if messages <= 1:
        return name
    return tr("{name} (%n new)", "{name} (%n new)", messages).format(name=name)


def body_words(lines: Sequence[str], messages: int, *, show_text: bool) -> str:
    """``lines``: the newest ones, at least one."""
    if show_text or messages <= 1:
        return "\n".join(lines)
    return tr("%n new messages", "%n new message", messages)
