"""The messages of one pair in both directions: MVDS node, order, wire format and delivery states.

To send, the channel adds author, sequence number and Lamport timestamp to a body and hands it to
the MVDS node.  MVDS delivers in any order; the channel gives messages back in their author's order.
The session decides what may be said in the current state of the agreement.
"""

from collections.abc import Callable
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from engine.codec.content import decode_pair_content, encode_content
from engine.codec.mvds import decode_payload
from engine.codec.mvds_id import message_id_of, mvds_id_of, mvds_id_of_row
from engine.core.contacts import ContactState
from engine.core.content import (
    NONCE_BYTES,
    Body,
    ContactAnswer,
    ContactRequest,
    Content,
    EphemeralContent,
)
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.errors import RemoteProtocolError
from engine.core.ids import AuthorSequence, InstanceId, MessageId, Position, UnixMs
from engine.core.mvds.config import MvdsConfig
from engine.core.mvds.node import MvdsNode
from engine.core.mvds.vocabulary import (
    Acknowledged,
    AppendMessage,
    ConnectivityChanged,
    DeadlineReached,
    GivenUp,
    Input,
    LoadRecords,
    MvdsDelivered,
    MvdsId,
    MvdsMessage,
    MvdsState,
    MvdsTransition,
    Payload,
    PayloadReceived,
    PeerSeen,
    RecordsLoaded,
    ResendRequested,
)
from engine.core.ports import ApplyMvds, SaveOwnSequence, SaveValue
from engine.core.ratchet import SaveRatchet
from engine.core.records import ContactRecord, OwnSequence, PairState, WaitingContent
from engine.crypto.identity import Identity
from engine.delivery.steps import MvdsStep
from engine.session.clock import SessionClock
from engine.session.group.clock_echoes import ClockEchoes
from engine.session.pair.order import PairOrder, Placed, Shown
from engine.session.pair.projector import PairProjector
from engine.session.pair.sealing import RatchetSeed
from engine.session.pair.wire import PairWire, SendPolicy
from engine.session.rows import UNKNOWN_WAY, Way
from engine.session.transitions import (
    BodiesLoaded,
    EchoHeard,
    GapNoted,
    RecordsRead,
    TransitionBuilder,
)

MS_PER_SECOND = 1_000
KEY_NUMBER = "pair.key_number"
"""The profile's key for the number of its newest keys for Olm, with whomever."""
MOST_BEFORE_AGREEING = 64
"""Limit on messages kept for a peer before both agree to talk, counted since the program started.
Anyone with our contact link can be such a peer."""


def _is_admitted(message: MvdsMessage, admits: Callable[[Body], bool]) -> bool:
    """Unreadable content is never admitted."""
    try:
        return admits(decode_pair_content(message.body).body)
    except RemoteProtocolError:
        return False


def _is_statement(body: Body) -> bool:
    return isinstance(body, ContactRequest | ContactAnswer)


def _statements_of(payload: Payload) -> Payload:
    return Payload(messages=tuple(m for m in payload.messages if _is_admitted(m, _is_statement)))


class SavedChannel(Struct, frozen=True, kw_only=True):
    """The saved state from which a pair's channel continues."""

    mvds: MvdsState
    order: PairState
    own_sequence: OwnSequence
    ratchet: RatchetSeed
    statement: MvdsId | None = None
    """Our latest request or answer."""


class PairChannel:
    """Each call appends its effects to ``builder`` and returns newly placed messages, in order."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        seed: SavedChannel,
        contact: ContactRecord,
        identity: Identity,
        *,
        state: Callable[[], ContactState],
        entropy: Entropy,
        counters: Counters,
        config: MvdsConfig,
        online: bool,
        now_ms: UnixMs,
        clock: SessionClock,
    ) -> None:
        """``state`` returns the contact state; it decides where and how our messages go."""
        self._conversation_id = contact.conversation_id
        self._own_id = identity.participant_id
        self._known_ms = contact.created_ms
        self._peer_id = contact.participant_id
        self._state = state
        self.statement = seed.statement
        self._entropy = entropy
        self._counters = counters
        self._before_agreeing = 0
        self._online = online
        self._own_sequence = seed.own_sequence
        self._clock = clock
        self._echoes = ClockEchoes()
        self._loaded_before = seed.mvds.loaded_before
        self.wire = PairWire(
            identity,
            peer_public_key=contact.public_key,
            peer_encryption_key=contact.encryption_key,
            seed=seed.ratchet,
            random_bytes=entropy.random_bytes,
            clock=clock,
        )
        self.projector = PairProjector(
            contact.conversation_id,
            own_id=self._own_id,
            peer_id=self._peer_id,
            counters=counters,
        )
        self.order = PairOrder(
            contact.conversation_id,
            seed.order,
            decode=decode_pair_content,
            online=online,
            now_ms=now_ms,
            clock=clock,
            counters=counters,
        )
        self.node = MvdsNode(
            self._own_id,
            config=config,
            id_of=mvds_id_of,
            groups={self.wire.group_id: frozenset([self._peer_id])},
            random_unit=entropy.random_unit,
            state=seed.mvds,
            online=online,
            now_ms=now_ms,
            counters=counters,
        )

    # --- ours ---------------------------------------------------------------------------------

    @property
    def awaits(self) -> bool:
        """Whether any message of ours is unacknowledged."""
        return self.node.awaits

    @property
    def own_instance(self) -> InstanceId:
        """Our author instance since the other became a contact."""
        return self._own_sequence.instance_id

    @property
    def awaits_statement(self) -> bool:
        """Whether our latest request or answer is unacknowledged."""
        return self.statement is not None and self.node.is_awaited(self.statement)

    def say(
        self, body: Body, builder: TransitionBuilder, *, now_ms: UnixMs, shown: bool = True
    ) -> MessageId:
        """Send ``body``.  ``shown``: also add a row, if this kind of body makes one."""
        author = AuthorSequence(
            instance_id=self._own_sequence.instance_id, sequence=self._own_sequence.sequence + 1
        )
        clock_ms = self._clock.at(now_ms)
        content = Content(
            author=author,
            previous_id=self._own_sequence.previous_id or None,
            nonce=self._entropy.random_bytes(NONCE_BYTES),
            sent_ms=clock_ms,
            body=body,
            lamport_timestamp=self.order.stamp(builder.writes, now_ms=now_ms),
        )
        message = MvdsMessage(
            self.wire.group_id, clock_ms // MS_PER_SECOND, encode_content(content)
        )
        append = AppendMessage(message=message, peer_ids=(self._peer_id,))
        transition = self._step(append, builder, now_ms=now_ms)
        mvds_id = mvds_id_of(message)
        message_id = message_id_of(mvds_id)
        self._echoes.said(message_id, author, now_ms)
        if isinstance(body, ContactRequest | ContactAnswer):
            self.statement = mvds_id
        self._own_sequence = OwnSequence(
            stay=self._own_sequence.stay,
            instance_id=author.instance_id,
            sequence=author.sequence,
            previous_id=message_id,
        )
        builder.writes.append(
            SaveOwnSequence(conversation_id=self._conversation_id, own_sequence=self._own_sequence)
        )
        position = Position(lamport_timestamp=content.lamport_timestamp, message_id=message_id)
        self.projector.said(content, position, builder, shown=shown)
        self._translate(transition, builder, now_ms=now_ms)
        return message_id

    def is_awaited(self, message_id: MessageId) -> bool:
        """Whether the peer has not yet acknowledged this message of ours."""
        return self.node.is_awaited(mvds_id_of_row(message_id))

    def say_unheld(
        self, content: EphemeralContent, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """Send ``content`` once, best effort.  It is not stored."""
        builder.sends.append(self.wire.ephemeral(content, now_ms=now_ms))

    def resend(self, message_id: MessageId, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Raises LocalProtocolError if the message is not ours or needs no resending."""
        request = ResendRequested(peer_id=self._peer_id, message_id=mvds_id_of_row(message_id))
        transition = self._step(request, builder, now_ms=now_ms)
        self.projector.tried_again(message_id, builder)
        self._translate(transition, builder, now_ms=now_ms)

    # --- theirs -------------------------------------------------------------------------------

    def take(  # noqa: PLR0913 - keyword-only: what is known about the payload
        self,
        encoded: bytes,
        builder: TransitionBuilder,
        *,
        signed_ms: UnixMs,
        admits: Callable[[Body], bool] | None,
        below_olm: bool = False,
        way: Way = UNKNOWN_WAY,
        now_ms: UnixMs,
    ) -> tuple[list[Placed], bool]:
        """Take one MVDS payload.  Raises RemoteProtocolError and then changes nothing.

        ``below_olm``: it is signed, of a peer that speaks Olm; then only statements count.

        ``admits`` is None once both agree to talk.  Before that it selects the bodies that are
        taken in.  The rest stays unacknowledged, so the peer does not count it as delivered and
        sends it again later.  The second result is True if anything was left out.
        """
        payload, generation = decode_payload(encoded)
        if below_olm:
            payload = _statements_of(payload)
            if not payload.messages:
                self.wire.sealing.refused_signed(signed_ms, clock_ms=self._clock.at(now_ms))
                raise RemoteProtocolError("below_olm")
        self._hear_echo(payload, signed_ms, builder, now_ms=now_ms)
        refused = 0
        if admits is None:
            self._before_agreeing = 0
        else:
            room = MOST_BEFORE_AGREEING - self._before_agreeing
            admitted = (m for m in payload.messages if _is_admitted(m, admits))
            messages = tuple(islice(admitted, max(room, 0)))
            self._before_agreeing += len(messages)
            refused = len(payload.messages) - len(messages) + len(payload.offers)
            if refused:
                self._counters.add("pair.before_agreeing", refused)
            payload = replace(payload, messages=messages, offers=())
        received = PayloadReceived(peer_id=self._peer_id, payload=payload, generation=generation)
        return self._handle(received, builder, way=way, now_ms=now_ms), refused > 0

    def _hear_echo(
        self, payload: Payload, signed_ms: UnixMs, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        """A peer that acknowledges or requests a message of ours has read its id."""
        echo = self._echoes.heard(
            self._peer_id,
            signed_ms,
            named=map(message_id_of, (*payload.acks, *payload.requests)),
            holdings={},
            clock_offset_ms=self._clock.offset_ms,
            now_ms=now_ms,
        )
        if echo is not None:
            builder.notes.append(EchoHeard(echo=echo, known_ms=self._known_ms))

    def seen(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """Note that the peer is online."""
        self._handle(PeerSeen(peer_id=self._peer_id), builder, now_ms=now_ms)

    # --- network and time ---------------------------------------------------------------------

    def advance(
        self, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> tuple[list[Placed], list[Shown]]:
        self._handle(DeadlineReached(), builder, now_ms=now_ms)
        gap = self.order.gap()
        placed, shown = self.order.advance(builder.writes, now_ms=now_ms)
        if self.order.gap() != gap:
            builder.notes.append(GapNoted())
        return placed, shown

    def connectivity(self, *, online: bool, builder: TransitionBuilder, now_ms: UnixMs) -> None:
        if online != self._online:
            self._online = online
            self.order.connectivity(online=online, now_ms=now_ms)
            self._handle(ConnectivityChanged(online=online), builder, now_ms=now_ms)

    def loaded(
        self, loaded: BodiesLoaded | RecordsRead, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        if isinstance(loaded, BodiesLoaded):
            publish = self.wire.carry_loaded(
                loaded.payload, loaded.bodies, self._manner(), now_ms=now_ms
            )
            if publish is not None:
                builder.sends.append(publish)
        else:
            if loaded.load.from_epoch is not None:
                self._loaded_before = loaded.loaded_before
            answer = RecordsLoaded(
                records=loaded.records,
                loaded_before=self._loaded_before,
                asked_ids=loaded.load.ids,
            )
            self._handle(answer, builder, now_ms=now_ms)

    def settle(self, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        """The end of a step: what the seals have to send, and their state for the disk."""
        extra = self.wire.settle(self._manner(), online=self._online, now_ms=now_ms)
        builder.sends[:0] = extra
        sealing = self.wire.sealing
        before, unsaved = sealing.saved, sealing.unsaved()
        if unsaved is not None:
            save = SaveRatchet(conversation_id=self._conversation_id, state=unsaved)
            builder.writes.append(save)
            if before is None or unsaved.ours is not before.ours:
                newest = SaveValue(key=KEY_NUMBER, value=str(sealing.numbers.newest))
                builder.writes.append(newest)

    def next_deadline(self) -> UnixMs | None:
        deadlines = (self.node.next_deadline(), self.order.next_deadline())
        return min((d for d in deadlines if d is not None), default=None)

    # --- internals ----------------------------------------------------------------------------

    def _manner(self) -> SendPolicy:
        """A peer that has not answered our request can only be reached at their inbox."""
        state = self._state()
        return SendPolicy(
            to_inbox=state is ContactState.ASKED,
            talks=state is ContactState.ACCEPTED,
            statement=self.statement,
        )

    def _handle(
        self,
        input_: Input,
        builder: TransitionBuilder,
        *,
        way: Way = UNKNOWN_WAY,
        now_ms: UnixMs,
    ) -> list[Placed]:
        transition = self._step(input_, builder, now_ms=now_ms)
        return self._translate(transition, builder, way=way, now_ms=now_ms)

    def _step(self, input_: Input, builder: TransitionBuilder, *, now_ms: UnixMs) -> MvdsTransition:
        transition = self.node.handle(input_, now_ms=now_ms)
        builder.steps.append(MvdsStep(now_ms, input_, transition))
        return transition

    def _translate(
        self,
        transition: MvdsTransition,
        builder: TransitionBuilder,
        *,
        way: Way = UNKNOWN_WAY,
        now_ms: UnixMs,
    ) -> list[Placed]:
        if transition.writes:
            self.wire.hear_writes(transition.writes)
            builder.writes.append(
                ApplyMvds(conversation_id=self._conversation_id, writes=transition.writes)
            )
        for send in transition.sends:
            if isinstance(send, LoadRecords):
                builder.sends.append(send)
                continue
            out = self.wire.carry(send, self._manner(), now_ms=now_ms)
            if out is not None:
                builder.sends.append(out)
        placed: list[Placed] = []
        for event in transition.events:
            match event:
                case MvdsDelivered():
                    self.projector.arrivals.note(message_id_of(event.message_id), way)
                    placed += self._delivered(event, builder, now_ms=now_ms)
                case Acknowledged():
                    self.projector.held(message_id_of(event.message_id), builder)
                case GivenUp():
                    self.projector.failed(message_id_of(event.message_id), builder)
        return placed

    def _delivered(
        self, event: MvdsDelivered, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> list[Placed]:
        try:
            content = decode_pair_content(event.message.body)
        except RemoteProtocolError as error:
            # It is acknowledged all the same: it would be just as unreadable the next time.
            self._counters.add(f"pair.{error.reason}")
            return []
        if content.author.instance_id == self._own_sequence.instance_id:
            # MVDS does not sign single messages: a peer could send our own messages back as theirs.
            self._counters.add("pair.own_returned")
            return []
        kept = WaitingContent(
            message_id=message_id_of(event.message_id),
            sender_id=self._peer_id,
            content=event.message.body,
            received_ms=now_ms,
        )
        gap = self.order.gap()
        placed = self.order.arrive(content, kept, builder.writes, now_ms=now_ms)
        if self.order.gap() != gap:
            builder.notes.append(GapNoted())
        return placed
