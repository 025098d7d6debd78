"""What is told of an author who told two stories: the proof, its write, the event.

A part of the vocabulary of ``types``; how a fork is found is decided in ``chains``.
"""

from engine.core.ids import InstanceId, MessageId, ParticipantId
from engine.core.value import value


@value(frozen=True, slots=True, kw_only=True)
class Fork:
    """Proof that an author told different people different things: two messages that it signed.

    Both have the same sequence number, or the second names another message before it than the
    first, which has that number.
    """

    sender_id: ParticipantId
    instance_id: InstanceId
    sequence: int
    first_id: MessageId
    second_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class PutFork:
    """Insert; one proof for each instance of an author is kept."""

    fork: Fork


@value(frozen=True, slots=True, kw_only=True)
class ForkFound:
    fork: Fork
