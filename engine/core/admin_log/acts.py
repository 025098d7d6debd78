"""Entries of a group's admin log: what a member did, and which right that takes.

An entry is signed by itself, and its id is a hash over its author, its Lamport timestamp and all
that it says.  ``heads`` links the log: the newest entries that the author knew.  Whether an entry
counts is decided in ``judging``; bytes are ``engine.codec.admin_entry``'s.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NewType, TypeAlias

from msgspec import Struct

from engine.core.ids import InstanceId, MessageId, ParticipantId, UnixMs

EntryId = NewType("EntryId", str)
"""43 characters of base64url: the 32 bytes of a hash.  16 as in a message id would not do: with
2^64 work an author could give two halves of a group two entries of one id."""

MAX_HEADS: Final = 32
MAX_ENTRIES: Final = 10_000
"""That have room."""
MAX_PASSED_ON: Final = 2 * MAX_ENTRIES
"""To a newcomer: those that have room, and those that these name."""
MAX_RECIPIENTS: Final = 2_000
MAX_LAST_MESSAGES: Final = 64
"""Author instances of one person that a removal names."""
MAX_USES: Final = 2_000
"""Of one invitation."""
MAX_TOPIC_CHARACTERS: Final = 256
TOKEN_HASH_BYTES: Final = 32
TOPIC_NAME_BYTES: Final = 16
ANYONE: Final = ParticipantId("A" * 22)
"""No person, but whoever has a link: an epoch that was given to them is never good to send in."""
COMMITMENT_BYTES: Final = 32
MAX_STEP: Final = 2**24
"""How far a Lamport timestamp may be above those of the entries that it names.

Else one entry at the end of the numbers would leave none for those that come after it."""
LATEST_CREATE: Final = 2**52
"""That of the first entry, which names none, about."""
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
    invitation: EntryId | None = None
    """The ``Invite`` that they came by; None if they were added by hand."""
    reads_from: int | None = None
    """Of the epochs that the author knew they may have the keys of those of this Lamport timestamp
    and later; None: of none."""


class LastMessage(Struct, frozen=True, order=True):
    """The last message of one instance that still counts, and with it whatever it follows on."""

    instance_id: InstanceId
    sequence: int
    message_id: MessageId


class Remove(Struct, frozen=True, kw_only=True):
    """``member`` is removed, or leaves if it is the author.

    ``last_messages``: the last message of each of their instances that still counts.
    """

    member: ParticipantId
    last_messages: tuple[LastMessage, ...] = ()


class Left(Struct, frozen=True, order=True):
    """Somebody who had left by then: what they wrote until then still counts."""

    member: ParticipantId
    last_messages: tuple[LastMessage, ...] = ()


class EndLink(Struct, frozen=True, kw_only=True):
    """Anyone with the link was in this group; from now on it is ``members`` and whom they let in.

    The group's name and topic, which the link said, are known from here on by who has no link.
    The key that the link has is an epoch of the log, which ANYONE was given (``epoch_in``).
    """

    name: str
    members: frozenset[ParticipantId]
    left: tuple[Left, ...] = ()
    """Ascending by member."""
    topic_name: bytes
    """The group stays at its content topic."""
    create_signature: bytes
    """Under the ``Create``, which follows from the link (``engine.crypto.link_create``)."""
    key_commitment: bytes
    """To the link's key, 32 bytes."""


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
    invitation: EntryId


class DeleteMessage(Struct, frozen=True, kw_only=True):
    """Somebody else's message is hidden for everybody."""

    message_id: MessageId
    author: ParticipantId


class MakeEpoch(Struct, frozen=True, kw_only=True):
    """A fresh key was made and given to ``recipients``, the author among them.

    Or, if the author knew an entry with the same commitment: that key was given to more people.
    """

    commitment: bytes
    """32 bytes; the first 8 are the epoch's id."""
    recipients: frozenset[ParticipantId]


def epoch_in(act: "Act") -> MakeEpoch | None:
    """What an act says of an epoch.  Further ends of a link, without members, say nothing of it."""
    match act:
        case MakeEpoch():
            return act
        case EndLink(members=members) if members:
            return MakeEpoch(commitment=act.key_commitment, recipients=members | {ANYONE})
        case _:
            return None


class Unsupported(Struct, frozen=True, kw_only=True):
    """Of a newer version, or beyond a bound: the entry has its place, and does nothing."""

    kind: str = ""


Act: TypeAlias = (
    Create
    | EndLink
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
    | Unsupported
)


class Entry(Struct, frozen=True, kw_only=True):
    entry_id: EntryId
    author: ParticipantId
    lamport_timestamp: int
    sent_ms: UnixMs
    heads: tuple[EntryId, ...]
    """Empty for ``Create`` alone."""
    act: Act


LEAST_ROLE: Final[Mapping[type[Act], Role]] = MappingProxyType(
    {
        Create: Role.OWNER,
        EndLink: Role.OWNER,
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
        Unsupported: Role.MEMBER,
    }
)
"""What each act takes.

``Add`` and ``Invite`` take less where ``SetInviters`` says so.  ``Remove``, ``Demote`` and
``DeleteMessage`` also take that the author outranks the other.  Anybody may remove or demote
themselves.
"""
