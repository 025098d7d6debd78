"""Types for an author who forked: the proof, its write, the event.

They are part of the vocabulary of ``types``; ``chains`` detects forks.
"""

from engine.core.ids import InstanceId, MessageId, ParticipantId
from engine.core.value import value


@value(frozen=True, slots=True, kw_only=True)
class Fork:
    """Proof that an author sent different people different messages: two that it signed.

    Both have the same sequence number; or the second names another predecessor than the first,
    which has the predecessor's number.
    """

    sender_id: ParticipantId
    instance_id: InstanceId
    sequence: int
    first_id: MessageId
    second_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class PutFork:
    """Insert; one proof per author instance is kept."""

    fork: Fork


@value(frozen=True, slots=True, kw_only=True)
class ForkFound:
    fork: Fork
