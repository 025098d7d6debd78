"""Joining a governed group by a strong invitation: what is said, and what both sides keep.

The newcomer sends ``Ask``s to the inviter's inbox until one is answered: with ``Refusal``, which
``WAITS`` is too, or with the ``Chunk``s of an admission.  The inviter keeps the token of each
invitation, which is in no log, and who waits for a decision; the newcomer keeps the link.
docs/invitations.md has the rules, ``engine.codec.joining`` the bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from engine.core.admin_log.acts import EntryId
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs

CHUNK_BYTES: Final = 64 * 1024
MAX_CHUNKS: Final = 256
MAX_PACKED_BYTES: Final = CHUNK_BYTES * MAX_CHUNKS
"""Of an admission, as it is sent."""
MAX_ADMISSION_BYTES: Final = 128 * 1024 * 1024
"""And unpacked: lists of an epoch's readers hardly differ, and take nearly no room when packed."""
MAX_OPEN_INVITATIONS: Final = 50
"""Of ours in one group."""
MAX_ASKING_BY_ONE: Final = 50
"""People who wait for a decision by one invitation."""
MAX_ASKING: Final = 200
"""And in all groups together, also those who were refused."""
ANSWERED_FOR_MS: Final = 30 * 86_400_000
"""How long the inviter's device knows an invitation after it expired: to say so to whoever asks."""
MAX_JOINS: Final = 50
"""Groups that we asked to be let into."""


class Reason(StrEnum):
    """Why somebody who asks is not let in, or not yet."""

    WAITS = "waits"
    """The inviter has to decide."""
    REFUSED = "refused"
    SPENT = "spent"
    """All places of the invitation are taken."""
    EXPIRED = "expired"
    REVOKED = "revoked"
    FULL = "full"
    """The group's admin log is too large to be given to anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Let me in."""

    proof: bytes
    """HMAC under the invitation's token."""
    statement: bytes
    """The newcomer's join statement."""
    answer_key: bytes
    """X25519, made for the answer to this join alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    reason: Reason
    answer_key: bytes
    """Of the ask that this answers: an older one means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of an admission."""

    digest: bytes
    """Of the whole."""
    number: int
    count: int
    part: bytes = field(repr=False)


JoiningKind: TypeAlias = Ask | Refusal | Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    group_id: bytes
    invitation_id: EntryId
    kind: JoiningKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionParts:
    """What a newcomer is given."""

    entries: tuple[bytes, ...]
    """The whole admin log."""
    statements: tuple[bytes, ...] = ()
    """The join statements of members, for their names and keys."""
    prekeys: tuple[bytes, ...] = ()
    """What members seal epoch keys to, each signed by its owner."""
    keys: bytes = field(default=b"", repr=False)
    """Sealed; empty if there are none yet."""
    before: tuple[MessageId, ...] = ()
    """As in ``Admission``."""


# --- what is kept ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnInvitation:
    """What this device alone knows of an invitation of ours."""

    conversation_id: ConversationId
    token: bytes = field(repr=False)
    needs_approval: bool
    earlier: str
    """``engine.governance_views.EarlierMessages``."""
    made_ms: UnixMs
    expires_ms: UnixMs
    uses: int
    invitation_id: EntryId | None = None
    """None until its entry is in the admin log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Somebody with an invitation of ours for whom we have to decide, or have declined."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    invitation_id: EntryId
    statement: bytes
    answer_key: bytes
    asked_ms: UnixMs
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingJoin:
    """A group that we asked to be let into."""

    conversation_id: ConversationId
    link: str = field(repr=False)
    answer_key: bytes = field(repr=False)
    """The private half."""
    asked_ms: UnixMs
    reason: Reason | None = None
    """None: nobody answered yet."""


class PutInvitation(Struct, frozen=True, kw_only=True):
    """By its token: an invitation that is known gets the id of its entry."""

    invitation: OwnInvitation


class RemoveInvitation(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    token: bytes


class PutAsking(Struct, frozen=True, kw_only=True):
    """One for each person and group."""

    asking: Asking


class RemoveAsking(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId
    participant_id: ParticipantId


class PutJoin(Struct, frozen=True, kw_only=True):
    """One for each group."""

    join: PendingJoin


class RemoveJoin(Struct, frozen=True, kw_only=True):
    conversation_id: ConversationId


JoiningWrite: TypeAlias = (
    PutInvitation | RemoveInvitation | PutAsking | RemoveAsking | PutJoin | RemoveJoin
)


class JoiningStore(Protocol):
    """Reads of all that is kept here, oldest first; may raise StorageError.

    Invitations, and who asks, are gone with their group.  Writes of a group that is not there are
    ignored.
    """

    def invitations(self) -> Sequence[OwnInvitation]: ...

    def asking(self) -> Sequence[Asking]: ...

    def joins(self) -> Sequence[PendingJoin]: ...
