"""One group on one device: envelope, membership, SDS channel and content, composed sans-I/O.

Bytes from the network pass, in this order: seal → signed part → SDS message → signer is sender →
membership → SDS state machine → content → rows.  Nothing of a stranger, and nothing that does not
check out, reaches the channel's state; what is refused leaves a named counter.  On the way out a
message is signed once (those bytes are kept and may be resent by anybody) and sealed afresh for
every copy.

It refuses to know how bytes travel and where they are kept: the asyncio runner and the simulator
drive the same class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from engine.codec.content import encode_content, encode_ephemeral
from engine.codec.join import decode_join, verify_join
from engine.codec.message_id import message_id_in
from engine.core.content import NONCE_BYTES, Body, Content, Join, Leave, Typing
from engine.core.counters import Counters
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.invite import group_id_of
from engine.core.membership.members import Membership
from engine.core.ports import (
    ApplyChannel,
    GroupRecord,
    MemberRecord,
    OwnSequence,
    PutMember,
    SaveOwnSequence,
)
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.types import (
    Broadcast,
    BroadcastRepair,
    ChannelState,
    ConnectivityChanged,
    CopyAccepted,
    DeadlineReached,
    Input,
    MembersChanged,
    MessageDelivered,
    MessageReceived,
    ResendRequested,
    RetrieveRequested,
    Send,
    SendContent,
    SendEphemeral,
    SendPurpose,
    Transition,
)
from engine.core.types import (
    AuthorSequence,
    ChannelId,
    ContentTopic,
    MessageId,
    ParticipantId,
    UnixMs,
    WakuHash,
)
from engine.core.waku import WakuMessage
from engine.crypto.hashes import hash64
from engine.crypto.identity import Identity, participant_id_of
from engine.events import GapView
from engine.session.batch import Batch
from engine.session.chance import Chance
from engine.session.narration import Narrator
from engine.session.parking import Parking
from engine.session.types import (
    HeldAside,
    Loaded,
    LoadForRepair,
    MembersNoted,
    Publish,
    RawLoaded,
    SessionSend,
    SessionTransition,
    TypingNoted,
)
from engine.session.typing import TypingBoard
from engine.session.wire import GroupWire, Verified, check_is_fresh

CHANNEL_ID = ChannelId("0")
"""The specification's id for a group without channels."""

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSeed:
    """What a session starts from: a new group, or what the store gives back."""

    group: GroupRecord
    identity: Identity
    members: Sequence[MemberRecord]
    state: ChannelState
    own_sequence: OwnSequence


class GroupSession:
    """Feed it time, bytes and wishes; it gives back what to write, send and show."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        seed: SessionSeed,
        *,
        chance: Chance,
        counters: Counters,
        config: SdsConfig,
        online: bool,
        now_ms: UnixMs,
    ) -> None:
        self._group = seed.group
        self._identity = seed.identity
        self._chance = chance
        self._counters = counters
        self._own_sequence = seed.own_sequence
        group_id = group_id_of(seed.group.conversation_id)
        self._wire = GroupWire(seed.group, seed.identity, chance.random_bytes)
        self._membership = Membership(
            seed.group.conversation_id,
            verify_join=lambda join: verify_join(join, group_id=group_id),
            records=seed.members,
        )
        self._parking: Parking[Verified] = Parking()
        self._typing = TypingBoard()
        self._narrator = Narrator(
            seed.group.conversation_id,
            others=lambda: self._membership.member_ids() - {seed.identity.participant_id},
            typing=self._typing,
            state=seed.state,
            counters=counters,
        )
        self._channel = SdsChannel(
            CHANNEL_ID,
            seed.identity.participant_id,
            config=config,
            message_id_of=message_id_in(group_id),
            sign=self._wire.sign,
            random_unit=chance.random_unit,
            hash64=hash64,
            state=seed.state,
            members=self._membership.member_ids(),
            online=online,
            now_ms=now_ms,
            counters=counters,
        )

    # --- what people want ---------------------------------------------------------------------

    def say(self, body: Body, *, now_ms: UnixMs) -> SessionTransition:
        """Put something into the conversation; the transition names the message's id."""
        author = AuthorSequence(
            instance_id=self._own_sequence.instance_id, sequence=self._own_sequence.sequence + 1
        )
        content = encode_content(
            Content(
                author=author,
                previous_id=self._own_sequence.previous_id or None,
                nonce=self._chance.random_bytes(NONCE_BYTES),
                sent_ms=now_ms,
                body=body,
            )
        )
        transition = self._channel.handle(
            SendContent(content=content, author=author), now_ms=now_ms
        )
        own = next(
            event.message.message_id
            for event in transition.events
            if isinstance(event, MessageDelivered) and event.is_own
        )
        self._own_sequence = OwnSequence(
            instance_id=author.instance_id, sequence=author.sequence, previous_id=own
        )
        self._typing.may_say(active=False, now_ms=now_ms)
        batch = Batch()
        batch.writes.append(
            SaveOwnSequence(
                conversation_id=self._group.conversation_id, own_sequence=self._own_sequence
            )
        )
        self._translate(transition, batch, now_ms=now_ms)
        return batch.finish(own)

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

    # --- what the world says ------------------------------------------------------------------

    def knock(self, message: WakuMessage) -> bool:
        """Whether it is worth a place in the queue; what is not is counted.  Changes nothing."""
        try:
            self._wire.knock(message)
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
            return False
        return True

    def receive(
        self, message: WakuMessage, waku_hash: WakuHash, *, now_ms: UnixMs
    ) -> SessionTransition:
        """Take in one Waku message of this group's content topic.  Never raises for its bytes."""
        batch = Batch()
        try:
            verified = self._wire.open(message, waku_hash)
            for statement in verified.opened.statements:
                self._admit(statement, batch, now_ms=now_ms)
            self._accept(verified, batch, now_ms=now_ms)
            if verified.content is None or self._channel.has_logged(verified.message.message_id):
                self._wire.done_with(verified)
        except RemoteProtocolError as error:
            self._counters.add(f"group.{error.reason}")
        return batch.finish()

    def accepted(
        self, message_ids: Sequence[MessageId], *, peers: int, waku_hash: WakuHash, now_ms: UnixMs
    ) -> SessionTransition:
        """Note that ``peers`` relays took a copy of our messages."""
        batch = Batch()
        for message_id in message_ids:
            copy = CopyAccepted(message_id=message_id, peers=peers, retrieval_hint=waku_hash)
            self._translate(self._channel.handle(copy, now_ms=now_ms), batch, now_ms=now_ms)
        return batch.finish()

    def connectivity(self, *, online: bool, now_ms: UnixMs) -> SessionTransition:
        return self._handle(ConnectivityChanged(online=online), now_ms=now_ms)

    def advance(self, *, now_ms: UnixMs) -> SessionTransition:
        """Do what is due."""
        batch = Batch()
        if self._typing.expire(now_ms):
            batch.notes.append(TypingNoted())
        self._translate(
            self._channel.handle(DeadlineReached(), now_ms=now_ms), batch, now_ms=now_ms
        )
        self._narrator.note_clock(self._channel.clock_offset_ms(now_ms), batch)
        return batch.finish()

    def loaded(self, loaded: Loaded, *, now_ms: UnixMs) -> SessionTransition:
        """Answer whoever asked for what was read."""
        if not isinstance(loaded, RawLoaded):
            raise LocalProtocolError("a group asks for no such thing")
        return SessionTransition(sends=(self.repair(loaded.raw, now_ms=now_ms),))

    def repair(self, raw: bytes, *, now_ms: UnixMs) -> Publish:
        """Wrap somebody's signed part, as we hold it, in our own signature."""
        signed, author = self._wire.wrap_repair(raw, now_ms=now_ms)
        return self._wire.publish(
            signed,
            SendPurpose.RETRANSMISSION,
            statements=self._statements(self._identity.participant_id, author),
            now_ms=now_ms,
        )

    @property
    def content_topic(self) -> ContentTopic:
        return self._wire.content_topic

    @property
    def record(self) -> GroupRecord:
        return self._group

    # --- what can be asked --------------------------------------------------------------------

    @property
    def membership(self) -> Membership:
        return self._membership

    def members(self) -> dict[ParticipantId, MemberRecord]:
        """Whoever ever joined, by id; those who left carry ``left_ms``."""
        return {record.participant_id: record for record in self._membership.everyone()}

    @property
    def other_is_here(self) -> bool:
        return False

    def next_deadline(self) -> UnixMs | None:
        deadlines = [self._channel.next_deadline(), self._typing.next_deadline()]
        return min((d for d in deadlines if d is not None), default=None)

    def gap(self) -> GapView | None:
        """What is known to exist and not here; None if nothing is."""
        return self._narrator.gap()

    def held_aside(self) -> HeldAside:
        """What has no place yet because it claims a time too far ahead."""
        return self._narrator.held_aside()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return self._typing.now()

    @property
    def channel(self) -> SdsChannel:
        """For looking at, by tests and the simulator's checks."""
        return self._channel

    # --- inside -------------------------------------------------------------------------------

    def _handle(self, input_: Input, *, now_ms: UnixMs) -> SessionTransition:
        batch = Batch()
        self._translate(self._channel.handle(input_, now_ms=now_ms), batch, now_ms=now_ms)
        return batch.finish()

    def _statements(self, *people: ParticipantId) -> tuple[bytes, ...]:
        """Join statements to send along.

        Our own travels in every seal, a repaired author's too: so nobody's words have to wait
        until the message that announced them was repaired.
        """
        records = (self._membership.record(who) for who in dict.fromkeys(people))
        return tuple(r.join_statement for r in records if r is not None and r.join_statement)

    def _accept(self, verified: Verified, batch: Batch, *, now_ms: UnixMs) -> None:
        """Membership, then the channel.  Raises RemoteProtocolError."""
        opened, message = verified.opened, verified.message
        if verified.content is not None and isinstance(verified.content.body, Join):
            join = verified.content.body
            if participant_id_of(join.public_key) != opened.sender_id:
                raise RemoteProtocolError("foreign_join")
            self._admit(join.statement, batch, now_ms=now_ms)
        if self._membership.record(opened.sender_id) is None:
            self._park(verified)
            return
        if message.is_ephemeral:
            check_is_fresh(opened.signed_ms, now_ms)
        repaired_by = opened.repaired_by
        if repaired_by is not None and not self._membership.is_member(repaired_by):
            repaired_by = None
        transition = self._channel.handle(
            MessageReceived(
                message=message,
                raw=opened.raw,
                author=verified.content.author if verified.content else None,
                holdings=opened.holdings,
                repaired_by=repaired_by,
                retrieval_hint=verified.waku_hash,
                sent_ms=verified.live_ms,
            ),
            now_ms=now_ms,
        )
        self._translate(transition, batch, now_ms=now_ms)

    def _park(self, verified: Verified) -> None:
        if verified.content is None:
            raise RemoteProtocolError("stranger")
        dropped = self._parking.park(
            verified.message.message_id, verified.opened.sender_id, verified.size, verified
        )
        self._counters.add("group.parked")
        if dropped:
            self._counters.add("group.parking_full", dropped)

    def _admit(self, statement: bytes, batch: Batch, *, now_ms: UnixMs) -> None:
        """Take a self-signed join; what its author said meanwhile comes out of parking."""
        join = decode_join(statement)
        who = participant_id_of(join.public_key)
        known = self._membership.record(who)
        if known is not None and known.join_statement == statement:
            return
        member = self._membership.join(who, join)
        if member is None:
            return
        batch.writes.append(PutMember(member=member))
        batch.notes.append(MembersNoted())
        self._members_changed(batch, now_ms=now_ms)
        for verified in self._parking.take(member.participant_id):
            try:
                self._accept(verified, batch, now_ms=now_ms)
            except RemoteProtocolError as error:
                self._counters.add(f"group.{error.reason}")

    def _members_changed(self, batch: Batch, *, now_ms: UnixMs) -> None:
        changed = MembersChanged(members=self._membership.member_ids())
        self._translate(self._channel.handle(changed, now_ms=now_ms), batch, now_ms=now_ms)

    def _translate(self, transition: Transition, batch: Batch, *, now_ms: UnixMs) -> None:
        if transition.writes:
            writes = tuple(transition.writes)
            batch.writes.append(
                ApplyChannel(conversation_id=self._group.conversation_id, writes=writes)
            )
        self._narrator.hear_writes(transition.writes)
        for send in transition.sends:
            batch.sends.append(self._outgoing(send, now_ms=now_ms))
        for event in transition.events:
            said = self._narrator.tell(event, batch, now_ms=now_ms)
            if (
                said is not None
                and isinstance(event, MessageDelivered)
                and isinstance(said.body, Leave)
            ):
                self._left(event.message.sender_id, said, batch, now_ms=now_ms)

    def _outgoing(self, send: Send, *, now_ms: UnixMs) -> SessionSend:
        match send:
            case BroadcastRepair():
                return LoadForRepair(message_id=send.message_id)
            case Broadcast():
                tracked = send.purpose in {SendPurpose.CONTENT, SendPurpose.RETRANSMISSION}
                return self._wire.publish(
                    send.raw,
                    send.purpose,
                    statements=self._statements(self._identity.participant_id),
                    now_ms=now_ms,
                    message_id=send.message_id if tracked else None,
                )
            case _:
                assert_never(send)

    def _left(self, who: ParticipantId, content: Content, batch: Batch, *, now_ms: UnixMs) -> None:
        member = self._membership.leave(who, content.sent_ms)
        if member is None:
            return
        batch.writes.append(PutMember(member=member))
        batch.notes.append(MembersNoted())
        self._members_changed(batch, now_ms=now_ms)
