"""What somebody did to a governed group, in words: one sentence for each deed.

The names are shortened and cleaned like all that others choose.
"""

from typing import assert_never

from engine.core.admin_log.acts import Role
from engine.events import MessageView
from engine.governance_views import DeedKind, DeedView
from ui.foreign_text import one_line
from ui.translate import tr

_MAX_NAME = 40
_MAX_TEXT = 120


def deed_words(message: MessageView, deed: DeedView) -> str:
    name = one_line(message.sender_name, _MAX_NAME) or "?"
    other = one_line(deed.about_name, _MAX_NAME) or tr("A member")
    text = one_line(deed.text, _MAX_TEXT)
    if message.is_own:
        words = _yours(deed)
    elif deed.about_self:
        words = _to_you(deed)
    else:
        words = _theirs(deed)
    return words.format(name=name, other=other, text=text)


def _yours(deed: DeedView) -> str:  # noqa: C901, PLR0911, PLR0912 - one sentence each
    match deed.kind:
        case DeedKind.ADDED:
            return tr("You let {other} in")
        case DeedKind.REMOVED:
            return tr("You removed {other}")
        case DeedKind.LEFT:
            return tr("You left")
        case DeedKind.PROMOTED:
            return tr("You made {other} an admin")
        case DeedKind.DEMOTED:
            return tr("{other} is no admin any more: you decided so")
        case DeedKind.STEPPED_DOWN:
            return tr("You are no admin any more: you decided so")
        case DeedKind.RENAMED:
            return tr("You named the group “{text}”")
        case DeedKind.PICTURE_SET:
            return tr("You changed the group's picture")
        case DeedKind.TOPIC_SET:
            return tr("You set the topic: {text}") if deed.text else tr("You removed the topic")
        case DeedKind.INVITERS_SET:
            if deed.text == Role.MEMBER.name.lower():
                return tr("You allowed every member to let others in")
            return tr("You allowed only admins to let others in")
        case DeedKind.LINK_ENDED:
            return tr("You ended the link of this group: people come in by invitations")
        case _:
            assert_never(deed.kind)


def _to_you(deed: DeedView) -> str:
    match deed.kind:
        case DeedKind.ADDED:
            return tr("{name} let you in")
        case DeedKind.REMOVED:
            return tr("{name} removed you")
        case DeedKind.PROMOTED:
            return tr("{name} made you an admin")
        case DeedKind.DEMOTED:
            return tr("You are no admin any more: {name} decided so")
        case _:
            return _theirs(deed)


def _theirs(deed: DeedView) -> str:  # noqa: C901, PLR0911, PLR0912 - one sentence each
    match deed.kind:
        case DeedKind.ADDED:
            return tr("{name} let {other} in")
        case DeedKind.REMOVED:
            return tr("{name} removed {other}")
        case DeedKind.LEFT:
            return tr("{name} left")
        case DeedKind.PROMOTED:
            return tr("{name} made {other} an admin")
        case DeedKind.DEMOTED:
            return tr("{other} is no admin any more: {name} decided so")
        case DeedKind.STEPPED_DOWN:
            return tr("{name} is no admin any more, by their own wish")
        case DeedKind.RENAMED:
            return tr("{name} named the group “{text}”")
        case DeedKind.PICTURE_SET:
            return tr("{name} changed the group's picture")
        case DeedKind.TOPIC_SET:
            return (
                tr("{name} set the topic: {text}") if deed.text else tr("{name} removed the topic")
            )
        case DeedKind.INVITERS_SET:
            if deed.text == Role.MEMBER.name.lower():
                return tr("{name} allowed every member to let others in")
            return tr("{name} allowed only admins to let others in")
        case DeedKind.LINK_ENDED:
            return tr("{name} ended the link of this group: people come in by invitations")
        case _:
            assert_never(deed.kind)
