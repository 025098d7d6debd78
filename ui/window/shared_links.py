"""What links of ours in messages say, parsed by the engine once and kept up to a bound.

Parsing takes no network and no disk, but checks signatures, so a row that is measured again does
not have it done again.
"""

from collections import OrderedDict
from typing import Final

from engine.api import ChatEngine
from engine.core.contacts import CONTACT_PREFIX
from engine.core.errors import ChatError
from engine.core.invite import MAX_LINK_CHARACTERS
from ui.timeline.link_card import SharedLink

_KEPT: Final = 256


class SharedLinks:
    def __init__(self, engine: ChatEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[str, SharedLink | None] = OrderedDict()

    def describe(self, target: str) -> SharedLink | None:
        """None for what is no link of ours, or is damaged or expired."""
        if len(target) > MAX_LINK_CHARACTERS or self._engine.identity() is None:
            return None
        if target not in self._known:
            self._known[target] = self._read(target)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return self._known[target]

    def _read(self, target: str) -> SharedLink | None:
        try:
            if target.startswith(CONTACT_PREFIX):
                person = self._engine.people.preview_contact(target)
                return SharedLink(is_group=False, stable_id=person.participant_id, name=person.name)
            invite = self._engine.groups.preview_invite(target)
        except ChatError:
            return None
        return SharedLink(
            is_group=True,
            stable_id=invite.conversation_id,
            name=invite.group_name,
            by=invite.inviter_name,
        )
