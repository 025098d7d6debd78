"""One one-to-one conversation on one device, sans-I/O.

Bytes from the network pass these checks in order: size → seal → signature by this peer → MVDS →
content → order → whether it may be said now → rows.  Every refusal adds to a named counter.

``engine.session.pair.channel`` handles the messages and ``engine.session.pair.statements`` the
requests and answers.  The session combines both with blocking, presence and typing.  Transport and
storage belong to the runner, see ``engine.session.contract``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import assert_never

from msgspec.structs import replace

from engine.codec.content import decode_pair_ephemeral
from engine.core.agreement import Agreement
from engine.core.contacts import ContactState
from engine.core.content import (
    Annotation,
    Attachment,
    Body,
    ContactAnswer,
    ContactRequest,
    FilesHeld,
    Presence,
    ProfileUpdate,
    Text,
    Typing,
)
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ContentTopic, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.mvds.config import MvdsConfig
from engine.core.ports import PutContact, SaveValue
from engine.core.records import ContactRecord, MemberRecord
from engine.core.sds.floods import SetAsideOf
from engine.core.sds.forks import Fork
from engine.core.sds.inputs import (
    ClockSet,
    ConnectivityChanged,
    DeadlineReached,
    ResendRequested,
    RetrieveLostRequested,
    RetrieveQuoted,
    RetrieveRequested,
    ShowSetAside,
)
from engine.core.waku import WakuMessage
from engine.crypto.pair import EphemeralPart, MvdsPart, OpenedPair
from engine.delivery.steps import Arrived, Refused
from engine.events import GapView
from engine.session.clock import SessionClock
from engine.session.group.wire import EPHEMERAL_MAX_AGE_MS, EPHEMERAL_MAX_AHEAD_MS, check_is_fresh
from engine.session.inputs import (
    AcceptContact,
    AskToTalk,
    ContactInput,
    CopiesAccepted,
    DeclineContact,
    EnvelopeArrived,
    Govern,
    HoldsFiles,
    MessageArrived,
    ProfileChanged,
    RetrieveKeptBack,
    Say,
    SessionInput,
    SetBlocked,
    SetLabel,
    SetLocalName,
    StoreInput,
    TakeAdmission,
    TypeNow,
    WithdrawRequest,
)
from engine.session.pair.channel import PairChannel
from engine.session.pair.contact import PairContact
from engine.session.pair.held_files import HeldFiles
from engine.session.pair.lost import signed
from engine.session.pair.order import Placed
from engine.session.pair.presence import PresenceBoard, spread_ms
from engine.session.pair.saved import OwnProfile, SavedPair, before_block_key, both, files_held_key
from engine.session.pair.statements import PairStatements
from engine.session.pair.wire import PairEnvelope
from engine.session.rows import LIVE, STORE, Way
from engine.session.transitions import (
    EntriesLoaded,
    GapNoted,
    HeldAside,
    MembersNoted,
    PairLoaded,
    RawLoaded,
    SessionTransition,
    SetAsideLoaded,
    TransitionBuilder,
    TypingNoted,
    WrittenLoaded,
)
from engine.session.typing_board import TypingBoard


class PairSession:
    """Handles inputs and returns what to write, send and show."""

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
        announces: Callable[[], bool] = lambda: True,
    ) -> None:
        """``contacts``: how many there are; our announcements to them are spread over time.

        ``announces``: whether we tell the peer that we are online.

        ``clock_offset_ms``: how far our clock is ahead of ``now_ms``, see ``ClockSet``.
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
        self._files = HeldFiles(files_held_key(seed.contact), seed.files_held)
        self._typing = TypingBoard()
        self._presence = PresenceBoard(last_seen_ms=seed.contact.last_seen_ms, announces=announces)
        self._set_presence(now_ms)

    def handle(self, input_: SessionInput, *, now_ms: UnixMs) -> SessionTransition:
        """Never raises for bytes from outside.

        Raises LocalProtocolError for commands that the state forbids, and for inputs of groups.
        """
        builder = TransitionBuilder()
        before = self.forward_secret_since, self.below_olm_ms
        self._handle(input_, builder, now_ms=now_ms)
        self._channel.settle(builder, now_ms=now_ms)
        if (self.forward_secret_since, self.below_olm_ms) != before:
            builder.notes.append(MembersNoted())
        return builder.finish()

    def _handle(  # noqa: C901, PLR0912 - a table of inputs
        self, input_: SessionInput, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        match input_:
            case MessageArrived():
                message, waku_hash = input_.message, input_.waku_hash
                arrived = Arrived(now_ms, waku_hash, len(message.payload), input_.stored)
                builder.steps.append(arrived)
                open_ = partial(self._open_new, message, waku_hash, now_ms=now_ms)
                way = Way(STORE if input_.stored else LIVE)
                self._receive(open_, builder, way=way, now_ms=now_ms)
            case EnvelopeArrived(envelope=PairEnvelope() as envelope):
                builder.steps.append(Arrived(now_ms, envelope.waku_hash, envelope.payload_bytes))
                wire = self._channel.wire
                open_ = partial(wire.open, envelope, now_ms=now_ms)
                self._receive(open_, builder, way=Way(LIVE), now_ms=now_ms)
            case Say():
                self._say(input_.body, builder, now_ms=now_ms)
            case TypeNow():
                self._type_now(input_.active, builder, now_ms=now_ms)
            case DeadlineReached():
                self._advance(builder, now_ms=now_ms)
            case CopiesAccepted():
                self._copies_accepted(input_, builder)
            case ConnectivityChanged():
                self._connectivity(input_.online, builder, now_ms=now_ms)
            case ClockSet():
                self._clock.offset_ms = input_.offset_ms
            case ResendRequested():
                self._resend(input_.message_id, builder, now_ms=now_ms)
            case RetrieveRequested() | RetrieveQuoted():
                self._retrieve(builder, now_ms=now_ms)  # The peer sends what it has for us.
            case RetrieveLostRequested():
                # Lost messages have no id here: these ids name the messages after the gaps.
                if self._channel.order.lost.ask_again(input_.message_ids, now_ms):
                    self._retrieve(builder, now_ms=now_ms)
                    builder.notes.append(GapNoted())
            case _ if isinstance(input_, PairLoaded):
                self._channel.loaded(input_, builder, now_ms=now_ms)
            case _ if isinstance(input_, ContactInput):
                self._about_contact(input_, builder, now_ms=now_ms)
            case HoldsFiles():
                self._hold_files(input_, builder, now_ms=now_ms)
            case _ if isinstance(input_, StoreInput | RetrieveKeptBack):
                pass  # Missing messages have no id here, so there is nothing to look up.
            case (
                EnvelopeArrived() | ShowSetAside() | SetLabel() | RawLoaded() | SetAsideLoaded()
                | WrittenLoaded() | EntriesLoaded() | Govern() | TakeAdmission()
            ):  # fmt: skip
                raise LocalProtocolError(f"a pair takes no {type(input_).__name__}")
            case _:
                assert_never(input_)

    def _about_contact(
        self, input_: ContactInput, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        match input_:
            case AskToTalk():
                self._state(self._statements.ask, builder, now_ms=now_ms)
            case AcceptContact():
                self._state(self._statements.accept, builder, now_ms=now_ms)
            case DeclineContact():
                self._state(self._statements.decline, builder, now_ms=now_ms)
            case WithdrawRequest():
                self._state(self._statements.withdraw, builder, now_ms=now_ms)
            case SetBlocked():
                self._set_blocked(input_.blocked, builder, now_ms=now_ms)
            case SetLocalName():
                self._contact.rename(input_.name)
                self._contact_changed(builder, now_ms=now_ms)
            case ProfileChanged():
                self._tell_profile(builder, now_ms=now_ms)
            case _:
                assert_never(input_)

    # --- commands -----------------------------------------------------------------------------

    def _say(self, body: Body, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Raises LocalProtocolError, with a reason to show, before both agree to talk."""
        if not isinstance(body, Text | Attachment | Annotation):
            raise LocalProtocolError("this is not said in so many words")
        self._contact.require_accepted()
        self._typing.may_say(active=False, now_ms=now_ms)
        builder.message_id = self._channel.say(body, builder, now_ms=now_ms)

    def _state(
        self, say: Callable[..., None], builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        before = self._contact.record
        say(builder, now_ms=now_ms)
        if self._contact.record != before:
            self._contact_changed(builder, now_ms=now_ms)

    def _set_blocked(self, blocked: bool, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        if blocked and not self._contact.is_blocked:
            key = before_block_key(self._contact.record)
            builder.writes.append(SaveValue(key=key, value=self._contact.state))
            self._contact.block()
            self._contact_changed(builder, now_ms=now_ms)
        elif self._contact.is_blocked and not blocked:
            self._contact.unblock()
            self._contact_changed(builder, now_ms=now_ms)

    def _tell_profile(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Send our name and picture if we talk or ask to; otherwise our answer will carry them."""
        builder.notes.append(MembersNoted())  # Our name is in the list of members, too.
        if self._contact.state in {ContactState.ASKED, ContactState.ACCEPTED}:
            own = self._profile()
            update = ProfileUpdate(name=own.name, picture=own.picture)
            self._channel.say(update, builder, now_ms=now_ms)

    def _hold_files(self, held: HoldsFiles, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Tell of files that are here as a whole, and of those that are gone."""
        if self._contact.is_accepted:
            for gone in self._files.gone(held.let_go, builder, now_ms):
                self._channel.say(gone, builder, now_ms=now_ms, shown=False)
            claim = self._files.news(held.message_ids, builder, now_ms)
            if claim is not None:
                self._channel.say(claim, builder, now_ms=now_ms, shown=False)

    def _type_now(self, active: bool, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        together = self._contact.is_accepted and self._online
        if together and self._typing.may_say(active=active, now_ms=now_ms):
            self._channel.say_unheld(Typing(active=active), builder, now_ms=now_ms)

    def _resend(self, message_id: MessageId, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        self._channel.resend(message_id, builder, now_ms=now_ms)
        if self._contact.state is ContactState.ASKED:
            self._statements.repeat(builder, now_ms=now_ms)

    def _retrieve(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Ask whether the peer is online: if so, it sends what is missing here."""
        self._presence.ask_again(now_ms=now_ms)
        self._advance(builder, now_ms=now_ms)

    # --- network, Stores and time -------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> PairEnvelope | None:
        try:
            return self._channel.wire.precheck(message, waku_hash)
        except RemoteProtocolError as error:
            self._counters.add(f"pair.{error.reason}")
            return None

    def _open_new(
        self, message: WakuMessage, waku_hash: WakuHash, *, now_ms: UnixMs
    ) -> OpenedPair | None:
        wire = self._channel.wire
        return wire.open(wire.precheck(message, waku_hash), now_ms=now_ms)

    def _receive(
        self,
        open_: Callable[[], OpenedPair | None],
        builder: TransitionBuilder,
        *,
        way: Way,
        now_ms: UnixMs,
    ) -> None:
        try:
            opened = open_()
            if opened is not None:
                self._take(opened, builder, way=way, now_ms=now_ms)
        except RemoteProtocolError as error:
            self._counters.add(f"pair.{error.reason}")
            builder.steps.append(Refused(now_ms, error.reason))

    def _copies_accepted(self, accepted: CopiesAccepted, builder: TransitionBuilder) -> None:
        if accepted.peers > 0:
            for message_id in accepted.message_ids:
                # After a message is held or given up, a receipt may still come, even to another
                # session.
                if self._channel.is_awaited(message_id):
                    self._channel.projector.sent(message_id, builder)

    def _connectivity(self, online: bool, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        self._online = online
        was_here = self.other_is_here
        self._go_online(builder, now_ms=now_ms)
        if self.other_is_here != was_here:
            builder.notes.append(MembersNoted())

    def _advance(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Do what is due."""
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

    # --- queries ------------------------------------------------------------------------------

    @property
    def oldest_ms(self) -> UnixMs | None:
        """None: nothing was said before the two met."""
        return None

    @property
    def content_topic(self) -> ContentTopic:
        return self._channel.wire.content_topic

    @property
    def channel(self) -> PairChannel:
        """For inspection by tests."""
        return self._channel

    @property
    def agreement(self) -> Agreement:
        """For inspection by tests."""
        return self._contact.agreement

    @property
    def record(self) -> ContactRecord:
        return replace(self._contact.record, last_seen_ms=self._presence.last_seen_ms)

    def members(self) -> Mapping[ParticipantId, MemberRecord]:
        return both(self._contact.record, self._identity, own_name=self._profile().name)

    @property
    def other_is_here(self) -> bool:
        return self._presence.is_here

    @property
    def forward_secret_since(self) -> UnixMs | None:
        """Since when both speak Olm; None: not yet."""
        return self._channel.wire.sealing.since_ms

    @property
    def below_olm_ms(self) -> UnixMs | None:
        """Since when they are not heard, as if their program did not know Olm; None: they are."""
        return self._channel.wire.sealing.below_olm_ms

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
        """Always empty: a timestamp ahead of our clock counts as now."""
        return HeldAside()

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """Always empty: pairs have no quota; the user blocks a peer that sends too much."""
        return ()

    def forks(self) -> tuple[Fork, ...]:
        """Always empty: there is no third person to tell something different."""
        return ()

    def claimed_by(self, message_id: MessageId) -> frozenset[ParticipantId]:  # noqa: ARG002
        """Always empty: nobody claims anything, and the peer has what it wrote."""
        return frozenset()

    def heard(self) -> Mapping[ParticipantId, UnixMs]:
        last_ms = self._presence.last_seen_ms
        return {} if last_ms is None else {self._contact.record.participant_id: last_ms}

    def buffers(self) -> int:
        return self._channel.node.waiting

    def counted(self) -> Mapping[str, int]:
        return self._counters.snapshot()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return self._typing.now()

    # --- internals: what we send --------------------------------------------------------------

    def _say_presence(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        answer_wanted = self._presence.due(now_ms, awaits=self._channel.awaits)
        if answer_wanted is not None:
            presence = Presence(answer_wanted=answer_wanted)
            self._channel.say_unheld(presence, builder, now_ms=now_ms)

    # --- internals: what they send ------------------------------------------------------------

    def _take(
        self, opened: OpenedPair, builder: TransitionBuilder, *, way: Way, now_ms: UnixMs
    ) -> None:
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
                below_olm=not opened.by_olm and self.forward_secret_since is not None,
                way=way,
                now_ms=now_ms,
            )
            if too_early:
                self._statements.heard_too_early()
            self._tell(placed, builder, now_ms=now_ms)
            age_ms = self._clock.at(now_ms) - opened.signed_ms
            if -EPHEMERAL_MAX_AHEAD_MS <= age_ms <= EPHEMERAL_MAX_AGE_MS:
                self._heard(builder, now_ms=now_ms)
            return
        if not isinstance(opened.body, EphemeralPart):
            raise RemoteProtocolError("empty")
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
        """Note a sign of life."""
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
        """Show what was taken in, even if we no longer talk: the peer knows that we have it."""
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
            if isinstance(body, FilesHeld):
                self._files.hear(body, self._contact.record, builder)
        self._statements.answer_heard(builder, now_ms=now_ms)
        if self._contact.record != before:
            self._contact_changed(builder, now_ms=now_ms)

    # --- internals: the agreement -------------------------------------------------------------

    def _contact_changed(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        builder.writes.append(PutContact(contact=self.record))
        builder.notes.append(MembersNoted())
        if self._channel.order.lost.total:
            builder.notes.append(GapNoted())  # Gaps carry the sender's current name.
        self._go_online(builder, now_ms=now_ms)

    def _go_online(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Update connectivity.  Towards a blocked peer we are always offline."""
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
