"""One group on one device: envelope, membership, SDS channel and content, composed sans-I/O.

Bytes from the network pass, in this order: seal → signed part → SDS message → signer is sender →
membership (``group_people``) → SDS state machine → content → rows.  Nothing of a stranger, and
nothing that does not check out, reaches the channel's state; what is refused leaves a named
counter.  On the way out a message is signed once (those bytes are kept and may be resent by
anybody) and sealed afresh for every copy.

It refuses to know how bytes travel and where they are kept: the asyncio runner and the simulator
drive the same class.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import assert_never

from engine.codec.content import encode_content, encode_ephemeral
from engine.codec.message_id import message_id_in
from engine.codec.tuples import tuple_bytes
from engine.core.content import INSTANCE_ID_BYTES, NONCE_BYTES, Body, Content, Typing
from engine.core.counters import Counters
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import (
    AuthorSequence,
    ChannelId,
    ContentTopic,
    InstanceId,
    MessageId,
    ParticipantId,
    UnixMs,
    WakuHash,
)
from engine.core.invite import group_id_of
from engine.core.membership.members import Membership
from engine.core.ports import (
    ApplyChannel,
    GroupRecord,
    MemberRecord,
    OwnSequence,
    SaveOwnSequence,
)
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.flood_types import SetAsideOf
from engine.core.sds.fork_types import Fork
from engine.core.sds.inputs import (
    ClockSet,
    ConnectivityChanged,
    CopyAccepted,
    DeadlineReached,
    HastenStoreQuery,
    Input,
    MembersChanged,
    MessageReceived,
    ResendRequested,
    RetrieveLostRequested,
    RetrieveRequested,
    SendContent,
    SendEphemeral,
    ShowSetAside,
    StoreAnswered,
    StoreChanged,
    StoresMissing,
)
from engine.core.sds.types import (
    AskStore,
    Broadcast,
    BroadcastRepair,
    MessageDelivered,
    OwnFromFuture,
    Send,
    SendPurpose,
    Transition,
)
from engine.core.waku import WakuMessage
from engine.crypto.hashes import hash64
from engine.delivery.steps import Arrived, Refused, SdsStep
from engine.events import GapView
from engine.session.clock import SessionClock
from engine.session.contract import Prechecked
from engine.session.entropy import Entropy
from engine.session.group.author_binding import bound_author
from engine.session.group.clock_echoes import ClockEchoes
from engine.session.group.people import GroupPeople
from engine.session.group.projector import GroupProjector
from engine.session.group.saved import SavedGroup
from engine.session.group.wire import GroupEnvelope, GroupWire, Verified, check_is_fresh, content_of
from engine.session.transition_builder import TransitionBuilder
from engine.session.transitions import (
    EchoHeard,
    GapNoted,
    HeldAside,
    Loaded,
    LoadForRepair,
    LoadSetAside,
    LoadToSayAgain,
    Publish,
    RawLoaded,
    RowAdded,
    SessionSend,
    SessionTransition,
    SetAsideLoaded,
    TypingNoted,
)
from engine.session.typing_board import TypingBoard

CHANNEL_ID = ChannelId("0")
"""The specification's id for a group without channels."""

SHOW_AGAIN_MS = 60_000
"""Until more of what waits aside is placed, when there was no room for it."""
_NEW_INSTANCE_DOMAIN = "causerie/2/instance-after"


class GroupSession:
    """Feed it time, bytes and wishes; it gives back what to write, send and show."""

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
        """``clock_offset_ms``: how far our clock is ahead of ``now_ms``, see ``clock_set``."""
        self._group = seed.group
        self._identity = seed.identity
        self._entropy = entropy
        self._counters = counters
        self._own_sequence = seed.own_sequence
        self._clock = SessionClock(clock_offset_ms)
        self._echoes = ClockEchoes()
        self._wire = GroupWire(seed.group, seed.identity, entropy.random_bytes)
        self._people = GroupPeople(seed, counters)
        self._typing = TypingBoard()
        self._show_again_ms: dict[ParticipantId, UnixMs] = {}
        """Whose messages are to be shown and are not all placed."""
        self._projector = GroupProjector(
            seed.group.conversation_id,
            others=self._people.others,
            name_of=self._people.name_of,
            typing=self._typing,
            state=seed.state,
            counters=counters,
        )
        self._channel = SdsChannel(
            CHANNEL_ID,
            seed.identity.participant_id,
            config=config,
            message_id_of=message_id_in(group_id_of(seed.group.conversation_id)),
            sign=self._wire.sign,
            random_unit=entropy.random_unit,
            hash64=hash64,
            state=seed.state,
            members=self.membership.member_ids(),
            online=online,
            now_ms=now_ms,
            clock_offset_ms=clock_offset_ms,
            counters=counters,
        )

    # --- what people want ---------------------------------------------------------------------

    def say(self, body: Body, *, now_ms: UnixMs) -> SessionTransition:
        """Put something into the conversation; the transition names the message's id."""
        builder = TransitionBuilder()
        return builder.finish(self._say(body, builder, now_ms=now_ms))

    def _say(
        self,
        body: Body,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        replaces: MessageId | None = None,
    ) -> MessageId:
        author = AuthorSequence(
            instance_id=self._own_sequence.instance_id, sequence=self._own_sequence.sequence + 1
        )
        content = encode_content(
            Content(
                author=author,
                previous_id=self._own_sequence.previous_id or None,
                nonce=self._entropy.random_bytes(NONCE_BYTES),
                sent_ms=self._people.sent_ms(body, self._clock.at(now_ms)),
                body=body,
                replaces=replaces,
            )
        )
        bound = bound_author(self._identity.participant_id, author)
        transition = self._step(SendContent(content, bound, replaces), builder, now_ms=now_ms)
        own = next(
            event.message.message_id
            for event in transition.events
            if isinstance(event, MessageDelivered) and event.is_own
        )
        self._own_sequence = OwnSequence(
            stay=self._own_sequence.stay,
            instance_id=author.instance_id,
            sequence=author.sequence,
            previous_id=own,
        )
        self._echoes.said(own, bound, now_ms)
        self._typing.may_say(active=False, now_ms=now_ms)
        builder.writes.append(
            SaveOwnSequence(
                conversation_id=self._group.conversation_id, own_sequence=self._own_sequence
            )
        )
        self._translate(transition, builder, now_ms=now_ms)
        return own

    def type_now(self, *, active: bool, now_ms: UnixMs) -> SessionTransition:
        """Tell the others that we are typing, if that is news."""
        if not self._typing.may_say(active=active, now_ms=now_ms):
            return SessionTransition()
        return self._handle(
            SendEphemeral(content=encode_ephemeral(Typing(active=active))), now_ms=now_ms
        )

    def resend(self, message_id: MessageId, *, now_ms: UnixMs) -> SessionTransition:
        """Raises LocalProtocolError if it is not ours or needs no resending."""
        return self._handle(ResendRequested(message_id=message_id), now_ms=now_ms)

    def retrieve(self, *, now_ms: UnixMs) -> SessionTransition:
        return self._handle(RetrieveRequested(), now_ms=now_ms)

    def retrieve_kept_back(self, *, now_ms: UnixMs) -> SessionTransition:
        kept_back = self._projector.kept_back()
        wanted = RetrieveLostRequested(message_ids=kept_back, of_members=False)
        return self._handle(wanted, now_ms=now_ms)

    def retrieve_lost(
        self, message_ids: Sequence[MessageId], *, now_ms: UnixMs
    ) -> SessionTransition:
        self._projector.asked_again(message_ids, now_ms)
        builder = TransitionBuilder()
        builder.notes.append(GapNoted())
        wanted = RetrieveLostRequested(message_ids=tuple(message_ids))
        self._feed(wanted, builder, now_ms=now_ms)
        return builder.finish()

    def show_set_aside(self, sender_id: ParticipantId, *, now_ms: UnixMs) -> SessionTransition:
        """See all that this member sends today, and what was set aside of it so far."""
        builder = TransitionBuilder()
        self._feed(ShowSetAside(sender_id=sender_id), builder, now_ms=now_ms)
        builder.sends.append(LoadSetAside(sender_id=sender_id))
        return builder.finish()

    # --- what the world says ------------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> GroupEnvelope | None:
        """What is worth a place in the queue; None, and counted: it is not.  Changes nothing."""
        try:
            return self._wire.precheck(message, waku_hash)
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
            return None

    def receive(
        self, message: WakuMessage, waku_hash: WakuHash, *, now_ms: UnixMs, stored: bool = False
    ) -> SessionTransition:
        """Take in one Waku message of this group's content topic.  Never raises for its bytes."""
        arrived = Arrived(now_ms, waku_hash, len(message.payload), stored)
        open_ = self._wire.open_stored if stored else self._wire.open_new
        return self._receive(arrived, partial(open_, message, waku_hash), now_ms=now_ms)

    def receive_checked(self, checked: Prechecked, *, now_ms: UnixMs) -> SessionTransition:
        """As ``receive``, after ``precheck``."""
        if not isinstance(checked, GroupEnvelope):
            raise LocalProtocolError("this was checked by a pair")
        arrived = Arrived(now_ms, checked.waku_hash, checked.payload_bytes)
        return self._receive(arrived, partial(self._wire.open, checked), now_ms=now_ms)

    def _receive(
        self, arrived: Arrived, open_: Callable[[], Verified], *, now_ms: UnixMs
    ) -> SessionTransition:
        builder = TransitionBuilder()
        builder.steps.append(arrived)
        try:
            verified = open_()
            for statement in verified.opened.statements:
                self._admit(statement, builder, now_ms=now_ms)
            self._accept(verified, builder, now_ms=now_ms)
            if verified.content is None or self._channel.keeps(verified.message.message_id):
                self._wire.done_with(verified)
        except RemoteProtocolError as error:
            self._refuse(error, builder, now_ms=now_ms)
        return builder.finish()

    def accepted(
        self, message_ids: Sequence[MessageId], *, peers: int, waku_hash: WakuHash, now_ms: UnixMs
    ) -> SessionTransition:
        """Note that ``peers`` relays took a copy of our messages."""
        builder = TransitionBuilder()
        for message_id in message_ids:
            copy = CopyAccepted(message_id=message_id, peers=peers, retrieval_hint=waku_hash)
            self._feed(copy, builder, now_ms=now_ms)
        return builder.finish()

    def connectivity(self, *, online: bool, now_ms: UnixMs) -> SessionTransition:
        return self._handle(ConnectivityChanged(online=online), now_ms=now_ms)

    def clock_set(self, offset_ms: int, *, now_ms: UnixMs) -> SessionTransition:
        self._clock.offset_ms = offset_ms
        return self._handle(ClockSet(offset_ms=offset_ms), now_ms=now_ms)

    def advance(self, *, now_ms: UnixMs) -> SessionTransition:
        """Do what is due."""
        builder = TransitionBuilder()
        if self._typing.expire(now_ms):
            builder.notes.append(TypingNoted())
        self._feed(DeadlineReached(), builder, now_ms=now_ms)
        self._go_on_showing(builder, now_ms=now_ms)
        name = self._people.name_to_tell(self._clock.at(now_ms))
        if name is not None:
            self._say(name, builder, now_ms=now_ms)
        return builder.finish()

    def loaded(self, loaded: Loaded, *, now_ms: UnixMs) -> SessionTransition:
        """Answer whoever asked for what was read."""
        if isinstance(loaded, SetAsideLoaded):
            return self._take_set_aside(loaded, now_ms=now_ms)
        if not isinstance(loaded, RawLoaded):
            raise LocalProtocolError("a group asks for no such thing")
        message_id = loaded.load.message_id
        if isinstance(loaded.load, LoadToSayAgain):
            return self._say_again(message_id, loaded.raw, now_ms=now_ms)
        repair = self.repair(loaded.raw, now_ms=now_ms)
        return SessionTransition(sends=(replace(repair, repairs=message_id),))

    def _take_set_aside(self, loaded: SetAsideLoaded, *, now_ms: UnixMs) -> SessionTransition:
        """Place a few, and ask for the next ones."""
        builder, sender_id = TransitionBuilder(), loaded.load.sender_id
        before = self._channel.waiting_aside(sender_id)
        for kept in loaded.kept:
            try:
                verified = self._wire.reopen(kept.raw, kept.retrieval_hint)
                self._accept(verified, builder, now_ms=now_ms, wanted=True)
            except RemoteProtocolError as error:
                self._refuse(error, builder, now_ms=now_ms)
        # They are no news to anybody who asked for them.
        builder.notes = [
            replace(note, notify=False) if isinstance(note, RowAdded) else note
            for note in builder.notes
        ]
        left = self._channel.waiting_aside(sender_id)
        if left < before:
            builder.sends.append(LoadSetAside(sender_id=sender_id))
        elif left:  # They wait behind a gap, as many as there is room for.
            self._show_again_ms[sender_id] = UnixMs(now_ms + SHOW_AGAIN_MS)
        return builder.finish()

    def _go_on_showing(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        for sender_id in [who for who, at in self._show_again_ms.items() if at <= now_ms]:
            del self._show_again_ms[sender_id]
            builder.sends.append(LoadSetAside(sender_id=sender_id))

    def _say_again(self, message_id: MessageId, raw: bytes, *, now_ms: UnixMs) -> SessionTransition:
        """What we said when our clock was ahead, unless it was said again meanwhile."""
        builder = TransitionBuilder()
        if self._channel.has_logged(message_id):
            self._say(self._wire.body_of(raw), builder, now_ms=now_ms, replaces=message_id)
        return builder.finish()

    def _begin_instance(self, after: MessageId) -> None:
        """The numbers that our wrong clock's messages bear are used up."""
        old = self._own_sequence
        digest = sha256(tuple_bytes(_NEW_INSTANCE_DOMAIN, old.instance_id, after)).digest()
        instance_id = InstanceId(digest[:INSTANCE_ID_BYTES])
        self._own_sequence = replace(
            old, instance_id=instance_id, sequence=0, previous_id=MessageId("")
        )

    def repair(self, raw: bytes, *, now_ms: UnixMs) -> Publish:
        """Wrap somebody's signed part, as we hold it, in our own signature."""
        clock_ms = self._clock.at(now_ms)
        signed, author = self._wire.wrap_repair(raw, clock_ms=clock_ms)
        return self._wire.publish(
            signed,
            SendPurpose.RETRANSMISSION,
            statements=self._people.statements(self._identity.participant_id, author),
            clock_ms=clock_ms,
        )

    # --- what Stores say ----------------------------------------------------------------------

    def open_ahead(self, message: WakuMessage, waku_hash: WakuHash) -> None:
        self._wire.open_ahead(message, waku_hash)

    def stores_changed(self, *, reachable: bool, now_ms: UnixMs) -> SessionTransition:
        return self._handle(StoreChanged(reachable=reachable), now_ms=now_ms)

    def stores_answered(self, *, through_ms: UnixMs, now_ms: UnixMs) -> SessionTransition:
        return self._handle(StoreAnswered(through_ms=through_ms), now_ms=now_ms)

    def stores_missing(self, lacks: StoresMissing, *, now_ms: UnixMs) -> SessionTransition:
        return self._handle(lacks, now_ms=now_ms)

    def hasten_stores(self, *, now_ms: UnixMs) -> SessionTransition:
        return self._handle(HastenStoreQuery(), now_ms=now_ms)

    def wants(self, message_id: MessageId) -> bool:
        return self._channel.wants(message_id)

    @property
    def oldest_ms(self) -> UnixMs | None:
        """A Lamport timestamp is about the time in milliseconds."""
        lamport = self._channel.oldest_lamport()
        return None if lamport is None else UnixMs(lamport)

    @property
    def content_topic(self) -> ContentTopic:
        return self._wire.content_topic

    @property
    def record(self) -> GroupRecord:
        return self._group

    # --- what can be asked --------------------------------------------------------------------

    @property
    def membership(self) -> Membership:
        return self._people.membership

    def members(self) -> dict[ParticipantId, MemberRecord]:
        return self._people.everyone()

    @property
    def other_is_here(self) -> bool:
        return False

    def next_deadline(self) -> UnixMs | None:
        deadlines = (
            self._channel.next_deadline(),
            self._typing.next_deadline(),
            self._people.tell_name_ms(),
            min(self._show_again_ms.values(), default=None),
        )
        return min((d for d in deadlines if d is not None), default=None)

    def gap(self) -> GapView | None:
        """What is known to exist and not here; None if nothing is."""
        return self._projector.gap(self._channel.gaps())

    def held_aside(self) -> HeldAside:
        """What has no place yet because it claims a time too far ahead."""
        return self._projector.held_aside()

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        """Who sends more than a day's quota, and how much of it waits."""
        return self._channel.set_aside()

    def forks(self) -> tuple[Fork, ...]:
        return self._channel.forks()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return self._typing.now()

    @property
    def channel(self) -> SdsChannel:
        """For looking at, by tests and the simulator's checks."""
        return self._channel

    # --- inside -------------------------------------------------------------------------------

    def _handle(self, input_: Input, *, now_ms: UnixMs) -> SessionTransition:
        builder = TransitionBuilder()
        self._feed(input_, builder, now_ms=now_ms)
        return builder.finish()

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
        """Membership, then the channel.  Raises RemoteProtocolError."""
        opened, message = verified.opened, verified.message
        statement = self._people.joins(verified)
        if statement is not None:
            self._admit(statement, builder, now_ms=now_ms)
        if self.membership.record(opened.sender_id) is None:
            self._people.park(verified)
            return
        if message.is_ephemeral:
            check_is_fresh(opened.signed_ms, self._clock.at(now_ms))
        repaired_by = opened.repaired_by
        if repaired_by is not None and not self.membership.is_member(repaired_by):
            repaired_by = None
        content, claim = verified.content, opened.claim
        received = MessageReceived(
            message=message,
            raw=opened.raw,
            author=bound_author(message.sender_id, content.author) if content else None,
            holdings=claim.holdings if claim else None,
            repaired_by=repaired_by,
            retrieval_hint=verified.waku_hash,
            stored=verified.stored,
            held_aside=claim.held_aside if claim else (),
            previous_id=content.previous_id if content else None,
            replaces=content.replaces if content else None,
            id_checked=True,
            wanted=wanted,
        )
        transition = self._step(received, builder, now_ms=now_ms)
        is_others = message.sender_id != self._identity.participant_id
        if is_others and not message.is_ephemeral and self._echoes.awaits(now_ms):
            self._hear_echo(received, opened.signed_ms, builder, now_ms=now_ms)
        self._translate(transition, builder, now_ms=now_ms, received=verified)

    def _hear_echo(
        self,
        received: MessageReceived,
        signed_ms: UnixMs,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
    ) -> None:
        message = received.message
        echo = self._echoes.heard(
            message.sender_id,
            signed_ms,
            named=chain((e.message_id for e in message.causal_history), received.held_aside),
            holdings=received.holdings or {},
            clock_offset_ms=self._clock.offset_ms,
            now_ms=now_ms,
        )
        member = self.membership.record(message.sender_id)
        if echo is not None and member is not None:
            builder.notes.append(EchoHeard(echo=echo, known_ms=member.known_ms))

    def _admit(self, statement: bytes, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Take a self-signed join; what its author said meanwhile comes out of parking."""
        released = self._people.admit(statement, builder, clock_ms=self._clock.at(now_ms))
        if released is None:
            return
        self._members_changed(builder, now_ms=now_ms)
        for verified in released:
            try:
                self._accept(verified, builder, now_ms=now_ms)
            except RemoteProtocolError as error:
                self._refuse(error, builder, now_ms=now_ms)

    def _members_changed(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        changed = MembersChanged(members=self.membership.member_ids())
        self._feed(changed, builder, now_ms=now_ms)

    def _translate(
        self,
        transition: Transition,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        received: Verified | None = None,
    ) -> None:
        """``received``: the message that led to it, whose content is decoded already."""
        if transition.writes:
            writes = tuple(transition.writes)
            builder.writes.append(
                ApplyChannel(conversation_id=self._group.conversation_id, writes=writes)
            )
        self._projector.hear_writes(transition.writes)
        for send in transition.sends:
            builder.sends.append(self._outgoing(send, now_ms=now_ms))
        for event in transition.events:
            if isinstance(event, OwnFromFuture):
                self._begin_instance(event.message_ids[-1])
            if not isinstance(event, MessageDelivered):
                self._projector.tell(event, builder, now_ms=now_ms)
                continue
            said = content_of(event.message, received)
            self._projector.tell_delivered(event, said, builder, now_ms=now_ms)
            if self._people.said(event.message.sender_id, said.body, said.sent_ms, builder):
                self._members_changed(builder, now_ms=now_ms)

    def _outgoing(self, send: Send, *, now_ms: UnixMs) -> SessionSend:
        match send:
            case BroadcastRepair():
                return LoadForRepair(message_id=send.message_id)
            case Broadcast():
                tracked = send.purpose in {SendPurpose.CONTENT, SendPurpose.RETRANSMISSION}
                return self._wire.publish(
                    send.raw,
                    send.purpose,
                    statements=self._people.statements(self._identity.participant_id),
                    clock_ms=self._clock.at(now_ms),
                    message_id=send.message_id if tracked else None,
                )
            case AskStore():
                return send
            case _:
                assert_never(send)
