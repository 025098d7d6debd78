"""Whether two people want to talk: what one of them knows, and what each statement does to it.

Statements belong to ordered *rounds*.  A request after an end opens a higher round.  Within a round
a decline by either side outweighs everything; asking or accepting on both sides is agreement.  So
knowledge only grows: a repeated statement changes nothing, and two people who heard all of each
other's statements agree on the state, in whatever order they heard them.

A statement of an earlier round changes nothing, but shows that the peer may not know better: we
tell them where we stand.  This also helps a peer that removed us and starts again with a clock that
is behind.  An acceptance counts only if it names our *instance*, our present stay with this person;
a recorded one belongs to another stay.

This module sends, writes and shows nothing.  Blocking is handled elsewhere.
"""

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.core.contacts import ContactState
from engine.core.content import MAX_SAFE_INTEGER, NOBODY, ContactAnswer, ContactRequest
from engine.core.errors import LocalProtocolError
from engine.core.ids import InstanceId, UnixMs

Statement: TypeAlias = ContactRequest | ContactAnswer


class Agreement(Struct, frozen=True, kw_only=True):
    """``state`` is never BLOCKED here: statements of a blocked peer are ignored."""

    state: ContactState
    round: int = 0
    """0 before the first statement."""
    peer_instance: InstanceId = NOBODY
    """The peer's latest instance, which our answers name."""
    passed_over: int = 0
    """The highest round in which a decline not meant for us was ignored; lower ones stay
    ignored."""

    def opened(self, *, now_ms: UnixMs) -> "Agreement":
        """Ask, in a new round.  Raises LocalProtocolError if there is no higher round."""
        higher = max(now_ms, self.round + 1, 1)
        if higher > MAX_SAFE_INTEGER:
            raise LocalProtocolError("They cannot be asked again. Remove them, then add them anew.")
        return replace(self, state=ContactState.ASKED, round=higher)


class Heard(Struct, frozen=True, kw_only=True):
    agreement: Agreement
    tell: bool
    """Whether to tell the peer where we stand."""


def heard(agreement: Agreement, said: Statement, *, author: InstanceId, own: InstanceId) -> Heard:
    """Apply a statement.  ``author`` and ``own`` are the peer's and our instances."""
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
    # A peer that accepts what was declined does not know: in this round it stays declined.
    return Heard(
        agreement=replace(agreement, state=state, round=round_),
        tell=state is ContactState.DECLINED,
    )


def _they_decline(agreement: Agreement, round_: int, *, is_for_us: bool) -> Heard:
    """Apply a decline.

    A round unknown to us can only be ended by a peer that knows our instance, or that alone asks.
    Otherwise an old decline would undo what both want now; told where we stand, the peer repeats it
    for us.  An ignored decline stays ignored: its round may become ours before it is heard again.
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
