"""The id of a content message in a sealed group, recomputed by every receiver.

js-waku's id is sha256 of the payload alone, so when two people both say "ok", the messages share an
id and the second is lost.  Ours is 128 bits of sha256 over (domain, group, channel, sender,
instance id, sequence, previous id, nonce, lamport, lengths and text of the ids in the causal
history, content), as 22 characters of base64url.

- The group is included because the wire's channel is "0" in every group.
- The causal history is included because otherwise one signed id could have different dependencies
  for different members.  Its retrieval hints are not.
- Signature and seal are not included, so a retransmission keeps its id.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256

from engine.codec.content import decode_content
from engine.codec.tuples import tuple_bytes
from engine.core.content import Content
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.vocabulary import MessageIdOf

ID_BYTES = 16
_DOMAIN = "causerie/2/message-id"
_MAX_LAMPORT = 2**64 - 1


def id_text(id_: bytes) -> MessageId:
    """16 bytes as an id."""
    return MessageId(urlsafe_b64encode(id_).decode().rstrip("="))


def id_bytes(message_id: MessageId) -> bytes:
    """The 16 bytes of one of our ids."""
    return urlsafe_b64decode(message_id + "==")


def message_id_in(group_id: bytes) -> MessageIdOf:
    """The ``MessageIdOf`` that one group's channel uses.

    The returned function raises RemoteProtocolError if the content cannot be decoded.
    """

    def message_id(
        sender: ParticipantId,
        channel: ChannelId,
        lamport: int,
        history: Sequence[MessageId],
        content: bytes,
    ) -> MessageId:
        decoded = decode_content(content)
        return message_id_of(group_id, sender, channel, lamport, history, content, decoded)

    return message_id


def message_id_of(  # noqa: PLR0913, PLR0917 - one argument per part of the hashed tuple
    group_id: bytes,
    sender: ParticipantId,
    channel: ChannelId,
    lamport: int,
    history: Sequence[MessageId],
    content: bytes,
    decoded: Content,
) -> MessageId:
    """``decoded`` is ``content`` decoded.  Raises RemoteProtocolError for a number out of range."""
    if not 0 <= lamport <= _MAX_LAMPORT:
        raise RemoteProtocolError("lamport_too_large")
    try:
        lengths = bytes(map(len, history))
    except ValueError as error:
        raise RemoteProtocolError("sds_id_too_long") from error
    hashed = tuple_bytes(
        _DOMAIN,
        group_id,
        channel,
        sender,
        decoded.author.instance_id,
        decoded.author.sequence,
        decoded.previous_id or "",
        decoded.nonce,
        lamport,
        lengths,
        "".join(history),
        content,
    )
    return id_text(sha256(hashed).digest()[:ID_BYTES])


def hash64(text: str) -> int:
    """SDS-R's H: the first 8 bytes, big-endian, of sha256 of the UTF-8 text."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
