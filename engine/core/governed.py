"""What a governed group keeps beside all that a group does: its admin log, its keys, prekeys.

A governed group has an admin log (``engine.core.admin_log``) and keys that change; a group that
anyone with the link is in has neither.  Private keys are raw bytes; the database is encrypted.
"""

from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from engine.core.admin_log.acts import LEAST_ROLE, Add, EntryId, Role
from engine.core.admin_log.log import AdminState, Deletion
from engine.core.ids import ConversationId, MessageId, ParticipantId, Position, UnixMs
from engine.core.prekeys import OwnPrekey

MAX_BEFORE: Final = 256
"""Ids in an admission: what others write names the ten newest messages that they have."""


class DeedPlace(Struct, frozen=True, kw_only=True):
    """Where the message that an entry came in is in the log, and whether it has a row."""

    entry_id: EntryId
    position: Position
    is_shown: bool


class GovernedState(Struct, frozen=True, kw_only=True):
    """What a governed group keeps beside all that a group does."""

    entries: tuple[bytes, ...] = ()
    """Of its admin log, verified, as received, in the order in which they came."""
    known_ms: Mapping[bytes, UnixMs] = field(default_factory=dict)
    """By epoch key, in the order in which they came: since when we have it, by our clock."""
    own_prekeys: tuple[OwnPrekey, ...] = ()
    """Ascending by number."""
    prekeys: tuple[bytes, ...] = ()
    """The newest of each other member, verified, as received."""
    deeds: tuple[DeedPlace, ...] = ()
    deleted: Mapping[Deletion, ParticipantId] = field(default_factory=dict)
    """By whom."""


class GroupGovernance(Struct, frozen=True, kw_only=True):
    """A governed group as it is here, for whoever shows it."""

    state: AdminState
    own_role: Role
    """NOBODY: we were removed, or left."""
    removed_by: ParticipantId | None
    """Who removed us, ourselves if we left; None if we are a member."""
    may_invite: bool
    outranked: frozenset[ParticipantId]
    """Members whom we may remove; and demote, if they are admins."""
    revocable: frozenset[EntryId]
    """Invitations that are open and that we may revoke."""
    newest_key_ms: UnixMs | None
    """Since when the group writes with its present key, by our clock."""
    voids: Mapping[ParticipantId, int]
    """How many messages count for nothing, by author."""
    without_prekey: frozenset[ParticipantId] = frozenset()
    """Members whose prekey is not here: keys are sealed to that of their join statement."""
    is_history_withheld: bool = False
    """Whoever let us in, the only time, gave us no key of before."""
    withheld_by: ParticipantId | None = None
    """Who let us in, the only time, and gave us no key of before, or only later ones."""
    is_link_over: bool = False
    """We came by a link that ended before anybody heard of us, and were never a member."""
    reads_since_ms: UnixMs | None = None
    """Nothing from before can be read here, about; None: we were given every key that we know of,
    or were here before."""


def may_let_in(state: AdminState, who: ParticipantId) -> bool:
    """Whether somebody may let others in now: a member whose role suffices."""
    role = state.roles.get(who, Role.NOBODY)
    return role is not Role.NOBODY and role >= min(LEAST_ROLE[Add], state.inviters)


class Admission(Struct, frozen=True, kw_only=True):
    """What a newcomer is given by whoever lets them in."""

    group_id: bytes
    group_name: str
    first_entry: EntryId
    entries: tuple[bytes, ...]
    """The whole admin log, verified."""
    epoch_keys: tuple[bytes, ...]
    admin_public_key: bytes
    """Of the group's creator."""
    roles: Mapping[ParticipantId, Role]
    """Of each member, by ``entries``."""
    statements: tuple[bytes, ...] = ()
    """The join statements of members, verified; some may be lacking."""
    prekeys: tuple[bytes, ...] = ()
    """Of members, the newest of each, verified; some may be lacking."""
    service_nodes: tuple[str, ...] = ()
    before: tuple[MessageId, ...] = ()
    """The last messages, at most MAX_BEFORE, that are sealed in keys which they are not given.

    What they may read depends on these, and need not wait for them.
    """
    topic_name: bytes = b""
    """By ``entries``: that of a group which began with a link."""

    def __repr__(self) -> str:
        return f"Admission({self.group_name!r}, {len(self.epoch_keys)} keys)"


class PutEntry(Struct, frozen=True, kw_only=True):
    """Keep a verified entry of a governed group's admin log, as received."""

    conversation_id: ConversationId
    data: bytes


class AddEpochKey(Struct, frozen=True, kw_only=True):
    """Another key of a governed group, the newest from now on; ignored if it is known."""

    conversation_id: ConversationId
    key: bytes
    known_ms: UnixMs

    def __repr__(self) -> str:
        return f"AddEpochKey({self.conversation_id!r}, known_ms={self.known_ms})"


class SaveOwnPrekeys(Struct, frozen=True, kw_only=True):
    """All that are kept from now on; others are erased."""

    conversation_id: ConversationId
    prekeys: tuple[OwnPrekey, ...]


class PutPrekey(Struct, frozen=True, kw_only=True):
    """The newest prekey of a member, verified, as received."""

    conversation_id: ConversationId
    participant_id: ParticipantId
    data: bytes


class RemoveRow(Struct, frozen=True, kw_only=True):
    """A logged message counts for nothing: no row, no delivery, nothing said of other messages."""

    conversation_id: ConversationId
    position: Position


class PutDeed(Struct, frozen=True, kw_only=True):
    """Insert, or replace by the entry's id."""

    conversation_id: ConversationId
    deed: DeedPlace


class BecomeGoverned(Struct, frozen=True, kw_only=True):
    """The link of a group ended: from now on it has an admin log, and stays at its topic."""

    conversation_id: ConversationId
    first_entry: EntryId
    topic_name: bytes


class NameGroup(Struct, frozen=True, kw_only=True):
    """The group's name, as its admin log has it."""

    conversation_id: ConversationId
    name: str


class PutDeletion(Struct, frozen=True, kw_only=True):
    """An admin deleted a message for everybody, which may not be here; ``deleted_by`` None: not so.

    Its text is not shown, and kept: it may turn out that the deletion does not count.
    """

    conversation_id: ConversationId
    deletion: Deletion
    deleted_by: ParticipantId | None


GovernedWrite: TypeAlias = (
    PutEntry
    | AddEpochKey
    | SaveOwnPrekeys
    | PutPrekey
    | RemoveRow
    | PutDeed
    | NameGroup
    | PutDeletion
    | BecomeGoverned
)


class GovernedStore(Protocol):
    def governed(self, conversation_id: ConversationId, /) -> GovernedState:
        """Empty for a pair; there may be entries for a group whose link did not end."""
