"""Who has the blobs of which messages as a whole, as the members say in their claims.

A member claims its newest files in every claim, so one that was lost, or came before the message it
speaks of, comes again.  A member that says nothing else repeats it a few times, ever later: nobody
answers a claim, so it cannot know who heard it.  What was noted is not noted twice while the
session lives.

A member that lets a file go says so in the same way.  Claims come late and in any order, so each
bears a number that grows with every change: about a file, the statement with the highest counts.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import structs

from engine.codec.holdings import MAX_WHOLE_FILES
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.core.ports import PutFileHolder, SaveValue
from engine.core.sds.vocabulary import Claim
from engine.session.transitions import RowChanged, TransitionBuilder

MAX_NOTED = 1_024
"""Of each member; what is forgotten may be noted again."""
REPEATS: Final = 8
MAX_LET_GO: Final = 1_024
"""Are remembered; each claim says of the next MAX_WHOLE_FILES of them that they are gone."""
_FIRST_REPEAT_MS: Final = 30_000
_MEMBERS_AT_ONCE: Final = 16
"""In a larger group everybody waits longer, so that all together do not say more."""


def let_go_key(conversation_id: ConversationId) -> str:
    """Of the value that says up to when we claimed, and what we let go."""
    return f"group.files_let_go/{conversation_id}"


class WholeFiles:
    """``saved``: what was stored under ``let_go_key``, or nothing."""

    def __init__(
        self,
        conversation_id: ConversationId,
        is_logged: Callable[[MessageId], bool],
        members: Callable[[], Collection[ParticipantId]],
        saved: str = "",
    ) -> None:
        self._conversation_id = conversation_id
        self._is_logged = is_logged
        self._members = members
        self._noted: dict[ParticipantId, dict[MessageId, tuple[int, bool]]] = {}
        """The newest statement about each file: as of when, and whether it is gone."""
        self._ours: tuple[MessageId, ...] = ()
        as_of, *let_go = saved.split() or ("0",)
        self._as_of = int(as_of)
        self._let_go = tuple(map(MessageId, let_go))
        self._told = 0
        """How many of ``_let_go`` the claims of this round named."""
        self._repeated = REPEATS
        self.repeat_at_ms: UnixMs | None = None
        """When to say again what we have; None: often enough, or nothing."""

    def hold(
        self,
        message_ids: Iterable[MessageId],
        let_go: Collection[MessageId],
        builder: TransitionBuilder,
        now_ms: UnixMs,
    ) -> bool:
        """We have these, the newest last, and ``let_go`` no more.  Return whether that is news."""
        held = tuple(message_ids)
        before, self._ours = self._ours, held[-MAX_WHOLE_FILES:]
        stays = {*held, *let_go}
        gone = (*(each for each in self._let_go if each not in stays), *let_go)[-MAX_LET_GO:]
        if {*before} >= {*self._ours} and gone == self._let_go:
            return False
        self._as_of = max(now_ms, self._as_of + 1)
        self._let_go, self._told = gone, 0
        value = " ".join((str(self._as_of), *gone))
        builder.writes.append(SaveValue(key=let_go_key(self._conversation_id), value=value))
        self._repeated = 0
        self._plan_repeat(now_ms)
        return True

    def repeat_due(self, now_ms: UnixMs) -> bool:
        """Whether to say it again now; plans the next time."""
        if self.repeat_at_ms is None or now_ms < self.repeat_at_ms:
            return False
        self._repeated += 1
        self._plan_repeat(now_ms)
        return bool(self._ours or self._let_go)

    def _plan_repeat(self, now_ms: UnixMs) -> None:
        if self._repeated >= REPEATS:
            self.repeat_at_ms = None
            return
        crowds = -(-len(self._members()) // _MEMBERS_AT_ONCE)
        self.repeat_at_ms = UnixMs(now_ms + (_FIRST_REPEAT_MS * crowds << self._repeated))

    def beside(self, claim: Claim | None) -> Claim | None:
        """The claim with what we say of files."""
        if claim is None or not (self._ours or self._let_go):
            return claim
        if self._told >= len(self._let_go):
            self._told = 0
        # The newest come first: they are asked about soonest.
        newest_first = self._let_go[::-1]
        told = newest_first[self._told : self._told + MAX_WHOLE_FILES]
        self._told += len(told)
        return structs.replace(
            claim, whole_files=self._ours, let_go_files=told, files_as_of=self._as_of
        )

    def hear(
        self, who: ParticipantId, claim: Claim, builder: TransitionBuilder, *, is_own: bool
    ) -> None:
        """Note what a member of the group claims.

        ``is_own``: another instance of ours said this, so what we say next is newer.
        """
        if is_own:
            self._as_of = max(self._as_of, claim.files_as_of)
            return
        noted = self._noted.get(who, {})
        said = dict.fromkeys(claim.whole_files, (claim.files_as_of, False))
        said |= dict.fromkeys(claim.let_go_files, (claim.files_as_of, True))
        news = {
            message_id: statement
            for message_id, statement in said.items()
            if self._is_logged(message_id) and noted.get(message_id, (-1, False)) < statement
        }
        for message_id, (as_of, is_gone) in sorted(news.items()):
            builder.writes.append(
                PutFileHolder(
                    conversation_id=self._conversation_id,
                    message_id=message_id,
                    participant_id=who,
                    held=not is_gone,
                    as_of=as_of,
                )
            )
            builder.notes.append(RowChanged(message_id=message_id))
        self._noted[who] = news if len(noted) > MAX_NOTED else noted | news
