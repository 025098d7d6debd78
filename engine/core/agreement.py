"""Whether two people want to talk: what one of them knows of it, and what each statement does.

Both know a *round* and what was said in it.  Rounds are ordered; whoever asks after one ended opens
a higher one.  Within a round a decline by either outweighs everything, and asking or accepting on
both sides is agreement.  So what is known only ever grows: what is heard twice changes nothing,
whatever came between, and two who heard all of each other's stand alike in whatever order.

What they said in an earlier round changes nothing, but shows that they may not know better: they
are told where we stand.  That also brings up who removed us and begins anew with a clock that is
behind.  An acceptance counts only if it names the *instance* that we are: our stay with this
person, since the contact exists.  What was recorded before is of another stay.

Nothing here sends, writes, shows or knows who may not be heard at all.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from engine.core.contacts import ContactState
from engine.core.content import MAX_SAFE_INTEGER, NOBODY, ContactAnswer, ContactRequest
from engine.core.errors import LocalProtocolError
from engine.core.ids import InstanceId, UnixMs

Statement: TypeAlias = ContactRequest | ContactAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """``state`` is never BLOCKED here: who is blocked is not heard, so nothing changes."""

    state: ContactState
    round: int = 0
    """0 before anything was said."""
    peer_instance: InstanceId = NOBODY
    """Theirs that spoke last; what we answer is for it."""
    passed_over: int = 0
    """The highest round of a decline that was not for us and not heeded.  None up to it ever is."""

    def opened(self, *, now_ms: UnixMs) -> "Agreement":
        """We ask, after an end or for the first time.  Raises LocalProtocolError at the last."""
        higher = max(now_ms, self.round + 1, 1)
        if higher > MAX_SAFE_INTEGER:
            raise LocalProtocolError("They cannot be asked again. Remove them, then add them anew.")
        return replace(self, state=ContactState.ASKED, round=higher)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    agreement: Agreement
    tell: bool
    """They have to be told where we stand now."""


def heard(agreement: Agreement, said: Statement, *, author: InstanceId, own: InstanceId) -> Heard:
    """``author`` and ``own`` are the instances of who said it and of us."""
    agreement = replace(agreement, peer_instance=author)
    if isinstance(said, ContactRequest):
        return _they_ask(agreement, said.round)
    is_for_us = said.answered_instance == own
    if said.accepted:
        return _they_accept(agreement, said.round, is_for_us=is_for_us)
    return _they_decline(agreement, said.round, is_for_us=is_for_us)


def _they_ask(agreement: Agreement, round_: int) -> Heard:
    ended = round_ == agreement.round and agreement.state is ContactState.DECLINED
    if ended or round_ < agreement.round:
        return Heard(agreement=agreement, tell=True)
    both = agreement.state in {ContactState.ASKED, ContactState.ACCEPTED}
    state = ContactState.ACCEPTED if both else ContactState.ASKING
    return Heard(agreement=replace(agreement, state=state, round=round_), tell=both)


def _they_accept(agreement: Agreement, round_: int, *, is_for_us: bool) -> Heard:
    if not is_for_us or round_ < agreement.round:
        known = agreement.state is ContactState.ACCEPTED and round_ == agreement.round
        return Heard(agreement=agreement, tell=not known)
    state = agreement.state
    if state is ContactState.ASKED:
        state = ContactState.ACCEPTED
    # Whoever accepts what was declined does not know of that: in this round it is declined, too.
    return Heard(
        agreement=replace(agreement, state=state, round=round_),
        tell=state is ContactState.DECLINED,
    )


def _they_decline(agreement: Agreement, round_: int, *, is_for_us: bool) -> Heard:
    """A round that we do not know can only be ended by who knows us, or by who asks alone.

    Else an old decline would undo what is wanted now; told where we stand, they repeat it for us.
    So it is passed over for good: the round may become ours before it is heard again.
    """
    higher = round_ > agreement.round
    if not is_for_us:
        if round_ <= agreement.passed_over:
            return Heard(agreement=agreement, tell=True)
        if higher and agreement.state is not ContactState.ASKING:
            return Heard(agreement=replace(agreement, passed_over=round_), tell=True)
    if round_ < agreement.round:
        return Heard(agreement=agreement, tell=True)
    declined = replace(agreement, state=ContactState.DECLINED, round=round_)
    return Heard(agreement=declined, tell=higher and not is_for_us)
