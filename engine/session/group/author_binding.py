"""Whose sequence numbers: an author instance as the channel counts it, bound to who signed.

An instance id is chosen by whoever writes it, and everybody reads it.  Holdings name messages by
instance and number alone, so a member who wrote under somebody else's instance before that one was
heard would make honest members claim what they do not hold.  Counted under the hash of instance and
signer, nobody's numbers can be taken by another.  What is in a message's content stays as it was.
"""

from functools import lru_cache
from hashlib import sha256

from engine.codec.tuples import tuple_bytes
from engine.core.content import INSTANCE_ID_BYTES
from engine.core.ids import AuthorSequence, InstanceId, ParticipantId

_DOMAIN = "causerie/1/author-instance"


def bound_author(sender_id: ParticipantId, author: AuthorSequence) -> AuthorSequence:
    """The author of a message whose sender is proved."""
    return AuthorSequence(
        instance_id=_bound(sender_id, author.instance_id), sequence=author.sequence
    )


@lru_cache(maxsize=1_024)
def _bound(sender_id: ParticipantId, instance_id: InstanceId) -> InstanceId:
    digest = sha256(tuple_bytes(_DOMAIN, sender_id, instance_id)).digest()
    return InstanceId(digest[:INSTANCE_ID_BYTES])
