"""Requests to talk and the answers to them: what we send, and what the peer's do.

Only our latest statement counts: it contains all that the earlier ones said.  It is sent again,
addressed to the peer's latest instance, when something shows that the peer does not know it, unless
it is already on its way.  A statement gets a row only if it changes something.  A stranger's
request makes one row and one notification a day, however often it is repeated.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from engine.core.agreement import Statement
from engine.core.contacts import ContactState
from engine.core.content import NOBODY, ContactAnswer, ContactRequest
from engine.core.counters import Counters
from engine.core.errors import CommandError, CommandRefusal
from engine.core.ids import InstanceId, UnixMs
from engine.core.ports import SaveValue
from engine.session.pair.channel import PairChannel
from engine.session.pair.contact import DECLINED_FOR_MS, PairContact
from engine.session.pair.order import Placed
from engine.session.pair.saved import KeptAgreement, OwnProfile, agreement_key, declined_key
from engine.session.transitions import TransitionBuilder


class _Told(Struct, frozen=True):
    state: ContactState
    round: int
    to: InstanceId


class PairStatements:
    """Each call changes ``contact`` and adds to ``builder``; the session reports the change."""

    def __init__(
        self,
        contact: PairContact,
        channel: PairChannel,
        *,
        profile: Callable[[], OwnProfile],
        counters: Counters,
        request_shown_ms: UnixMs | None,
    ) -> None:
        self._contact = contact
        self._channel = channel
        self._profile = profile
        self._counters = counters
        self._request_shown_ms = request_shown_ms
        self._told: _Told | None = None
        self._has_to_tell = False
        self._changed = False
        self._kept = self._keeping()

    # --- ours ---------------------------------------------------------------------------------

    @property
    def has_to_ask(self) -> bool:
        """Whether our request is still unsent, perhaps because of a crash before it was made."""
        return self._contact.state is ContactState.ASKED and self._contact.agreement.round == 0

    def ask(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Ask the peer to talk, or accept if they ask; does nothing if we asked lately."""
        state = self._contact.state
        if self._contact.is_blocked:
            self._contact.require_accepted()
        elif state is ContactState.ASKING:
            self.accept(builder, now_ms=now_ms)
        elif state is ContactState.DECLINED or self.has_to_ask:
            self._open(builder, now_ms=now_ms)
        elif state is ContactState.ASKED and self._asked_long_ago(now_ms):
            self.repeat(builder, now_ms=now_ms, shown=True)

    def accept(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Accept a request.  After either side declined, ask anew instead."""
        agreement = self._contact.agreement
        if self._contact.state is ContactState.DECLINED:
            self._open(builder, now_ms=now_ms)
        elif self._contact.state is not ContactState.ASKING:
            raise CommandError(CommandRefusal.NOTHING_TO_ACCEPT)
        elif agreement.peer_instance == NOBODY:
            # We know that they ask, but not in which statement.  If both ask, both have accepted.
            self._open(builder, now_ms=now_ms)
        else:
            self._contact.stand(replace(agreement, state=ContactState.ACCEPTED))
            self._think_again(builder)
            self._say(builder, now_ms=now_ms)

    def decline(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        if self._contact.state not in {ContactState.ASKING, ContactState.ACCEPTED}:
            raise CommandError(CommandRefusal.NOTHING_TO_DECLINE)
        if self._contact.agreement.peer_instance == NOBODY:
            # As in ``accept``: a round of ours, that ends at once, answers whatever they said.
            self._contact.stand(self._contact.agreement.opened(now_ms=now_ms))
        self._contact.declined_ms = now_ms
        builder.writes.append(SaveValue(key=declined_key(self._contact.record), value=str(now_ms)))
        self._end(builder, now_ms=now_ms, withdrawn=False)

    def withdraw(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Take back our request.  Raises LocalProtocolError once it is answered."""
        if self._contact.state is not ContactState.ASKED:
            raise CommandError(CommandRefusal.NOTHING_TO_WITHDRAW)
        self._end(builder, now_ms=now_ms, withdrawn=True)

    def repeat(self, builder: TransitionBuilder, *, now_ms: UnixMs, shown: bool = False) -> None:
        """Send our statement again, unless the same one is on its way."""
        if self._told != self._telling() or not self._channel.awaits_statement:
            self._say(builder, now_ms=now_ms, shown=shown)

    def _open(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Open a new round with a request.  Raises LocalProtocolError."""
        self._contact.stand(self._contact.agreement.opened(now_ms=now_ms))
        self._think_again(builder)
        self._say(builder, now_ms=now_ms)

    def _end(self, builder: TransitionBuilder, *, now_ms: UnixMs, withdrawn: bool) -> None:
        self._contact.stand(replace(self._contact.agreement, state=ContactState.DECLINED))
        self._say(builder, now_ms=now_ms, withdrawn=withdrawn)

    def _think_again(self, builder: TransitionBuilder) -> None:
        """Forget our last decline, so that this peer's requests count again."""
        if self._contact.declined_ms is not None:
            self._contact.declined_ms = None
            builder.writes.append(SaveValue(key=declined_key(self._contact.record), value=""))

    def _asked_long_ago(self, now_ms: UnixMs) -> bool:
        return now_ms - self._channel.order.lamport_timestamp > DECLINED_FOR_MS

    def _telling(self) -> _Told:
        """What our statement says.  A request is not addressed to an instance of the peer."""
        now = self._contact.agreement
        asks = now.state is ContactState.ASKED
        return _Told(now.state, now.round, NOBODY if asks else now.peer_instance)

    def _say(
        self,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        shown: bool = True,
        withdrawn: bool = False,
    ) -> None:
        statement = self._statement(withdrawn=withdrawn)
        if statement is not None:
            self._channel.say(statement, builder, shown=shown, now_ms=now_ms)
            self._told = self._telling()
        self._save(builder)

    def _statement(self, *, withdrawn: bool) -> Statement | None:
        """None if we have nothing to state: they ask and we decide, or no round was opened."""
        now, own = self._contact.agreement, self._profile()
        if now.round == 0 or now.state is ContactState.ASKING:
            return None
        if now.state is ContactState.ASKED:
            return ContactRequest(name=own.name, picture=own.picture, round=now.round)
        accepted = now.state is ContactState.ACCEPTED
        return ContactAnswer(
            accepted=accepted,
            round=now.round,
            answered_instance=now.peer_instance,
            withdrawn=withdrawn,
            name=own.name if accepted else "",
            picture=own.picture if accepted else b"",
        )

    # --- theirs -------------------------------------------------------------------------------

    def hear(
        self, one: Placed, said: Statement, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """Apply a statement.  ``answer_heard`` follows after the last one and answers them all."""
        contact, before = self._contact, self._contact.agreement
        own = self._channel.own_instance
        tell = contact.hear(said, author=one.content.author.instance_id, own=own)
        self._has_to_tell = self._has_to_tell or tell
        after = contact.agreement
        changed = before.state is not after.state
        if isinstance(said, ContactRequest) and not changed:
            changed = before.round != after.round or after.state is ContactState.ASKING
        if isinstance(said, ContactRequest) and before.state is ContactState.ASKING:
            changed = not self._shown_lately(now_ms)
        self._changed = self._changed or changed
        if changed:
            if isinstance(said, ContactRequest):
                self._request_shown_ms = now_ms
            self._channel.projector.placed(one, builder, now_ms=now_ms)
        else:
            asks = after.state is ContactState.ASKING
            self._counters.add("pair.asked_again" if asks else "pair.known_statement")

    def heard_too_early(self) -> None:
        """The peer sends messages as if we had agreed; it may not know where we stand."""
        self._has_to_tell = True

    def answer_heard(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        tell, shown = self._has_to_tell, self._changed
        self._has_to_tell = self._changed = False
        if tell:
            self.repeat(builder, now_ms=now_ms, shown=shown)
        self._save(builder)

    def _shown_lately(self, now_ms: UnixMs) -> bool:
        shown_ms = self._request_shown_ms
        return shown_ms is not None and 0 <= now_ms - shown_ms < DECLINED_FOR_MS

    # --- on disk ------------------------------------------------------------------------------

    def _keeping(self) -> KeptAgreement:
        now = self._contact.agreement
        return KeptAgreement(
            round=now.round,
            peer_instance=now.peer_instance,
            passed_over=now.passed_over,
            statement=self._channel.statement,
        )

    def _save(self, builder: TransitionBuilder) -> None:
        if self._kept != (kept := self._keeping()):
            self._kept = kept
            key = agreement_key(self._contact.record)
            builder.writes.append(SaveValue(key=key, value=kept.text()))
