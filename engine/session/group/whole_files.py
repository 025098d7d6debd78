"""Who has the blobs of which messages as a whole, as the members say in their claims.

A member claims its newest files in every claim, so one that was lost, or came before the message it
speaks of, comes again.  A member that says nothing else repeats it a few times, ever later: nobody
answers a claim, so it cannot know who heard it.  What was noted is not noted twice while the
session lives.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import structs

from engine.codec.holdings import MAX_WHOLE_FILES
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.core.ports import PutFileHolder
from engine.core.sds.vocabulary import Claim
from engine.session.transitions import RowChanged, TransitionBuilder

MAX_NOTED = 1_024
"""Of each member; what is forgotten may be noted again."""
REPEATS: Final = 8
_FIRST_REPEAT_MS: Final = 30_000
_MEMBERS_AT_ONCE: Final = 16
"""In a larger group everybody waits longer, so that all together do not say more."""


class WholeFiles:
    def __init__(
        self,
        conversation_id: ConversationId,
        is_logged: Callable[[MessageId], bool],
        members: Callable[[], Collection[ParticipantId]],
    ) -> None:
        self._conversation_id = conversation_id
        self._is_logged = is_logged
        self._members = members
        self._noted: dict[ParticipantId, frozenset[MessageId]] = {}
        self._ours: tuple[MessageId, ...] = ()
        self._repeated = REPEATS
        self.repeat_at_ms: UnixMs | None = None
        """When to say again what we have; None: often enough, or nothing."""

    def hold(self, message_ids: Iterable[MessageId], now_ms: UnixMs) -> bool:
        """We have these, the newest last.  Return whether that is more than we claimed before."""
        before, self._ours = self._ours, tuple(message_ids)[-MAX_WHOLE_FILES:]
        if {*before} >= {*self._ours}:
            return False
        self._repeated = 0
        self._plan_repeat(now_ms)
        return True

    def repeat_due(self, now_ms: UnixMs) -> bool:
        """Whether to say it again now; plans the next time."""
        if self.repeat_at_ms is None or now_ms < self.repeat_at_ms:
            return False
        self._repeated += 1
        self._plan_repeat(now_ms)
        return bool(self._ours)

    def _plan_repeat(self, now_ms: UnixMs) -> None:
        if self._repeated >= REPEATS:
            self.repeat_at_ms = None
            return
        crowds = -(-len(self._members()) // _MEMBERS_AT_ONCE)
        self.repeat_at_ms = UnixMs(now_ms + (_FIRST_REPEAT_MS * crowds << self._repeated))

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
