"""One group on one device, sans-I/O: envelope, membership, SDS channel and content combined.

Bytes from the network pass these checks in order: seal → signed part → signer is sender → SDS
message → content and message id → membership (``engine.session.group.people``) → SDS state machine
→ rows.  Nothing of a stranger, and nothing that fails a check, reaches the channel's state; every
refusal adds to a named counter.  An outgoing message is signed once, and those bytes are kept for
anyone to resend.  Every copy is sealed afresh.

Transport and storage are left to others: the asyncio runner and the simulator drive the same class.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import assert_never

from engine.codec.content import encode_ephemeral
from engine.core.admin_log.acts import Act, Add, Remove, Role
from engine.core.admin_log.epochs import EPOCH_ID_BYTES
from engine.core.content import AdminEntry, Body, Typing
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.errors import CommandError, CommandRefusal, LocalProtocolError, RemoteProtocolError
from engine.core.governed import Admission
from engine.core.ids import MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.ports import ApplyChannel
from engine.core.records import KeptAside
from engine.core.sds.config import SdsConfig
from engine.core.sds.inputs import (
    ClaimChanged,
    ClockSet,
    ConnectivityChanged,
    CopyAccepted,
    DeadlineReached,
    Input,
    MembersChanged,
    NotForUs,
    RetrieveLostRequested,
    RetrieveQuoted,
    SendContent,
    SendEphemeral,
    ShowSetAside,
)
from engine.core.sds.vocabulary import (
    Claim,
    Message,
    MessageDelivered,
    OwnFromFuture,
    Transition,
)
from engine.core.waku import WakuMessage
from engine.crypto.sealed import SealedGroup
from engine.delivery.steps import Arrived, Refused, SdsStep
from engine.session.clock import SessionClock
from engine.session.group.author_binding import bound_author
from engine.session.group.clock_echoes import ClockEchoes
from engine.session.group.epoch_keys import Saying
from engine.session.group.governed import GovernedPart
from engine.session.group.governed_parts import governance_of, governed_part
from engine.session.group.link_end import LinkEnd
from engine.session.group.outbox import GroupOutbox
from engine.session.group.own_messages import OwnMessages
from engine.session.group.people import GroupPeople
from engine.session.group.projector import GroupProjector
from engine.session.group.queries import GroupQueries
from engine.session.group.reading_back import ReadingBack
from engine.session.group.saved import SavedGroup, channel_of
from engine.session.group.whole_files import WholeFiles
from engine.session.group.wire import (
    GroupEnvelope,
    GroupWire,
    LockedEnvelope,
    Verified,
    received_of,
)
from engine.session.inputs import (
    ChannelInput,
    CopiesAccepted,
    EnvelopeArrived,
    Govern,
    HoldsFiles,
    MessageArrived,
    NotOfGroups,
    Prechecked,
    RetrieveKeptBack,
    Say,
    SessionInput,
    TakeAdmission,
    TypeNow,
)
from engine.session.showing_aside import ShowingAside
from engine.session.transitions import (
    GapNoted,
    GovernedLoaded,
    LoadSetAside,
    RawLoaded,
    SessionTransition,
    SetAsideLoaded,
    TransitionBuilder,
    TypingNoted,
)
from engine.session.typing_board import TypingBoard

UNKNOWN_EPOCH = "unknown_epoch"


class GroupSession(GroupQueries):
    """Handles inputs and returns what to write, send and show."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        seed: SavedGroup,
        *,
        entropy: Entropy,
        counters: Counters,
        config: SdsConfig,
        online: bool,
        now_ms: UnixMs,
        clock_offset_ms: int = 0,
    ) -> None:
        """``clock_offset_ms``: how far our clock is ahead of ``now_ms``, see ``ClockSet``."""
        self._group = seed.group
        self._identity = seed.identity
        self._entropy = entropy
        self._counters = counters
        self._clock = SessionClock(clock_offset_ms)
        self._echoes = ClockEchoes()
        self._wire = GroupWire(seed.group, seed.identity, entropy.random_bytes)
        governance = governance_of(seed)
        self._people = GroupPeople(seed, counters, governance)
        self._online = online
        is_in = governance is None or governance.role(self._people.own_id) is not Role.NOBODY
        self._files = WholeFiles(
            seed.group.conversation_id, self.has_logged, self.membership.member_ids, seed.let_go
        )
        self._typing = TypingBoard()
        self._heard: dict[ParticipantId, UnixMs] = {}
        own_id = seed.identity.participant_id
        said_again = [(r.message_id, r.by) for r in seed.state.replaced if r.sender_id == own_id]
        self._own = OwnMessages(seed.group.conversation_id, seed.own_sequence, said_again, entropy)
        self._projector = GroupProjector(
            seed.group.conversation_id,
            own_id=seed.identity.participant_id,
            others=self._people.others,
            name_of=self._people.name_of,
            typing=self._typing,
            state=seed.state,
            counters=counters,
            is_governed=governance is not None,
        )
        self._channel = channel_of(
            seed, config, sign=self._sign, members=self.membership.member_ids(),
            random_unit=entropy.random_unit, counters=counters, online=online and is_in,
            now_ms=now_ms, clock_offset_ms=clock_offset_ms,
        )  # fmt: skip
        self._aside = ShowingAside(self._channel)
        self.governed = governed_part(
            governance, seed, self._people, self._channel, self._wire,
            entropy=entropy, counters=counters,
        )  # fmt: skip
        self._link_end = LinkEnd(
            seed, self._people, self._channel, self._wire, entropy=entropy, counters=counters
        )
        self._outbox = GroupOutbox(self._wire, self._people, self._clock, counters, self.governed)
        self._read = ReadingBack(
            self._channel, self._wire, self._projector, self._outbox, self._own
        )

    def handle(self, input_: SessionInput, *, now_ms: UnixMs) -> SessionTransition:
        """Never raises for bytes from outside; LocalProtocolError for what a group cannot do."""
        builder = TransitionBuilder()
        if self.governed is not None and self.governed.is_new:
            self._settle(builder, now_ms=now_ms)
        self._handle(input_, builder, now_ms=now_ms)
        self._settle(builder, now_ms=now_ms)
        return builder.finish()

    def _handle(  # noqa: C901, PLR0912, PLR0915 - a table of inputs
        self, input_: SessionInput, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        match input_:
            case MessageArrived():
                self._message_arrived(input_, builder, now_ms=now_ms)
            case EnvelopeArrived(envelope=LockedEnvelope(message=message, waku_hash=waku_hash)):
                self._message_arrived(MessageArrived(message, waku_hash), builder, now_ms=now_ms)
            case EnvelopeArrived(envelope=GroupEnvelope() as envelope):
                builder.steps.append(Arrived(now_ms, envelope.waku_hash, envelope.payload_bytes))
                self._receive(partial(self._wire.open, envelope), builder, now_ms=now_ms)
            case Say():
                if (name := self._people.name_for_newcomers()) is not None:
                    self._say(name, builder, now_ms=now_ms)
                builder.message_id = self._say(input_.body, builder, now_ms=now_ms)
            case Govern():
                builder.message_id = self._govern(input_.act, builder, now_ms=now_ms)
            case TakeAdmission():
                self._take_admission(input_.admission, builder, now_ms=now_ms)
            case TypeNow():
                if self._typing.may_say(active=input_.active, now_ms=now_ms):
                    typing = encode_ephemeral(Typing(active=input_.active))
                    self._feed(SendEphemeral(content=typing), builder, now_ms=now_ms)
            case DeadlineReached():
                self._advance(builder, now_ms=now_ms)
            case HoldsFiles():
                if self._files.hold(input_.message_ids, input_.let_go, builder, now_ms):
                    self._feed(ClaimChanged(), builder, now_ms=now_ms)
            case CopiesAccepted():
                for message_id in input_.message_ids:
                    copy = CopyAccepted(message_id, input_.peers, input_.waku_hash)
                    self._feed(copy, builder, now_ms=now_ms)
            case RetrieveKeptBack():
                ids = self._projector.gaps.kept_back()
                wanted = RetrieveLostRequested(message_ids=ids, of_members=False)
                self._feed(wanted, builder, now_ms=now_ms)
            case RetrieveQuoted(message_id=quoted) if self.governed is not None and (
                self.governed.keys.is_withheld(quoted, self._projector.gaps)
            ):
                raise CommandError(CommandRefusal.NOT_FOR_US)
            case RetrieveLostRequested(message_ids=ids) | RetrieveQuoted(message_ids=ids):
                self._projector.gaps.asked_again(ids, now_ms)
                builder.notes.append(GapNoted())
                self._feed(input_, builder, now_ms=now_ms)
            case ShowSetAside():
                self._feed(input_, builder, now_ms=now_ms)
                builder.sends.append(LoadSetAside(sender_id=input_.sender_id))
            case SetAsideLoaded():
                take = partial(self._take_set_aside, builder=builder, now_ms=now_ms)
                self._aside.place(input_, take, builder, now_ms=now_ms)
            case RawLoaded():
                again = self._read.take(input_, builder, now_ms=now_ms, may_speak=self._is_in)
                if again is not None:
                    self._say(again.body, builder, now_ms=now_ms, replaces=again.replaces)
            case _ if isinstance(input_, GovernedLoaded) and self.governed is not None:
                self.governed.take_loaded(input_, builder, now_ms=now_ms)
            case ConnectivityChanged():
                self._online = input_.online
                self._connect(builder, now_ms=now_ms)
            case ClockSet():
                self._clock.offset_ms = input_.offset_ms
                self._feed(input_, builder, now_ms=now_ms)
            case _ if isinstance(input_, ChannelInput):
                self._feed(input_, builder, now_ms=now_ms)
            case _ if isinstance(input_, NotOfGroups):
                raise LocalProtocolError(f"a group takes no {type(input_).__name__}")
            case _:
                assert_never(input_)

    def _settle(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Do what follows from what the admin log says now."""
        if self.governed is None:
            return
        clock_ms = self._clock.at(now_ms)
        statements = self.governed.settle(builder, now_ms=now_ms, clock_ms=clock_ms)
        for arrived in self.governed.unlocked():
            self._message_arrived(arrived, builder, now_ms=now_ms)
        while parked := self._people.parked(self._channel.wants):
            self._accept_all(parked, builder, now_ms=now_ms)  # It counts for nothing.
        self._wire.sending = self.governed.keys.sending() or self._wire.sending
        if statements is not None:
            self._members_changed(builder, now_ms=now_ms)
            self._admit_all(statements, builder, now_ms)
            self._connect(builder, now_ms=now_ms)
        if self.governed.is_due_anew(now_ms):
            with suppress(CommandError):  # The log may have no room for a key of ours.
                self._prepare(builder, now_ms=now_ms)
                for anew in self.governed.signed_anew(clock_ms=clock_ms):
                    self._feed(anew, builder, now_ms=now_ms)

    def _connect(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Whoever was removed is quiet, as if offline, and still takes what comes."""
        online = self._online and self._is_in
        if online != self._channel.is_online:
            self._feed(ConnectivityChanged(online=online), builder, now_ms=now_ms)

    @property
    def _is_in(self) -> bool:
        """Whether we may say anything: in a governed group its members may."""
        return self.governed is None or self.governed.is_member

    def _say_all(self, all_: Iterable[Saying], builder: TransitionBuilder, now_ms: UnixMs) -> None:
        """What keeps a governed group going, each in its epoch."""
        for saying in all_:
            self._wire.sending = saying.commitment[:EPOCH_ID_BYTES]
            self._say_now(saying.body, builder, now_ms=now_ms)
        if self.governed is not None:
            self._wire.sending = self.governed.keys.sending() or self._wire.sending

    # --- commands -----------------------------------------------------------------------------

    def _say(
        self,
        body: Body,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        replaces: MessageId | None = None,
    ) -> MessageId:
        if self.governed is None or not self.governed.say_waiting(now_ms):
            self._prepare(builder, now_ms=now_ms)
        return self._say_now(body, builder, now_ms=now_ms, replaces=replaces)

    def _say_now(
        self,
        body: Body,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        replaces: MessageId | None = None,
    ) -> MessageId:
        sent_ms = self._people.sent_ms(body, self._clock.at(now_ms))
        if self.governed is not None:
            self._own.begin_if_cut(self.governed.is_cut)
        content, author = self._own.next_content(body, sent_ms, replaces)
        bound = bound_author(self._identity.participant_id, author)
        transition = self._step(SendContent(content, bound, replaces), builder, now_ms=now_ms)
        own = next(
            event.message.message_id
            for event in transition.events
            if isinstance(event, MessageDelivered) and event.is_own
        )
        builder.writes.append(self._own.said(own, author, replaces))
        self._echoes.said(own, bound, now_ms)
        self._typing.may_say(active=False, now_ms=now_ms)
        self._translate(transition, builder, now_ms=now_ms)
        return own

    def _take_admission(
        self, admission: Admission, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        if self.governed is None:
            part = self._link_end.take_admission(admission, builder, now_ms=now_ms)
            self._be_governed(part)
        if self.governed is None:
            raise LocalProtocolError("an admission to another group")
        self.governed.readmit(admission, builder, now_ms, self._clock)
        self._feed(NotForUs(admission.before), builder, now_ms=now_ms)
        self._admit_all(admission.statements, builder, now_ms)
        self._settle(builder, now_ms=now_ms)
        if (join := self.governed.join_to_say()) is not None:
            self._say(join, builder, now_ms=now_ms)

    def _be_governed(self, part: GovernedPart | None) -> None:
        """Go on with ``part``, unless the link goes on."""
        if part is not None:
            self.governed = self._outbox.governed = part
            self._projector.is_governed = True

    def _look_for_end(
        self,
        who: ParticipantId,
        body: Body,
        builder: TransitionBuilder,
        now_ms: UnixMs,
        placed: MessageDelivered | None = None,
    ) -> None:
        """Whether somebody ends the link of this group."""
        if self.governed is not None or not isinstance(body, AdminEntry):
            return
        try:
            part = self._link_end.take(body, who, builder, now_ms=now_ms)
        except RemoteProtocolError as error:
            self._refuse(error, builder, now_ms=now_ms)
            return
        self._be_governed(part)
        if part is not None and placed is not None:
            part.passes(placed, builder, now_ms=now_ms, clock_ms=self._clock.at(now_ms))

    def _end_link(self, act: Act, builder: TransitionBuilder, *, now_ms: UnixMs) -> MessageId:
        """Remove somebody from a group that anyone with the link is in.

        Up to the removal all is said in the key that the link has, which everybody can read.
        """
        clock_ms = self._clock.at(now_ms)
        for entry in self._link_end.entries_to_end(act, clock_ms=clock_ms):
            self._say_now(entry, builder, now_ms=now_ms)
        if self.governed is None:
            raise LocalProtocolError("the link of this group does not end")
        removal = self.governed.entry(act, clock_ms=clock_ms)
        said = self._say_now(removal, builder, now_ms=now_ms)
        self._settle(builder, now_ms=now_ms)
        self._prepare(builder, now_ms=now_ms, fresh=True)
        return said

    def _govern(self, act: Act, builder: TransitionBuilder, *, now_ms: UnixMs) -> MessageId:
        if self.governed is None:
            return self._end_link(act, builder, now_ms=now_ms)
        self.governed.entry(act, clock_ms=self._clock.at(now_ms))  # Or it is refused.
        self._prepare(builder, now_ms=now_ms)  # An Add gives keys of epochs that it knew only.
        entry = self.governed.entry(act, clock_ms=self._clock.at(now_ms))
        said = self._say_now(entry, builder, now_ms=now_ms)
        self._settle(builder, now_ms=now_ms)
        if isinstance(act, Add | Remove) and self.governed.is_member:
            self._prepare(builder, now_ms=now_ms, fresh=isinstance(act, Remove))
        return said

    def _prepare(self, builder: TransitionBuilder, *, now_ms: UnixMs, fresh: bool = False) -> None:
        """See to it that there is an epoch to write in; ``fresh``: a new one."""
        if self.governed is not None:
            keys, clock_ms = self.governed.keys, self._clock.at(now_ms)
            self._say_all(keys.prepare(builder, clock_ms=clock_ms, fresh=fresh), builder, now_ms)

    # --- network, Stores and time -------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> Prechecked | None:
        try:
            return self._wire.precheck(message, waku_hash)
        except RemoteProtocolError as error:
            if self.governed is not None and error.reason == UNKNOWN_EPOCH:
                return LockedEnvelope(message=message, waku_hash=waku_hash)
            self._counters.add(f"group.{error.reason}")
            return None

    def _message_arrived(
        self, arrived: MessageArrived, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        message, waku_hash, stored = arrived.message, arrived.waku_hash, arrived.stored
        if arrived.if_wanted is not None and not self._channel.wants(arrived.if_wanted):
            return
        builder.steps.append(Arrived(now_ms, waku_hash, len(message.payload), stored))
        open_ = partial(self._wire.open_any, message, waku_hash, arrived.opened, stored=stored)
        self._receive(open_, builder, now_ms=now_ms, arrived=arrived)

    def _receive(
        self,
        open_: Callable[[], Verified],
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        arrived: MessageArrived | None = None,
        wanted: bool = False,
    ) -> None:
        try:
            verified = open_()
            for statement in verified.opened.statements:
                self._admit(statement, builder, now_ms=now_ms)
            self._accept(verified, builder, now_ms=now_ms, wanted=wanted)
            if verified.content is None or self._channel.keeps(verified.message.message_id):
                self._wire.done_with(verified)
        except RemoteProtocolError as error:
            if self.governed is not None and arrived and error.reason == UNKNOWN_EPOCH:
                self.governed.lock(arrived, now_ms=now_ms)
                return
            self._refuse(error, builder, now_ms=now_ms)

    def _advance(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Do what is due."""
        if self._typing.expire(now_ms):
            builder.notes.append(TypingNoted())
        if self._channel.is_online and self._files.repeat_due(now_ms):
            self._feed(ClaimChanged(), builder, now_ms=now_ms)
        self._feed(DeadlineReached(), builder, now_ms=now_ms)
        self._aside.go_on(builder, now_ms=now_ms)
        if self.governed is not None:
            sayings = self.governed.advance(
                builder, now_ms, self._clock.at(now_ms), is_history_complete=self.gap() is None
            )
            self._say_all(sayings, builder, now_ms)
        if (name := self._people.name_to_tell(self._clock.at(now_ms))) is not None:
            self._say(name, builder, now_ms=now_ms)

    def _take_set_aside(
        self, kept: KeptAside, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        reopen = partial(self._wire.reopen, kept.raw, kept.retrieval_hint)
        self._receive(reopen, builder, now_ms=now_ms, wanted=True)

    # --- internals ----------------------------------------------------------------------------

    def _sign(self, message: Message, claim: Claim | None, clock_ms: UnixMs) -> bytes:
        return self._wire.sign(message, self._files.beside(claim), clock_ms)

    def _feed(self, input_: Input, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        self._translate(self._step(input_, builder, now_ms=now_ms), builder, now_ms=now_ms)

    def _step(self, input_: Input, builder: TransitionBuilder, *, now_ms: UnixMs) -> Transition:
        transition = self._channel.handle(input_, now_ms=now_ms)
        builder.steps.append(SdsStep(now_ms, input_, transition))
        return transition

    def _refuse(
        self, error: RemoteProtocolError, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        self._counters.add(f"group.{error.reason}")
        builder.steps.append(Refused(now_ms, error.reason))

    def _accept(
        self,
        verified: Verified,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        wanted: bool = False,
    ) -> None:
        """Check membership, then feed the channel.  Raises RemoteProtocolError."""
        opened, message, name = verified.opened, verified.message, verified.message.message_id
        statement = self._people.joins(verified)
        if statement is not None:
            self._admit(statement, builder, now_ms=now_ms)
        member = self.membership.record(opened.sender_id)
        if self.governed is not None:
            self.governed.heard_in(SealedGroup.epoch_of(opened.raw), verified, now_ms=now_ms)
        if member is None and (self.governed is None or not self._channel.wants(name)):
            self._people.park(verified)
            return
        by = opened.repaired_by
        repaired_by = by if by is not None and self.membership.is_member(by) else None
        if self.governed is not None and repaired_by is not None:
            self.governed.told_by_other(message.message_id)
        content, claim = verified.content, opened.claim
        received = received_of(verified, repaired_by, self._clock.at(now_ms), wanted=wanted)
        transition = self._step(received, builder, now_ms=now_ms)
        is_others = message.sender_id != self._identity.participant_id
        if is_others and not verified.stored and repaired_by is None:
            self._heard[message.sender_id] = now_ms
        if claim is not None:
            self._files.hear(message.sender_id, claim, builder, is_own=not is_others)
        if member and is_others and not message.is_ephemeral and self._echoes.awaits(now_ms):
            builder.notes += self._echoes.hear(
                received, opened.signed_ms, member.known_ms, self._clock.offset_ms, now_ms
            )
        self._translate(transition, builder, now_ms=now_ms, received=verified)
        if content is not None and not self._channel.has_logged(message.message_id):
            self._projector.note_arrival(verified)
            if self.governed is not None:
                self.governed.hear(message.sender_id, content.body, builder, now_ms, self._clock)
            self._look_for_end(message.sender_id, content.body, builder, now_ms)

    def _admit_all(self, said: Iterable[bytes], builder: TransitionBuilder, now_ms: UnixMs) -> None:
        for statement in said:
            try:
                self._admit(statement, builder, now_ms=now_ms)
            except RemoteProtocolError as error:
                self._refuse(error, builder, now_ms=now_ms)

    def _admit(self, statement: bytes, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Admit the author of a self-signed join and accept their parked messages."""
        released = self._people.admit(statement, builder, clock_ms=self._clock.at(now_ms))
        if released is None:
            return
        self._members_changed(builder, now_ms=now_ms)
        self._accept_all(released, builder, now_ms=now_ms)

    def _accept_all(
        self, parked: Iterable[Verified], builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        for verified in parked:
            try:
                self._accept(verified, builder, now_ms=now_ms)
            except RemoteProtocolError as error:
                self._refuse(error, builder, now_ms=now_ms)

    def _members_changed(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        self._feed(MembersChanged(members=self.membership.member_ids()), builder, now_ms=now_ms)

    def _translate(
        self,
        transition: Transition,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        received: Verified | None = None,
    ) -> None:
        """``received``: the message that caused the transition, with its decoded content."""
        if transition.writes:
            place, writes = self._group.conversation_id, tuple(transition.writes)
            builder.writes.append(ApplyChannel(conversation_id=place, writes=writes))
        self._projector.gaps.hear_writes(transition.writes)
        for send in transition.sends:
            outgoing = self._outbox.outgoing(send, now_ms=now_ms)
            if outgoing is not None:
                builder.sends.append(outgoing)
        clock_ms = self._clock.at(now_ms)
        for event in transition.events:
            if isinstance(event, OwnFromFuture):
                self._own.begin_instance(event.message_ids[-1])
            if self.governed is not None and not self.governed.passes(
                event, builder, now_ms=now_ms, clock_ms=clock_ms
            ):
                continue
            if not isinstance(event, MessageDelivered):
                self._projector.tell(event, builder, now_ms=now_ms)
                continue
            came = received if received and received.message is event.message else None
            said = self._projector.tell_delivered(event, came, builder, now_ms=now_ms)
            if self._people.said(event.message.sender_id, said.body, said.sent_ms, builder):
                self._members_changed(builder, now_ms=now_ms)
            self._look_for_end(event.message.sender_id, said.body, builder, now_ms, event)
