"""Entries of a group's admin log: what a member did, and which right that takes.

An entry travels as content of a group message, so its id commits to its author, its Lamport
timestamp and everything in it.  ``heads`` links the log: the newest entries that the author knew.
Whether an entry counts is decided in ``judging``; bytes are handled elsewhere.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct

from engine.core.ids import AuthorSequence, MessageId, ParticipantId, UnixMs

MAX_HEADS: Final = 32
MAX_ENTRIES: Final = 10_000
MAX_RECIPIENTS: Final = 2_000
MAX_LAST_MESSAGES: Final = 64
"""Author instances of one person that a removal names."""
MAX_USES: Final = 2_000
"""Of one invitation."""
MAX_REPEATS: Final = 16
"""How often one admin may admit, promote, demote or remove one and the same person."""


class Role(IntEnum):
    """Ordered: the higher may do whatever the lower may."""

    NOBODY = 0
    MEMBER = 1
    ADMIN = 2
    OWNER = 3


class Create(Struct, frozen=True, kw_only=True):
    """The group begins; its author is the owner.  The first entry, and the only one like it."""

    name: str


class Add(Struct, frozen=True, kw_only=True):
    member: ParticipantId
    invitation: MessageId | None = None
    """The ``Invite`` that they came by; None if they were added by hand."""


class Remove(Struct, frozen=True, kw_only=True):
    """``member`` is removed, or leaves if it is the author.

    ``last_messages``: the last message of each of their instances that still counts.
    """

    member: ParticipantId
    last_messages: tuple[AuthorSequence, ...] = ()


class Promote(Struct, frozen=True, kw_only=True):
    """``member`` becomes an admin, and a member if they are none."""

    member: ParticipantId


class Demote(Struct, frozen=True, kw_only=True):
    """``member`` is no admin any more, and stays a member."""

    member: ParticipantId


class Rename(Struct, frozen=True, kw_only=True):
    name: str


class SetPicture(Struct, frozen=True, kw_only=True):
    picture: bytes
    """PNG or JPEG, or empty."""


class SetTopic(Struct, frozen=True, kw_only=True):
    topic: str


class SetInviters(Struct, frozen=True, kw_only=True):
    """Who may add others from now on: admins, or every member."""

    least: Role


class Invite(Struct, frozen=True, kw_only=True):
    """An invitation is out; the entry's id names it.  The token is never in the log."""

    token_hash: bytes
    uses: int
    expires_ms: UnixMs


class Revoke(Struct, frozen=True, kw_only=True):
    invitation: MessageId


class DeleteMessage(Struct, frozen=True, kw_only=True):
    """Somebody else's message is hidden for everybody."""

    message_id: MessageId
    author: ParticipantId


class MakeEpoch(Struct, frozen=True, kw_only=True):
    """A fresh key was made and given to ``recipients``, the author among them."""

    commitment: bytes
    """32 bytes; the first 8 are the epoch's id."""
    recipients: frozenset[ParticipantId]


Act: TypeAlias = (
    Create
    | Add
    | Remove
    | Promote
    | Demote
    | Rename
    | SetPicture
    | SetTopic
    | SetInviters
    | Invite
    | Revoke
    | DeleteMessage
    | MakeEpoch
)


class Entry(Struct, frozen=True, kw_only=True):
    entry_id: MessageId
    author: ParticipantId
    lamport_timestamp: int
    sent_ms: UnixMs
    heads: tuple[MessageId, ...]
    """Empty for ``Create`` alone."""
    act: Act


LEAST_ROLE: Final[Mapping[type[Act], Role]] = MappingProxyType(
    {
        Create: Role.OWNER,
        Add: Role.ADMIN,
        Remove: Role.ADMIN,
        Promote: Role.ADMIN,
        Demote: Role.ADMIN,
        Rename: Role.ADMIN,
        SetPicture: Role.ADMIN,
        SetTopic: Role.ADMIN,
        SetInviters: Role.ADMIN,
        Invite: Role.ADMIN,
        Revoke: Role.ADMIN,
        DeleteMessage: Role.ADMIN,
        MakeEpoch: Role.MEMBER,
    }
)
"""What each act takes.

``Add`` and ``Invite`` take less where ``SetInviters`` says so.  ``Remove``, ``Demote`` and
``DeleteMessage`` also take that the author outranks the other.  Anybody may remove or demote
themselves.
"""
