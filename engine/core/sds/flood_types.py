"""What is told of an author who sends more than a day's quota: saved state, writes, the event.

A part of the vocabulary of ``types``; what becomes of it is decided in ``flooding``.
"""

from engine.core.ids import MessageId, ParticipantId
from engine.core.value import value


@value(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A message beyond what its author may send in a day: received, and not delivered."""

    message_id: MessageId
    sender_id: ParticipantId
    lamport_timestamp: int = 0
    size: int = 0
    """Bytes of its signed part, which are kept; 0: only the id is."""


@value(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one author has sent that counts for one day: see ``flooding``."""

    sender_id: ParticipantId
    day: int
    """Days since 1970."""
    fetched: bool
    """All that was fetched on that day, of whatever day it is."""
    messages: int
    size: int
    lifted: bool = False
    """Somebody wants to see all of it."""


@value(frozen=True, slots=True, kw_only=True)
class PutSetAside:
    """Insert or replace; ``raw`` is b"" where only the id is kept."""

    entry: SetAside
    raw: bytes
    retrieval_hint: bytes | None


@value(frozen=True, slots=True, kw_only=True)
class RemoveSetAside:
    message_id: MessageId


@value(frozen=True, slots=True, kw_only=True)
class ForgetSetAside:
    """All ids of this author of which nothing else is kept."""

    sender_id: ParticipantId


@value(frozen=True, slots=True, kw_only=True)
class PutSpent:
    """Insert, or replace what is kept for the same author, day and kind."""

    spent: Spent


@value(frozen=True, slots=True, kw_only=True)
class SetAsideOf:
    """What is set aside of one author."""

    sender_id: ParticipantId
    waiting: int
    """Messages that are kept and can be shown, of ``size`` bytes."""
    size: int
    bare: int
    """Messages of which only the id is kept."""


@value(frozen=True, slots=True, kw_only=True)
class SetAsideChanged:
    """An author began to send more than a day's quota, or nothing is set aside of one any more."""

    senders: tuple[SetAsideOf, ...]
    """Of whom anything is set aside now."""
