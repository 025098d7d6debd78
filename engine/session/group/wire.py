"""The wire format of a group: sign once, seal every copy afresh, check what comes in.

A received payload passes all checks that come before membership: seal, signature, signer is sender
(``engine.crypto.sealed``), canonical SDS form, content shape, message id.  There is no state of the
conversation here; the session decides on membership and on what happens with a message.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.codec.content import decode_content
from engine.codec.sds import decode_message, encode_message
from engine.core.content import Body, Content
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ContentTopic, MessageId, ParticipantId, UnixMs, WakuHash
from engine.core.invite import group_id_of
from engine.core.records import GroupRecord, SpanRecord
from engine.core.sds.inputs import MessageReceived
from engine.core.sds.vocabulary import Claim, Message, SendPurpose
from engine.core.waku import WakuMessage
from engine.crypto.identity import Identity
from engine.crypto.sealed import CheckedEnvelope, Opened, SealedGroup, topic_of
from engine.session.group.author_binding import bound_author
from engine.session.group.opening import (
    OpenedEnvelope,
    checked_content,
    checked_message,
    envelope_hash_of,
)
from engine.session.transitions import Publish

NS_PER_MS = 1_000_000
EPHEMERAL_MAX_AGE_MS = 30_000
EPHEMERAL_MAX_AHEAD_MS = 300_000
"""How far clocks may differ.  A message signed for later could be replayed until then."""
MAX_REMEMBERED = 4_096
"""Hashes of handled envelopes, about half a megabyte."""


class GroupEnvelope(Struct, frozen=True, kw_only=True):
    """A Waku message that passed the precheck and waits to be opened."""

    envelope: CheckedEnvelope
    envelope_hash: bytes
    waku_hash: WakuHash
    payload_bytes: int


class LockedEnvelope(Struct, frozen=True, kw_only=True):
    """A Waku message of an epoch whose key is not here yet, or that nobody made."""

    message: WakuMessage
    waku_hash: WakuHash


class Verified(Struct, frozen=True, kw_only=True):
    """A message whose seal, signature and sender are verified; membership is not checked yet.

    ``content`` is None for sync and ephemeral messages.
    """

    opened: Opened
    message: Message
    content: Content | None
    spans: tuple[SpanRecord, ...] | None = None
    """Markup and mentions of its text, if they were found before."""
    waku_hash: WakuHash
    envelope_hash: bytes
    """Over header and ciphertext, because a member can seal other content under a known header."""
    stored: bool = False
    """It came from a Store."""

    @property
    def size(self) -> int:
        return len(self.opened.raw)


class GroupWire:
    """One identity in one group."""

    def __init__(
        self, group: GroupRecord, identity: Identity, random_bytes: Callable[[int], bytes]
    ) -> None:
        self._identity = identity
        self._random_bytes = random_bytes
        self._sealed = SealedGroup(
            group_id=group_id_of(group.conversation_id),
            epoch_keys=group.epoch_keys,
        )
        self.sending: bytes | None = None
        """Id of the epoch to sign in; None: the newest."""
        self._done_with: OrderedDict[bytes, None] = OrderedDict()
        self.content_topic: ContentTopic = topic_of(group)

    def sign(self, message: Message, claim: Claim | None, clock_ms: UnixMs) -> bytes:
        """The signed part to keep, broadcast and resend."""
        return self._sealed.sign(
            self._identity,
            encode_message(message),
            claim,
            signed_ms=clock_ms,
            epoch_id=self.sending,
        )

    def sign_anew(self, raw: bytes, clock_ms: UnixMs) -> bytes:
        """A signed part of ours for the same message, of the epoch to sign in now."""
        return self.sign(self.reopen(raw, None).message, None, clock_ms)

    def add_key(self, key: bytes) -> None:
        """Of another epoch, the newest from now on."""
        keys = (*self._sealed.epoch_keys, key)
        self._sealed = SealedGroup(group_id=self._sealed.group_id, epoch_keys=keys)

    @property
    def epoch_keys(self) -> tuple[bytes, ...]:
        return self._sealed.epoch_keys

    def wrap_repair(self, raw: bytes, *, clock_ms: UnixMs) -> tuple[bytes, ParticipantId]:
        """Our signature around another member's signed part, and that member's id."""
        author = self._sealed.read(raw).sender_id
        return self._sealed.wrap_repair(self._identity, raw, None, signed_ms=clock_ms), author

    def body_of(self, raw: bytes) -> Body:
        """The body in a signed part of our log."""
        return decode_content(decode_message(self._sealed.read(raw).sds_bytes).content or b"").body

    def publish(
        self,
        signed_part: bytes,
        purpose: SendPurpose,
        *,
        statements: Sequence[bytes],
        clock_ms: UnixMs,
        message_id: MessageId | None = None,
    ) -> Publish:
        """Seal a fresh copy, unlike any other, so that no cache drops it as a duplicate.

        It is sealed in the epoch that it was signed in, also as a repair: whoever got the key of a
        later one only was not let in to read it.
        """
        payload = self._sealed.seal(
            signed_part,
            statements=statements,
            random_bytes=self._random_bytes,
            epoch_id=self._sealed.epoch_of(signed_part),
        )
        return Publish(
            message=WakuMessage(
                payload=payload,
                content_topic=self.content_topic,
                timestamp_ns=clock_ms * NS_PER_MS,
                ephemeral=True if purpose is SendPurpose.EPHEMERAL else None,
            ),
            purpose=purpose,
            message_ids=() if message_id is None else (message_id,),
            says_all=purpose is SendPurpose.SYNC,
            says_typing=purpose is SendPurpose.EPHEMERAL,
        )

    def precheck(self, waku: WakuMessage, waku_hash: WakuHash) -> GroupEnvelope:
        """Raises RemoteProtocolError if no member made the envelope, or it was handled before."""
        envelope_hash = envelope_hash_of(waku.payload)
        self._refuse_known(envelope_hash)
        return GroupEnvelope(
            envelope=self._sealed.precheck(waku.payload),
            envelope_hash=envelope_hash,
            waku_hash=waku_hash,
            payload_bytes=len(waku.payload),
        )

    def _refuse_known(self, envelope_hash: bytes) -> None:
        if envelope_hash in self._done_with:
            raise RemoteProtocolError("replayed")

    def open_new(self, waku: WakuMessage, waku_hash: WakuHash, *, stored: bool = False) -> Verified:
        """Like ``open``, for a message that was not prechecked."""
        return self.open(self.precheck(waku, waku_hash), stored=stored)

    def open_any(
        self,
        waku: WakuMessage,
        waku_hash: WakuHash,
        opened: OpenedEnvelope | None,
        *,
        stored: bool,
    ) -> Verified:
        """``opened``: what ``open_page`` found in it, if it did."""
        if opened is None:
            return self.open_new(waku, waku_hash, stored=stored)
        return self.take_opened(opened, waku_hash, stored=stored)

    def open(self, checked: GroupEnvelope, *, stored: bool = False) -> Verified:
        """Raises RemoteProtocolError, with the reason, for anything that fails a check.

        ``stored``: a Store gave it, so it says nothing about anyone's clock now.
        """
        self._refuse_known(checked.envelope_hash)  # A copy may have been opened since.
        return self._verify(
            self._sealed.open_checked(checked.envelope),
            waku_hash=checked.waku_hash,
            envelope_hash=checked.envelope_hash,
            stored=stored,
        )

    def take_opened(self, opened: OpenedEnvelope, waku_hash: WakuHash, *, stored: bool) -> Verified:
        """Like ``open``, for an envelope that ``open_page`` opened with our keys."""
        self._refuse_known(opened.envelope_hash)
        message = opened.message
        text = opened.text
        content = None if text is None else text.content
        if content is None and not message.is_sync and not message.is_ephemeral:
            content = decode_content(message.content or b"")
        return Verified(
            opened=opened.opened,
            message=message,
            content=content,
            spans=None if text is None else text.spans,
            waku_hash=waku_hash,
            envelope_hash=opened.envelope_hash,
            stored=stored,
        )

    def reopen(self, raw: bytes, retrieval_hint: bytes | None) -> Verified:
        """Like ``open``, for a signed part that was kept."""
        return self._verify(
            self._sealed.read(raw),
            waku_hash=WakuHash(retrieval_hint or b""),
            envelope_hash=b"",
            stored=True,
        )

    def _verify(
        self, opened: Opened, *, waku_hash: WakuHash, envelope_hash: bytes, stored: bool
    ) -> Verified:
        message = checked_message(opened)
        content = checked_content(self._sealed.group_id, message)
        return Verified(
            opened=opened,
            message=message,
            content=content,
            waku_hash=waku_hash,
            envelope_hash=envelope_hash,
            stored=stored,
        )

    def done_with(self, verified: Verified) -> None:
        """Remember that this envelope needs no more handling.

        Anyone on the network can send its bytes again and again; a replay then costs only a
        look-up.
        """
        self._done_with[verified.envelope_hash] = None
        if len(self._done_with) > MAX_REMEMBERED:
            self._done_with.popitem(last=False)


def received_of(
    verified: Verified, repaired_by: ParticipantId | None, clock_ms: UnixMs, *, wanted: bool
) -> MessageReceived:
    """The same for SDS; ``repaired_by``: the member who sent it again.

    Raises RemoteProtocolError for an ephemeral message that is replayed later.
    """
    if verified.message.is_ephemeral:
        check_is_fresh(verified.opened.signed_ms, clock_ms)
    message, content, claim = verified.message, verified.content, verified.opened.claim
    return MessageReceived(
        message=message,
        raw=verified.opened.raw,
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


def check_is_fresh(signed_ms: UnixMs, clock_ms: UnixMs) -> None:
    """Raises RemoteProtocolError for an ephemeral message that is replayed later."""
    if clock_ms - signed_ms > EPHEMERAL_MAX_AGE_MS:
        raise RemoteProtocolError("ephemeral_stale")
    if signed_ms - clock_ms > EPHEMERAL_MAX_AHEAD_MS:
        raise RemoteProtocolError("ephemeral_ahead")
