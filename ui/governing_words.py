"""Sentences about governed groups: roles, invitations, and groups one asked to be let into.

Pure functions over read models.  What somebody did is told by ``ui.deed_words``.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import assert_never

from msgspec import Struct

from engine.core.admin_log.acts import Role
from engine.core.ids import ParticipantId
from engine.governance_views import (
    AskingView,
    EarlierMessages,
    GovernanceView,
    InvitationView,
    JoinState,
    JoinView,
)
from ui.foreign_text import one_line
from ui.times import date_words, moment, spoken_time
from ui.translate import tr

_NAME = 40
_NAMES_SAID = 5


def role_words(role: Role) -> str:
    """Of a member: the mark behind the name, "" for those who are nothing more."""
    match role:
        case Role.OWNER:
            return tr("owner")
        case Role.ADMIN:
            return tr("admin")
        case Role.MEMBER | Role.NOBODY:
            return ""
        case _:
            assert_never(role)


def own_device_words() -> str:
    """What one who invites has to know."""
    return tr(
        "The link holds no key. Your device lets people in, and has to be online once after they"
        " ask."
    )


def nobody_more_words() -> str:
    """Of a group whose admin log is too large to be given to anybody."""
    return tr(
        "Nobody can be let into this group any more: its log of changes is too large to be handed"
        " to anybody new. Everything else goes on. Begin a new group to have more people."
    )


def leads(view: GovernanceView | None) -> bool:
    """Whether we may change the group."""
    return view is not None and view.own_role >= Role.ADMIN


def is_out(view: GovernanceView | None) -> bool:
    """Whether we are in it no more, and only read what is here."""
    return view is not None and view.own_role is Role.NOBODY


def leaves_nobody_in_charge(view: GovernanceView) -> bool:
    """If we left: others would stay, and none of them could govern the group."""
    if view.own_role < Role.ADMIN:
        return False
    in_charge = sum(1 for role in view.roles.values() if role >= Role.ADMIN)
    return in_charge == 1 and len(view.roles) > 1


def open_invitations(view: GovernanceView) -> tuple[InvitationView, ...]:
    return tuple(one for one in view.invitations if one.is_open)


def invitation_title(invitation: InvitationView, now: datetime) -> str:
    """`"For 5 people, until 4 December"`; whose it is, if somebody else's."""
    people = tr("For %n people", "For %n person", invitation.uses)
    expires = moment(invitation.expires_ms).astimezone(now.tzinfo)
    if invitation.is_revoked:
        words = tr("{people}, revoked").format(people=people)
    elif invitation.expires_ms <= now.timestamp() * 1000:
        words = tr("{people}, expired on {date}").format(
            people=people, date=date_words(expires.date())
        )
    elif not invitation.is_open and len(invitation.came) < invitation.uses:
        words = tr("{people}, of no use: whoever made it may not let others in any more")
        words = words.format(people=people)
    elif not invitation.is_open:
        words = tr("{people}, used up").format(people=people)
    else:
        words = tr("{people}, until {date}").format(people=people, date=date_words(expires.date()))
    if invitation.needs_approval is None:
        return tr("{name}: {words}").format(name=one_line(invitation.by_name, _NAME), words=words)
    return words


def came_words(invitation: InvitationView) -> str:
    """Who came by it, and whether each is decided about."""
    names = [one_line(name, _NAME) or "?" for name in invitation.came_names[:_NAMES_SAID]]
    more = len(invitation.came_names) - len(names)
    if more > 0:
        names.append(tr("%n more", "%n more", more))
    words = (
        tr("{number} of {all} came: {names}").format(
            number=len(invitation.came), all=invitation.uses, names=", ".join(names)
        )
        if names
        else tr("Nobody came by it yet")
    )
    if invitation.is_open and invitation.needs_approval:
        return tr("{words}. You decide about each.").format(words=words)
    return words


def allowed_words(invitation: InvitationView, now: datetime) -> str:
    """What one of ours that is open allows, in sentences: what stands beside its link."""
    said = [f"{invitation_title(invitation, now)}."]
    if invitation.needs_approval is not None:
        said.append(
            tr("You decide about each person.")
            if invitation.needs_approval
            else tr("Whoever has the link comes in at once.")
        )
    match invitation.earlier:
        case EarlierMessages.NONE:
            said.append(tr("They can read only what comes after."))
        case EarlierMessages.DAYS_30:
            said.append(tr("They can read from 30 days ago on."))
        case EarlierMessages.ALL:
            said.append(tr("They can read everything from the start."))
        case None:
            pass
        case _:
            assert_never(invitation.earlier)
    return " ".join(said)


def asking_title(asking: Sequence[AskingView]) -> str:
    """At least one asks."""
    if len(asking) == 1:
        return tr("{name} asks to be let in").format(name=one_line(asking[0].name, _NAME) or "?")
    return tr("%n people ask to be let in", "%n person asks to be let in", len(asking))


def removed_words(view: GovernanceView) -> str:
    """Why nothing can be written any more; "" while we are a member."""
    if not is_out(view):
        return ""
    name = one_line(view.removed_by_name, _NAME)
    if name:
        return tr("{name} removed you from this group").format(name=name)
    if view.is_link_over:
        return tr("The link of this group ended when somebody was removed")
    return tr("You are not in this group any more")


def void_words(voids: Mapping[ParticipantId, int], names: Mapping[ParticipantId, str]) -> list[str]:
    """What people wrote after their removal, which nobody is shown: a sentence for each of them."""
    first, rest = [*voids.items()][:_NAMES_SAID], [*voids.values()][_NAMES_SAID:]
    said = [
        tr(
            "%n messages that {name} wrote after the removal are not shown.",
            "%n message that {name} wrote after the removal is not shown.",
            number,
        ).format(name=one_line(names.get(who, ""), _NAME) or "?")
        for who, number in first
    ]
    if rest:
        said.append(
            tr(
                "%n messages of others who were removed are not shown.",
                "%n message of others who were removed is not shown.",
                sum(rest),
            )
        )
    return said


def prekey_words(without: Collection[ParticipantId], names: Mapping[ParticipantId, str]) -> str:
    """Of members whose keys are sealed to one that does not change; "" if there are none."""
    if not without:
        return ""
    said = sorted(one_line(names.get(who, ""), _NAME) or "?" for who in without)
    more = len(said) - _NAMES_SAID
    if more > 0:
        said[_NAMES_SAID:] = [tr("%n more", "%n more", more)]
    return tr(
        "For {names} the group's new keys are sealed to a long-term key: no fresh one of theirs is"
        " here."
    ).format(names=", ".join(said))


class JoinWords(Struct, frozen=True, kw_only=True):
    """What is said of a group that one asked to be let into."""

    line: str
    """Below its name in the list."""
    title: str
    words: str
    goes_on: bool
    """This device still asks."""


def join_words(join: JoinView, now: datetime) -> JoinWords:
    name = one_line(join.inviter_name, _NAME) or "?"
    line, title, words, goes_on = _join_words(join.state)
    asked = spoken_time(join.asked_ms, now)
    return JoinWords(
        line=line.format(name=name),
        title=title.format(name=name, group=one_line(join.group_name, _NAME)),
        words=words.format(name=name, time=asked),
        goes_on=goes_on,
    )


def _join_words(state: JoinState) -> tuple[str, str, str, bool]:  # noqa: PLR0911 - one per state
    match state:
        case JoinState.ASKED:
            return (
                tr("Waiting to be let in"),
                tr("Waiting to be let into {group}"),
                tr(
                    "Asked since {time}. {name}'s device has to be online once to let you in. This"
                    " device keeps asking by itself, also after a restart."
                ),
                True,
            )
        case JoinState.WAITS:
            return (
                tr("{name} has to decide"),
                tr("{name} has to decide"),
                tr("{name} was told that you want to come in. You need not do anything more."),
                True,
            )
        case JoinState.REFUSED:
            return (
                tr("{name} did not let you in"),
                tr("{name} did not let you in"),
                tr("If that was a mistake, talk to {name} and ask for another invitation."),
                False,
            )
        case JoinState.SPENT:
            return (
                tr("The invitation is used up"),
                tr("This invitation is used up"),
                tr(
                    "Somebody else came in with it before you. Ask {name} for one of your own, and"
                    " tell them: if it was meant for you alone, the link went astray."
                ),
                False,
            )
        case JoinState.EXPIRED:
            return (
                tr("The invitation has expired"),
                tr("This invitation has expired"),
                tr("Ask {name} for a new one."),
                False,
            )
        case JoinState.REVOKED:
            return (
                tr("The invitation was revoked"),
                tr("This invitation was revoked"),
                tr("It lets nobody in any more. Ask {name} for a new one."),
                False,
            )
        case JoinState.FULL:
            return (
                tr("Nobody is let in any more"),
                tr("{group} lets nobody in any more"),
                tr(
                    "Its log of changes is too large to be handed to anybody new. {name} can begin"
                    " a new group."
                ),
                False,
            )
        case _:
            assert_never(state)
