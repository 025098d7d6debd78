"""The id of a content message in a sealed group, recomputed by every receiver.

js-waku's id is sha256 of the payload alone, so two people who both say "ok" share one and the
second is swallowed.  Ours is 128 bits of sha256 over (domain, group, channel, sender, instance id,
sequence, previous id, nonce, lamport, lengths and text of the ids in the causal history, content),
22 characters of base64url.  The group is part of it because the wire's channel is "0" in every
group.  The history is part of it because otherwise one signed id could wait for other messages at
everybody; the retrieval hints are not.  What is signed or sealed is not part of it either, so a
retransmission keeps its id.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256

from engine.codec.content import decode_content
from engine.codec.tuples import tuple_bytes
from engine.core.content import Content
from engine.core.errors import RemoteProtocolError
from engine.core.ids import ChannelId, MessageId, ParticipantId
from engine.core.sds.types import MessageIdOf

ID_BYTES = 16
_DOMAIN = "causerie/2/message-id"
_MAX_LAMPORT = 2**64 - 1


def id_text(id_: bytes) -> MessageId:
    """16 bytes as an id."""
    return MessageId(urlsafe_b64encode(id_).decode().rstrip("="))


def id_bytes(message_id: MessageId) -> bytes:
    """The 16 bytes of an id of ours."""
    return urlsafe_b64decode(message_id + "==")


def message_id_in(group_id: bytes) -> MessageIdOf:
    """The ``MessageIdOf`` of one group: what its channel is given.

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
    """``decoded`` is what ``content`` says.  Raises RemoteProtocolError for an absurd number."""
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
