"""The wire format of a pair: payloads and ephemeral contents, sealed afresh for every copy.

Recently written bodies stay in memory, so a new message goes out without a disk read; the runner
loads the others.  Hashes of handled envelopes are remembered, so a replay costs only a look-up.
Which seal a payload gets is decided in ``engine.session.pair.sealing``; what has to go out besides,
our keys or a hello, is added by ``settle`` at the end of each step.

Until the peer answers our request, everything goes to their inbox topic, where strangers are read.
While the two do not talk, only our latest statement is sent.  It goes as a MESSAGE even if MVDS
would only offer it, because before an agreement no peer requests anything.
"""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from engine.codec.content import encode_ephemeral
from engine.codec.mvds import encode_payload
from engine.codec.mvds_id import message_id_of
from engine.codec.pair import SealedPair, decode_any_pair_envelope
from engine.core.content import EphemeralContent
from engine.core.entropy import RandomBytes
from engine.core.errors import CryptoError, RemoteProtocolError
from engine.core.ids import ContentTopic, MessageId, UnixMs, WakuHash
from engine.core.mvds.vocabulary import (
    DropMessage,
    KeepMessage,
    MvdsId,
    MvdsMessage,
    MvdsWrite,
    Payload,
    SendPayload,
)
from engine.core.sds.vocabulary import SendPurpose
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.pair import (
    EphemeralPart,
    MvdsPart,
    OpenedPair,
    inbox_topic_of,
)
from engine.session.clock import SessionClock
from engine.session.pair.sealing import PairSealing, RatchetSeed
from engine.session.transitions import LoadBodies, Publish

NS_PER_MS = 1_000_000
MAX_REMEMBERED = 4_096
"""Hashes of handled envelopes, about half a megabyte."""
MAX_BODY_BYTES_KEPT = 1024 * 1024
_HASH_BYTES = 16
_PROVED = frozenset({"not_decrypted", "repeated"})
"""The other made these, so they are remembered though they were not opened."""


class SendPolicy(Struct, frozen=True, kw_only=True):
    """How payloads go to the peer in the current contact state."""

    to_inbox: bool
    talks: bool
    """If False, only ``statement`` is sent."""
    statement: MvdsId | None
    """Our latest request or answer."""

    def whole(self, send: SendPayload) -> tuple[MvdsId, ...]:
        """The ids that go as MESSAGE."""
        wanted = send.message_ids
        if self.statement is not None and self.statement in send.offers:
            wanted = (self.statement, *wanted)
        return wanted if self.talks else tuple(id_ for id_ in wanted if id_ == self.statement)

    def offers(self, send: SendPayload) -> tuple[MvdsId, ...]:
        if not self.talks:
            return ()
        return tuple(id_ for id_ in send.offers if id_ != self.statement)


class PairEnvelope(Struct, frozen=True, kw_only=True):
    """A Waku message that passed the precheck and waits to be opened."""

    envelope: SealedPair
    envelope_hash: bytes
    waku_hash: WakuHash
    payload_bytes: int


class PairWire:
    """One identity and one peer."""

    def __init__(  # noqa: PLR0913 - keyword-only: everything that is injected
        self,
        identity: Identity,
        *,
        peer_public_key: bytes,
        peer_encryption_key: bytes,
        seed: RatchetSeed,
        random_bytes: RandomBytes,
        clock: SessionClock,
    ) -> None:
        self._clock = clock
        self.sealing = PairSealing(
            identity,
            peer_public_key=peer_public_key,
            peer_encryption_key=peer_encryption_key,
            seed=seed,
            random_bytes=random_bytes,
        )
        self.group_id = self.sealing.signed.group_id
        self.content_topic: ContentTopic = self.sealing.signed.content_topic
        self._sent: Publish | None = None
        """The newest of this step."""
        self._inbox_topic = inbox_topic_of(peer_public_key)
        self._done_with: OrderedDict[bytes, None] = OrderedDict()
        self._bodies: OrderedDict[MvdsId, MvdsMessage] = OrderedDict()
        self._body_bytes = 0

    # --- in -----------------------------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> PairEnvelope:
        """Raises RemoteProtocolError for a message that is not for us or was handled before."""
        envelope = decode_any_pair_envelope(message.payload)
        envelope_hash = sha256(message.payload).digest()[:_HASH_BYTES]
        self._refuse_known(envelope_hash)
        return PairEnvelope(
            envelope=envelope,
            envelope_hash=envelope_hash,
            waku_hash=waku_hash,
            payload_bytes=len(message.payload),
        )

    def _refuse_known(self, envelope_hash: bytes) -> None:
        if envelope_hash in self._done_with:
            raise RemoteProtocolError("replayed")

    def open(self, checked: PairEnvelope, *, now_ms: UnixMs) -> OpenedPair | None:
        """None if it was for the seals alone.

        Raises RemoteProtocolError, with the reason, for anything that fails a check.
        """
        self._refuse_known(checked.envelope_hash)  # A copy may have been opened since the precheck.
        clock_ms = self._clock.at(now_ms)
        try:
            opened = self.sealing.open(checked.envelope, now_ms=now_ms, clock_ms=clock_ms)
        except CryptoError as error:
            if error.reason in _PROVED:
                self._remember(checked.envelope_hash)
            raise
        self._remember(checked.envelope_hash)
        return opened

    def _remember(self, envelope_hash: bytes) -> None:
        self._done_with[envelope_hash] = None
        if len(self._done_with) > MAX_REMEMBERED:
            self._done_with.popitem(last=False)

    # --- out ----------------------------------------------------------------------------------

    def hear_writes(self, writes: tuple[MvdsWrite, ...]) -> None:
        """Remember bodies just written; forget those that were dropped."""
        for write in writes:
            if isinstance(write, KeepMessage):
                self._bodies[write.message_id] = write.message
                self._body_bytes += len(write.message.body)
            elif isinstance(write, DropMessage):
                self._forget(write.message_id)
        while self._body_bytes > MAX_BODY_BYTES_KEPT:
            self._forget(next(iter(self._bodies)))

    def _forget(self, message_id: MvdsId) -> None:
        message = self._bodies.pop(message_id, None)
        if message is not None:
            self._body_bytes -= len(message.body)

    def carry(
        self, send: SendPayload, manner: SendPolicy, *, now_ms: UnixMs
    ) -> Publish | LoadBodies | None:
        """None if there is nothing left to send."""
        lacking = tuple(id_ for id_ in manner.whole(send) if id_ not in self._bodies)
        if lacking:
            return LoadBodies(payload=send, message_ids=lacking)
        return self.carry_loaded(send, {}, manner, now_ms=now_ms)

    def carry_loaded(
        self,
        send: SendPayload,
        bodies: Mapping[MvdsId, MvdsMessage],
        manner: SendPolicy,
        *,
        now_ms: UnixMs,
    ) -> Publish | None:
        """Leaves out what is neither in memory nor in ``bodies``: it is no longer needed."""
        found = [(id_, self._bodies.get(id_) or bodies.get(id_)) for id_ in manner.whole(send)]
        messages = {id_: message for id_, message in found if message is not None}
        payload = Payload(
            acks=send.acks,
            offers=manner.offers(send),
            requests=send.requests,
            messages=tuple(messages.values()),
        )
        if payload == Payload():
            return None
        part = MvdsPart(payload=encode_payload(payload, send.generation))
        by_olm = self._by_olm(manner) and self.sealing.knows_keys
        sent = self._publish(
            self._sealed(part, by_olm=by_olm, now_ms=now_ms),
            SendPurpose.CONTENT if messages else SendPurpose.SYNC,
            topic=self._inbox_topic if manner.to_inbox else self.content_topic,
            now_ms=now_ms,
            message_ids=tuple(map(message_id_of, messages)),
        )
        self._sent = replace(sent, by_olm=by_olm)
        return self._sent

    def ephemeral(self, content: EphemeralContent, *, now_ms: UnixMs) -> Publish:
        part = EphemeralPart(content=encode_ephemeral(content))
        self._sent = self._publish(
            self._sealed(part, by_olm=True, now_ms=now_ms),
            SendPurpose.EPHEMERAL,
            topic=self.content_topic,
            now_ms=now_ms,
        )
        return self._sent

    def settle(self, manner: SendPolicy, *, online: bool, now_ms: UnixMs) -> list[Publish]:
        """What has to go out before all else of this step, and with it: our keys, a hello.

        A hello also goes to whom we do not talk with: it speaks Olm to us, and we cannot read where
        it stands.
        """
        sent, self._sent = self._sent, None
        clock_ms = self._clock.at(now_ms)
        out = []
        hello = None
        if online:
            hello = self.sealing.hello(now_ms=now_ms, clock_ms=clock_ms)
        if hello is not None or (sent is not None and (manner.talks or manner.to_inbox)):
            keys = self.sealing.keys_to_tell(now_ms=now_ms, clock_ms=clock_ms)
            if keys is not None:
                to_inbox = manner.to_inbox and hello is None
                topic = self._inbox_topic if to_inbox else self.content_topic
                unheld = hello is None and sent is not None and sent.message.ephemeral
                purpose = SendPurpose.EPHEMERAL if unheld else SendPurpose.SYNC
                out.append(self._publish(keys, purpose, topic=topic, now_ms=now_ms))
        if hello is not None:
            topic = self.content_topic
            out.append(self._publish(hello, SendPurpose.SYNC, topic=topic, now_ms=now_ms))
        return out

    def _by_olm(self, manner: SendPolicy) -> bool:
        """Whoever spoke Olm to us heeds nothing else, even if we do not talk any more."""
        both_speak_it = self.sealing.since_ms is not None
        return manner.talks or (both_speak_it and not manner.to_inbox)

    def _sealed(self, part: MvdsPart | EphemeralPart, *, by_olm: bool, now_ms: UnixMs) -> bytes:
        clock_ms = self._clock.at(now_ms)
        return self.sealing.seal(part, by_olm=by_olm, now_ms=now_ms, clock_ms=clock_ms)

    def _publish(
        self,
        payload: bytes,
        purpose: SendPurpose,
        *,
        topic: ContentTopic,
        now_ms: UnixMs,
        message_ids: tuple[MessageId, ...] = (),
    ) -> Publish:
        return Publish(
            message=WakuMessage(
                payload=payload,
                content_topic=topic,
                timestamp_ns=self._clock.at(now_ms) * NS_PER_MS,
                ephemeral=True if purpose is SendPurpose.EPHEMERAL else None,
            ),
            purpose=purpose,
            message_ids=message_ids,
        )
