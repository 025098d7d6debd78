"""How far two people have come: what each of them says or wants → the state they are in.

Both have to want it: one asks, the other accepts or declines; who both ask have both accepted.  Who
asks although we accepted has forgotten us, and is answered again.  Whom we declined may ask again,
but is shown at most once a day.  Whoever is blocked is not heard at all.  Nothing here sends,
writes or knows bytes.
"""

from dataclasses import replace

from engine.core.contacts import ContactState
from engine.core.content import Body, ContactAnswer, ContactRequest, ProfileUpdate, Text
from engine.core.errors import LocalProtocolError
from engine.core.ports import ContactRecord
from engine.core.types import UnixMs

DECLINED_FOR_MS = 24 * 3_600_000
_NOT_NOW = {
    ContactState.ASKED: "They have not answered your request yet.",
    ContactState.ASKING: "Accept their request first.",
    ContactState.DECLINED: "The request was declined.",
    ContactState.BLOCKED: "You blocked this person.",
}


class PairContact:
    """The record, and what it was before."""

    def __init__(
        self,
        record: ContactRecord,
        *,
        declined_ms: UnixMs | None = None,
        before_block: ContactState | None = None,
    ) -> None:
        """``declined_ms``: when we declined last."""
        self.record = record
        self.declined_ms = declined_ms
        self.before_block = before_block

    @property
    def state(self) -> ContactState:
        return self.record.state

    @property
    def is_accepted(self) -> bool:
        return self.state is ContactState.ACCEPTED

    @property
    def is_blocked(self) -> bool:
        return self.state is ContactState.BLOCKED

    @property
    def may_be_talked_to(self) -> bool:
        """We agreed, or asked ourselves."""
        return self.state in {ContactState.ASKED, ContactState.ACCEPTED}

    def require_accepted(self) -> None:
        """Raises LocalProtocolError, with the reason in words."""
        if not self.is_accepted:
            raise LocalProtocolError(_NOT_NOW[self.state])

    # --- what we want -------------------------------------------------------------------------

    def become(self, state: ContactState, *, now_ms: UnixMs) -> None:
        if state is ContactState.BLOCKED and self.state is not ContactState.BLOCKED:
            self.before_block = self.state
        if state is ContactState.DECLINED:
            self.declined_ms = now_ms
        self.record = replace(self.record, state=state)

    def rename(self, name: str) -> None:
        self.record = replace(self.record, local_name=name)

    def unblock(self) -> None:
        self.record = replace(self.record, state=self.before_block or ContactState.DECLINED)
        self.before_block = None

    # --- what they say ------------------------------------------------------------------------

    def takes(self, body: Body, *, now_ms: UnixMs, late: bool = False) -> bool:
        """Whether this may be said, as things stand; what may not leaves no trace.

        ``late``: they said something else since, which we know already.  Who declined and then
        thought again has not declined.
        """
        match body:
            case ContactRequest():
                if self.state is not ContactState.DECLINED:
                    return True
                return not late and not self._declined_lately(now_ms)
            case ContactAnswer():
                open_ = self.state in {ContactState.ASKED, ContactState.ACCEPTED}
                return open_ and (body.accepted or not late)
            case ProfileUpdate():
                return self.is_accepted
            case _:
                # Who talks to us although we only asked has accepted, and said so before.
                return self.state in {ContactState.ASKED, ContactState.ACCEPTED}

    def hear(self, body: Body) -> bool:
        """Note what they said, if we take it; True if they are to be told that we accepted."""
        before = self.state
        if isinstance(body, ContactRequest | ContactAnswer | ProfileUpdate) and body.name:
            self.record = replace(self.record, name=body.name, picture=body.picture)
        state = _after(before, body)
        self.record = replace(self.record, state=state)
        return isinstance(body, ContactRequest) and state is ContactState.ACCEPTED

    def _declined_lately(self, now_ms: UnixMs) -> bool:
        return self.declined_ms is not None and 0 <= now_ms - self.declined_ms < DECLINED_FOR_MS


def _after(state: ContactState, body: Body) -> ContactState:
    match body:
        case ContactRequest():
            both_want_it = state in {ContactState.ASKED, ContactState.ACCEPTED}
            return ContactState.ACCEPTED if both_want_it else ContactState.ASKING
        case ContactAnswer():
            return ContactState.ACCEPTED if body.accepted else ContactState.DECLINED
        case Text():
            return ContactState.ACCEPTED
        case _:
            return state
