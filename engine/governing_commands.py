"""What a user interface can ask about governed groups: a part of ``engine.api``.

A governed group has an owner, admins and members, and keys that change (docs/admin-log.md,
docs/epochs.md).  Other groups are open to anyone with their link, and take none of these commands,
but ``remove``.
``engine.runtime.governing`` implements it.
"""

from collections.abc import Sequence
from typing import Protocol

from engine.core.admin_log.acts import EntryId, Role
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.governance_views import EarlierMessages, GovernanceView, JoinView


class Governing(Protocol):
    """Commands raise LocalProtocolError for what our role does not allow, and for other groups."""

    def view(self, conversation_id: ConversationId) -> GovernanceView | None:
        """None for a group that is not governed, and for one that is still being loaded."""

    async def create(self, name: str) -> ConversationId:
        """A governed group with us as its owner."""

    async def promote(
        self, conversation_id: ConversationId, participant_id: ParticipantId
    ) -> None: ...

    async def demote(
        self, conversation_id: ConversationId, participant_id: ParticipantId
    ) -> None: ...

    async def remove(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        """Remove a member.  What they write from now on is void, and the group's key changes.

        Of a group that anyone with the link is in, its creator can remove somebody: that ends the
        link, and makes the group a governed one.
        """

    async def rename(self, conversation_id: ConversationId, name: str) -> None:
        """Raises ConfigError for an unusable name."""

    async def set_picture(self, conversation_id: ConversationId, picture: bytes) -> None:
        """PNG or JPEG of at most MAX_PICTURE_BYTES, or b"" for none.  Raises ConfigError."""

    async def set_topic(self, conversation_id: ConversationId, topic: str) -> None:
        """One line.  Raises ConfigError."""

    async def set_inviters(self, conversation_id: ConversationId, least: Role) -> None:
        """Who may let others in: ``Role.ADMIN`` or ``Role.MEMBER``."""

    async def delete_message(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        """Hide another member's message for everybody."""

    # --- invitations ----------------------------------------------------------------------------

    async def invite(
        self,
        conversation_id: ConversationId,
        *,
        uses: int,
        days: int,
        needs_approval: bool,
        earlier: EarlierMessages,
    ) -> str:
        """The link of a new invitation for ``uses`` people, for ``days`` (1 to 30) days.

        It holds no key: who follows it asks our device, which lets them in at once or, with
        ``needs_approval``, when we ``approve``.  ``Groups.join`` and ``preview_invite`` take it.
        """

    async def revoke(self, conversation_id: ConversationId, invitation_id: EntryId) -> None: ...

    async def approve(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        """Let somebody in who asks."""

    async def refuse(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        """Decline; they are told."""

    # --- groups that we asked to be let into ----------------------------------------------------

    def joins(self) -> Sequence[JoinView]:
        """Those that nobody let us into yet, newest first."""

    async def forget_join(self, conversation_id: ConversationId) -> None:
        """Stop asking, and forget it."""
