"""Types for an author who forked: the proof, its write, the event.

They are part of ``vocabulary``; ``chains`` detects forks.
"""

from msgspec import Struct

from engine.core.ids import InstanceId, MessageId, ParticipantId


class Fork(Struct, frozen=True, kw_only=True):
    """Proof that an author sent different people different messages: two that it signed.

    Both have the same sequence number; or the second names another predecessor than the first,
    which has the predecessor's number.
    """

    sender_id: ParticipantId
    instance_id: InstanceId
    sequence: int
    first_id: MessageId
    second_id: MessageId


class PutFork(Struct, frozen=True, kw_only=True):
    """Insert; one proof per author instance is kept."""

    fork: Fork


class ForkFound(Struct, frozen=True, kw_only=True):
    fork: Fork
