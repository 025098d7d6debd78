"""What can be done about a member of a governed group, and what each of it does, in words."""

from enum import Enum, auto
from typing import assert_never

from msgspec import Struct

from engine.core.admin_log.acts import Role
from engine.core.ids import ParticipantId
from engine.events import ConversationView
from engine.governance_views import GovernanceView
from ui.translate import tr


class MemberAct(Enum):
    PROMOTE = auto()
    DEMOTE = auto()
    STEP_DOWN = auto()
    REMOVE = auto()
    END_LINK = auto()
    """Remove somebody from a group that anyone with the link is in."""


def acts_on(
    view: GovernanceView | None, who: ParticipantId, *, is_self: bool, is_ours: bool = False
) -> tuple[MemberAct, ...]:
    """What our role allows; ``is_ours``: anyone with the link is in, and we made the group."""
    if view is None:
        return (MemberAct.END_LINK,) if is_ours and not is_self else ()
    if view.own_role < Role.ADMIN:
        return ()
    role = view.roles.get(who, Role.NOBODY)
    if is_self:
        return (MemberAct.STEP_DOWN,) if role is Role.ADMIN else ()
    acts = []
    if role is Role.MEMBER:
        acts.append(MemberAct.PROMOTE)
    if role is Role.ADMIN and who in view.outranked:
        acts.append(MemberAct.DEMOTE)
    if who in view.outranked:
        acts.append(MemberAct.REMOVE)
    return tuple(acts)


def is_made_by_us(group: ConversationView) -> bool:
    return any(one.is_self and one.is_admin for one in group.members)


def act_words(act: MemberAct) -> str:
    """On a button or in a menu."""
    match act:
        case MemberAct.PROMOTE:
            return tr("Make admin…")
        case MemberAct.DEMOTE:
            return tr("Admin no more…")
        case MemberAct.STEP_DOWN:
            return tr("Stop being an admin…")
        case MemberAct.REMOVE | MemberAct.END_LINK:
            return tr("Remove from the group…")
        case _:
            assert_never(act)


class Question(Struct, frozen=True, kw_only=True):
    """Before it is done."""

    title: str
    words: str
    yes: str
    is_grave: bool


def question_of(act: MemberAct, name: str, group: str, *, told_apart_by: str = "") -> Question:
    """``told_apart_by``: fingerprint of the one who is meant, if others bear the same name."""
    match act:
        case MemberAct.PROMOTE:
            question = Question(
                title=tr("Make {name} an admin?"),
                words=tr(
                    "An admin lets people in, removes members, and changes the group's name, topic"
                    " and picture. Only who ranks higher can take that back: the owner, and admins"
                    " who became it earlier."
                ),
                yes=tr("Make admin"),
                is_grave=False,
            )
        case MemberAct.DEMOTE:
            question = Question(
                title=tr("{name} an admin no more?"),
                words=tr("{name} stays a member. What {name} did as an admin stays as it is."),
                yes=tr("Admin no more"),
                is_grave=False,
            )
        case MemberAct.STEP_DOWN:
            question = Question(
                title=tr("Stop being an admin?"),
                words=tr("You stay a member. Only another admin can make you one again."),
                yes=tr("Stop being an admin"),
                is_grave=False,
            )
        case MemberAct.REMOVE:
            question = Question(
                title=tr("Remove {name} from {group}?"),
                words=tr(
                    "The group's key changes: once people have heard of it, {name} cannot read what"
                    " they write, and nothing that {name} writes counts. What {name} has read"
                    " already cannot be taken back. {name} sees who removed them, and comes back"
                    " only by a new invitation."
                ),
                yes=tr("Remove"),
                is_grave=True,
            )
        case MemberAct.END_LINK:
            question = Question(
                title=tr("Remove {name} and end the link?"),
                words=tr(
                    "From now on the link of this group lets nobody in any more: people come in by"
                    " invitations, and members have roles. This cannot be undone. The group's key"
                    " changes: once people have heard of it, {name} cannot read what they write."
                    " Whoever has the link can go on reading what was written before."
                ),
                yes=tr("Remove and end the link"),
                is_grave=True,
            )
        case _:
            assert_never(act)
    words = question.words.format(name=name)
    if told_apart_by:
        words += "\n\n" + tr(
            "Somebody else here bears the same name. This is the one whose fingerprint is"
            " {fingerprint}."
        ).format(fingerprint=told_apart_by)
    return Question(
        title=question.title.format(name=name, group=group),
        words=words,
        yes=question.yes,
        is_grave=question.is_grave,
    )


def icon_of(act: MemberAct) -> str:
    return {
        MemberAct.PROMOTE: "up",
        MemberAct.DEMOTE: "down",
        MemberAct.STEP_DOWN: "down",
        MemberAct.REMOVE: "leave",
        MemberAct.END_LINK: "leave",
    }[act]
