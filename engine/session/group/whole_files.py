"""Who has the blobs of which messages as a whole, as the members say in their claims.

A member claims its newest files in every claim, so one that came before the message it speaks of
comes again.  What was noted is not noted twice while the session lives.
"""

from collections.abc import Callable, Iterable

from msgspec import structs

from engine.codec.holdings import MAX_WHOLE_FILES
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.core.ports import PutFileHolder
from engine.core.sds.vocabulary import Claim
from engine.session.transitions import RowChanged, TransitionBuilder

MAX_NOTED = 1_024
"""Of each member; what is forgotten may be noted again."""


class WholeFiles:
    def __init__(
        self, conversation_id: ConversationId, is_logged: Callable[[MessageId], bool]
    ) -> None:
        self._conversation_id = conversation_id
        self._is_logged = is_logged
        self._noted: dict[ParticipantId, frozenset[MessageId]] = {}
        self._ours: tuple[MessageId, ...] = ()

    def hold(self, message_ids: Iterable[MessageId]) -> bool:
        """We have these, the newest last.  Return whether that is more than we claimed before."""
        before, self._ours = self._ours, tuple(message_ids)[-MAX_WHOLE_FILES:]
        return not {*before} >= {*self._ours}

    def beside(self, claim: Claim | None) -> Claim | None:
        """The claim with what we say of files."""
        if claim is None or not self._ours:
            return claim
        return structs.replace(claim, whole_files=self._ours)

    def hear(self, who: ParticipantId, claim: Claim, builder: TransitionBuilder) -> None:
        """Note what a member of the group claims."""
        noted = self._noted.get(who, frozenset())
        named = frozenset(filter(self._is_logged, claim.whole_files))
        for message_id in sorted(named - noted):
            builder.writes.append(
                PutFileHolder(
                    conversation_id=self._conversation_id,
                    message_id=message_id,
                    participant_id=who,
                )
            )
            builder.notes.append(RowChanged(message_id=message_id))
        self._noted[who] = named if len(noted) > MAX_NOTED else noted | named
