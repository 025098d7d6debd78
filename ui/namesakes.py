"""Members who bear the name of somebody whose key the user compared, under another key.

Anybody can take any name, so one who was verified is impersonated by calling oneself the same, or
nearly the same: names are compared without case, accents and spaces, and with letters of other
scripts taken for the Latin ones that they look like.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.core.ids import ParticipantId
from engine.events import ConversationView, MemberView
from ui.conversation_words import present_members
from ui.foreign_text import one_line

_LOOK_ALIKE: Final = str.maketrans(
    # Cyrillic, Greek and Latin letters, and digits.
    "\u0430\u0432\u0441\u0501\u0435\u04bb\u043d\u0456\u0458\u043a\u04cf\u043c"
    "\u043e\u0440\u051b\u0455\u0442\u0443\u0475\u051d\u0445"
    "\u03b1\u03b2\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
    "\u0131\u0251\u0261"
    "01",
    "abcdehhijklmopqstyvwxabenikvoptuxiagol",
)
"""After ``casefold``.  The letters by which names are faked, not all that look alike."""

_KEPT: Final = 8192
"""Names of which it is known what they look like: of several large groups."""


class Namesake(Struct, frozen=True):
    member: MemberView
    verified: ParticipantId
    """Whose name they bear."""

    @property
    def key(self) -> str:
        """Of both people, so that a new name of the same member is asked about again."""
        return f"{self.member.participant_id}:{self.verified}"


@lru_cache(maxsize=_KEPT)
def look_of(name: str) -> str:
    """Equal for names that are taken for one another; "" for one that has no letter or digit."""
    shown = unicodedata.normalize("NFKD", one_line(name)).casefold()
    plain = "".join(c for c in shown if unicodedata.category(c)[0] in "LN")
    return plain.translate(_LOOK_ALIKE)


def namesakes(
    group: ConversationView,
    conversations: Iterable[ConversationView],
    verified: frozenset[ParticipantId],
) -> tuple[Namesake, ...]:
    """Of those who are in the group now; nobody who was compared themselves."""
    if group.contact is not None or group.open_channel is not None or not verified:
        return ()
    known = _looks(conversations, verified)
    found = []
    for member in present_members(group):
        if member.is_self or member.participant_id in verified:
            continue
        other = known.get(look_of(member.name))
        if other is not None:
            found.append(Namesake(member, other))
    return tuple(found)


def _looks(
    conversations: Iterable[ConversationView], verified: frozenset[ParticipantId]
) -> dict[str, ParticipantId]:
    """By the names that the verified have: given here, or given by themselves."""
    looks: dict[str, ParticipantId] = {}
    for view in conversations:
        contact = view.contact
        if contact is not None and contact.participant_id in verified:
            looks[look_of(view.name)] = contact.participant_id
            looks[look_of(contact.name)] = contact.participant_id
        for member in view.members:
            if member.participant_id in verified and not member.is_self:
                looks[look_of(member.name)] = member.participant_id
    looks.pop("", None)
    return looks
