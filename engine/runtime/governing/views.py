"""The read model of a governed group: what its session knows, in the words of the window."""

from collections.abc import Mapping
from typing import Final

from engine.core.admin_log.acts import EntryId
from engine.core.admin_log.log import Invitation
from engine.core.governed import GroupGovernance, may_let_in
from engine.core.ids import ConversationId, ParticipantId, UnixMs
from engine.core.joining import OwnInvitation
from engine.governance_views import AskingView, EarlierMessages, GovernanceView, InvitationView
from engine.runtime.governing.sessions import is_known_to_removed
from engine.runtime.views import Members

SHOWN_MS: Final = 30 * 86_400_000
"""Invitations that expired longer ago are left out."""


def governance_view(  # noqa: PLR0913 - keyword-only: what it is made of
    conversation_id: ConversationId,
    known: GroupGovernance,
    members: Members,
    *,
    own_id: ParticipantId,
    own: Mapping[EntryId, OwnInvitation],
    links: Mapping[EntryId, str],
    asking: tuple[AskingView, ...],
    is_full: bool,
    clock_ms: UnixMs,
) -> GovernanceView:
    """``own``: our invitations, ``links``: theirs."""
    state = known.state
    invitations = [
        _invitation_view(invitation_id, one, known, members, own, links, clock_ms)
        for invitation_id, one in state.invitations.items()
        if one.expires_ms > clock_ms - SHOWN_MS
    ]
    return GovernanceView(
        conversation_id=conversation_id,
        roles=state.roles,
        own_role=known.own_role,
        removed_by_name="" if known.removed_by == own_id else _name(known.removed_by, members),
        is_link_over=known.is_link_over,
        topic=state.topic,
        picture=state.picture,
        may_invite=known.may_invite,
        is_full=is_full,
        least_inviter=state.inviters,
        outranked=known.outranked,
        invitations=tuple(reversed(invitations)),
        asking=tuple(one for one in asking if one.participant_id not in state.roles),
        voids=known.voids,
        newest_key_ms=known.newest_key_ms,
        without_prekey=known.without_prekey,
        is_history_withheld=known.is_history_withheld,
        withheld_by_name=_name(known.withheld_by, members),
        reads_since_ms=None if known.withheld_by is None else known.reads_since_ms,
    )


def _invitation_view(  # noqa: PLR0913, PLR0917 - called in one place
    invitation_id: EntryId,
    one: Invitation,
    known: GroupGovernance,
    members: Members,
    own: Mapping[EntryId, OwnInvitation],
    links: Mapping[EntryId, str],
    clock_ms: UnixMs,
) -> InvitationView:
    ours = own.get(invitation_id)
    asks_anyhow = is_known_to_removed(known.state, invitation_id)
    is_valid = one.is_open and one.expires_ms > clock_ms
    is_open = is_valid and may_let_in(known.state, one.made_by)
    return InvitationView(
        invitation_id=invitation_id,
        by=one.made_by,
        by_name=_name(one.made_by, members),
        made_ms=one.made_ms,
        expires_ms=one.expires_ms,
        uses=one.uses,
        came=one.came,
        came_names=tuple(_name(who, members) for who in one.came),
        is_revoked=one.is_revoked,
        is_open=is_open,
        may_revoke=is_open and invitation_id in known.revocable,
        link=links.get(invitation_id) if is_open else None,
        needs_approval=None if ours is None else ours.needs_approval or asks_anyhow,
        earlier=None if ours is None else EarlierMessages(ours.earlier),
    )


def _name(who: ParticipantId | None, members: Members) -> str:
    member = None if who is None else members.get(who)
    return "" if member is None else member.name
