"""Governed groups of the scripted engine: roles, invitations and requests as a test says.

A part of ``ScriptedEngine`` in a file of its own.  ``engine.governing`` is a recorder: it keeps the
view that a test gave a group, does to it what the command says, and tells of that.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from engine.core.admin_log.acts import EntryId, Role
from engine.core.ids import ConversationId, MessageId, ParticipantId, UnixMs
from engine.events import ConversationView, EngineEvent
from engine.governance_views import (
    AskingView,
    EarlierMessages,
    GovernanceChanged,
    GovernanceView,
    InvitationView,
    JoinsChanged,
    JoinView,
)
from tests.ui.scripted_people import PERSON_FINGERPRINT, person_id

STRONG_LINK = "causerie:join/good-strong"
_START_MS = 1_795_000_000_000
_DAY_MS = 24 * 3600 * 1000


class ScriptedGoverning:
    """Hands ``ScriptedEngine`` its ``governing``."""

    link_over = ConversationId("")
    """A group that one is not in any more: what every invitation is to."""
    views: dict[ConversationId, ConversationView]
    failures: dict[str, list[Exception]]
    calls: list[tuple[str, object]]

    @cached_property
    def governing(self) -> "GoverningScript":
        return GoverningScript(self)

    def tell(self, event: EngineEvent) -> None:
        raise NotImplementedError

    def add_group(self, name: str, others: Iterable[str] = ("Maya",)) -> ConversationId:
        raise NotImplementedError


class GoverningScript:
    def __init__(self, engine: ScriptedGoverning) -> None:
        self._engine = engine
        self.known: dict[ConversationId, GovernanceView] = {}
        self.waiting: tuple[JoinView, ...] = ()

    def _enter(self, method: str, argument: object) -> None:
        waiting = self._engine.failures.get(method)
        if waiting:
            raise waiting.pop(0)
        self._engine.calls.append((method, argument))

    # --- what a test does -------------------------------------------------------------------------

    def govern(
        self, conversation_id: ConversationId, own_role: Role = Role.OWNER, **others: Role
    ) -> GovernanceView:
        """``others``: roles by name; who is not named is a member."""
        members = self._engine.views[conversation_id].members
        roles = {one.participant_id: others.get(one.name, Role.MEMBER) for one in members}
        roles |= {one.participant_id: own_role for one in members if one.is_self}
        leads = own_role >= Role.ADMIN
        view = GovernanceView(
            conversation_id=conversation_id,
            roles=roles,
            own_role=own_role,
            may_invite=leads,
            outranked=frozenset(who for who, role in roles.items() if leads and role < own_role),
            newest_key_ms=UnixMs(_START_MS),
        )
        self.put(view)
        return view

    def put(self, view: GovernanceView) -> None:
        self.known[view.conversation_id] = view
        self._engine.tell(GovernanceChanged(view=view))

    def ask(self, conversation_id: ConversationId, *names: str) -> None:
        """They ask to come in; without a name nobody does any more."""
        asking = tuple(
            AskingView(
                participant_id=person_id(name),
                name=name,
                fingerprint=PERSON_FINGERPRINT,
                invitation_id=EntryId("i1"),
                asked_ms=UnixMs(_START_MS),
            )
            for name in names
        )
        self.put(replace(self.known[conversation_id], asking=asking))

    def wait(self, *joins: JoinView) -> None:
        self.waiting = joins
        self._engine.tell(JoinsChanged(joins=joins))

    # --- Governing --------------------------------------------------------------------------------

    def view(self, conversation_id: ConversationId) -> GovernanceView | None:
        return self.known.get(conversation_id)

    async def create(self, name: str) -> ConversationId:
        self._enter("create_governed", name)
        made = self._engine.add_group(name, others=())
        self.govern(made)
        return made

    def _set_role(self, group: ConversationId, who: ParticipantId, role: Role) -> None:
        view = self.known[group]
        roles = {**view.roles, who: role}
        if role is Role.NOBODY:
            del roles[who]
        self.put(replace(view, roles=roles, outranked=view.outranked & roles.keys()))

    async def promote(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        self._enter("promote", participant_id)
        self._set_role(conversation_id, participant_id, Role.ADMIN)

    async def demote(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        self._enter("demote", participant_id)
        self._set_role(conversation_id, participant_id, Role.MEMBER)

    async def remove(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        self._enter("remove_member", participant_id)
        if conversation_id not in self.known:  # Anyone with the link was in it.
            self.govern(conversation_id)
        self._set_role(conversation_id, participant_id, Role.NOBODY)

    async def rename(self, conversation_id: ConversationId, name: str) -> None:
        self._enter("rename_group", name)

    async def set_picture(self, conversation_id: ConversationId, picture: bytes) -> None:
        self._enter("set_picture", picture)
        self.put(replace(self.known[conversation_id], picture=picture))

    async def set_topic(self, conversation_id: ConversationId, topic: str) -> None:
        self._enter("set_topic", topic)
        self.put(replace(self.known[conversation_id], topic=topic))

    async def set_inviters(self, conversation_id: ConversationId, least: Role) -> None:
        self._enter("set_inviters", least)
        self.put(replace(self.known[conversation_id], least_inviter=least))

    async def delete_message(self, conversation_id: ConversationId, message_id: MessageId) -> None:
        self._enter("delete_message", message_id)

    async def invite(
        self,
        conversation_id: ConversationId,
        *,
        uses: int,
        days: int,
        needs_approval: bool,
        earlier: EarlierMessages,
    ) -> str:
        self._enter("invite", (uses, days, needs_approval, earlier))
        view = self.known[conversation_id]
        number = len(view.invitations) + 1
        link = f"{STRONG_LINK}/{number}"
        made = InvitationView(
            invitation_id=EntryId(f"i{number}"),
            by=next(iter(view.roles)),
            by_name="Ines",
            made_ms=UnixMs(_START_MS),
            expires_ms=UnixMs(_START_MS + days * _DAY_MS),
            uses=uses,
            is_open=True,
            may_revoke=True,
            link=link,
            needs_approval=needs_approval,
            earlier=earlier,
        )
        self.put(replace(view, invitations=(made, *view.invitations)))
        return link

    async def revoke(self, conversation_id: ConversationId, invitation_id: EntryId) -> None:
        self._enter("revoke", invitation_id)
        view = self.known[conversation_id]
        invitations = tuple(
            replace(one, is_open=False, is_revoked=True, link=None, may_revoke=False)
            if one.invitation_id == invitation_id
            else one
            for one in view.invitations
        )
        self.put(replace(view, invitations=invitations))

    def _answered(self, group: ConversationId, who: ParticipantId) -> None:
        view = self.known[group]
        left = tuple(one for one in view.asking if one.participant_id != who)
        self.put(replace(view, asking=left))

    async def approve(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        self._enter("approve", participant_id)
        self._answered(conversation_id, participant_id)

    async def refuse(self, conversation_id: ConversationId, participant_id: ParticipantId) -> None:
        self._enter("refuse", participant_id)
        self._answered(conversation_id, participant_id)

    def joins(self) -> Sequence[JoinView]:
        return self.waiting

    async def forget_join(self, conversation_id: ConversationId) -> None:
        self._enter("forget_join", conversation_id)
        self.wait(*(one for one in self.waiting if one.conversation_id != conversation_id))
