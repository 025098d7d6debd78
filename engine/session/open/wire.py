"""The wire format of an open channel: SDS bytes as the payload of a Waku message.

They are in the clear, or sealed with the shared key if the channel has one; ``version`` of the Waku
message says which, and the other kind is not ours.  Nobody signs, so the checks are few: size and
form, the channel that the message names, and that the id follows from the content as js-waku's
does.  A content under another
id would let anyone occupy the id of a message that others wait for.  There is no state of the
conversation here.
"""

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import decode_message, encode_message
from engine.core.entropy import RandomBytes
from engine.core.errors import RemoteProtocolError
from engine.core.ids import MessageId, UnixMs, WakuHash
from engine.core.records import OpenChannelRecord
from engine.core.sds.vocabulary import Claim, Message, SendPurpose
from engine.core.waku import WakuMessage
from engine.crypto.shared_key import WAKU_VERSION, open_payload, seal_payload
from engine.session.transitions import Publish

NS_PER_MS: Final = 1_000_000
MAX_REMEMBERED: Final = 4_096
"""Hashes of handled copies, about half a megabyte."""


class OpenEnvelope(Struct, frozen=True, kw_only=True):
    """A message that passed the checks."""

    message: Message
    raw: bytes
    waku_hash: WakuHash


class OpenWire:
    def __init__(self, channel: OpenChannelRecord, random_bytes: RandomBytes) -> None:
        self._key = channel.key
        self._random_bytes = random_bytes
        self._channel_id = channel.channel_id
        self._content_topic = channel.content_topic
        self._done_with: OrderedDict[WakuHash, None] = OrderedDict()

    @staticmethod
    def sign(message: Message, claim: Claim | None, clock_ms: UnixMs) -> bytes:
        """The bytes to keep, broadcast and resend; nothing signs them."""
        del claim, clock_ms
        return encode_message(message)

    def publish(
        self,
        raw: bytes,
        purpose: SendPurpose,
        *,
        clock_ms: UnixMs,
        message_id: MessageId | None = None,
        repairs: MessageId | None = None,
    ) -> Publish:
        """A copy with a time and a seal of its own, or caches would drop it as a duplicate."""
        key = self._key
        return Publish(
            message=WakuMessage(
                payload=seal_payload(key, raw, self._random_bytes) if key else raw,
                content_topic=self._content_topic,
                version=WAKU_VERSION if key else None,
                timestamp_ns=clock_ms * NS_PER_MS,
            ),
            purpose=purpose,
            message_ids=() if message_id is None else (message_id,),
            repairs=repairs,
            says_all=purpose is SendPurpose.SYNC,
        )

    def open(self, message: WakuMessage, waku_hash: WakuHash) -> OpenEnvelope:
        """Raises RemoteProtocolError, with the reason, for what fails a check."""
        if waku_hash in self._done_with:
            raise RemoteProtocolError("replayed")
        if (message.version or 0) != (WAKU_VERSION if self._key else 0):
            raise RemoteProtocolError("other_version", f"{message.version}")
        payload = message.payload
        return self.reopen(open_payload(self._key, payload) if self._key else payload, waku_hash)

    def reopen(self, raw: bytes, waku_hash: WakuHash) -> OpenEnvelope:
        """Like ``open``, for SDS bytes that were kept."""
        message = decode_message(raw)
        if message.channel_id != self._channel_id:
            raise RemoteProtocolError("wrong_channel")
        is_content = not message.is_sync and not message.is_ephemeral
        if is_content and message.message_id != message_id_of_content(message.content or b""):
            raise RemoteProtocolError("id_mismatch")
        return OpenEnvelope(message=message, raw=raw, waku_hash=waku_hash)

    def done_with(self, waku_hash: WakuHash) -> None:
        """Remember that this copy needs no more handling."""
        self._done_with[waku_hash] = None
        if len(self._done_with) > MAX_REMEMBERED:
            self._done_with.popitem(last=False)
