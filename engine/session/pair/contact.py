"""The peer of a pair: their record, the agreement with them, and what may be said in that state.

``engine.core.agreement`` computes what statements do.  This module adds the user's decisions: a
peer that we declined may ask again but is ignored for a day, and a blocked peer is always ignored.
It sends nothing, writes nothing and handles no bytes.
"""

from msgspec.structs import replace

from engine.core.agreement import Agreement, Statement, heard
from engine.core.contacts import ContactState
from engine.core.content import Body, ContactAnswer, ContactRequest, ProfileUpdate
from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import InstanceId, UnixMs
from engine.core.records import ContactRecord

DECLINED_FOR_MS = 24 * 3_600_000
_NOT_NOW = {
    ContactState.ASKED: CommandRefusal.NOT_ANSWERED,
    ContactState.ASKING: CommandRefusal.ACCEPT_FIRST,
    ContactState.DECLINED: CommandRefusal.DECLINED,
    ContactState.BLOCKED: CommandRefusal.BLOCKED,
}


class PairContact:
    """``record.state`` is the agreement's state, or BLOCKED, which overrides it."""

    def __init__(
        self,
        record: ContactRecord,
        *,
        agreement: Agreement,
        declined_ms: UnixMs | None = None,
    ) -> None:
        """``declined_ms``: when we last declined; None if never, or if we changed our mind."""
        self.record = record
        self.agreement = agreement
        self.declined_ms = declined_ms

    @property
    def state(self) -> ContactState:
        return self.record.state

    @property
    def is_accepted(self) -> bool:
        return self.state is ContactState.ACCEPTED

    @property
    def is_blocked(self) -> bool:
        return self.state is ContactState.BLOCKED

    def require_accepted(self) -> None:
        """Raises CommandError."""
        if not self.is_accepted:
            raise CommandError(_NOT_NOW[self.state])

    # --- our decisions ------------------------------------------------------------------------

    def stand(self, agreement: Agreement) -> None:
        """Set the agreement.  Only for a peer that is not blocked."""
        self.agreement = agreement
        self.record = replace(self.record, state=agreement.state)

    def rename(self, name: str) -> None:
        self.record = replace(self.record, local_name=name)

    def block(self) -> None:
        self.record = replace(self.record, state=ContactState.BLOCKED)

    def unblock(self) -> None:
        self.record = replace(self.record, state=self.agreement.state)

    # --- their statements ---------------------------------------------------------------------

    def admits(self, body: Body, *, now_ms: UnixMs) -> bool:
        """Whether ``body`` is taken in before both agree to talk.

        A body that is not admitted is not acknowledged either, so the peer sends it again and it is
        not lost when both agree.
        """
        if isinstance(body, ContactRequest):
            asks_anew = body.round > self.agreement.round
            declined = self.state is ContactState.DECLINED
            return not (declined and asks_anew and self._declined_lately(now_ms))
        return isinstance(body, ContactAnswer)

    def hear(self, said: Statement, *, author: InstanceId, own: InstanceId) -> bool:
        """Apply the peer's statement; True if we have to tell them where we stand."""
        after = heard(self.agreement, said, author=author, own=own)
        self.stand(after.agreement)
        is_for_us = isinstance(said, ContactRequest) or said.answered_instance == own
        if is_for_us and said.round == self.agreement.round:
            self.know(said)
        return after.tell

    def know(self, said: Statement | ProfileUpdate) -> None:
        """Take the peer's name and picture, if given.  Someone who declines gives neither."""
        if said.name:
            self.record = replace(self.record, name=said.name, picture=said.picture)

    def _declined_lately(self, now_ms: UnixMs) -> bool:
        return self.declined_ms is not None and 0 <= now_ms - self.declined_ms < DECLINED_FOR_MS
