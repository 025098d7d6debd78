"""Decides what can be done with a message, for menu, hover bar and keys.

A conversation may not take part in everything: an open channel carries plain texts only.
"""

from collections.abc import Collection

from msgspec import Struct

from engine.core.ids import ParticipantId
from engine.events import MessageKind, MessageView
from ui.file_words import is_here
from ui.glyphs import Glyph, glyph_of
from ui.timeline.rows import is_system

QUICK_REACTIONS = ("👍", "❤️", "😂", "😮", "😢", "🙏")


class Abilities(Struct, frozen=True, kw_only=True):
    reply: bool
    react: bool
    edit: bool
    forward: bool
    delete: bool
    """On this device; whether for everybody, too, is told by the next two."""
    retract: bool
    """It is our own."""
    delete_as_admin: bool
    info: bool
    keep: bool
    """It is about to be deleted for everybody, and can still be kept."""


def abilities_of(
    message: MessageView,
    *,
    can_write: bool,
    annotates: bool = True,
    leaving: bool = False,
    outranked: Collection[ParticipantId] = (),
) -> Abilities:
    """``can_write``: whether anything can be sent here; ``annotates``: also about messages.

    ``leaving``: it is about to be deleted for everybody.  ``outranked``: whom we may remove.
    """
    is_said = message.kind in {MessageKind.TEXT, MessageKind.FILE}
    is_text = message.kind is MessageKind.TEXT
    said = is_said and not message.held and not message.retracted and not leaving
    placed = said and not message.waiting
    failed = message.delivery is not None and glyph_of(message.delivery) is Glyph.FAILED
    speaks = placed and can_write and annotates and not failed
    return Abilities(
        reply=speaks,
        react=speaks,
        edit=speaks and message.is_own and is_text,
        forward=said and (message.file is None or is_here(message.file)),
        delete=not is_system(message) and not message.held and not leaving,
        retract=speaks and message.is_own,
        delete_as_admin=speaks and not message.is_own and message.sender_id in outranked,
        info=not is_system(message) and not message.held,
        keep=leaving,
    )
