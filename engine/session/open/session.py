"""One open channel on one device, sans-I/O: wire, SDS channel and content combined.

It speaks as js-waku's ``ReliableChannel`` does: no signature, no membership, no claims, and no seal
but one with a key that everybody there has.  Content is
text, or 22/TOY-CHAT where the first message that can be read is one.  Every other kind of content,
and typing, is switched off.  What strangers send can cost the channel its day, but nothing beyond
it: all of them together have the quota and the answer budget of one.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, assert_never

from msgspec.structs import replace

from engine.codec.message_id import hash64
from engine.codec.open_content import (
    OpenContent,
    decode_open_content,
    encode_text,
    encode_toy_chat,
    message_id_of_content,
    without_controls,
)
from engine.core.content import Body, Text
from engine.core.counters import Counters
from engine.core.entropy import Entropy
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.ports import ApplyChannel, PutOpenChannel
from engine.core.records import KeptAside, MemberRecord, OpenChannelRecord, OpenFormat
from engine.core.sds.channel import SdsChannel
from engine.core.sds.config import SdsConfig
from engine.core.sds.floods import SetAsideOf
from engine.core.sds.forks import Fork
from engine.core.sds.inputs import (
    ClockSet,
    CopyAccepted,
    DeadlineReached,
    Input,
    MessageReceived,
    RetrieveLostRequested,
    RetrieveQuoted,
    SendContent,
    ShowSetAside,
)
from engine.core.sds.vocabulary import (
    AskStore,
    Broadcast,
    BroadcastRepair,
    Buffers,
    ChannelState,
    MessageDelivered,
    Send,
    SendPurpose,
    Transition,
)
from engine.core.waku import WakuMessage
from engine.delivery.steps import Arrived, Refused, SdsStep
from engine.events import GapView
from engine.session.clock import SessionClock
from engine.session.inputs import (
    ChannelInput,
    ContactInput,
    CopiesAccepted,
    EnvelopeArrived,
    Govern,
    HoldsFiles,
    MessageArrived,
    RetrieveKeptBack,
    Say,
    SessionInput,
    SetLabel,
    TakeAdmission,
    TypeNow,
)
from engine.session.open.projector import OpenProjector
from engine.session.open.wire import OpenEnvelope, OpenWire
from engine.session.rows import LIVE, STORE, Way
from engine.session.showing_aside import ShowingAside
from engine.session.transitions import (
    EntriesLoaded,
    GapNoted,
    HeldAside,
    LoadForRepair,
    LoadSetAside,
    MembersNoted,
    PairLoaded,
    Publish,
    RawLoaded,
    SessionSend,
    SessionTransition,
    SetAsideLoaded,
    TransitionBuilder,
    WrittenLoaded,
)

SAME_TEXTS: Final = 64
"""Equal contents have equal ids, so the second "ok" gets a space at its end, the third two."""


def _id_of_content(
    _sender: ParticipantId,
    _channel: ChannelId,
    _lamport: int,
    _history: Sequence[MessageId],
    content: bytes,
) -> MessageId:
    return message_id_of_content(content)


class OpenSession:
    """Handles inputs and returns what to write, send and show."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        channel: OpenChannelRecord,
        state: ChannelState,
        *,
        entropy: Entropy,
        counters: Counters,
        config: SdsConfig,
        online: bool,
        now_ms: UnixMs,
        clock_offset_ms: int = 0,
    ) -> None:
        """``clock_offset_ms``: how far our clock is ahead of ``now_ms``, see ``ClockSet``."""
        self._record = channel
        self._counters = counters
        self._clock = SessionClock(clock_offset_ms)
        self._wire = OpenWire(channel, entropy.random_bytes)
        self._projector = OpenProjector(
            channel.conversation_id, clock=self._clock, state=state, counters=counters
        )
        self._channel = SdsChannel(
            channel.channel_id,
            channel.sender_id,
            config=config,
            message_id_of=_id_of_content,
            sign=self._wire.sign,
            random_unit=entropy.random_unit,
            hash64=hash64,
            state=state,
            members=frozenset(),
            online=online,
            now_ms=now_ms,
            clock_offset_ms=clock_offset_ms,
            counters=counters,
        )
        self._aside = ShowingAside(self._channel)

    def handle(self, input_: SessionInput, *, now_ms: UnixMs) -> SessionTransition:
        """Never raises for bytes from outside.

        Raises LocalProtocolError for commands that an open channel does not have.
        """
        builder = TransitionBuilder()
        self._handle(input_, builder, now_ms=now_ms)
        return builder.finish()

    def _handle(  # noqa: C901, PLR0912 - a table of inputs
        self, input_: SessionInput, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        match input_:
            case MessageArrived():
                self._message_arrived(input_, builder, now_ms=now_ms)
            case EnvelopeArrived(envelope=OpenEnvelope() as envelope):
                step = Arrived(now_ms, envelope.waku_hash, len(envelope.raw))
                builder.steps.append(step)
                self._receive(envelope, builder, now_ms=now_ms)
            case Say():
                builder.message_id = self._say(input_.body, builder, now_ms=now_ms)
            case TypeNow():
                pass  # Nobody in an open channel reads that.
            case SetLabel():
                self._change(replace(self._record, name=input_.label), builder)
            case DeadlineReached():
                self._feed(input_, builder, now_ms=now_ms)
                self._aside.go_on(builder, now_ms=now_ms)
            case CopiesAccepted():
                for message_id in input_.message_ids:
                    copy = CopyAccepted(message_id, input_.peers, input_.waku_hash)
                    self._feed(copy, builder, now_ms=now_ms)
            case RetrieveKeptBack():
                kept_back = self._projector.gaps.kept_back()
                wanted = RetrieveLostRequested(message_ids=kept_back, of_members=False)
                self._feed(wanted, builder, now_ms=now_ms)
            case RetrieveLostRequested():
                self._projector.gaps.asked_again(input_.message_ids, now_ms)
                builder.notes.append(GapNoted())
                self._feed(input_, builder, now_ms=now_ms)
            case HoldsFiles():
                pass  # There are no files.
            case ShowSetAside():
                self._feed(input_, builder, now_ms=now_ms)
                builder.sends.append(LoadSetAside(sender_id=input_.sender_id))
            case SetAsideLoaded():
                take = partial(self._take_set_aside, builder=builder, now_ms=now_ms)
                self._aside.place(input_, take, builder, now_ms=now_ms)
            case RawLoaded(load=LoadForRepair(message_id=message_id), raw=raw):
                builder.sends.append(self._again(message_id, raw, now_ms=now_ms))
            case ClockSet():
                self._clock.offset_ms = input_.offset_ms
                self._feed(input_, builder, now_ms=now_ms)
            case _ if isinstance(input_, ChannelInput):
                self._feed(input_, builder, now_ms=now_ms)
            case (
                EnvelopeArrived() | RetrieveQuoted() | RawLoaded() | WrittenLoaded()
                | EntriesLoaded() | Govern() | TakeAdmission()
            ):  # fmt: skip
                raise LocalProtocolError(f"an open channel takes no {type(input_).__name__}")
            case _ if isinstance(input_, ContactInput | PairLoaded):
                raise LocalProtocolError(f"an open channel takes no {type(input_).__name__}")
            case _:
                assert_never(input_)

    # --- commands -----------------------------------------------------------------------------

    def _say(self, body: Body, builder: TransitionBuilder, *, now_ms: UnixMs) -> MessageId:
        if not isinstance(body, Text):
            raise LocalProtocolError(f"an open channel takes no {type(body).__name__}")
        content = self._new_content(without_controls(body.text), now_ms)
        self._feed(SendContent(content), builder, now_ms=now_ms)
        return message_id_of_content(content)

    def _new_content(self, text: str, now_ms: UnixMs) -> bytes:
        """The text as content that nobody has sent yet."""
        sent_ms, record = self._clock.at(now_ms), self._record
        for number in range(SAME_TEXTS):
            if record.format is OpenFormat.TOY_CHAT:
                at_ms = UnixMs(sent_ms + number * 1_000)
                content = encode_toy_chat(text, record.nick, at_ms)
            else:
                content = encode_text(text + " " * number)
            if not isinstance(decode_open_content(content).body, Text):
                raise LocalProtocolError("nobody could read this text")
            if not self._channel.knows(message_id_of_content(content)):
                return content
        raise LocalProtocolError("this text was sent too often")

    def _change(self, record: OpenChannelRecord, builder: TransitionBuilder) -> None:
        self._record = record
        builder.writes.append(PutOpenChannel(channel=record))
        builder.notes.append(MembersNoted())

    # --- network, Stores and time -------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> OpenEnvelope | None:
        try:
            return self._wire.open(message, waku_hash)
        except RemoteProtocolError as error:
            self._counters.add(f"open.{error.reason}")
            return None

    def _message_arrived(
        self, arrived: MessageArrived, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        if arrived.if_wanted is not None and not self._channel.wants(arrived.if_wanted):
            return
        message, waku_hash = arrived.message, arrived.waku_hash
        builder.steps.append(Arrived(now_ms, waku_hash, len(message.payload), arrived.stored))
        try:
            envelope = self._wire.open(message, waku_hash)
        except RemoteProtocolError as error:
            self._refuse(error, builder, now_ms=now_ms)
        else:
            self._receive(envelope, builder, now_ms=now_ms, stored=arrived.stored)

    def _receive(
        self,
        envelope: OpenEnvelope,
        builder: TransitionBuilder,
        *,
        now_ms: UnixMs,
        stored: bool = False,
        wanted: bool = False,
    ) -> None:
        message = envelope.message
        received = MessageReceived(
            message=message,
            raw=envelope.raw,
            verified=False,
            retrieval_hint=envelope.waku_hash or None,
            stored=stored,
            id_checked=True,
            wanted=wanted,
        )
        if message.content and not self._channel.knows(message.message_id):
            self._projector.arrivals.note(message.message_id, Way(STORE if stored else LIVE))
        try:
            self._feed(received, builder, now_ms=now_ms)
        except RemoteProtocolError as error:
            self._refuse(error, builder, now_ms=now_ms)
            return
        if not message.content or self._channel.keeps(message.message_id):
            self._wire.done_with(envelope.waku_hash)

    def _take_set_aside(
        self, kept: KeptAside, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        envelope = self._wire.reopen(kept.raw, WakuHash(kept.retrieval_hint or b""))
        self._receive(envelope, builder, now_ms=now_ms, stored=True, wanted=True)

    def _again(self, message_id: MessageId, raw: bytes, *, now_ms: UnixMs) -> Publish:
        """A message of anybody's, sent again because somebody asked for it."""
        clock_ms, purpose = self._clock.at(now_ms), SendPurpose.RETRANSMISSION
        return self._wire.publish(raw, purpose, clock_ms=clock_ms, repairs=message_id)

    def _refuse(
        self, error: RemoteProtocolError, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        self._counters.add(f"open.{error.reason}")
        builder.steps.append(Refused(now_ms, error.reason))

    # --- queries ------------------------------------------------------------------------------

    @property
    def record(self) -> OpenChannelRecord:
        return self._record

    @property
    def oldest_ms(self) -> UnixMs | None:
        """Approximate, because js-waku's Lamport timestamps are about the time in milliseconds."""
        lamport = self._channel.oldest_lamport()
        return None if lamport is None else UnixMs(lamport)

    def members(self) -> Mapping[ParticipantId, MemberRecord]:
        """None: nobody is proved to be there."""
        return {}

    @property
    def other_is_here(self) -> bool:
        return False

    def next_deadline(self) -> UnixMs | None:
        deadlines = (self._channel.next_deadline(), self._aside.next_deadline())
        return min((d for d in deadlines if d is not None), default=None)

    def gap(self) -> GapView | None:
        return self._projector.gaps.gap(self._channel.gaps())

    def held_aside(self) -> HeldAside:
        return HeldAside()

    def set_aside(self) -> tuple[SetAsideOf, ...]:
        return self._channel.set_aside()

    def forks(self) -> tuple[Fork, ...]:
        return ()

    def claimed_by(self, message_id: MessageId) -> frozenset[ParticipantId]:  # noqa: ARG002
        """Always empty: nobody is known for sure."""
        return frozenset()

    def heard(self) -> Mapping[ParticipantId, UnixMs]:
        """Always empty, for the same reason."""
        return {}

    def buffers(self) -> Buffers:
        return self._channel.buffers()

    def counted(self) -> Mapping[str, int]:
        return self._counters.snapshot()

    def typing_now(self) -> tuple[ParticipantId, ...]:
        return ()

    @property
    def channel(self) -> SdsChannel:
        """For inspection by tests and the simulator's checks."""
        return self._channel

    # --- internals ----------------------------------------------------------------------------

    def _feed(self, input_: Input, builder: TransitionBuilder, *, now_ms: UnixMs) -> None:
        transition = self._channel.handle(input_, now_ms=now_ms)
        builder.steps.append(SdsStep(now_ms, input_, transition))
        self._translate(transition, builder, now_ms=now_ms)

    def _translate(
        self, transition: Transition, builder: TransitionBuilder, *, now_ms: UnixMs
    ) -> None:
        if transition.writes:
            conversation_id, writes = self._record.conversation_id, tuple(transition.writes)
            builder.writes.append(ApplyChannel(conversation_id=conversation_id, writes=writes))
        self._projector.gaps.hear_writes(transition.writes)
        for send in transition.sends:
            builder.sends.append(self._outgoing(send, now_ms=now_ms))
        for event in transition.events:
            if not isinstance(event, MessageDelivered):
                self._projector.tell(event, builder, now_ms=now_ms)
                continue
            said = self._projector.tell_delivered(event, builder, now_ms=now_ms)
            if not event.is_own:
                self._learn_format(said, builder)

    def _learn_format(self, said: OpenContent, builder: TransitionBuilder) -> None:
        """The first message of others that can be read decides, once."""
        if self._record.format is OpenFormat.AUTO and isinstance(said.body, Text):
            self._change(replace(self._record, format=said.format), builder)

    def _outgoing(self, send: Send, *, now_ms: UnixMs) -> SessionSend:
        match send:
            case BroadcastRepair():
                return LoadForRepair(message_id=send.message_id)
            case Broadcast():
                tracked = send.purpose in {SendPurpose.CONTENT, SendPurpose.RETRANSMISSION}
                return self._wire.publish(
                    send.raw,
                    send.purpose,
                    clock_ms=self._clock.at(now_ms),
                    message_id=send.message_id if tracked else None,
                )
            case AskStore():
                return send
            case _:
                assert_never(send)
