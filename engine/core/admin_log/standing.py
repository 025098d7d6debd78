"""Who may have had a role, as far as an entry knew, if everything that it knew counted.

It takes no judging, and never changes: an entry's past is in its id.  People whom nobody named who
may have named them have no standing; else one member could write as a thousand people.
"""

from collections import defaultdict

from engine.core.admin_log.acts import Add, Create, Entry, Promote, Role, SetInviters
from engine.core.ids import ParticipantId


class Standing:
    """Numbers are those of an ``Ancestry``, pasts its bits."""

    def __init__(self) -> None:
        self._members = defaultdict[ParticipantId, int](int)
        """Bits of the entries that made them a member, or more, if these counted."""
        self._admins = defaultdict[ParticipantId, int](int)
        self._opened = 0
        """Bits of the entries that let all members admit others."""

    @property
    def people(self) -> frozenset[ParticipantId]:
        """Everybody who may ever have had a role."""
        return frozenset(self._members)

    def has_any(self, entry: Entry, past: int) -> bool:
        return isinstance(entry.act, Create) or bool(self._members.get(entry.author, 0) & past)

    def note(self, number: int, entry: Entry, past: int) -> None:
        is_admin = bool(self._admins.get(entry.author, 0) & past)
        match entry.act:
            case Create():
                self._members[entry.author] |= 1 << number
                self._admins[entry.author] |= 1 << number
            case Promote(member=member) if is_admin:
                self._members[member] |= 1 << number
                self._admins[member] |= 1 << number
            case Add(member=member) if is_admin or self._may_admit(entry, past):
                self._members[member] |= 1 << number
            case SetInviters(least=Role.MEMBER) if is_admin:
                self._opened |= 1 << number
            case _:
                pass

    def _may_admit(self, entry: Entry, past: int) -> bool:
        return bool(self._opened & past) and self.has_any(entry, past)
