"""The wire format of a pair: payloads and ephemeral contents, sealed afresh for every copy.

Recently written bodies stay in memory, so a new message goes out without a disk read; the runner
loads the others.  Hashes of handled envelopes are remembered, so a replay costs only a look-up.
There is no other state of the conversation here.

Until the peer answers our request, everything goes to their inbox topic, where strangers are read.
While the two do not talk, only our latest statement is sent.  It goes as a MESSAGE even if MVDS
would only offer it, because before an agreement no peer requests anything.
"""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct

from engine.codec.content import encode_ephemeral
from engine.codec.mvds import encode_payload
from engine.codec.mvds_id import message_id_of
from engine.codec.pair import decode_pair_envelope
from engine.core.content import EphemeralContent
from engine.core.errors import RemoteProtocolError
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
    PairBody,
    PairSeal,
    inbox_topic_of,
)
from engine.session.clock import SessionClock
from engine.session.transitions import LoadBodies, Publish

NS_PER_MS = 1_000_000
MAX_REMEMBERED = 4_096
"""Hashes of handled envelopes, about half a megabyte."""
MAX_BODY_BYTES_KEPT = 1024 * 1024
_HASH_BYTES = 16


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

    sealed: bytes
    envelope_hash: bytes
    waku_hash: WakuHash
    payload_bytes: int


class PairWire:
    """One identity and one peer."""

    def __init__(
        self,
        identity: Identity,
        *,
        peer_public_key: bytes,
        peer_encryption_key: bytes,
        clock: SessionClock,
    ) -> None:
        self._clock = clock
        self._seal = PairSeal(
            identity, peer_public_key=peer_public_key, peer_encryption_key=peer_encryption_key
        )
        self.group_id = self._seal.group_id
        self.content_topic: ContentTopic = self._seal.content_topic
        self._inbox_topic = inbox_topic_of(peer_public_key)
        self._done_with: OrderedDict[bytes, None] = OrderedDict()
        self._bodies: OrderedDict[MvdsId, MvdsMessage] = OrderedDict()
        self._body_bytes = 0

    # --- in -----------------------------------------------------------------------------------

    def precheck(self, message: WakuMessage, waku_hash: WakuHash) -> PairEnvelope:
        """Raises RemoteProtocolError for a message that is not for us or was handled before."""
        sealed = decode_pair_envelope(message.payload)
        envelope_hash = sha256(message.payload).digest()[:_HASH_BYTES]
        self._refuse_known(envelope_hash)
        return PairEnvelope(
            sealed=sealed,
            envelope_hash=envelope_hash,
            waku_hash=waku_hash,
            payload_bytes=len(message.payload),
        )

    def _refuse_known(self, envelope_hash: bytes) -> None:
        if envelope_hash in self._done_with:
            raise RemoteProtocolError("replayed")

    def open(self, checked: PairEnvelope) -> OpenedPair:
        """Raises RemoteProtocolError, with the reason, for anything that fails a check."""
        self._refuse_known(checked.envelope_hash)  # A copy may have been opened since the precheck.
        opened = self._seal.open_sealed(checked.sealed)
        self._done_with[checked.envelope_hash] = None
        if len(self._done_with) > MAX_REMEMBERED:
            self._done_with.popitem(last=False)
        return opened

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
        return self._publish(
            MvdsPart(payload=encode_payload(payload, send.generation)),
            SendPurpose.CONTENT if messages else SendPurpose.SYNC,
            topic=self._inbox_topic if manner.to_inbox else self.content_topic,
            now_ms=now_ms,
            message_ids=tuple(map(message_id_of, messages)),
        )

    def ephemeral(self, content: EphemeralContent, *, now_ms: UnixMs) -> Publish:
        return self._publish(
            EphemeralPart(content=encode_ephemeral(content)),
            SendPurpose.EPHEMERAL,
            topic=self.content_topic,
            now_ms=now_ms,
        )

    def _publish(
        self,
        body: PairBody,
        purpose: SendPurpose,
        *,
        topic: ContentTopic,
        now_ms: UnixMs,
        message_ids: tuple[MessageId, ...] = (),
    ) -> Publish:
        clock_ms = self._clock.at(now_ms)
        return Publish(
            message=WakuMessage(
                payload=self._seal.seal(body, signed_ms=clock_ms),
                content_topic=topic,
                timestamp_ns=clock_ms * NS_PER_MS,
                ephemeral=True if purpose is SendPurpose.EPHEMERAL else None,
            ),
            purpose=purpose,
            message_ids=message_ids,
        )
