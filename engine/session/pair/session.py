"""One person on one device: what two people are to each other, over their messages, sans-I/O.

Bytes from the network pass, in this order: size → seal → signature, of the other of this pair →
MVDS → content → order → what may be said as things stand → rows.  What is refused leaves a named
counter.  The messages themselves are ``engine.session.pair.channel``'s, and who asked, accepted
or declined ``engine.session.pair.statements``'s; here both come together with who is blocked, who
is there, and who is typing.

It refuses to know how bytes travel and where they are kept: see ``engine.session.contract``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from engine.codec.content import decode_pair_ephemeral
from engine.core.agreement import Agreement
from engine.core.contacts import ContactState
from engine.core.content import (
    Body,
    ContactAnswer,
    ContactRequest,
    Presence,
    ProfileUpdate,
    Text,
    Typing,
)
from engine.core.counters import Counters
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ContentTopic, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import ContactRecord, MemberRecord, PutContact, SaveValue
from engine.core.sds.flood_types import SetAsideOf
from engine.core.sds.fork_types import Fork
from engine.core.sds.inputs import StoresMissing
from engine.core.waku import WakuMessage
from engine.crypto.pair import MvdsPart, OpenedPair
from engine.delivery.steps import Arrived, Refused
from engine.events import GapView
from engine.session.clock import SessionClock
from engine.session.contract import Prechecked
from engine.session.entropy import Entropy
from engine.session.group.wire import EPHEMERAL_MAX_AGE_MS, EPHEMERAL_MAX_AHEAD_MS, check_is_fresh
from engine.session.pair.channel import PairChannel
from engine.session.pair.contact import PairContact
from engine.session.pair.lost import signed
from engine.session.pair.order import Placed
from engine.session.pair.presence import PresenceBoard, spread_ms
from engine.session.pair.saved import OwnProfile, SavedPair, before_block_key, both
from engine.session.pair.statements import PairStatements
from engine.session.pair.wire import PairEnvelope
from engine.session.transition_builder import TransitionBuilder
from engine.session.transitions import (
    GapNoted,
    HeldAside,
    Loaded,
    MembersNoted,
    SessionTransition,
    TypingNoted,
)
from engine.session.typing_board import TypingBoard


class PairSession:
    """Feed it time, bytes and wishes; it gives back what to write, send and show."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        seed: SavedPair,
        *,
        profile: Callable[[], OwnProfile],
        entropy: Entropy,
        counters: Counters,
        config: MvdsConfig,
        online: bool,
        now_ms: UnixMs,
        clock_offset_ms: int = 0,
        contacts: Callable[[], int] = lambda: 1,
    ) -> None:
        """``contacts``: how many there are; all of them learn at the same time that we came.

        ``clock_offset_ms``: how far our clock is ahead of ``now_ms``, see ``clock_set``.
        """
        self._identity = seed.identity
        self._profile = profile
        self._contacts = contacts
        self._random_unit = entropy.random_unit
        self._counters = counters
        self._online = online
        self._clock = SessionClock(clock_offset_ms)
        self._contact = PairContact(
            seed.contact, agreement=seed.agreement(), declined_ms=seed.declined_ms
        )
        self._channel = PairChannel(
            seed.channel,
            seed.contact,
            seed.identity,
            state=lambda: self._contact.state,
            entropy=entropy,
            counters=counters,
            config=config,
            online=online and not self._contact.is_blocked,
            now_ms=now_ms,
            clock=self._clock,
        )
        self._statements = PairStatements(
            self._contact,
            self._channel,
            profile=profile,
            counters=counters,
            request_shown_ms=now_ms if seed.channel.order.authors else None,
        )
        self._typing = TypingBoard()
        self._presence = PresenceBoard(last_seen_ms=seed.contact.last_seen_ms)
        self._set_presence(now_ms)

    # --- what people want ---------------------------------------------------------------------

    def say(self, body: Body, *, now_ms: UnixMs) -> SessionTransition:
        """Raises LocalProtocolError, with the reason in words, before both wanted to talk."""
        if not isinstance(body, Text):
            raise LocalProtocolError("this is not said in so many words")
        self._contact.require_accepted()
        self._typing.may_say(active=False, now_ms=now_ms)
        builder = TransitionBuilder()
        return builder.finish(self._channel.say(body, builder, now_ms=now_ms))

    def ask(self, *, now_ms: UnixMs) -> SessionTransition:
        """Ask the other to talk, or accept if they ask; nothing if that was said already."""
        return self._state(self._statements.ask, now_ms=now_ms)

    def accept(self, *, now_ms: UnixMs) -> SessionTransition:
        """Whom we declined, or who declined, is asked."""
        return self._state(self._statements.accept, now_ms=now_ms)

    def decline(self, *, now_ms: UnixMs) -> SessionTransition:
        return self._state(self._statements.decline, now_ms=now_ms)

    def withdraw(self, *, now_ms: UnixMs) -> SessionTransition:
        """Our request.  Raises LocalProtocolError once it is answered."""
        return self._state(self._statements.withdraw, now_ms=now_ms)

    def block(self, *, blocked: bool, now_ms: UnixMs) -> SessionTransition:
        """From now on, or no longer, nothing of theirs is taken in or answered."""
        builder = TransitionBuilder()
        if blocked and not self._contact.is_blocked:
            key = before_block_key(self._contact.record)
            builder.writes.append(SaveValue(key=key, value=self._contact.state))
            self._contact.block()
            self._contact_changed(builder, now_ms=now_ms)
        elif self._contact.is_blocked and not blocked:
            self._contact.unblock()
            self._contact_changed(builder, now_ms=now_ms)
        return builder.finish()

    def rename(self, name: str, *, now_ms: UnixMs) -> SessionTransition:
        """On this device only."""
        builder = TransitionBuilder()
        self._contact.rename(name)
        self._contact_changed(builder, now_ms=now_ms)
        return builder.finish()

    def tell_profile(self, *, now_ms: UnixMs) -> SessionTransition:
        """Tell our name and picture, if we are on speaking terms; else it waits for the answer."""
        builder = TransitionBuilder()
        builder.notes.append(MembersNoted())  # The own name stands in the list of members, too.
        if self._contact.state in {ContactState.ASKED, ContactState.ACCEPTED}:
            own = self._profile()
            update = ProfileUpdate(name=own.name, picture=own.picture)
            self._channel.say(update, builder, now_ms=now_ms)
        return builder.finish()

    def type_now(self, *, active: bool, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        together = self._contact.is_accepted and self._online
        if together and self._typing.may_say(active=active, now_ms=now_ms):
            self._channel.say_unheld(Typing(active=active), builder, now_ms=now_ms)
        return builder.finish()

    def resend(self, message_id: MessageId, *, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        self._channel.resend(message_id, builder, now_ms=now_ms)
        if self._contact.state is ContactState.ASKED:
            self._statements.repeat(builder, now_ms=now_ms)
        return builder.finish()

    def retrieve(self, *, now_ms: UnixMs) -> SessionTransition:
        """Ask whether the other is there: if they are, they send what we lack."""
        self._presence.ask_again(now_ms=now_ms)
        return self.advance(now_ms=now_ms)

    # --- what the world says ------------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> PairEnvelope | None:
        try:
            return self._channel.wire.precheck(message, waku_hash)
        except RemoteProtocolError as error:
            self._counters.add(f"pair.{error.reason}")
            return None

    def receive(
        self,
        message: WakuMessage,
        waku_hash: WakuHash,
        *,
        now_ms: UnixMs,
        stored: bool = False,
    ) -> SessionTransition:
        """Take in one Waku message of the pair's topic or of our inbox.  Never raises for it."""
        builder = TransitionBuilder()
        builder.steps.append(Arrived(now_ms, waku_hash, len(message.payload), stored))
        try:
            checked = self._channel.wire.precheck(message, waku_hash)
            self._take(self._channel.wire.open(checked), builder, now_ms=now_ms)
        except RemoteProtocolError as error:
            self._refuse(error, builder, now_ms=now_ms)
        return builder.finish()

    def receive_checked(self, checked: Prechecked, *, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        builder.steps.append(Arrived(now_ms, checked.waku_hash, checked.payload_bytes))
        try:
            if not isinstance(checked, PairEnvelope):
                raise LocalProtocolError("this was checked by a group")
            self._take(self._channel.wire.open(checked), builder, now_ms=now_ms)
        except RemoteProtocolError as error:
            self._refuse(error, builder, now_ms=now_ms)
        return builder.finish()

    def _refuse(
        self, error: RemoteProtocolError, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        self._counters.add(f"pair.{error.reason}")
        builder.steps.append(Refused(now_ms, error.reason))

    def accepted(
        self,
        message_ids: Sequence[MessageId],
        *,
        peers: int,
        waku_hash: WakuHash,  # noqa: ARG002 - part of the protocol
        now_ms: UnixMs,  # noqa: ARG002 - part of the protocol
    ) -> SessionTransition:
        builder = TransitionBuilder()
        if peers > 0:
            for message_id in message_ids:
                # Of what is held or given up, a receipt may come late, also to another session.
                if self._channel.is_awaited(message_id):
                    self._channel.projector.sent(message_id, builder)
        return builder.finish()

    def loaded(self, loaded: Loaded, *, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        self._channel.loaded(loaded, builder, now_ms=now_ms)
        return builder.finish()

    def connectivity(self, *, online: bool, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        self._online = online
        was_here = self.other_is_here
        self._go_online(builder, now_ms=now_ms)
        if self.other_is_here != was_here:
            builder.notes.append(MembersNoted())
        return builder.finish()

    def clock_set(self, offset_ms: int, *, now_ms: UnixMs) -> SessionTransition:  # noqa: ARG002
        self._clock.offset_ms = offset_ms
        return SessionTransition()

    def advance(self, *, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        if self._typing.expire(now_ms):
            builder.notes.append(TypingNoted())
        if self._presence.expire(now_ms):
            builder.notes.append(MembersNoted())
        self._say_presence(builder, now_ms=now_ms)
        if self._statements.has_to_ask:
            self._statements.ask(builder, now_ms=now_ms)
        if self._channel.awaits and self._presence.nudge(now_ms):
            self._channel.seen(builder, now_ms=now_ms)
        placed, shown = self._channel.advance(builder, now_ms=now_ms)
        self._tell(placed, builder, now_ms=now_ms)
        for one in shown:
            if not self._contact.is_blocked:
                self._channel.projector.shown(one, builder, now_ms=now_ms)
        return builder.finish()

    # --- what Stores say ----------------------------------------------------------------------

    def open_ahead(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        """One to one there is not so much of it."""

    def stores_changed(
        self,
        *,
        reachable: bool,  # noqa: ARG002 - part of the protocol, like all of these
        now_ms: UnixMs,  # noqa: ARG002
    ) -> SessionTransition:
        """What lacks is not known by name here, so nothing is asked for by name."""
        return SessionTransition()

    def stores_answered(
        self,
        *,
        through_ms: UnixMs,  # noqa: ARG002
        now_ms: UnixMs,  # noqa: ARG002
    ) -> SessionTransition:
        return SessionTransition()

    def stores_missing(
        self,
        lacks: StoresMissing,  # noqa: ARG002
        *,
        now_ms: UnixMs,  # noqa: ARG002
    ) -> SessionTransition:
        return SessionTransition()

    def retrieve_kept_back(self, *, now_ms: UnixMs) -> SessionTransition:  # noqa: ARG002
        return SessionTransition()

    def retrieve_lost(
        self,
        message_ids: Sequence[MessageId],
        *,
        now_ms: UnixMs,
    ) -> SessionTransition:
        """Ask whether the other is there: who still has it to send, sends it then.

        What is lost has no id here: ``message_ids`` are of those before which it lacks; none: all.
        """
        if not self._channel.order.lost.ask_again(message_ids, now_ms):
            return SessionTransition()
        transition = self.retrieve(now_ms=now_ms)
        return replace(transition, notes=(*transition.notes, GapNoted()))

    def hasten_stores(self, *, now_ms: UnixMs) -> SessionTransition:  # noqa: ARG002
        return SessionTransition()

    def wants(self, message_id: MessageId) -> bool:  # noqa: ARG002
        return False

    @property
    def oldest_ms(self) -> UnixMs | None:
        """There is nothing before we met."""
        return None

    # --- what can be asked --------------------------------------------------------------------

    @property
    def content_topic(self) -> ContentTopic:
        return self._channel.wire.content_topic

    @property
    def channel(self) -> PairChannel:
        """For looking at, by tests."""
        return self._channel

    @property
    def agreement(self) -> Agreement:
        """For looking at, by tests."""
        return self._contact.agreement

    @property
    def record(self) -> ContactRecord:
        return replace(self._contact.record, last_seen_ms=self._presence.last_seen_ms)

    def members(self) -> Mapping[ParticipantId, MemberRecord]:
        return both(self._contact.record, self._identity, own_name=self._profile().name)

    @property
    def other_is_here(self) -> bool:
        return self._presence.is_here

    def next_deadline(self) -> UnixMs | None:
        deadlines = (
            self._channel.next_deadline(),
            self._presence.next_deadline(),
            self._presence.nudge_ms() if self._channel.awaits else None,
            self._typing.next_deadline(),
        )
        return min((d for d in deadlines if d is not None), default=None)

    def gap(self) -> GapView | None:
        them = self._contact.record
        gap = self._channel.order.gap()
        return signed(gap, them.participant_id, them.local_name or them.name)

    def held_aside(self) -> HeldAside:
        """Nothing is: a clock that is ahead counts as ours."""
        return HeldAside()

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """Nobody: whoever is a nuisance is blocked."""
        return ()

    def forks(self) -> tuple[Fork, ...]:
        """There is nobody else who could be told something different."""
        return ()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return self._typing.now()

    # --- inside: what we say ------------------------------------------------------------------

    def _state(self, say: Callable[..., None], *, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        before = self._contact.record
        say(builder, now_ms=now_ms)
        if self._contact.record != before:
            self._contact_changed(builder, now_ms=now_ms)
        return builder.finish()

    def _say_presence(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        answer_wanted = self._presence.due(now_ms, awaits=self._channel.awaits)
        if answer_wanted is not None:
            presence = Presence(answer_wanted=answer_wanted)
            self._channel.say_unheld(presence, builder, now_ms=now_ms)

    # --- inside: what they say ----------------------------------------------------------------

    def _take(self, opened: OpenedPair, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Raises RemoteProtocolError."""
        if self._contact.is_blocked:
            raise RemoteProtocolError("blocked")
        if isinstance(opened.body, MvdsPart):
            admits = partial(self._contact.admits, now_ms=now_ms)
            placed, too_early = self._channel.take(
                opened.body.payload,
                builder,
                signed_ms=opened.signed_ms,
                admits=None if self._contact.is_accepted else admits,
                now_ms=now_ms,
            )
            if too_early:
                self._statements.heard_too_early()
            self._tell(placed, builder, now_ms=now_ms)
            age_ms = self._clock.at(now_ms) - opened.signed_ms
            if -EPHEMERAL_MAX_AHEAD_MS <= age_ms <= EPHEMERAL_MAX_AGE_MS:
                self._heard(builder, now_ms=now_ms)
            return
        check_is_fresh(opened.signed_ms, self._clock.at(now_ms))
        said = decode_pair_ephemeral(opened.body.content)
        if not self._contact.is_accepted:
            raise RemoteProtocolError("not_accepted")
        self._heard(builder, now_ms=now_ms)
        if isinstance(said, Typing):
            self._heard_typing(builder, active=said.active, now_ms=now_ms)
        elif said.answer_wanted and self._online and self._presence.may_answer(now_ms):
            self._channel.say_unheld(Presence(answer_wanted=False), builder, now_ms=now_ms)

    def _heard(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """A sign of life."""
        if not self._contact.is_accepted:
            return
        self._channel.seen(builder, now_ms=now_ms)
        if self._presence.heard(now_ms):
            builder.writes.append(PutContact(contact=self.record))
            builder.notes.append(MembersNoted())

    def _heard_typing(self, builder: TransitionBuilder, *, active: bool, now_ms: UnixMs) -> None:
        who = self._contact.record.participant_id
        if self._typing.heard(who, active=active, now_ms=now_ms):
            builder.notes.append(TypingNoted())

    def _tell(
        self, placed: Sequence[Placed], builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """What was taken in is shown, however we stand by now: they know that we have it."""
        before = self._contact.record
        for one in placed:
            body = one.content.body
            if self._contact.is_blocked:
                self._counters.add("pair.blocked")
                self._channel.projector.refused(one, builder)
                continue
            self._heard_typing(builder, active=False, now_ms=now_ms)
            if isinstance(body, ContactRequest | ContactAnswer):
                self._statements.hear(one, body, builder, now_ms=now_ms)
                continue
            self._channel.projector.placed(one, builder, now_ms=now_ms)
            if isinstance(body, ProfileUpdate) and self._contact.is_accepted:
                self._contact.know(body)
        self._statements.answer_heard(builder, now_ms=now_ms)
        if self._contact.record != before:
            self._contact_changed(builder, now_ms=now_ms)

    # --- inside: how far we have come ---------------------------------------------------------

    def _contact_changed(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        builder.writes.append(PutContact(contact=self.record))
        builder.notes.append(MembersNoted())
        if self._channel.order.lost.total:
            builder.notes.append(GapNoted())  # It says whose that was, by the name they have now.
        self._go_online(builder, now_ms=now_ms)

    def _go_online(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Or offline: towards somebody who is blocked we are never there."""
        reachable = self._online and not self._contact.is_blocked
        self._channel.connectivity(online=reachable, builder=builder, now_ms=now_ms)
        self._set_presence(now_ms)
        self._say_presence(builder, now_ms=now_ms)

    def _set_presence(self, now_ms: UnixMs) -> None:
        if self._online and self._contact.is_accepted:
            spread = spread_ms(self._contacts())
            delay_ms = int(spread * self._random_unit()) if spread else 0
            self._presence.begin(now_ms=now_ms, delay_ms=delay_ms)
        else:
            self._presence.end()
