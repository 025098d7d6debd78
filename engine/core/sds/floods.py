"""Types for an author who exceeds the daily quota: saved state, writes, the event.

They are part of ``vocabulary``; ``flooding`` decides what happens.
"""

from msgspec import Struct

from engine.core.ids import MessageId, ParticipantId


class SetAside(Struct, frozen=True, kw_only=True):
    """A message beyond its author's daily quota: received, but not delivered."""

    message_id: MessageId
    sender_id: ParticipantId
    lamport_timestamp: int = 0
    size: int = 0
    """Bytes of its signed part, which are kept; 0: only the id is kept."""


class Spent(Struct, frozen=True, kw_only=True):
    """What one author's quota has been charged for one day: see ``flooding``."""

    sender_id: ParticipantId
    day: int
    """Days since 1970."""
    fetched: bool
    """Counts everything fetched on that day, whatever day it is from."""
    messages: int
    size: int
    lifted: bool = False
    """The user wants to see all of it."""


class PutSetAside(Struct, frozen=True, kw_only=True):
    """Insert or replace; ``raw`` is b"" if only the id is kept."""

    entry: SetAside
    raw: bytes
    retrieval_hint: bytes | None


class RemoveSetAside(Struct, frozen=True, kw_only=True):
    message_id: MessageId


class ForgetSetAside(Struct, frozen=True, kw_only=True):
    """Forget all ids of this author that are kept without their bytes."""

    sender_id: ParticipantId


class PutSpent(Struct, frozen=True, kw_only=True):
    """Insert, or replace the entry of the same author, day and kind."""

    spent: Spent


class SetAsideOf(Struct, frozen=True, kw_only=True):
    """What is set aside of one author."""

    sender_id: ParticipantId
    waiting: int
    """Messages that are kept and can be shown, of ``size`` bytes."""
    size: int
    bare: int
    """Messages of which only the id is kept."""


class SetAsideChanged(Struct, frozen=True, kw_only=True):
    """An author began to exceed the quota, or nothing of theirs is set aside any more."""

    senders: tuple[SetAsideOf, ...]
    """All authors with anything set aside now."""
