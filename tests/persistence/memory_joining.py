"""The model of what is kept about joining governed groups."""

from collections.abc import Callable

from engine.core.ids import ConversationId, ParticipantId
from engine.core.joining import (
    Asking,
    JoiningWrite,
    OwnInvitation,
    PendingJoin,
    PutAsking,
    PutInvitation,
    PutJoin,
    RemoveAsking,
    RemoveInvitation,
    RemoveJoin,
)


class MemoryJoining:
    def __init__(self, is_there: Callable[[ConversationId], bool]) -> None:
        self._is_there = is_there
        self._invitations: dict[tuple[ConversationId, bytes], OwnInvitation] = {}
        self._asking: dict[tuple[ConversationId, ParticipantId], Asking] = {}
        self._joins: dict[ConversationId, PendingJoin] = {}

    def apply(self, write: JoiningWrite) -> None:
        match write:
            case PutInvitation(invitation=one):
                if self._is_there(one.conversation_id):
                    self._invitations[one.conversation_id, one.token] = one
            case RemoveInvitation(conversation_id=group, token=token):
                self._invitations.pop((group, token), None)
            case PutAsking(asking=asking):
                if self._is_there(asking.conversation_id):
                    self._asking[asking.conversation_id, asking.participant_id] = asking
            case RemoveAsking(conversation_id=group, participant_id=who):
                self._asking.pop((group, who), None)
            case PutJoin(join=join):
                self._joins[join.conversation_id] = join
            case RemoveJoin(conversation_id=group):
                self._joins.pop(group, None)

    def forget(self, gone: ConversationId) -> None:
        """The group was removed."""
        self._invitations = {k: one for k, one in self._invitations.items() if k[0] != gone}
        self._asking = {k: one for k, one in self._asking.items() if k[0] != gone}

    def invitations(self) -> list[OwnInvitation]:
        return list(self._invitations.values())

    def asking(self) -> list[Asking]:
        return list(self._asking.values())

    def joins(self) -> list[PendingJoin]:
        return list(self._joins.values())
