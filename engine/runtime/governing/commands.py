"""Implements ``engine.governing_commands``: what a person does with a governed group."""

from collections.abc import Sequence

from engine.codec.joining import decode_joining
from engine.core.admin_log.acts import (
    MAX_TOPIC_CHARACTERS,
    Act,
    DeleteMessage,
    Demote,
    EntryId,
    Promote,
    Remove,
    Rename,
    Role,
    SetInviters,
    SetPicture,
    SetTopic,
)
from engine.core.content import visible_line
from engine.core.errors import (
    CommandError,
    CommandRefusal,
    InputError,
    InputFlaw,
    LocalProtocolError,
)
from engine.core.ids import ConversationId, MessageId, ParticipantId
from engine.core.invite import conversation_id_of
from engine.core.joining import Ask
from engine.crypto.pair import OpenedPair
from engine.governance_views import (
    EarlierMessages,
    GovernanceChanged,
    GovernanceView,
    JoinView,
)
from engine.runtime.conversations import Conversations
from engine.runtime.governing.admitting import Admitting
from engine.runtime.governing.joins import Joins
from engine.runtime.governing.sessions import govern, session_of
from engine.runtime.governing.views import governance_view
from engine.runtime.groups import Groups
from engine.runtime.input_checks import require_usable_picture, usable_name
from engine.runtime.runner_context import RunnerContext
from engine.session.group.session import GroupSession
from engine.session.inputs import Govern


class Governing:
    """``engine.api.Governing``, and what the inbox gives to it."""

    def __init__(
        self,
        groups: Groups,
        admitting: Admitting,
        joins: Joins,
        conversations: Conversations,
        context: RunnerContext,
    ) -> None:
        self._groups = groups
        self._admitting = admitting
        self._joins = joins
        self._conversations = conversations
        self._context = context

    # --- what is shown --------------------------------------------------------------------------

    def view(self, conversation_id: ConversationId) -> GovernanceView | None:
        if conversation_id not in self._conversations:
            return None
        runner = self._conversations.runner(conversation_id)
        session = session_of(runner)
        known = session.governance() if session is not None else None
        if known is None:
            return None
        return governance_view(
            conversation_id,
            known,
            runner.members,
            own_id=self._context.own_id,
            own=self._admitting.own(conversation_id),
            links=self._admitting.links(conversation_id),
            asking=self._admitting.asking(conversation_id),
            is_full=self._admitting.is_full(conversation_id),
            clock_ms=self._context.clock.clock_ms(),
        )

    def tell(self, conversation_id: ConversationId) -> None:
        view = self.view(conversation_id)
        if view is not None:
            self._context.publish(GovernanceChanged(view=view))

    # --- acts -----------------------------------------------------------------------------------

    async def create(self, name: str) -> ConversationId:
        return await self._groups.create_governed(name)

    async def _do(self, conversation_id: ConversationId, act: Act) -> None:
        await govern(self._conversations.group(conversation_id), act)

    async def promote(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        await self._do(conversation_id, Promote(member=participant_id))

    async def demote(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        await self._do(conversation_id, Demote(member=participant_id))

    async def remove(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        """In a group that anyone with the link is in, this ends the link, if we made the group."""
        runner = self._conversations.group(conversation_id)
        if isinstance(runner.session, GroupSession):
            await runner.do(Govern(Remove(member=participant_id)))
        else:
            raise CommandError(CommandRefusal.STILL_LOADING)

    async def rename(self, conversation_id: ConversationId, name: str) -> None:
        await self._do(conversation_id, Rename(name=usable_name(name)))

    async def set_picture(self, conversation_id: ConversationId, picture: bytes) -> None:
        require_usable_picture(picture)
        await self._do(conversation_id, SetPicture(picture=picture))

    async def set_topic(self, conversation_id: ConversationId, topic: str) -> None:
        line = visible_line(topic)
        if len(line) > MAX_TOPIC_CHARACTERS:
            raise InputError(InputFlaw.TOPIC_TOO_LONG, limit=MAX_TOPIC_CHARACTERS)
        await self._do(conversation_id, SetTopic(topic=line))

    async def set_inviters(self, conversation_id: ConversationId, least: Role) -> None:
        if least not in {Role.ADMIN, Role.MEMBER}:
            raise LocalProtocolError(f"inviters of the role {least}")
        await self._do(conversation_id, SetInviters(least=least))

    async def delete_message(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        context = self._context
        stored = await context.storage.run(context.store.message, conversation_id, message_id)
        if stored is None:
            raise CommandError(CommandRefusal.NO_MESSAGE)
        author = stored.record.sender_id
        if author == context.own_id:
            raise LocalProtocolError("a message of ours is taken back, not deleted")
        await self._do(conversation_id, DeleteMessage(message_id=message_id, author=author))

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
        return await self._admitting.invite(
            conversation_id, uses=uses, days=days, needs_approval=needs_approval, earlier=earlier
        )

    async def revoke(self, conversation_id: ConversationId, invitation_id: EntryId) -> None:
        await self._admitting.revoke(conversation_id, invitation_id)

    async def approve(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        await self._admitting.approve(conversation_id, participant_id)

    async def refuse(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        await self._admitting.refuse(conversation_id, participant_id)

    # --- groups that we asked to be let into ----------------------------------------------------

    def joins(self) -> Sequence[JoinView]:
        return self._joins.views()

    async def forget_join(self, conversation_id: ConversationId) -> None:
        await self._joins.forget(conversation_id)

    async def take(self, opened: OpenedPair, data: bytes) -> None:
        """What came to our inbox about joining a group.  Raises RemoteProtocolError."""
        joining = decode_joining(data)
        conversation_id = conversation_id_of(joining.group_id)
        if isinstance(joining.kind, Ask):
            await self._admitting.asked(opened, conversation_id, joining, joining.kind)
        else:
            await self._joins.answered(opened, conversation_id, joining)
