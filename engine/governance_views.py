"""Read models of governed groups: who may what, which invitations are out, who asks to come in.

They are what follows from the group's admin log as it is here (docs/admin-log.md), and what only
this device knows of its own invitations.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from engine.core.admin_log.acts import EntryId, Role
from engine.core.ids import ConversationId, ParticipantId, UnixMs


class EarlierMessages(StrEnum):
    """How far back a newcomer may read."""

    NONE = "none"
    DAYS_30 = "days_30"
    ALL = "all"


class DeedKind(StrEnum):
    """What an entry of the admin log that counts did, as a row of the timeline tells it."""

    ADDED = "added"
    REMOVED = "removed"
    LEFT = "left"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    STEPPED_DOWN = "stepped_down"
    RENAMED = "renamed"
    PICTURE_SET = "picture_set"
    TOPIC_SET = "topic_set"
    INVITERS_SET = "inviters_set"
    LINK_ENDED = "link_ended"
    """Anyone with the link was in the group until then."""


class DeedView(Struct, frozen=True, kw_only=True):
    """The row's sender did it."""

    kind: DeedKind
    about: ParticipantId | None = None
    """Whom it was done to."""
    about_name: str = ""
    about_self: bool = False
    text: str = ""
    """The group's new name or topic, or who may invite ("member", "admin")."""


class InvitationView(Struct, frozen=True, kw_only=True):
    """An invitation that is in the admin log."""

    invitation_id: EntryId
    by: ParticipantId
    by_name: str
    made_ms: UnixMs
    expires_ms: UnixMs
    uses: int
    came: tuple[ParticipantId, ...] = ()
    """Who came in by it, in the log's order."""
    came_names: tuple[str, ...] = ()
    is_revoked: bool = False
    is_open: bool = False
    """Somebody can still come in by it: neither used up, nor revoked, nor expired.

    And whoever made it may let others in.
    """
    may_revoke: bool = False
    link: str | None = None
    """Of our own that are open."""
    needs_approval: bool | None = None
    """None for others' invitations: only the inviter's device knows.

    True also if somebody who came in by it was removed: it lets nobody in by itself any more.
    """
    earlier: EarlierMessages | None = None
    """What newcomers may read; None for others' invitations, as above."""


class AskingView(Struct, frozen=True, kw_only=True):
    """Somebody with an invitation of ours asks to come in, and we have to decide."""

    participant_id: ParticipantId
    name: str
    fingerprint: str
    invitation_id: EntryId
    asked_ms: UnixMs


class GovernanceView(Struct, frozen=True, kw_only=True):
    """A governed group as this device knows it."""

    conversation_id: ConversationId
    roles: Mapping[ParticipantId, Role]
    """Of the members, and nobody else."""
    own_role: Role
    """NOBODY: we were removed, or left, and can only read what is here."""
    removed_by_name: str = ""
    """Who removed us, if somebody did."""
    is_link_over: bool = False
    """We came by a link that had ended, and were never a member."""
    topic: str = ""
    picture: bytes = b""
    may_invite: bool = False
    is_full: bool = False
    """Nobody can be let in any more: the admin log is too large to be given to anybody.

    False until somebody was to be let in, or invited.
    """
    least_inviter: Role = Role.ADMIN
    outranked: frozenset[ParticipantId] = frozenset()
    """Members whom we may remove or demote."""
    invitations: tuple[InvitationView, ...] = ()
    """Newest first; those that ended more than 30 days ago are left out."""
    asking: tuple[AskingView, ...] = ()
    voids: Mapping[ParticipantId, int] = field(default_factory=dict)
    """How many messages somebody wrote after their removal, which nobody is shown."""
    newest_key_ms: UnixMs | None = None
    """Since when the group writes with its present key, by our clock."""
    without_prekey: frozenset[ParticipantId] = frozenset()
    """Members for whom the group's keys are sealed to a key that lives as long as their profile:
    none that they change each week is here."""
    is_history_withheld: bool = False
    """Nothing that was said before we came can be read here: the inviter chose that."""
    withheld_by_name: str = ""
    """Who chose that, or since when we can read; "" if nobody did, or their name is not known."""
    reads_since_ms: UnixMs | None = None
    """Nothing from before can be read here, about: the inviter chose that, too.

    None: nothing is known to be withheld.
    """


class JoinState(StrEnum):
    ASKED = "asked"
    """Nobody answered yet: the inviter's device has to be online once."""
    WAITS = "waits"
    """The inviter's device has it, and the inviter has to decide."""
    REFUSED = "refused"
    """The inviter declined."""
    SPENT = "spent"
    """All places of the invitation are taken."""
    EXPIRED = "expired"
    REVOKED = "revoked"
    FULL = "full"
    """The group can take nobody in any more."""


class JoinView(Struct, frozen=True, kw_only=True):
    """A group that we asked to be let into."""

    conversation_id: ConversationId
    group_name: str
    inviter_name: str
    asked_ms: UnixMs
    state: JoinState


class GovernanceChanged(Struct, frozen=True, kw_only=True):
    """Something of the view is different."""

    view: GovernanceView


class JoinsChanged(Struct, frozen=True, kw_only=True):
    """``joins``: all groups that nobody let us into yet, newest first."""

    joins: tuple[JoinView, ...]
