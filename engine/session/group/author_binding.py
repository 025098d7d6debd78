"""Binds an author instance to the member who signed it, before the channel counts it.

Writers choose their instance ids, and everyone reads them.  Holdings name messages only by instance
and number.  A member who used someone else's instance before that one was heard would make honest
members claim messages that they do not hold.  The channel therefore counts under a hash of instance
and signer, so no one can take another's numbers.  The message's content stays unchanged.
"""

from functools import lru_cache
from hashlib import sha256

from engine.codec.tuples import tuple_bytes
from engine.core.content import INSTANCE_ID_BYTES
from engine.core.ids import AuthorSequence, InstanceId, ParticipantId

_DOMAIN = "causerie/1/author-instance"


def bound_author(sender_id: ParticipantId, author: AuthorSequence) -> AuthorSequence:
    """The bound author of a message whose sender is verified."""
    return AuthorSequence(
        instance_id=_bound(sender_id, author.instance_id), sequence=author.sequence
    )


@lru_cache(maxsize=1_024)
def _bound(sender_id: ParticipantId, instance_id: InstanceId) -> InstanceId:
    digest = sha256(tuple_bytes(_DOMAIN, sender_id, instance_id)).digest()
    return InstanceId(digest[:INSTANCE_ID_BYTES])
