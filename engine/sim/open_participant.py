"""A participant of an open channel: plain SDS bytes on the wire, as js-waku's members send them.

There is no seal, no holdings, no author's sequence and no signature.  A message's id is the hash of
its content alone, so the second of two equal messages is not heard.  A copy's retrieval hint is the
hash of its bytes.
"""

import hashlib
from collections.abc import Sequence

from engine.codec.open_content import message_id_of_content
from engine.codec.sds import decode_message, encode_message
from engine.core.ids import ChannelId, MessageId, ParticipantId, UnixMs
from engine.core.sds.inputs import MessageReceived, SendContent
from engine.core.sds.vocabulary import Claim, Message
from engine.sim.channel_participant import ChannelParticipant
from engine.sim.network import Outgoing


class OpenParticipant(ChannelParticipant):
    """One member of the open channel ``general`` with its disk and its machine."""

    channel_id = ChannelId("general")

    def send(self, text: str, *, now_ms: UnixMs) -> list[Outgoing]:
        return self.handle(SendContent(content=text.encode()), now_ms=now_ms)

    def message_id_of(
        self,
        sender_id: ParticipantId,
        channel_id: ChannelId,
        lamport: int,
        history: Sequence[MessageId],
        content: bytes,
    ) -> MessageId:
        del sender_id, channel_id, lamport, history
        return message_id_of_content(content)

    def sign(self, message: Message, claim: Claim | None, now_ms: UnixMs) -> bytes:
        del claim, now_ms
        return encode_message(message)

    def frame(self, raw: bytes, *, again: bool) -> bytes:
        del again
        return raw

    def open(self, payload: bytes) -> MessageReceived:
        return MessageReceived(
            message=decode_message(payload),
            raw=payload,
            verified=False,
            retrieval_hint=self.retrieval_hint(payload),
        )

    def retrieval_hint(self, payload: bytes) -> bytes:
        return hashlib.sha256(payload).digest()
