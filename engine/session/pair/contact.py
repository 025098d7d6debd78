"""The other of a pair: their record, how far the two have come, and what may be said to that.

What statements do is ``engine.core.agreement``'s; here is what a person adds to it: whom we
declined may ask again but is not heard for a day, and whoever is blocked is not heard at all.
Nothing here sends, writes or knows bytes.
"""

from dataclasses import replace

from engine.core.agreement import Agreement, Statement, heard
from engine.core.contacts import ContactState
from engine.core.content import Body, ContactAnswer, ContactRequest, ProfileUpdate
from engine.core.errors import LocalProtocolError
from engine.core.ids import InstanceId, UnixMs
from engine.core.records import ContactRecord

DECLINED_FOR_MS = 24 * 3_600_000
_NOT_NOW = {
    ContactState.ASKED: "They have not answered your request yet.",
    ContactState.ASKING: "Accept their request first.",
    ContactState.DECLINED: "The request was declined.",
    ContactState.BLOCKED: "You blocked this person.",
}


class PairContact:
    """``record.state`` is the agreement's, or BLOCKED above it."""

    def __init__(
        self,
        record: ContactRecord,
        *,
        agreement: Agreement,
        declined_ms: UnixMs | None = None,
    ) -> None:
        """``declined_ms``: when we declined last, and did not think again since."""
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
        """Raises LocalProtocolError, with the reason in words."""
        if not self.is_accepted:
            raise LocalProtocolError(_NOT_NOW[self.state])

    # --- what we want -------------------------------------------------------------------------

    def stand(self, agreement: Agreement) -> None:
        """Of who is not blocked."""
        self.agreement = agreement
        self.record = replace(self.record, state=agreement.state)

    def rename(self, name: str) -> None:
        self.record = replace(self.record, local_name=name)

    def block(self) -> None:
        self.record = replace(self.record, state=ContactState.BLOCKED)

    def unblock(self) -> None:
        self.record = replace(self.record, state=self.agreement.state)

    # --- what they say ------------------------------------------------------------------------

    def admits(self, body: Body, *, now_ms: UnixMs) -> bool:
        """Whether this is taken in before both want to talk.

        What is not is not acknowledged either: so it is said again, and not lost when we agree.
        """
        if isinstance(body, ContactRequest):
            asks_anew = body.round > self.agreement.round
            declined = self.state is ContactState.DECLINED
            return not (declined and asks_anew and self._declined_lately(now_ms))
        return isinstance(body, ContactAnswer)

    def hear(self, said: Statement, *, author: InstanceId, own: InstanceId) -> bool:
        """Note what they said; True if they are to be told where we stand."""
        after = heard(self.agreement, said, author=author, own=own)
        self.stand(after.agreement)
        is_for_us = isinstance(said, ContactRequest) or said.answered_instance == own
        if is_for_us and said.round == self.agreement.round:
            self.know(said)
        return after.tell

    def know(self, said: Statement | ProfileUpdate) -> None:
        """Their name and picture; who declines says neither."""
        if said.name:
            self.record = replace(self.record, name=said.name, picture=said.picture)

    def _declined_lately(self, now_ms: UnixMs) -> bool:
        return self.declined_ms is not None and 0 <= now_ms - self.declined_ms < DECLINED_FOR_MS
