"""The id of a content message in a sealed group, recomputed by every receiver.

js-waku's id is sha256 of the payload alone, so two people who both say "ok" share one and the
second is swallowed.  Ours is 128 bits of sha256 over (domain, group, channel, sender, instance id,
sequence, lamport, nonce, content), 22 characters of base64url.  The group is part of it because the
wire's channel is "0" in every group: the same words in two groups must not share an id.  What is
signed or sealed is not part of it, so a retransmission keeps its id.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256

from engine.codec.content import decode_content
from engine.codec.tuples import tuple_bytes
from engine.core.errors import RemoteProtocolError
from engine.core.sds.types import MessageIdOf
from engine.core.types import ChannelId, MessageId, ParticipantId

_DOMAIN = "causerie/1/message-id"
_ID_BYTES = 16
_MAX_LAMPORT = 2**64 - 1


def message_id_in(group_id: bytes) -> MessageIdOf:
    """The ``MessageIdOf`` of one group: what its channel is given.

    The returned function raises RemoteProtocolError if the content cannot be decoded.
    """

    def message_id(
        sender: ParticipantId, channel: ChannelId, lamport: int, content: bytes
    ) -> MessageId:
        return message_id_of(group_id, sender, channel, lamport, content)

    return message_id


def message_id_of(
    group_id: bytes, sender: ParticipantId, channel: ChannelId, lamport: int, content: bytes
) -> MessageId:
    """Raises RemoteProtocolError if the content cannot be decoded or the lamport is absurd."""
    decoded = decode_content(content)
    if not 0 <= lamport <= _MAX_LAMPORT:
        raise RemoteProtocolError("lamport_too_large")
    hashed = tuple_bytes(
        _DOMAIN,
        group_id,
        channel,
        sender,
        decoded.author.instance_id,
        decoded.author.sequence,
        lamport,
        decoded.nonce,
        content,
    )
    digest = sha256(hashed).digest()
    return MessageId(urlsafe_b64encode(digest[:_ID_BYTES]).decode().rstrip("="))
