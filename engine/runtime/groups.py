"""Implements the group commands of ``engine.api``: create, invite, preview, join and leave.

What happens inside a group is handled in its session.  Beside these commands, a governed group has
those of ``engine.runtime.governing``.
"""

from collections.abc import Callable, Coroutine, Sequence

from engine.answers import InvitePreview
from engine.core.admin_log.acts import EntryId, Remove
from engine.core.content import Body, Leave
from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.governed import Admission
from engine.core.ids import ConversationId, ParticipantId
from engine.core.invite import Invite, StrongInvite, conversation_id_of, group_id_of
from engine.core.membership.members import by_joining
from engine.core.ports import RemoveGroup, StoreWrite
from engine.core.records import GroupRecord, MemberRecord
from engine.core.sds.inputs import DeadlineReached, ShowSetAside
from engine.core.sds.log_table import LogTable
from engine.core.stored import Listed
from engine.crypto.admin_entry import link_create_id
from engine.crypto.identity import fingerprint_of
from engine.crypto.links import parse_any_invite
from engine.events import ConversationAdded, ConversationRemoved
from engine.runtime.conversation_runner import ConversationRunner
from engine.runtime.conversations import Conversations
from engine.runtime.governing.sessions import session_of, state_of
from engine.runtime.input_checks import usable_name
from engine.runtime.maintenance import Maintenance
from engine.runtime.runner_context import RunnerContext
from engine.runtime.views import Members
from engine.session.contract import ConversationRecord
from engine.session.group.factory import GroupFactory
from engine.session.group.session import GroupSession
from engine.session.inputs import Govern, Say, TakeAdmission

LEAVE_FLUSH_MS = 1_500

AskToJoin = Callable[[str, StrongInvite], Coroutine[object, object, None]]
"""Takes a link and what is in it."""


def _group(record: ConversationRecord) -> GroupRecord:
    if not isinstance(record, GroupRecord):
        raise LocalProtocolError("not a group")
    return record


def _people(_record: ConversationRecord, members: Sequence[MemberRecord]) -> Members:
    """In the order of the session's."""
    return {each.participant_id: each for each in sorted(members, key=by_joining)}


def _first_entry(group: GroupRecord) -> EntryId:
    """Of the group's log, also if we have not heard yet that its link ended."""
    group_id = group_id_of(group.conversation_id)
    return group.first_entry or link_create_id(group.admin_public_key, group_id=group_id)


class Groups:
    """``engine.api.Groups``."""

    def __init__(
        self,
        book: GroupFactory,
        conversations: Conversations,
        context: RunnerContext,
        maintenance: Maintenance,
    ) -> None:
        self._maintenance = maintenance
        self.ask_to_join: AskToJoin | None = None
        """Set before the first join."""
        self.left: Callable[[ConversationId], None] = lambda _group: None
        """Called when a group is gone."""
        self.book = book
        self._conversations = conversations
        self._context = context

    def bring_up(self, group: GroupRecord, listed: Listed | None = None) -> ConversationRunner:
        """``listed``: what the store says of it, if that was read already."""
        runner = ConversationRunner(
            group, load=self._load, people=_people, context=self._context, listed=listed
        )
        self._context.transport.add_service_nodes(group.service_nodes)
        topic = self.book.content_topic(group)
        self._conversations.run_group(runner, topic, self._context.transport)
        return runner

    def _load(self, record: ConversationRecord, log: LogTable) -> GroupSession:
        return self.book.load(_group(record), log)

    async def create(self, name: str) -> ConversationId:
        name = usable_name(name)
        async with self._conversations.turn:
            group, writes, opening = self.book.new_group(name)
            await self._begin(group, writes, opening)
        return group.conversation_id

    async def create_governed(self, name: str) -> ConversationId:
        name = usable_name(name)
        async with self._conversations.turn:
            group, writes, opening = self.book.new_governed_group(name)
            await self._begin(group, writes, opening)
        return group.conversation_id

    async def take_in(self, admission: Admission, asked: StoreWrite) -> None:
        """Begin a governed group that somebody let us into; ``asked`` ends that we ask.

        One that we are in no more goes on.  Raises RemoteProtocolError ``join_other_log``.
        """
        conversation_id = conversation_id_of(admission.group_id)
        async with self._conversations.turn:
            if conversation_id in self._conversations:
                runner = self._conversations.group(conversation_id)
                if _first_entry(_group(runner.record)) != admission.first_entry:
                    raise RemoteProtocolError("join_other_log")
                await runner.do(TakeAdmission(admission))
                await self._context.storage.run(self._context.store.apply, [asked])
                return
            group, writes, opening = self.book.admitted_group(admission)
            await self._begin(group, (*writes, asked), opening)

    async def make_invite_link(self, conversation_id: ConversationId) -> str:
        group = _group(self._conversations.group(conversation_id).record)
        if group.first_entry is not None:
            raise LocalProtocolError("a governed group has no link that opens it")
        return self.book.invite_link(group, self._context.transport.addresses())

    def preview_invite(self, link: str) -> InvitePreview:
        invite = self._parse(link)
        if isinstance(invite, StrongInvite):
            key, expires_ms = invite.public_key, invite.expires_ms
        else:
            key, expires_ms = invite.admin_public_key, None
        is_in = self._is_in(invite.conversation_id)
        is_known = invite.conversation_id in self._conversations
        return InvitePreview(
            conversation_id=invite.conversation_id,
            group_name=invite.group_name,
            inviter_name=invite.inviter_name,
            admin_fingerprint=fingerprint_of(key),
            node_addresses=invite.node_addresses,
            service_nodes=invite.service_nodes,
            already_joined=is_in,
            asks_first=isinstance(invite, StrongInvite),
            expires_ms=expires_ms,
            is_over=is_known and not is_in and not isinstance(invite, StrongInvite),
        )

    def _parse(self, link: str) -> Invite | StrongInvite:
        return parse_any_invite(link, now_ms=self._context.clock.clock_ms())

    def _is_in(self, conversation_id: ConversationId) -> bool:
        """Whether we are a member, as far as we know."""
        if conversation_id not in self._conversations:
            return False
        session = session_of(self._conversations.runner(conversation_id))
        return session is None or self._context.own_id in state_of(session).roles

    async def join(self, link: str) -> ConversationId:
        invite = self._parse(link)
        async with self._conversations.turn:  # Perhaps an answer is just being taken in.
            if isinstance(invite, StrongInvite):
                if not self._is_in(invite.conversation_id) and self.ask_to_join is not None:
                    await self.ask_to_join(link, invite)
            elif invite.conversation_id not in self._conversations:
                group, writes, opening = self.book.joined_group(invite)
                self._context.transport.add_peers(invite.node_addresses)
                await self._begin(group, writes, opening)
        return invite.conversation_id

    async def _begin(
        self, group: GroupRecord, writes: Sequence[StoreWrite], opening: Sequence[Body]
    ) -> None:
        """Start a new group and send its opening messages."""
        await self._context.storage.run(self._context.store.apply, writes)
        runner = self.bring_up(group)
        await runner.ready()
        for body in opening:
            await runner.do(Say(body))
        view = runner.view()
        if view is not None:
            self._context.publish(ConversationAdded(conversation=view))

    def tell_name(self) -> None:
        """Make every group check whether it knows our current name; offline the update waits."""
        for runner in self._conversations.groups():
            runner.offer(DeadlineReached())

    async def leave(self, conversation_id: ConversationId) -> None:
        """Notify the others if they can be reached, then forget the group."""
        async with self._conversations.turn:
            runner = self._conversations.group(conversation_id)
            await self._say_farewell(runner)
            await runner.flush(timeout_ms=LEAVE_FLUSH_MS)
            await self._conversations.end(conversation_id)
            remove = RemoveGroup(conversation_id=conversation_id)
            await self._context.storage.run(self._context.store.apply, [remove])
            self.left(conversation_id)
        self._context.publish(ConversationRemoved(conversation_id=conversation_id))
        self._maintenance.clear_removed(self._context.store)

    async def _say_farewell(self, runner: ConversationRunner) -> None:
        session = session_of(runner)
        if session is None:
            await runner.do(Say(Leave()))
        elif self._context.own_id in state_of(session).roles:
            await runner.do(Govern(Remove(member=self._context.own_id)))

    async def set_member_muted(
        self, conversation_id: ConversationId, participant_id: ParticipantId, *, muted: bool
    ) -> None:
        runner = self._conversations.runner(conversation_id)
        await runner.set_member_muted(participant_id, muted=muted)
        self._maintenance.mark_muted(self._context.store, then=runner.tell_timeline)

    async def show_flood(
        self, conversation_id: ConversationId, participant_id: ParticipantId
    ) -> None:
        await self._conversations.runner(conversation_id).do(ShowSetAside(sender_id=participant_id))
